"""What the KV cache holds: the bookkeeping by which no token is evaluated twice.

Each thread has a sequence of the cache's cells. A cell can belong to many sequences, so that the
few-shot prompt, and anything else that two threads share, is there once: spawning a thread is a
copy of a prefix, which costs nothing. This module only keeps account; `Memory` does the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

Key = int | str
"""Whose sequence it is: a thread's number, or the name of a few-shot prompt."""


class Memory(ABC):
    """The cells of a cache, by sequence number and position."""

    @abstractmethod
    def copy(self, source: int, target: int, length: int) -> None:
        """The first `length` cells of `source` belong to the empty sequence `target` as well."""

    @abstractmethod
    def cut(self, sequence: int, length: int) -> bool:
        """Keep only the first `length` cells; False if this memory cannot forget a part."""


@dataclass(slots=True)
class CachedSequence:
    """A sequence of the cache: its number, the tokens in its cells, when it was last used.

    over: its thread has ended; the cells are left for a fork, until somebody needs the room.
    """

    sequence: int
    tokens: list[int] = field(default_factory=list)
    used: int = 0
    over: bool = False


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two lists share from their start."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high:  # slices compare at the speed of C, which a loop over tokens does not
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class KVCache:
    """Which tokens are in the cache, for whom.

    sequences: how many there can be at once; the coldest makes room for a new one.
    """

    def __init__(self, memory: Memory, sequences: int) -> None:
        self._memory = memory
        self._free = list(range(sequences))[::-1]
        self._held: dict[Key, CachedSequence] = {}
        self._clock = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def held(self, key: Key) -> CachedSequence:
        """The sequence of a thread or prompt; using it keeps it warm."""
        held = self._held[key]
        self._clock += 1
        held.used = self._clock
        return held

    def place(self, key: Key, tokens: list[int], busy: Collection[Key] = ()) -> int:
        """Make the sequence of `key` hold the longest prefix of `tokens` that is cached anywhere.

        At least the last token is left to be evaluated, because only evaluation gives logits.
        Returns the length of the prefix, in tokens. `busy` are keys that must not be evicted.
        """
        wanted = tokens[:-1]
        own = self._held.get(key)
        if own is not None:
            kept = common_prefix(own.tokens, wanted)
            best = self._best(wanted, apart_from=key)
            if best is None or common_prefix(self._held[best].tokens, wanted) <= kept:
                return self._cut(key, kept)
            self.drop(key)
        return self._copy(key, wanted, busy)

    def _copy(self, key: Key, wanted: list[int], busy: Collection[Key]) -> int:
        best = self._best(wanted)
        spared = {*busy} if best is None else {*busy, best}
        if not self._free and self.evict(spared) is None:
            best = None  # even what could have been copied has to go
            if self.evict(busy) is None:
                raise RuntimeError(
                    f"all {len(self._held)} sequences of the cache are generating; "
                    "load the model with more (sequences=...)"
                )
        target = self._held[key] = CachedSequence(self._free.pop())
        self.held(key)
        if best is None:
            return 0
        source = self.held(best)
        shared = common_prefix(source.tokens, wanted)
        self._memory.copy(source.sequence, target.sequence, len(source.tokens))
        target.tokens = list(source.tokens)
        return self._cut(key, shared)

    def _best(self, wanted: list[int], apart_from: Key | None = None) -> Key | None:
        """The key whose tokens share the longest prefix, at least one token."""
        shared = {
            key: common_prefix(held.tokens, wanted)
            for key, held in self._held.items()
            if key != apart_from
        }
        best = max(shared, key=lambda key: shared[key], default=None)
        return best if best is not None and shared[best] else None

    def _cut(self, key: Key, length: int) -> int:
        held = self.held(key)
        if length == len(held.tokens):
            return length
        if not self._memory.cut(held.sequence, length):
            self._memory.cut(held.sequence, 0)
            length = 0
        del held.tokens[length:]
        return length

    def extend(self, key: Key, tokens: Sequence[int]) -> None:
        """These tokens were evaluated behind those that the sequence holds."""
        self.held(key).tokens += tokens

    def forget(self, key: Key) -> None:
        """Empty the cells behind what is on record: an evaluation broke off."""
        held = self._held[key]
        if not self._memory.cut(held.sequence, len(held.tokens)):
            self._memory.cut(held.sequence, 0)
            held.tokens.clear()

    def drop(self, key: Key) -> None:
        """Free a sequence; cells that others share stay."""
        held = self._held.pop(key, None)
        if held is not None:
            self._memory.cut(held.sequence, 0)
            self._free.append(held.sequence)

    def retire(self, key: Key) -> None:
        """Leave the cells of a thread that is over; they go first when room is needed."""
        if key in self._held:
            self._held[key].over = True

    def evict(self, busy: Collection[Key]) -> Key | None:
        """Drop the coldest sequence that is not busy, those of ended threads before all others.

        Its tokens are evaluated again if needed.

        Returns its key, or None if all are busy.
        """
        cold = [key for key in self._held if key not in busy]
        if not cold:
            return None
        coldest = min(cold, key=lambda key: (not self._held[key].over, self._held[key].used))
        self.drop(coldest)
        return coldest
