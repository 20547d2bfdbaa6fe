"""Token probabilities: the chances of the dialect's marks and of the likeliest tokens.

Measured on the model's own distribution: the softmax of all logits at temperature 1, before any
temperature, draw or ban. The probability of a mark is the sum over the tokens that

- complete it behind what is written,
- carry it on, where it is begun but not complete, or
- begin it, where no single token spells it: the first token of the mark as this vocabulary spells
  it, with or without spaces before.

So where the vocabulary has the mark as one token, as most have ` =>`, its probability is that of
writing it. Where it takes several, it is that of its first token, which may begin other things as
well (`#` is a comment, too), until it is begun; from there on it is that of carrying it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

TOP = 5
"""Alternatives that are kept."""


class MarkTokens:
    """Which tokens of a vocabulary lead to a mark.

    pieces: the bytes of each token.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._leading: dict[tuple[bytes, bytes], Any] = {}

    def leading_to(self, mark: bytes, first: bytes, written: bytes) -> Any:
        """The numbers of the tokens that complete a mark, carry it on, or begin it.

        first: the bytes of the mark's first token, as the vocabulary spells the mark.
        written: what stands before; its end may be the beginning of the mark.
        """
        sizes = range(min(len(mark) - 1, len(written)), 0, -1)
        begun = next((mark[:n] for n in sizes if written.endswith(mark[:n])), b"")
        if (mark, begun) not in self._leading:
            is_one = any(piece.strip(b" ") == mark for piece in self._pieces)
            leading = [
                number
                for number, piece in enumerate(self._pieces)
                if mark in begun + piece
                or (begun and piece and mark.startswith(begun + piece))
                or (not begun and not is_one and piece.lstrip(b" ") == first)
            ]
            self._leading[mark, begun] = np.array(leading, dtype=np.int64)
        return self._leading[mark, begun]


def top_k(shares: Any) -> list[int]:
    """The numbers of the `TOP` likeliest tokens, the likeliest first."""
    likeliest = np.argpartition(-shares, TOP)[:TOP] if len(shares) > TOP else np.arange(len(shares))
    return likeliest[np.argsort(-shares[likeliest], kind="stable")].tolist()
