"""The sandbox under load: the code that models wrote in recorded episodes, run again in the jail.

    python -m thread_kit.bench.snippets runs/questions-traces/*.jsonl

What a thread ran is run again in its order and with its task's functions, but without what its
parent had handed to it, so that more of it fails than did at first. What is asked here is whether
anything hangs, and whether the limits are told.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tqdm.auto import tqdm

from thread_kit.envs.registry import BENCHMARKS
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.sandbox import Sandbox
from thread_kit.trace.episode import Episode, TraceError

LIMITS = ("TimeoutError", "MemoryError", "OSError", "RuntimeError")
"""How the errors begin that a limit of the sandbox makes; code can raise them, too."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """One snippet. outcome: "ran", "failed" or "limit"; error: as the thread is told; seconds."""

    code: str
    outcome: str
    error: str | None
    seconds: float


def snippets(episode: Episode) -> list[list[str]]:
    """What the threads of an episode executed, thread by thread."""
    return [[one.line for one in thread.executed] for thread in episode.threads.values()]


def rerun(threads: Iterable[Iterable[str]], sandbox: Sandbox) -> Iterator[Rerun]:
    """Run the snippets of each thread one after the other, each thread from an empty namespace."""
    for lines in threads:
        state = None
        for code in lines:
            begun = time.perf_counter()
            done = sandbox.execute(state, code)
            state = done.state
            outcome = "ran"
            if done.error:
                outcome = "limit" if done.error.startswith(LIMITS) else "failed"
            yield Rerun(code, outcome, done.error, time.perf_counter() - begun)


def sandbox_of(episode: Episode) -> Sandbox:
    """A jail with the functions of the episode's task; with none if nobody knows the task."""
    benchmark = BENCHMARKS.get(str(episode.header.get("environment")))
    made = benchmark.environment(**episode.header["task"]).sandbox() if benchmark else None
    return made or BubblewrapSandbox()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the snippets of the traces that are named, and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m thread_kit.bench.snippets")
    parser.add_argument("traces", nargs="+", help="episodes (JSONL)")
    done: list[Rerun] = []
    try:
        for path in tqdm(parser.parse_args(arguments).traces, "episodes", leave=False):
            episode = Episode.load(path)
            with sandbox_of(episode) as sandbox:
                done += rerun(snippets(episode), sandbox)
    except (TraceError, OSError, ValueError, RuntimeError) as error:
        print(f"thread_kit.bench.snippets: {error}", file=sys.stderr)
        return 2
    counts = Counter(one.outcome for one in done)
    longest = max((one.seconds for one in done), default=0.0)
    print(
        f"{len(done)} snippets, {len({one.code for one in done})} of them different: "
        f"{counts['ran']} ran, {counts['failed']} failed, {counts['limit']} met a limit; "
        f"the longest took {longest:.1f} s"
    )
    for one in done:
        if one.outcome == "limit":
            print(f"limit: {one.error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
