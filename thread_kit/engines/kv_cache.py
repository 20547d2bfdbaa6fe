"""What the KV cache holds: the bookkeeping by which no token is evaluated twice.

Each thread has a sequence of the cache's cells. A cell can belong to many sequences, so that the
few-shot prompt, and anything else that two threads share, is there once: spawning a thread is a
copy of a prefix, which costs nothing. This module only keeps account; `Memory` does the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field

SequenceKey = Hashable
"""Whose sequence it is: a thread's key (`ThreadKey`), or what names a few-shot prompt."""


@dataclass(frozen=True, slots=True)
class PromptKey:
    """The key of a few-shot prompt's sequence, which no thread's key equals."""

    sha256: str


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

    is_over: its thread has ended; the cells are left for a fork, until somebody needs the room.
    """

    number: int
    tokens: list[int] = field(default_factory=list)
    last_used: int = 0
    is_over: bool = False


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
        self._sequences: dict[SequenceKey, CachedSequence] = {}
        self._clock = 0
        self._cuts = True  # the memory can forget a part, as far as is known

    def __contains__(self, key: SequenceKey) -> bool:
        return key in self._sequences

    def __len__(self) -> int:
        return len(self._sequences)

    def sequence(self, key: SequenceKey) -> CachedSequence:
        """The sequence of a thread or prompt; using it keeps it warm. Raises KeyError."""
        sequence = self._sequences[key]
        self._clock += 1
        sequence.last_used = self._clock
        return sequence

    def place(self, key: SequenceKey, tokens: list[int], busy: Collection[SequenceKey] = ()) -> int:
        """Make the sequence of `key` hold the longest prefix of `tokens` that is cached anywhere.

        At least the last token is left to be evaluated, because only evaluation gives logits.
        Returns the length of the prefix, in tokens. `busy` are keys that must not be evicted.
        Raises RuntimeError where all sequences are.
        """
        needed = tokens[:-1]
        own = self._sequences.get(key)
        if own is not None:
            own.is_over = False
            length = self._usable(own, needed)
            best = self._best(needed, apart_from=key)
            if best is None or self._usable(self._sequences[best], needed) <= length:
                return self._cut(key, length)
            self.drop(key)
        return self._copy(key, needed, busy)

    def _copy(self, key: SequenceKey, needed: list[int], busy: Collection[SequenceKey]) -> int:
        best = self._best(needed)
        spared = {*busy} if best is None else {*busy, best}
        if not self._free and self.evict(spared) is None:
            gone = self.evict(busy)  # even what could have been copied
            best = self._best(needed)
            if gone is None:
                raise RuntimeError(
                    f"all {len(self._sequences)} sequences of the cache are generating; "
                    "load the model with more (sequences=...)"
                )
        target = self._sequences[key] = CachedSequence(self._free.pop())
        self.sequence(key)
        if best is None:
            return 0
        source = self.sequence(best)
        shared = common_prefix(source.tokens, needed)
        self._memory.copy(source.number, target.number, len(source.tokens))
        target.tokens = list(source.tokens)
        return self._cut(key, shared)

    def _best(self, needed: list[int], apart_from: SequenceKey | None = None) -> SequenceKey | None:
        """The key whose tokens share the longest prefix, at least one token."""
        shared = {
            key: self._usable(sequence, needed)
            for key, sequence in self._sequences.items()
            if key != apart_from
        }
        best = max(shared, key=lambda key: shared[key], default=None)
        return best if best is not None and shared[best] else None

    def _usable(self, sequence: CachedSequence, needed: list[int]) -> int:
        """How many of its tokens, from the start, can be cells of a sequence for `needed`.

        Of a memory that cannot forget a part, all or none: a prompt that is evaluated a batch at a
        time would else be given up for another one that shares more, at each batch, for ever.
        """
        shared = common_prefix(sequence.tokens, needed)
        return shared if self._cuts or shared == len(sequence.tokens) else 0

    def _cut(self, key: SequenceKey, length: int) -> int:
        sequence = self.sequence(key)
        if length == len(sequence.tokens):
            return length
        if not self._memory.cut(sequence.number, length):
            self._cuts = False
            self._memory.cut(sequence.number, 0)
            length = 0
        del sequence.tokens[length:]
        return length

    def cut(self, key: SequenceKey, length: int) -> bool:
        """Keep only the first `length` tokens; False where that meant to empty the sequence."""
        return self._cut(key, length) == length

    def extend(self, key: SequenceKey, tokens: Sequence[int]) -> None:
        """These tokens were evaluated behind those that the sequence holds."""
        self.sequence(key).tokens += tokens

    def forget(self, key: SequenceKey) -> None:
        """Empty the cells behind what is on record: an evaluation broke off."""
        sequence = self._sequences[key]
        if not self._memory.cut(sequence.number, len(sequence.tokens)):
            self._memory.cut(sequence.number, 0)
            sequence.tokens.clear()

    def drop(self, key: SequenceKey) -> None:
        """Free a sequence; cells that others share stay."""
        sequence = self._sequences.pop(key, None)
        if sequence is not None:
            self._memory.cut(sequence.number, 0)
            self._free.append(sequence.number)

    def retire(self, key: SequenceKey) -> None:
        """Leave the cells of a thread that is over; they go first when room is needed."""
        if key in self._sequences:
            self._sequences[key].is_over = True

    def evict_over(self) -> bool:
        """Drop the coldest sequence of a thread that has ended; False if there is none."""
        living = [key for key, sequence in self._sequences.items() if not sequence.is_over]
        return self.evict(living) is not None

    def evict(self, busy: Collection[SequenceKey]) -> SequenceKey | None:
        """Drop the coldest sequence that is not busy, those of ended threads before all others.

        Its tokens are evaluated again if needed. Returns its key, or None if all are busy.
        """
        cold = [(key, sequence) for key, sequence in self._sequences.items() if key not in busy]
        if not cold:
            return None
        coldest, _ = min(cold, key=lambda pair: (not pair[1].is_over, pair[1].last_used))
        self.drop(coldest)
        return coldest
