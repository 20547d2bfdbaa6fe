"""Hostile episodes: every method, dialect and sandbox, spoken by a model that means no good."""

from __future__ import annotations

import contextlib
import random
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from thread_kit.bench.workload import peak_memory
from thread_kit.dialect import AGENT, ASYNC, QA, QA_ASYNC
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.envs.intercode.interaction import REACT
from thread_kit.exchange import phi_full_sequence, psi_full_sequence
from thread_kit.experiments.method_registry import BUILDERS, VARIANTS, load_method
from thread_kit.prompts import EMPTY
from thread_kit.requests import Status
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.sandbox import Sandbox
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Ended, ExecutedLine
from thread_kit.views.text import thread_text

from .tally import Tally
from .texts import HostileModel

TRACE_BYTES = 50 * 10**6
MEMORY_BYTES = 10**9
DIALECTS = {"agent": AGENT, "qa": QA, "async": ASYNC, "qa, async": QA_ASYNC}
BENCHMARKS = ("textcraft", "datacommons", "icu", "alfworld-pick", "webshop", "sql", "bash")


class Echo(Env):
    """Says again what was done to it: what a model writes comes back as an observation.

    What it does depends on the actions so far alone, as methods that restore it need.
    """

    name = "echo"
    script = REACT

    def __init__(self, seed: int = 0) -> None:
        self.task = {"seed": seed}
        self._steps = 0

    def reset(self) -> str:
        self._steps = 0
        return "Crafting commands:\ncraft 1 x using 2 {x}\nGoal: craft {class}."

    def answer(self, text: str) -> str | None:
        return text if self._draw(text) < 0.3 else None

    def step(self, action: str) -> Step:
        self._steps += 1
        over = self._draw(action) < 0.1
        shown = f" Reward: {float(over)}" if self.script.shows_reward else ""
        return Step(f"You {action}.{shown}", float(over), over, False, {"action": action})

    def _draw(self, text: str) -> float:
        seed = f"{self.task['seed']} {self._steps} {text}"
        return random.Random(seed.encode(errors="surrogatepass")).random()

    def again(self) -> Echo:
        return Echo(self.task["seed"])

    def oracle(self) -> None:
        return None


def find_ways() -> dict[str, Callable[..., Session]]:
    """Every method by its benchmark's prompts, and THREAD in every dialect without any."""
    ways: dict[str, Callable[..., Session]] = {}
    for benchmark in BENCHMARKS:
        for name in [*BUILDERS, *VARIANTS]:
            with contextlib.suppress(ValueError, FileNotFoundError):
                ways[f"{name} ({benchmark})"] = load_method(name, benchmark)
    for name, dialect in DIALECTS.items():
        for scope in ("exported", "shared", "none"):
            if scope == "exported" or dialect.spawn is None:
                ways[f"thread, {name}, {scope}"] = _plain(dialect=dialect, scope=scope)
        wide = {"phi": phi_full_sequence, "psi": psi_full_sequence}
        ways[f"thread, {name}, whole sequences"] = _plain(dialect=dialect, **wide)
    return ways


def _plain(**fixed: Any) -> Callable[..., Session]:
    return lambda engine, env, **options: Session(engine, env, prompt=EMPTY, **fixed, **options)


@contextlib.contextmanager
def open_sandboxes() -> Iterator[dict[str, Sandbox]]:
    """Both kinds, one of each for all episodes; quick to give up, since a model may loop."""
    with MontySandbox(seconds=0.25) as monty, BubblewrapSandbox(seconds=1, calls=20) as jail:
        yield {"monty": monty, "jail": jail}


def play(seed: int, count: int, *, first: int = 0) -> Tally:
    """`count` episodes; one in eight runs its code in the jail, where a line takes longer."""
    tally, ways = Tally(), find_ways()
    names = list(ways)
    with open_sandboxes() as sandboxes, tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            kind = "jail" if number % 8 == 7 else "monty"
            way = names[number // 8 % len(names)] if kind == "jail" else names[number % len(names)]
            place = f"episode {number} of seed {seed}: {way}, {kind}"
            try:
                episode = _play_one(ways[way], sandboxes[kind], f"{seed}-{number}", Path(folder))
                _count(tally, place, episode, number)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and error.args == ():
                    raise
                tally.find(place, traceback.format_exc())
            tally.counts[f"episodes in {kind}"] += 1
    tally.most("peak memory (MB)", peak_memory() // 10**6)
    if peak_memory() > MEMORY_BYTES:
        tally.find("memory", f"{peak_memory():,} bytes")
    return tally


LARGEST = (
    "x = 'a' * 90000\nDo " + "{x}" * 250 + " =>",
    "x = 'a' * 24000\nDo {x} =>",
    "x = 'é' * 24000\n> go {x} =>",
    "print('{x}' * 3000) =>",
    "x = ['a' * 900] * 90\nI need {x}. =>",
)


def play_largest(seed: int, count: int) -> Tally:
    """Episodes by models that want to fill memory and disk, with the budgets that are the default.

    A token is a character here, so that a trace has more of them than of any model with words.
    """
    tally = Tally()
    for text in random.Random(seed).sample(LARGEST, min(count, len(LARGEST))):
        for name, dialect in DIALECTS.items():
            session = Session(ScriptedEngine(lambda seen, text=text: text), Echo(), dialect=dialect)
            episode = session.run(progress=False)
            _count(tally, f"{text[:40]!r}, {name}", episode, 1)
            tally.counts["episodes that want to be large"] += 1
            del session, episode
    tally.most("peak memory (MB)", peak_memory() // 10**6)
    if peak_memory() > MEMORY_BYTES:
        tally.find("memory", f"{peak_memory():,} bytes")
    return tally


def _play_one(way: Callable[..., Session], sandbox: Sandbox, seed: str, folder: Path) -> Episode:
    model = HostileModel(seed)
    options: dict[str, Any] = {"calls": model.choice((6, 12, 25)), "seed": 0}
    options |= {"path": folder / "episode.jsonl" if model.random() < 0.05 else None}
    if model.random() < 0.3:
        options |= {"tokens": model.randint(1, 3_000), "depth": model.randint(1, 4)}
    env = Echo(model.randrange(10**6))
    session = way(ScriptedEngine(model.speak), env, sandbox=sandbox, **options)
    return session.run(progress=False)


def _count(tally: Tally, place: str, episode: Episode, number: int) -> None:
    """What is true of every episode, whatever its model wrote."""
    # 1. It ended in order, and nothing failed.
    tally.counts[f"ended: {episode.status}"] += 1
    tally.counts["threads"] += len(episode.threads)
    live = [thread for thread in episode.threads.values() if thread.status.is_live]
    if live or episode.status.is_live or episode.status is Status.FAILED:
        tally.find(place, f"{episode.status} ({episode.detail}), live: {live}")
    for event in episode.events:
        if isinstance(event, Ended) and event.traceback:
            tally.find(place, event.traceback)
        if isinstance(event, ExecutedLine):
            tally.counts["lines of code"] += 1
            if event.error and event.error.startswith("the sandbox failed"):
                tally.find(place, event.error)

    # 2. Its trace opens, and is the same.
    lines = list(episode.to_lines())
    size = sum(map(len, lines))
    tally.most("largest trace (kB)", size // 1_000)
    if size > TRACE_BYTES:
        tally.find(place, f"a trace of {size:,} bytes")
    again = Episode.from_lines(lines)
    if again.events != episode.events:
        tally.find(place, "the trace opens as another episode")

    # 3. Now and then, every view of it.
    if number % 10 == 0:
        if str(again) != str(episode):
            tally.find(place, "the trace looks otherwise")
        episode._repr_html_()
        for thread in episode.threads:
            thread_text(episode, thread)
