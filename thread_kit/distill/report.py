"""How well an adapter plays: tasks solved by depth, what they cost, and the first mistake of each.

The episodes are a suite's, with their traces: one that was interrupted goes on with the tasks it
lacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from thread_kit.distill.examples import Method
from thread_kit.distill.oracle import OracleError, react_script, speak_thread
from thread_kit.engines import Engine
from thread_kit.envs.textcraft import Task, TextCraft
from thread_kit.events import GeneratedSpan, Observed, Returned, Spawned
from thread_kit.lab.ledger import canonical
from thread_kit.lab.method import SessionMethod
from thread_kit.lab.statistics import wilson
from thread_kit.lab.suite import Suite
from thread_kit.trace import Episode

CALLS = {"thread": 200, "react": 60}
"""Calls of the model an episode, at most: THREAD's own limit, and the one that the ADaPT paper
(appendix A) gives its ReAct baseline on this benchmark."""

NEW_TOKENS = 300  # a call


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task.

    generated, evaluated: tokens. seconds: of the whole episode. cause: of a failure; said and
    expected: the first line that differs from the oracle's, and the oracle's.
    """

    number: int
    goal: str
    depth: int
    solved: bool
    status: str
    threads: int
    calls: int
    generated: int
    evaluated: int
    seconds: float
    cause: str = ""
    said: str = ""
    expected: str = ""


def evaluate(
    method: Method, engine: Engine, tasks: Sequence[Task], folder: Path, *, parallel: int = 1
) -> list[Outcome]:
    """Play `tasks` greedily in the form of `method`; `results.jsonl` and all else goes to `folder`.

    `episodes.jsonl` is the file of the suite, beside it are the traces. parallel: episodes at a
    time, in the batches of the one engine. Faster in all, but an episode then takes longer: measure
    seconds with 1. Raises RuntimeError for an episode that could not be started.
    """
    suite = Suite(
        folder / "episodes.jsonl",
        methods=[SessionMethod(method, fixed={"variables": method == "thread"})],
        models={engine.name: engine},
        environment=TextCraft,
        tasks=[{"split": task.split, "number": task.number} for task in tasks],
        traces=True,
        options={"calls": CALLS[method], "new_tokens": NEW_TOKENS},
    )
    played = {
        (row["task"]["split"], row["task"]["number"]): row
        for row in suite.run(at_once=parallel).rows
    }
    outcomes = []
    for task in tasks:
        row = played[task.split, task.number]
        if row["trace"] is None:
            raise RuntimeError(f"{task} could not be started: {row['error']}")
        outcomes.append(outcome(method, task, Episode.load(folder / row["trace"])))
    lines = "".join(json.dumps(asdict(one)) + "\n" for one in outcomes)
    (folder / "results.jsonl").write_text(lines, encoding="utf-8")
    return outcomes


def outcome(method: Method, task: Task, episode: Episode) -> Outcome:
    """What came of a task, and, if it failed, where its episode first left the oracle's way."""
    cause = said = expected = ""
    if episode.reward != 1:
        said, expected = next(_deviations(method, task, episode), ("", ""))
        cause = _cause(said, expected)
    used = episode.usage
    return Outcome(
        number=task.number,
        goal=task.goal,
        depth=task.depth,
        solved=episode.reward == 1,
        status=str(episode.status),
        threads=len(episode.threads),
        calls=used.calls,
        generated=used.generated,
        evaluated=used.evaluated,
        seconds=round(episode.seconds, 2),
        cause=cause,
        said=said,
        expected=expected,
    )


def _deviations(method: Method, task: Task, episode: Episode) -> Iterator[tuple[str, str]]:
    """Pairs of lines, said and expected, in the order of time."""
    seen: dict[int, str] = {}
    script = iter(react_script(task.goal, task.commands))
    for event in episode.events:
        match event:
            case Spawned(thread=thread, context=span):
                seen[thread] = span.text
            case GeneratedSpan(thread=thread, span=span):
                try:
                    reply = speak_thread(seen[thread]) if method == "thread" else next(script, "")
                except OracleError as error:
                    reply = f"({error})"
                yield from _different(span.text, reply)
                seen[thread] += span.text
            case Observed(thread=thread, span=span) | Returned(thread=thread, span=span):
                seen[thread] += span.text


def _different(said: str, expected: str) -> Iterator[tuple[str, str]]:
    if said != expected:
        ours, theirs = said.split("\n"), expected.split("\n")
        length = max(len(ours), len(theirs))
        ours += [""] * (length - len(ours))
        theirs += [""] * (length - len(theirs))
        yield next(pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1])


def _cause(said: str, expected: str) -> str:
    def without(pattern: str, text: str) -> str:
        return re.sub(pattern, "#", text)

    if not said and not expected:
        return "no mistake in the form; the budget was used up"
    if without(r"\d+", said) == without(r"\d+", expected):
        return "a wrong number"
    ours, theirs = without(r"\d+", said).split(), without(r"\d+", expected).split()
    return "a wrong name" if ours[:2] == theirs[:2] else "another step"


def by_depth(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Rows for each depth and for all: n, solved, rate with its Wilson interval (95%), medians."""
    depths = sorted({one.depth for one in outcomes})
    groups: list[tuple[str, list[Outcome]]] = [
        (f"depth {depth}", [one for one in outcomes if one.depth == depth]) for depth in depths
    ]
    return [_row(name, group) for name, group in [*groups, ("all", list(outcomes))]]


def _row(name: str, group: Sequence[Outcome]) -> dict[str, Any]:
    solved = sum(one.solved for one in group)
    low, high = wilson(solved, len(group))
    return {
        "tasks": name,
        "n": len(group),
        "solved": solved,
        "rate": round(solved / len(group), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "generated": median(one.generated for one in group),
        "evaluated": median(one.evaluated for one in group),
        "seconds": round(median(one.seconds for one in group), 1),
    }


def frame_of(outcomes: Sequence[Outcome], *, method: str, model: str) -> pd.DataFrame:
    """Outcomes of the official tasks as a suite's frame has them, for `lab/statistics.py`.

    model: says how the model was taught, since that is no other model's few-shot result.
    """
    rows = [
        {
            "method": method,
            "model": model,
            "environment": "textcraft",
            "split": "test",
            "task": canonical({"split": "test", "number": one.number}),
            "seed": 0,
            **asdict(one),
        }
        for one in outcomes
    ]
    return pd.DataFrame(rows)


def load_outcomes(path: Path) -> list[Outcome]:
    """The outcomes in a `results.jsonl`."""
    return [Outcome(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


__all__ = ["Outcome", "by_depth", "evaluate", "frame_of", "load_outcomes", "outcome"]
