"""Few-shot prompts that are read side by side, in cells that may not hold all of them at once."""

from __future__ import annotations

from itertools import takewhile
from typing import final

from thread_kit.engines.kv_cache import SequenceKey

LOOKS = 50
"""After so many looks in vain who waits goes before a prompt that nobody has gone on to read."""


@final
class PromptReaders:
    """The prompts that are being read, the oldest first: it keeps its cells, and comes to its end.

    One that nobody goes on to read, since its player is paused, comes after who waits for it.
    """

    def __init__(self) -> None:
        self._looks: dict[SequenceKey, int] = {}
        self._waiting: dict[SequenceKey, tuple[int, dict[SequenceKey, int]]] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def look(self, key: SequenceKey) -> None:
        """Somebody goes on to read this prompt."""
        self._looks[key] = self._looks.get(key, 0) + 1

    def wait(self, key: SequenceKey) -> None:
        """There was no room for it."""
        waited, before = self._waiting.get(key, (0, {}))
        if not before:
            before = dict(self._looks)
        elif waited == LOOKS:
            for other, looks in before.items():
                if other != key and self._looks.get(other) == looks:
                    self._looks[other] = self._looks.pop(other)
            waited, before = 0, dict(self._looks)
        self._waiting[key] = waited + 1, before

    def older(self, key: SequenceKey) -> set[SequenceKey]:
        """The prompts that were begun before this one; none for what is no prompt."""
        if key not in self._looks:
            return set()
        return set(takewhile(lambda prompt: prompt != key, list(self._looks)))

    def leave(self, key: SequenceKey) -> None:
        """It is read, or given up."""
        self._looks.pop(key, None)
        self._waiting.pop(key, None)
