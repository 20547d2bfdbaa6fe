"""What the tasks of InterCode's benchmarks have in common.

"test" is InterCode's, in its order (data/intercode/official; `envs/intercode/files.py`), or what a
folder of the user's has instead: such tasks name it. "dev" and "train" were made for this kit
(data/intercode): prompts show "train" alone, and nothing is tuned on "test".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thread_kit.envs.env import choose_task
from thread_kit.envs.intercode.files import FOLDER_VARIABLE, find_file, read_file
from thread_kit.paths import resource

SPLITS = ("test", "dev", "train")


@dataclass(frozen=True, slots=True)
class Task:
    """A question and its gold command. number: counts from 0 within the split.

    files: what `name_files` calls the files that it is from; "" of the official ones, and of
    the kit's own.
    """

    split: str
    number: int
    question: str
    gold: str
    files: str = field(default="", kw_only=True)

    @property
    def arguments(self) -> dict[str, Any]:
        """Those that make it again."""
        own = {"files": self.files} if self.files else {}
        return {"split": self.split, "number": self.number, **own}


def choose_question(tasks: Sequence[Any], split: str, number: int, files: str | None) -> Any:
    """The task with this number of a split; raises ValueError for none.

    files: what its files are called, if that is known; others are at hand: ValueError.
    """
    here = tasks[0].files if tasks else ""
    if files is not None and files != here:
        raise ValueError(
            f"the task is of the files {files!r}, and here are "
            f"{repr(here) if here else 'the official ones'}; set {FOLDER_VARIABLE} to the folder "
            "of those"
        )
    return choose_task(tasks, split, number)


def has_other_questions(row: Mapping[str, Any]) -> bool:
    """Whether the task of a row is none of the official files."""
    return isinstance(row.get("files"), str)  # a frame has NaN where there is none


def read_rows(path: str, *names: str) -> list[dict[str, Any]]:
    """The questions of one of InterCode's files, each with a text by each of these names.

    Raises ValueError for a file in another form, and what `find_file` raises.
    """
    file, text = find_file(path), read_file(path)
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{file} is no JSON: {error}") from error
    if not isinstance(rows, list):
        raise ValueError(f"{file} is no list of questions")
    for number, row in enumerate(rows):
        texts = [name for name in names if isinstance(row, dict) and isinstance(row.get(name), str)]
        if lacks := [name for name in names if name not in texts]:
            raise ValueError(
                f"question {number} of {file} has no {lacks[0]!r}; each has the texts "
                f"{', '.join(names)}"
            )
    return rows


def read_own(path: str, split: str) -> list[dict[str, Any]]:
    """The rows of a split among the kit's own tasks, in the order of their file."""
    lines = resource(path).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["split"] == split]
