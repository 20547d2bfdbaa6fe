"""Ctrl-C at any moment of live episodes on the embedded model: nothing is lost, nothing is wrong.

An episode is interrupted, its trace is opened, it goes on from there, is interrupted again, and so
on to its end, which has to be that of an episode that nobody interrupted, token for token. One
engine lives through all of it. Half of the interrupts are Ctrl-C in `run()`, which ends the episode
in order; the others are KeyboardInterrupts anywhere in the code, as in a loop over the events.
"""

from __future__ import annotations

import contextlib
import random
import signal
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any

from thread_kit.engines.engine import Engine
from thread_kit.engines.models import load_model
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.requests import Status
from thread_kit.session.session import Session, fork
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Closed, Ended, Event, ExecutedLine, GeneratedSpan

from .tally import Tally

TASKS = (47, 40, 55, 42)
"""Of the dev split: short ones, with three to six threads."""


def play(seed: int, count: int) -> Tally:
    """At least `count` interrupts, each at a moment drawn by `seed`."""
    tally, chance = Tally(), random.Random(seed)
    with load_model(cpu_threads=1) as engine, tempfile.TemporaryDirectory() as folder:
        while tally.counts["interrupts"] < count:
            number = chance.choice(TASKS)
            begun = time.perf_counter()
            whole = Session(engine, TextCraft("dev", number)).run(progress=False)
            seconds = time.perf_counter() - begun
            tally.counts["episodes"] += 1
            _play_one(tally, chance, engine, whole, seconds, Path(folder) / f"{number}.jsonl")
    return tally


def _play_one(
    tally: Tally, chance: random.Random, engine: Engine, whole: Episode, seconds: float, path: Path
) -> None:
    """One episode, interrupted until it is over."""
    number = whole.header["task"]["number"]
    path.unlink(missing_ok=True)
    session, count = Session(engine, TextCraft("dev", number), path=path), 0
    while True:
        # 1. It runs until it is interrupted, in the one way or in the other.
        place = f"dev {number}, after {count} interrupts"
        gently = chance.random() < 0.5
        with interrupted(chance.uniform(0, seconds / 4)) as fired:
            try:
                if gently:
                    session.run(progress=False)
                else:
                    for _ in session:
                        pass
            except KeyboardInterrupt:
                pass
        if not session.episode.status.is_live and not session.error:
            session.close()
        count += 1
        tally.counts["interrupts"] += bool(fired)
        tally.counts["gentle" if gently else "anywhere"] += bool(fired)

        # 2. Its trace opens, is what memory has, and holds nothing that did not happen.
        if session.error:
            tally.find(place, session.error)
        try:
            saved = Episode.load(path)
        except Exception as error:
            tally.find(place, f"the trace does not open: {error!r}")
            return
        if saved.events != session.episode.events:
            tally.find(place, "the trace is not the episode")
        if wrong := _errors(saved) - _errors(whole):
            tally.find(place, f"lines failed that never did: {wrong}")
        if saved.status not in (Status.STOPPED, whole.status):
            tally.find(place, f"the episode is {saved.status} ({saved.detail})")
        if saved.status is whole.status:
            if _essence(saved) != _essence(whole):
                tally.find(place, f"another end: {saved!r} for {whole!r}")
            tally.counts["ends that are the same"] += 1
            return

        # 3. It goes on from its trace.
        path = path.with_name(f"{number}-{count}.jsonl")
        session = fork(saved, engine=engine, env=TextCraft("dev", number), path=path)


@contextlib.contextmanager
def interrupted(seconds: float) -> Any:
    """Ctrl-C after so many seconds, once; yields a list that then is not empty."""
    fired: list[float] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        fired.append(seconds)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
    try:
        yield fired
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _errors(episode: Episode) -> set[str]:
    lines = (event for event in episode.events if isinstance(event, ExecutedLine))
    return {event.error for event in lines if event.error}


def _essence(episode: Episode) -> list[Event | tuple[Any, ...]]:
    """All that happened, without what it cost; to the token."""
    return [
        (event.thread, event.span, event.stop) if isinstance(event, GeneratedSpan) else event
        for event in episode.events
        if not isinstance(event, Ended | Closed) and "prompt" not in type(event).__name__.lower()
    ]
