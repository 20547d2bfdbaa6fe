"""Environments: action in, observation out.

One folder a benchmark; `env.py` is what all of them offer.
"""
