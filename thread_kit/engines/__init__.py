"""Engines: tokens in, tokens out.

The G of Algorithm 1, behind one small interface (`engine.py`).
"""
