"""Several episodes at once, through KV-true threads and what people use instead, with drafts, too.

The recorded tokens are forced, as in `contenders.py`; each contender has a process of its own. What
keeps one sequence (`create_completion`) plays the episodes one after the other. A server cannot be
forced: it writes as many tokens as were recorded, and they are its own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import httpx
from tqdm import tqdm

from thread_kit.bench.contenders import ForcedEngine, forced_llama, run_in_process
from thread_kit.bench.server import PATIENCE, ask_server, run_server
from thread_kit.bench.timed_engine import TimedEngine
from thread_kit.bench.workload import WARM_UP, Weights, Workload
from thread_kit.engines.engine import Completion
from thread_kit.engines.kv_cache import SequenceKey

DRAFT = 10
"""Tokens that are drafted, where a contender drafts; a server has `NGRAM_MOD`."""


class Together(NamedTuple):
    """What a contender made of so many episodes at once.

    passes: through the model, without those over what was not generated. as_recorded: calls in
    which its own tokens were the recorded ones, of `calls`. outside: the share of the time in which
    the model waits for Python; None where that cannot be seen.
    """

    contender: str
    at_once: int
    generated: int
    passes: int
    as_recorded: int
    calls: int
    seconds: float
    outside: float | None


class _TimedForcedEngine(TimedEngine, ForcedEngine):
    """Writes the recorded tokens, and knows how long that took."""


class _ForgetfulEngine(_TimedForcedEngine):
    """One that takes nothing over from calls beside, either: they begin with the same tokens."""

    def _place(self, key: SequenceKey, tokens: list[int]) -> int:
        super()._place(key, tokens)
        self._cache.cut(key, 0)
        return 0


def play_threads(
    name: str, weights: Weights, works: Sequence[Workload], *, keep: bool = True, draft: int = 0
) -> Together:
    """The kit's own engine; without `keep` all that a thread sees is evaluated at each call."""
    weights = replace(weights, context=weights.context * len(works))
    steps = [iter(work.steps) for work in works]
    running: dict[Any, int] = {}
    fresh = itertools.count()
    same = 0

    with weights.load(_TimedForcedEngine if keep else _ForgetfulEngine, draft=draft) as engine:

        def go_on(episode: int) -> None:
            for step in steps[episode]:
                if isinstance(step, int):
                    engine.release((episode, step))
                    continue
                key = (episode, step.thread) if keep else next(fresh)
                engine.begin_forced(key, step)
                running[key] = episode
                return

        # The first pass costs more than any other: it is not counted.
        engine.play(("warm", WARM_UP))
        engine.release("warm")
        engine.passes, engine.computing = 0, 0.0
        begun = time.perf_counter()
        for prompt in {work.prompt for work in works if keep and work.prompt}:
            for _ in engine.prefill(prompt):
                pass
        # All episodes together; where a call is over, its episode's next one begins.
        for episode in range(len(works)):
            go_on(episode)
        while running:
            for news in engine.step():
                if isinstance(news, Completion):
                    same += news.thread not in engine.differing
                    if not keep:
                        engine.release(news.thread)
                    go_on(running.pop(news.thread))
        seconds = time.perf_counter() - begun
        return _sum_up(name, works, engine.passes, same, seconds, engine.computing)


def play_completions(
    name: str, weights: Weights, works: Sequence[Workload], *, lookup: int = 0
) -> Together:
    """`Llama.create_completion`, call by call, without and with its prompt look-up."""
    llama = forced_llama(weights, lookup)
    same = 0
    begun = time.perf_counter()
    for call in (call for work in works for call in work.calls):
        same += llama.play(call)
    seconds = time.perf_counter() - begun
    played = _sum_up(name, works, llama.passes, same, seconds, llama.computing)
    llama.close()
    return played


def play_server(
    name: str,
    weights: Weights,
    works: Sequence[Workload],
    *,
    speculative: bool = False,
    binary: str | None = None,
) -> Together:
    """llama.cpp's server, a client an episode; without and with its drafts (`ngram-mod`).

    binary: a llama-server of one's own, built for a GPU, say; None is the one of xllamacpp.
    """
    weights = replace(weights, context=weights.context * len(works))
    slots = sum(work.threads for work in works)

    def play(work: Workload) -> list[tuple[int, bool]]:
        with httpx.Client(timeout=PATIENCE) as client:
            replies = [(call, ask_server(client, address, call)) for call in work.calls]
        return [(reply.passes, reply.tokens == call.written) for call, reply in replies]

    with run_server(weights, slots, speculative=speculative, binary=binary) as (_, address):
        with httpx.Client(timeout=PATIENCE) as client:
            ask_server(client, address, WARM_UP)
        begun = time.perf_counter()
        with ThreadPoolExecutor(len(works)) as pool:
            calls = [call for played in pool.map(play, works) for call in played]
        seconds = time.perf_counter() - begun
    passes, same = (sum(column) for column in zip(*calls, strict=True))
    return _sum_up(name, works, passes, same, seconds, None)


def _sum_up(
    name: str,
    works: Sequence[Workload],
    passes: int,
    same: int,
    seconds: float,
    computing: float | None,
) -> Together:
    generated = sum(work.generated for work in works)
    calls = sum(len(work.calls) for work in works)
    outside = None if computing is None else 1 - computing / seconds
    return Together(name, len(works), generated, passes, same, calls, seconds, outside)


Player = Callable[[Weights, Sequence[Workload]], Together]


def players(server: str | None = None, *, has_server: bool = True) -> list[Player]:
    """All contenders; server: a llama-server's path; has_server: whether there is one at all."""
    ask = partial(play_server, binary=server)
    servers: list[Player] = [
        partial(ask, "llama-server"),
        partial(ask, "llama-server, ngram-mod", speculative=True),
    ]
    return [
        partial(play_threads, "KV-true"),
        partial(play_threads, "KV-true, drafts", draft=DRAFT),
        *(servers if has_server else []),
        partial(play_completions, "create_completion"),
        partial(play_completions, "create_completion, prompt lookup", lookup=DRAFT),
        partial(play_threads, "nothing cached", keep=False),
    ]


def play_together(
    weights: Weights,
    works: Sequence[Workload],
    at_once: Sequence[int],
    contenders: Sequence[Player],
) -> Iterator[Together]:
    """Each contender with the first so many of these episodes at once."""
    runs = [(run, n) for n in at_once for run in contenders]
    for run, n in tqdm(runs, "episodes at once", unit="run", leave=False):
        yield run_in_process(run, weights, works[:n])
