"""Oracles about sequences, of tokens or of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise


def longest_prefix(tokens: Sequence[int], held: Iterable[Sequence[int]]) -> int:
    """How many of these tokens any of the sequences begins with, at most."""
    best = 0
    for other in held:
        n = 0
        while n < min(len(tokens), len(other)) and tokens[n] == other[n]:
            n += 1
        best = max(best, n)
    return best


def cut(text: bytes, places: Iterable[int]) -> list[bytes]:
    """A text in pieces, cut at these places."""
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]
