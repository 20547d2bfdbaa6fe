"""One step of llama.cpp: which tokens go into its batch, and what becomes of the cells."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import llama_cpp
import numpy as np

from thread_kit.engines.engine import EngineError
from thread_kit.engines.kv_cache import KVCache, Memory, SequenceKey
from thread_kit.engines.llama_model import LlamaModel, last_error


class Cells(Memory):
    """The cells of a llama.cpp context."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._memory = llama_cpp.llama_get_memory(context)

    def copy(self, source: int, target: int, length: int) -> None:
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, length)

    def cut(self, sequence: int, length: int) -> bool:
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1))

    def read(self, sequence: int) -> np.ndarray | None:
        """What the cells of a sequence hold (bytes), or None if llama.cpp does not say."""
        size = llama_cpp.llama_state_seq_get_size(self._context, sequence)
        cells = np.empty(size, np.uint8)
        target = ctypes.cast(cells.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
        written = llama_cpp.llama_state_seq_get_data(self._context, target, size, sequence)
        return cells if written == size else None

    def write(self, sequence: int, cells: np.ndarray, tokens: int) -> bool:
        """Fill a sequence with what was read; False if these are not the cells of `tokens` tokens.

        The sequence is empty, or holds anything, where it is False.
        """
        source = ctypes.cast(cells.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
        size = len(cells)
        read = llama_cpp.llama_state_seq_set_data(self._context, source, size, sequence)
        last = llama_cpp.llama_memory_seq_pos_max(self._memory, sequence)
        return read == size and last == tokens - 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens of one sequence in a batch.

    is_last: nothing of its context is left behind them. draft: tokens behind a whole context that
    may be the next ones, to be verified.
    """

    key: SequenceKey
    tokens: list[int]
    is_last: bool
    draft: list[int] = field(default_factory=list)


def plan_batch(waiting: Iterable[tuple[SequenceKey, list[int]]], room: int) -> list[Chunk]:
    """What the next batch holds, of the tokens that each thread has yet to evaluate.

    Threads that generate go first, with one token each; contexts fill what room (tokens) is left.
    """
    plan: list[Chunk] = []
    for key, tokens in sorted(waiting, key=lambda pair: len(pair[1])):
        if room:
            chunk = tokens[:room]
            plan.append(Chunk(key, chunk, len(chunk) == len(tokens)))
            room -= len(chunk)
    return plan


def decode(
    model: LlamaModel, cache: KVCache, plan: list[Chunk], busy: set[SequenceKey]
) -> list[list[int]] | None:
    """Evaluate one batch; for each whole context, the rows of the logits behind it and its draft.

    busy: keys that must not lose their cells. Where no cell is left, drafts go before anything that
    is cached does: then there are fewer rows. Returns None when nothing more can be evicted. Raises
    EngineError where llama.cpp fails.
    """
    if not all(chunk.tokens for chunk in plan):
        raise EngineError("a sequence without new tokens has no logits; this must not happen")
    # 1. Fill llama.cpp's batch; only the last token of a whole context and drafts need logits.
    batch, n = model.batch, 0
    rows: list[list[int]] = []
    for chunk in plan:
        sequence = cache.sequence(chunk.key)
        needed = n + len(chunk.tokens) - 1 if chunk.is_last else np.inf
        for position, token in enumerate([*chunk.tokens, *chunk.draft], len(sequence.tokens)):
            batch.token[n] = token
            batch.pos[n] = position
            batch.n_seq_id[n] = 1
            batch.seq_id[n][0] = sequence.number
            batch.logits[n] = n >= needed
            n += 1
        rows.append([*range(n - 1 - len(chunk.draft), n)] if chunk.is_last else [])
    batch.n_tokens = n
    try:
        # 2. Decode; 1 says that no cells are left, and somebody's have to go.
        while (code := llama_cpp.llama_decode(model.context, batch)) == 1:
            if any(chunk.draft for chunk in plan):
                return decode(model, cache, [replace(chunk, draft=[]) for chunk in plan], busy)
            if cache.evict(busy) is None:
                return None
        if code != 0:
            raise EngineError(f"llama.cpp could not evaluate a batch (code {code}): {last_error()}")
        # 3. Write down what the cells hold now.
        for chunk in plan:
            cache.extend(chunk.key, [*chunk.tokens, *chunk.draft])
    except BaseException:
        # An interrupt arrives here as soon as llama.cpp returns: its cells are filled, and
        # nobody has written it down. What is not on record goes out of the cells again.
        for chunk in plan:
            cache.forget(chunk.key)
        raise
    return rows
