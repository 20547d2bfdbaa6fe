"""Drafts: tokens that may come next, looked up in all that an engine has read and written.

What threads write is largely there already: in the few-shot prompt, in what their parents and
siblings wrote, in their own context. So the last tokens are looked up, and what followed them then
is a draft, which the model verifies in one pass (speculative decoding with an n-gram look-up
instead of a draft model: Saxena, "Prompt Lookup Decoding", 2023; Leviathan et al., 2023,
arXiv:2211.17192, for the verification). Nothing here decides what is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

LONGEST = 8
"""Tokens beyond which no match is better than another."""

LOOKED_AT = 64  # earlier places with the same last two tokens; the latest ones
LIMIT = 2**17  # tokens: two to four copies of a large context, some 30 MB

Place = tuple[list[int], int]


class DraftIndex:
    """The tokens of every text that was read or written, found by any one or two in a row.

    limit: tokens that are kept; beyond it the texts that were begun (or read again) longest ago go,
        until half of it is left.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.size = 0
        self._texts: dict[Hashable, list[int]] = {}  # the oldest first
        # What follows two tokens, wherever they are, and one where it was last: text and place.
        self._behind_two: defaultdict[tuple[int, int], list[Place]] = defaultdict(list)
        self._behind_one: dict[int, Place] = {}

    def read(self, key: Hashable, tokens: Sequence[int]) -> None:
        """A whole text, which later ones will repeat; the same one again is only kept longer."""
        known = self._texts.pop(key, None)
        if known is not None and known == list(tokens):
            self._texts[key] = known
            return
        self.size -= len(known or ())
        self.add(key, tokens)

    def add(self, key: Hashable, tokens: Sequence[int]) -> None:
        """Tokens behind those of the text that has this key, or the first of a new one."""
        # 1. Room: the text itself can be among those that go, and begins anew then.
        tokens = tokens[-self.limit :] if self.limit else ()
        if not tokens:
            return
        if self.size + len(tokens) > self.limit:
            self._forget(min(self.limit // 2, self.limit - len(tokens)))
        # 2. Where each run of tokens is followed by something, from now on.
        text = self._texts.setdefault(key, [])
        start = len(text)
        text += tokens
        self.size += len(tokens)
        self._index(text, start)

    def look_up(self, tokens: Sequence[int], most: int) -> tuple[list[int], int]:
        """At most so many tokens that followed these before, and how many tokens match.

        The longest match (up to `LONGEST` tokens) counts, of equally long ones the latest. A draft
        that ends with its text is looked up further.
        """
        seen, matched = list(tokens[-LONGEST:]), 0
        start = len(seen)
        while start and len(seen) - start < most:
            place, length = self._longest(seen[-LONGEST:])
            if place is None:
                break
            matched = matched or length
            text, first = place
            seen += text[first : first + most - (len(seen) - start)]
        return seen[start:], matched

    def _longest(self, last: list[int]) -> tuple[Place | None, int]:
        """The latest of the longest matches, and its tokens."""
        best, longest = self._behind_one.get(last[-1]), 1
        places = self._behind_two.get((last[-2], last[-1]), []) if len(last) > 1 else []
        for text, first in reversed(places[-LOOKED_AT:]):
            length, most = 2, min(len(last), first)
            while length < most and text[first - length - 1] == last[-length - 1]:
                length += 1
            if length > longest:
                best, longest = (text, first), length
                if length == len(last):
                    break
        return best, longest

    def _index(self, text: list[int], start: int) -> None:
        for place in range(max(start, 1), len(text)):
            self._behind_one[text[place - 1]] = text, place
            if place > 1:
                self._behind_two[text[place - 2], text[place - 1]].append((text, place))

    def _forget(self, left: int) -> None:
        """Drop the oldest texts until at most so many tokens are left."""
        while self._texts and self.size > left:
            self.size -= len(self._texts.pop(next(iter(self._texts))))
        self._behind_one.clear()
        self._behind_two.clear()
        for text in self._texts.values():
            self._index(text, 0)
