"""Distillation: the episodes of a teacher in, an adapter out."""
