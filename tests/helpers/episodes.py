"""Small episodes for the tests of the views."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.prompts import Example, Prompt
from thread_kit.sequence import Provenance, Span
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, Spawned

PROMPT = Prompt("two", (Example("say a =>", "print('a')\n#END#"),))

REPLIES = (
    "tool = 'axe'\nFirst, I need to find the {tool}. =>",
    "> open shed =>",
    "x = nothing\nNext, I need to look in the shed. =>",
    "print('The shed holds a {tool}.')\n#END#",
    "print('The {tool} is in the shed.')\n#END#",
    "Then, I need to sharpen it. =>",
    "This takes a while, becau",
    "print('Done.')\n#END#",
)


class Shed(Env):
    name = "shed"

    def __init__(self) -> None:
        self.task = {"number": 0}

    def reset(self) -> str:
        return "Sharpen the axe. =>"

    def step(self, action: str) -> Step:
        return Step(f"You {action}.", 0.5, False, False, {})

    def again(self) -> Shed:
        return Shed()

    def oracle(self) -> None:
        return None


def session(replies: tuple[str, ...] = REPLIES, **options: Any) -> Session:
    return Session(ScriptedEngine(replies), Shed(), prompt=PROMPT, **options)


def span(provenance: Provenance, text: str) -> Span:
    return Span(provenance, text, tuple(range(len(text))))


def chain(levels: int) -> Episode:
    """An episode in which each thread has one child."""
    episode = Episode({})
    for level in range(levels):
        context = span(Provenance.CONTEXT, f"Prompt:\nlevel {level} =>\n\nResponse:\n")
        episode.add(Spawned(level, level - 1 if level else None, 4 if level else 0, context, ""))
        wrote = span(Provenance.GENERATED, "x =>")
        episode.add(GeneratedSpan(level, wrote, Stop.LISTEN, 0, 1, 0.0))
    return episode


def is_on_disk(episode: Episode, path: Path) -> None:
    """The trace opens without model or environment, and is the episode in memory."""
    loaded = Episode.load(path)
    assert loaded.events == episode.events
    assert loaded.status is episode.status
    assert loaded.threads == episode.threads
    assert str(loaded) == str(episode)


def ended_within(episode: Episode, *, calls: int, depth: int) -> None:
    """The episode and all its threads ended with a status, and no budget was overdrawn."""
    assert not episode.status.is_live
    assert not any(one.status.is_live for one in episode.threads.values())
    assert episode.status is episode.threads[0].status
    assert episode.usage.calls <= calls
    assert episode.depth <= depth + 1  # the thread that was refused is in the tree


def of_kind(episode: Episode, kind: type) -> list:
    return [event for event in episode.events if isinstance(event, kind)]


def outputs(episode: Episode, thread: int) -> list:
    """What the lines of a thread printed, or their errors."""
    return [line.printed or line.error for line in episode.threads[thread].executed]


def count_seconds(monkeypatch) -> None:
    """A session's clock goes on by a second each time that it asks, a few times a token."""
    ticks = count(1.0)
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("thread_kit.session.session.time", clock)
