"""How the work grows with the depth of a tree and with the number of its threads.

Counts, from the cache's own bookkeeping (`engines/kv_cache.py`) with no model behind it: exact, and
the same on every machine. And what the kit itself needs, in seconds: everything but the model.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from thread_kit.bench.workload import Forced, Workload
from thread_kit.engines.kv_cache import KVCache, Memory, common_prefix
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.session.session import Session
from thread_kit.trace.costs import distinct_prefixes

PROMPT, CONTEXT, WRITTEN, RETURNED = 1000, 20, 25, 10
"""Tokens of the few-shot prompt, of a context, of a call, of what comes back: as in our TextCraft
episodes."""

Tree = Callable[[int], list[int]]
"""For a number of threads, how many children each has, in the order of their spawning."""


def chain(threads: int) -> list[int]:
    """Each thread has one child."""
    return [1] * (threads - 1) + [0]


def star(threads: int) -> list[int]:
    """The main thread has all the others."""
    return [threads - 1] + [0] * (threads - 1)


def bushy(threads: int) -> list[int]:
    """Every thread has up to four children, with as few levels as that allows."""
    sizes = [threads]
    children = []
    while sizes:
        below = sizes.pop(0) - 1
        parts = [below // 4 + (n < below % 4) for n in range(4)]
        parts = [part for part in parts if part]
        children.append(len(parts))
        sizes[:0] = parts
    return children


TREES: dict[str, Tree] = {"chain": chain, "star": star, "bushy": bushy}


def calls(shape: str, threads: int) -> Iterator[tuple[int, bool]]:
    """The calls of such an episode in order: who writes, and whether it spawns then, or ends."""
    alive: list[list[int]] = []  # thread, children to come
    for number, children in enumerate(TREES[shape](threads)):
        alive.append([number, children])
        while alive:
            thread, left = alive[-1]
            yield thread, left > 0
            if left:
                alive[-1][1] -= 1
                break
            alive.pop()


def tree(shape: str, threads: int) -> Workload:
    """The calls of an episode with this tree; every token is another one."""
    fresh = itertools.count(PROMPT)
    prompt = tuple(range(PROMPT))
    steps: list[Forced | int] = []
    seen: dict[int, tuple[int, ...]] = {}  # by the threads that are alive
    most = 0
    for thread, spawns in calls(shape, threads):
        if thread not in seen:
            seen[thread] = (*prompt, *itertools.islice(fresh, CONTEXT))
            most = max(most, len(seen))
        written = tuple(itertools.islice(fresh, WRITTEN))
        steps.append(Forced(thread, seen[thread], written))
        seen[thread] += written
        if not spawns:
            steps.append(thread)
            del seen[thread]
            if seen:  # the last one is the parent
                parent = next(reversed(seen))
                seen[parent] += tuple(itertools.islice(fresh, RETURNED))
    return Workload(f"{shape} of {threads}", prompt, tuple(steps), most)


class _NoMemory(Memory):
    """Cells that nobody computes."""

    def copy(self, source: int, target: int, length: int) -> None:
        pass

    def cut(self, sequence: int, length: int) -> bool:
        return True


def evaluated_kv_true(work: Workload, sequences: int = 256) -> int:
    """Tokens that go through the model where each thread keeps its cells."""
    cache, count = KVCache(_NoMemory(), sequences), len(work.prompt)
    cache.place("prompt", [*work.prompt, -1])
    cache.extend("prompt", work.prompt)
    for step in work.steps:
        if isinstance(step, int):
            cache.drop(step)
            continue
        tokens = [*step.seen, *step.written[:-1]]
        reused = cache.place(step.thread, [*tokens, -1])
        cache.extend(step.thread, tokens[reused:])
        count += len(tokens) - reused
    return count


def evaluated_one_sequence(work: Workload) -> int:
    """Where only the last call's tokens are in the cache."""
    cached: tuple[int, ...] = ()
    count = 0
    for call in work.calls:
        tokens = (*call.seen, *call.written[:-1])
        count += len(tokens) - common_prefix(cached, tokens)
        cached = tokens
    return count


def evaluated_prompt_cached(work: Workload) -> int:
    """Where the few-shot prompt is kept and nothing else."""
    return evaluated_nothing_cached(work) - (len(work.calls) - 1) * len(work.prompt)


def evaluated_nothing_cached(work: Workload) -> int:
    """Where each call begins anew."""
    return sum(len(call.seen) + len(call.written) - 1 for call in work.calls)


SCHEMES: dict[str, Callable[[Workload], int]] = {
    "KV-true": evaluated_kv_true,
    "one sequence": evaluated_one_sequence,
    "prompt cached": evaluated_prompt_cached,
    "nothing cached": evaluated_nothing_cached,
}


class Growth(NamedTuple):
    """What a tree costs: tokens evaluated under a scheme, `times` as many as are distinct."""

    shape: str
    threads: int
    scheme: str
    evaluated: int
    times: float


def growth(sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)) -> list[Growth]:
    """All shapes, sizes (numbers of threads) and schemes."""
    rows = []
    for shape, threads in itertools.product(TREES, sizes):
        work = tree(shape, threads)
        distinct = distinct_tokens(work)
        for scheme, count in SCHEMES.items():
            evaluated = count(work)
            rows.append(Growth(shape, threads, scheme, evaluated, evaluated / distinct))
    return rows


def distinct_tokens(work: Workload) -> int:
    """The tokens that have to be evaluated at least once (as `trace.costs.distinct_tokens`)."""
    last = {call.thread: (*call.seen, *call.written[:-1]) for call in work.calls}
    return distinct_prefixes([work.prompt, *last.values()])


def bookkeeping(shape: str, threads: int) -> float:
    """Seconds a call that everything but the model takes: variables, sandbox, scheduler, trace."""
    spawn, end = "x = 3\nFirst, I need it. =>", "print(x)\n#END#"
    replies = [spawn if spawns else end for _, spawns in calls(shape, threads)]
    session = Session(ScriptedEngine(replies), context="go", calls=None, depth=None)
    begun = time.perf_counter()
    episode = session.run(progress=False)
    return (time.perf_counter() - begun) / episode.usage.calls
