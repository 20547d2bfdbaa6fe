"""The benchmarks by name: what the command line needs of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thread_kit.dialect import AGENT, QA, Dialect
from thread_kit.envs.alfworld import env as alfworld
from thread_kit.envs.env import Env
from thread_kit.envs.textcraft import env as textcraft

QUESTIONS = 200
"""Generated questions have no end; so many of each split are listed."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark.

    splits: the one of the papers' numbers first.
    listed: the tasks of a split.
    arguments: of such a task, those that `environment` makes it with again.
    chosen: those of the task that a person names within a split; raises ValueError.
    dialect: of its prompts.
    """

    environment: Callable[..., Env]
    splits: tuple[str, ...]
    listed: Callable[[str], list[Any]]
    arguments: Callable[[Any], dict[str, Any]]
    chosen: Callable[[str], dict[str, Any]]
    dialect: Dialect = AGENT


@dataclass(frozen=True, slots=True)
class Numbered:
    """A generated question. type: of which kind it is; the kinds come in turn."""

    benchmark: str
    number: int
    type: int
    arguments: dict[str, Any]


def _number(text: str) -> dict[str, Any]:
    if not text.isdecimal():
        raise ValueError(f"no task {text!r}; tasks have numbers here")
    return {"number": int(text)}


def _game(text: str) -> dict[str, Any]:
    return {"game": int(text) if text.isdecimal() else text}


# The modules of the questions need pandas and scipy, without which the command line starts sooner.


def _datacommons(**arguments: Any) -> Env:
    from thread_kit.envs.datacommons.env import DataCommonsQA

    return DataCommonsQA(**arguments)


def _icu(**arguments: Any) -> Env:
    from thread_kit.envs.icu.env import IcuQA

    return IcuQA(**arguments)


def _datacommons_tasks(split: str) -> list[Numbered]:
    from thread_kit.envs.datacommons.questions import KINDS

    return _listed("datacommons", len(KINDS), {"split": split})


def _icu_tasks(split: str) -> list[Numbered]:
    from thread_kit.envs.icu.questions import kinds_of
    from thread_kit.envs.icu.stays import load_stays

    stays = load_stays()
    return _listed("icu", len(kinds_of(stays)), {"stays": stays.name, "split": split})


def _listed(name: str, kinds: int, of_all: dict[str, Any]) -> list[Numbered]:
    return [Numbered(name, n, n % kinds, {**of_all, "number": n}) for n in range(QUESTIONS)]


BENCHMARKS = {
    "textcraft": Benchmark(
        textcraft.TextCraft,
        tuple(textcraft.SPLITS),
        textcraft.tasks,
        lambda task: {"split": task.split, "number": task.number},
        _number,
    ),
    "alfworld": Benchmark(
        alfworld.AlfWorld,
        alfworld.SPLITS,
        alfworld.tasks,
        lambda task: {"split": task.split, "game": task.name},
        _game,
    ),
    "datacommons": Benchmark(
        _datacommons,
        ("test", "train"),
        _datacommons_tasks,
        lambda task: task.arguments,
        _number,
        QA,
    ),
    "icu": Benchmark(_icu, ("test", "train"), _icu_tasks, lambda task: task.arguments, _number, QA),
}


def dialect_of(name: str) -> Dialect:
    """The dialect of a benchmark's prompts; "alfworld-heat" is one of alfworld's task types."""
    benchmark = BENCHMARKS.get(name.partition("-")[0])
    return benchmark.dialect if benchmark else AGENT


def spread(items: list[Any], n: int | None) -> list[Any]:
    """`n` items, evenly spread, since a benchmark's order can run from hard to easy; None: all.

    Tasks that have a `type` are spread over each type, as many of each as there are. Raises
    ValueError if there are not so many.
    """
    if n is None:
        return items
    if not 1 <= n <= len(items):
        raise ValueError(f"--tasks {n}: this split has 1 to {len(items)}")
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(getattr(item, "type", None), []).append(item)
    shares = dict.fromkeys(groups, 0)
    for _ in range(n):
        shares[min((k for k in groups if shares[k] < len(groups[k])), key=shares.__getitem__)] += 1
    return [
        group[at * len(group) // shares[kind]]
        for kind, group in groups.items()
        for at in range(shares[kind])
    ]
