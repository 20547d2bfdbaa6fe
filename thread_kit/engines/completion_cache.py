"""What followed the same tokens before: a session asks its model for nothing twice.

A thread that spawns what it has spawned before, and is answered as before, has a child that sees
token for token what an earlier one saw. At temperature 0 it writes the same, so it is not generated
again: no pass, no cell. (A thread that runs in circles spends its 200 calls on little else.)

Only what threads of one session wrote counts: what an episode costs never depends on what else was
played. Not where a call is sampled, since each thread has its own draws, and not where it tells
probabilities, since those are of a pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from thread_kit.dialect import Stop
from thread_kit.engines.engine import GenerateRequest, SessionThread, ThreadKey

LIMIT = 4096
"""Completions: more than a session's calls (200, by THREAD's budget) times those side by side."""

CompletionKey = tuple[int, bytes, frozenset[tuple[str, Stop]], frozenset[str]]
"""The session, the hash of all that the thread sees, what stops it, what it must not write."""


def completion_key(thread: ThreadKey, request: GenerateRequest) -> CompletionKey | None:
    """By what a completion is found again; None where nothing else may be answered by it."""
    if not isinstance(thread, SessionThread) or request.temperature > 0 or request.logprobs:
        return None
    if request.given:  # where it ends, a stop string may stand astride
        return None
    seen = hashlib.sha256(np.asarray(request.seen, dtype=np.int64).tobytes()).digest()
    return thread.session, seen, frozenset(request.stops.items()), frozenset(request.forbid)


class CompletionCache:
    """The sampled tokens of completions, the one that stopped each of them included.

    limit: completions that are kept; the oldest go first.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._completions: dict[CompletionKey, tuple[tuple[int, ...], bool]] = {}

    def find(self, key: CompletionKey | None, room: int) -> list[int]:
        """The tokens behind what the key names, up to their stop; [] where nobody has asked.

        room: new tokens at most. Where the earlier call had less, and spent it, it says nothing.
        """
        tokens, is_whole = self._completions.get(key, ((), False)) if key else ((), False)
        return list(tokens) if is_whole or len(tokens) >= room else []

    def store(self, key: CompletionKey | None, tokens: Sequence[int], stop: Stop) -> None:
        """Keep what was sampled until this stop; not of a call that something else has ended."""
        if key is None or stop in (Stop.CANCELLED, Stop.CONTEXT):
            return
        self._completions.pop(key, None)
        self._completions[key] = tuple(tokens), stop is not Stop.LENGTH
        if len(self._completions) > self.limit:
            del self._completions[next(iter(self._completions))]
