"""The benchmarks by name: what the command line needs of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thread_kit.envs import Env, alfworld, textcraft


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark.

    splits: the one of the papers' numbers first.
    listed: the tasks of a split.
    arguments: of such a task, those that `environment` makes it with again.
    chosen: those of the task that a person names within a split; raises ValueError.
    """

    environment: Callable[..., Env]
    splits: tuple[str, ...]
    listed: Callable[[str], list[Any]]
    arguments: Callable[[Any], dict[str, Any]]
    chosen: Callable[[str], dict[str, Any]]


def _number(text: str) -> dict[str, Any]:
    if not text.isdecimal():
        raise ValueError(f"no task {text!r}; tasks have numbers here")
    return {"number": int(text)}


def _game(text: str) -> dict[str, Any]:
    return {"game": int(text) if text.isdecimal() else text}


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
}


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


__all__ = ["BENCHMARKS", "Benchmark", "spread"]
