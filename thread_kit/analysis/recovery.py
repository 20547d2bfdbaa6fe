"""Figure 7 of THREAD paper in our own episodes: a child fails, and its parent asks in other words.

There ADaPT's plan cannot answer to "The cabinet is closed", and THREAD finds the plate because a
parent spawns a second child, which is to open the cabinet. Here rules propose such
pairs of ALFWorld episodes; whether one tells the story is for a person to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thread_kit.experiments.results_file import canonical
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Returned

_CHANGE = re.compile(r"You (open|pick up|put|clean|heat|cool|turn on) ")
_FAILED = re.compile(r"\b(no|not|nothing|closed|cannot|can't|unable|fail\w*)\b", re.IGNORECASE)
_NAMES = re.compile(r"\b[a-z]+ \d+\b")


@dataclass(frozen=True, slots=True)
class Rephrasing:
    """A parent that asked again, and two of its children, one after the other, by their numbers."""

    parent: int
    failed: int
    second: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """A game that ADaPT lost and THREAD won after a parent had asked again.

    model: its name. task: what identifies the game. rephrasing: in THREAD's episode.
    """

    model: str
    task: dict[str, Any]
    adapt: Episode
    thread: Episode
    rephrasing: Rephrasing


def find_rephrasings(episode: Episode) -> list[Rephrasing]:
    """Where a sub-task failed and the parent's next child was asked for it in other words.

    A child has failed if it changed nothing in the household and says so; the next one is after the
    same if it is asked about a thing or a place of the same number ("cabinet 4"), and it has to
    have changed something.
    """
    answers = {
        event.child: event.span.text for event in episode.events if isinstance(event, Returned)
    }
    return [
        Rephrasing(parent.id, first, second)
        for parent in episode.threads.values()
        for first, second in zip(parent.spawned, parent.spawned[1:], strict=False)
        if not _changed_something(episode, first)
        and _FAILED.search(answers.get(first, ""))
        and _rephrases(episode.threads[first].title, episode.threads[second].title)
        and _changed_something(episode, second)
    ]


def _changed_something(episode: Episode, thread: int) -> bool:
    """Whether a thread, or one below it, has changed something in the household."""
    return any(
        _CHANGE.match(acted.observation)
        for below in episode.subtree(thread)
        for acted in below.actions
    )


def _rephrases(first: str, second: str) -> bool:
    return first != second and bool({*_NAMES.findall(first)} & {*_NAMES.findall(second)})


def find_recoveries(rows: Iterable[Mapping[str, Any]], folder: str | Path) -> Iterator[Recovery]:
    """The recoveries among the episodes of suites (`Results.rows`), with "adapt" and "thread".

    folder: has the traces, under the paths in the rows or under their bare names; rows without a
    trace there are left out.
    """
    traces: dict[str, list[tuple[Mapping[str, Any], Path]]] = {"adapt": [], "thread": []}
    for row in rows:
        path = _trace(row, Path(folder))
        if path and row["method"] in traces and row["solved"] is (row["method"] == "thread"):
            traces[row["method"]].append((row, path))
    for won, path in traces["thread"]:
        for lost, other in traces["adapt"]:
            if _game(won) == _game(lost):
                episode = Episode.load(path)
                for rephrasing in find_rephrasings(episode)[:1]:
                    yield Recovery(
                        won["model"], dict(won["task"]), Episode.load(other), episode, rephrasing
                    )


def _trace(row: Mapping[str, Any], folder: Path) -> Path | None:
    name = row.get("trace") or ""
    paths = (folder / name, folder / Path(name).name)
    return next((path for path in paths if path.is_file()), None)


def _game(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return row["model"], canonical(row["task"]), row["seed"]
