"""Token probabilities: the chances of the dialect's marks and of the likeliest tokens.

Measured on the model's own distribution: the softmax of all logits at temperature 1, before any
temperature, draw or ban. The chance of a mark is the sum over the tokens that

- complete it behind what is written,
- carry it on, where it is begun but not complete, or
- begin it, where no single token spells it: the first token of the mark as this vocabulary spells
  it, with or without spaces before.

So where the vocabulary has the mark as one token, as most have ` =>`, its chance is that of writing
it. Where it takes several, the chance is that of its first token, which may begin other things as
well (`#` is a comment, too), until it is begun; from there on it is that of carrying it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

TOP = 5
"""Alternatives that are kept."""


class Spellings:
    """Which tokens of a vocabulary lead to a mark.

    pieces: the bytes of each token.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._known: dict[tuple[bytes, bytes], Any] = {}

    def leading_to(self, mark: bytes, first: bytes, written: bytes) -> Any:
        """The numbers of the tokens that complete a mark, carry it on, or begin it.

        first: the bytes of the mark's first token, as the vocabulary spells the mark.
        written: what stands before; its end may be the beginning of the mark.
        """
        sizes = range(min(len(mark) - 1, len(written)), 0, -1)
        begun = next((mark[:n] for n in sizes if written.endswith(mark[:n])), b"")
        if (mark, begun) not in self._known:
            is_one = any(piece.strip(b" ") == mark for piece in self._pieces)
            found = [
                number
                for number, piece in enumerate(self._pieces)
                if mark in begun + piece
                or (begun and piece and mark.startswith(begun + piece))
                or (not begun and not is_one and piece.lstrip(b" ") == first)
            ]
            self._known[mark, begun] = np.array(found, dtype=np.int64)
        return self._known[mark, begun]


def softmax(logits: Any) -> Any:
    """The softmax of logits."""
    shares = np.exp(logits - logits.max())
    return shares / shares.sum()


def top_k(shares: Any) -> list[int]:
    """The numbers of the likeliest tokens, the likeliest first."""
    some = np.argpartition(-shares, TOP)[:TOP] if len(shares) > TOP else np.arange(len(shares))
    return [int(one) for one in some[np.argsort(-shares[some], kind="stable")]]
