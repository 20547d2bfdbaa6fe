"""What sharing one KV cache saves: an episode's calls, evaluated three ways on the same model.

    python -m thread_kit.bench [TRACE]

The texts of a recorded episode are forced, so that every way does the same work: at each call the
engine is given all that the thread sees, and asked for one token. Counts of evaluated tokens are
exact and repeatable; times are shown as ratios within this run.

- KV-true: what this engine does. Each thread keeps its cells while it waits.
- prompt cached: the few-shot prompt is kept, everything behind it is evaluated at each call (the
  papers' own implementation).
- nothing cached: all is evaluated at each call.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tqdm import tqdm

from thread_kit.dialect import Stop
from thread_kit.engines import Call, Engine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.events import Ended, GeneratedSpan, Observed, Returned, Spawned
from thread_kit.models import EMBEDDED, load_model
from thread_kit.resources import resource
from thread_kit.session import Session
from thread_kit.trace import Episode

TRACE = "data/episodes/acacia-fence-gate.jsonl"


@dataclass(frozen=True, slots=True)
class Forced:
    """One call of the recorded episode: what the thread saw, re-tokenized for this engine."""

    thread: int
    prompt: tuple[int, ...]
    seen: tuple[int, ...]


def forced_calls(episode: Episode, engine: Engine) -> Iterator[Forced | int]:
    """The calls of an episode in order, and the number of each thread when it ends."""
    prompts: dict[str, tuple[int, ...]] = {}
    seen: dict[int, tuple[int, ...]] = {}
    for event in episode.events:
        match event:
            case Spawned():
                if event.prompt not in prompts:
                    text = episode.prompt(event.thread).text
                    prompts[event.prompt] = engine.tokenize(text, first=True)
                seen[event.thread] = engine.tokenize(event.context.text)
            case GeneratedSpan():
                prompt = prompts[episode.threads[event.thread].prompt]
                yield Forced(event.thread, prompt, prompt + seen[event.thread])
                seen[event.thread] += engine.tokenize(event.span.text)
            case Observed() | Returned():
                seen[event.thread] += engine.tokenize(event.span.text)
            case Ended():
                yield event.thread


def replay(episode: Episode, engine: Engine, *, keep_threads: bool, keep_prompt: bool) -> int:
    """Give every call of the episode to the engine; the tokens that it evaluated."""
    evaluated = 0
    steps = list(forced_calls(episode, engine))
    for key, step in enumerate(tqdm(steps, unit="call", leave=False)):
        if isinstance(step, int):
            if keep_threads:
                engine.release(step)
            continue
        if keep_prompt:  # costs nothing when it is there
            progress = list(engine.prefill(step.prompt))
            evaluated += len(step.prompt) - progress[0].done
        thread = step.thread if keep_threads else 1_000_000 + key
        engine.begin(thread, step.seen, stops={"\0": Stop.END}, max_tokens=1)
        while not (news := engine.advance(thread)) or not isinstance(news[-1], Call):
            pass
        evaluated += news[-1].evaluated
        if not keep_threads:
            engine.release(thread)
    return evaluated


def bookkeeping(threads: int) -> float:
    """Seconds a call that everything but the model takes, in a chain of that many threads."""
    replies = ["First, I need it. =>"] * (threads - 1) + ["#END#"] * threads
    session = Session(
        ScriptedEngine(replies), context="go", calls=None, depth=None, variables=False
    )
    begun = time.perf_counter()
    session.run(progress=False)
    return (time.perf_counter() - begun) / (2 * threads - 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m thread_kit.bench", description="Measure.")
    parser.add_argument("trace", nargs="?", help=f"a recorded episode (default: {TRACE})")
    parser.add_argument("--model", default=EMBEDDED)
    options = parser.parse_args()
    episode = Episode.load(options.trace or resource(TRACE))
    print(f"{episode!r}, forced through {options.model}\n")
    ways = {
        "KV-true": (True, True),
        "prompt cached": (False, True),
        "nothing cached": (False, False),
    }
    base: tuple[int, float] | None = None
    print(f"{'':16}{'evaluated':>10}{'ratio':>8}{'time ratio':>12}")
    for name, (threads, prompt) in ways.items():
        engine = load_model(options.model, adapter=None, keep_prompts=False)
        list(engine.prefill(engine.tokenize("Warm up. " * 50, first=True)))
        begun = time.perf_counter()
        evaluated = replay(episode, engine, keep_threads=threads, keep_prompt=prompt)
        seconds = time.perf_counter() - begun
        engine.close()
        base = base or (evaluated, seconds)
        ratio, slower = evaluated / base[0], seconds / base[1]
        print(f"{name:16}{evaluated:>10,}{ratio:>8.2f}{slower:>12.2f}")
    per_call = base[1] / max(episode.usage.calls, 1) if base else math.nan
    print(f"\nbookkeeping: {bookkeeping(200) / per_call:.2%} of a KV-true call")


if __name__ == "__main__":
    main()
