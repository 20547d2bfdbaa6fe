"""Errors: failed episodes in, reviews out (THREAD paper, E.1)."""
