"""How fast sessions write, beside a bare loop over llama.cpp with the same number of sequences.

Both have a context of their own, with the same cells taken and the same text before them, and they
take turns, some tokens each, so that a machine that slows down slows both. The loop does what any
program must do: one `llama_decode` for one token of each sequence, and the likeliest token of each.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

from thread_kit.bench.bare_loop import BareLoop
from thread_kit.bench.timed_engine import TimedEngine
from thread_kit.bench.workload import Weights
from thread_kit.dialect import Dialect
from thread_kit.engines.llama import LlamaEngine
from thread_kit.session.session import Session
from thread_kit.trace.events import Token

NEVER = Dialect(listen="\0=>", close="\0<=", end="\0END", start="\0START")
"""Marks that no model writes: a call goes on until its tokens are spent."""

KEY = 10**9  # of a thread that is over, and leaves its cells

TEXT = "A thread waits for what its child brings, and its cells stay where they are. " * 12


class Rate(NamedTuple):
    """How fast `at_once` sessions write, all together.

    share: of the rate of the bare loop; the median over turns. low, high: its quartiles.
    per_second: tokens, in all sessions. outside: the share of the sessions' time in which
    llama.cpp computes nothing, because it waits for Python.
    """

    at_once: int
    share: float
    low: float
    high: float
    per_second: float
    outside: float


class EndlessEngine(TimedEngine):
    """A TimedEngine that never stops."""

    def _sample(self, row: int, call: Any) -> int:
        token = super()._sample(row, call)
        ends = self._vocabulary.ends(token)
        return call.tokens[0] if ends else token


def rate(weights: Weights, at_once: int, *, turns: int = 24, tokens: int = 24) -> Rate:
    """Let sessions and the bare loop write in turns: `tokens` for each sequence, `turns` times."""
    loop = BareLoop(weights, at_once)
    try:
        with weights.load(EndlessEngine) as engine:
            contexts = [f"{number}. {TEXT}" for number in range(at_once)]
            for number, context in enumerate(contexts):
                loop.read(number, engine.tokenize(NEVER.context(context), first=True))
            writing = _write_tokens(engine, contexts, tokens * (turns + 1))
            _take(writing, tokens * at_once)  # here the sessions read their contexts
            spent: list[tuple[float, float]] = []  # seconds: the loop's, the sessions'
            engine.computing = 0.0
            for _ in range(turns):
                bare = _measure_seconds(loop.write, tokens)
                spent.append((bare, _measure_seconds(_take, writing, tokens * at_once)))
            computing = engine.computing
    finally:
        loop.close()
    in_sessions = sum(session for _, session in spent)
    shares = sorted(bare / session for bare, session in spent)
    low, high = shares[len(shares) // 4], shares[-1 - len(shares) // 4]
    per_second = turns * tokens * at_once / in_sessions
    return Rate(at_once, median(shares), low, high, per_second, 1 - computing / in_sessions)


def rate_beside_cells(weights: Weights, cells: int, *, turns: int = 24, tokens: int = 24) -> float:
    """The rate of a session beside so many kept cells of ended threads (`Session.keep_cells`),
    as a share of its rate without them; the median over turns.
    """
    shares = []
    with weights.load(EndlessEngine) as full, weights.load(EndlessEngine) as empty:
        tokens_kept = [*itertools.islice(itertools.cycle(full.tokenize(TEXT)), cells)]
        full.begin(KEY, tokens_kept, stops={}, max_tokens=1)
        while full.step():
            pass
        full.release(KEY, keep=True)
        pair = [_write_tokens(engine, [TEXT], tokens * (turns + 1)) for engine in (full, empty)]
        for writing in pair:
            _take(writing, tokens)
        for _ in range(turns):
            beside, alone = (_measure_seconds(_take, writing, tokens) for writing in pair)
            shares.append(alone / beside)
    return median(shares)


def _take(writing: Iterator[Token], tokens: int) -> None:
    deque(itertools.islice(writing, tokens), maxlen=0)


def _measure_seconds(work: Callable[..., None], *arguments: Any) -> float:
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun


def _write_tokens(engine: LlamaEngine, contexts: list[str], tokens: int) -> Iterator[Token]:
    """The tokens of sessions side by side, as they come."""
    sessions = [
        Session(engine, context=context, dialect=NEVER, scope="none", new_tokens=tokens)
        for context in contexts
    ]
    try:
        while True:  # as `run_together` does it
            for session in sessions:
                event = next(session)
                if isinstance(event, Token):
                    yield event
    finally:
        for session in sessions:
            session.close()
