"""Examples, and the file that keeps those of each task as soon as it is played: a kill loses one.

A line of JSON says what they are made of; every other one has the examples of a task, in the order
of the tasks. How many are wanted is not part of it: whoever wants more goes on behind the last one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thread_kit.recorder import write_line


@dataclass(frozen=True, slots=True)
class Example:
    """One thread: its tokens, and for each of them whether it is to be learnt."""

    tokens: tuple[int, ...]
    learnt: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.tokens)


class Kept:
    """The file. about: what the examples are made of (JSON values). tasks: those of each task.

    Raises ValueError if the file holds the examples of something else.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_line(path, dict(about), "wb")
        first, *lines = _whole_lines(path) or [{}]
        if first != about:
            raise ValueError(
                f"{path} holds other examples ({first}, not {dict(about)}); give another folder, "
                "or delete it"
            )
        self.tasks = [[_example(one) for one in line["examples"]] for line in lines]

    def add(self, examples: Sequence[Example]) -> None:
        """Keep the examples of the next task; they are in the file when this returns."""
        values = [[one.tokens, list(map(int, one.learnt))] for one in examples]
        write_line(self.path, {"examples": values})
        self.tasks.append(list(examples))


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines; one that was being written is cut off."""
    with path.open("rb+") as file:
        whole = file.read()
        end = whole.rfind(b"\n") + 1
        file.truncate(end)
    return [json.loads(line) for line in whole[:end].splitlines()]


def _example(value: Sequence[Sequence[int]]) -> Example:
    tokens, learnt = value
    return Example(tuple(tokens), tuple(map(bool, learnt)))


__all__ = ["Example", "Kept"]
