"""A benchmark's own questions, in the file that its released program writes (THREAD paper, F)."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thread_kit.envs.benchmark import NumberedTask, choose_number
from thread_kit.envs.qa.env import Question


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A file of tab-separated questions and answers, all of the split "test".

    name: what the released program calls it. answers: its column of answers. variable: the
    environment variable that says where it is. remedy: how to come by it.
    """

    name: str
    answers: str
    variable: str
    remedy: str

    def find(self, name: str | Path | None = None) -> Path | None:
        """The file that the environment variable names, if it is called so (None: any)."""
        if here := os.environ.get(self.variable):
            path = Path(here).expanduser()
            if not name or path.name == str(name):
                return path
        return None

    def locate(self, questions: str | Path) -> Path:
        """A path as it is, or the file that the environment variable names, by its name alone."""
        path = Path(questions)
        return path if path.is_file() else self.find(questions) or path

    def load(self, path: str | Path) -> list[Question]:
        """All questions.

        Raises FileNotFoundError, and ValueError for a file of another form.
        """
        path = Path(path).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}. {self.remedy}")
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        if not rows or not all(row.get("question") and row.get(self.answers) for row in rows):
            raise ValueError(
                f"{path} has no columns question and {self.answers} in all rows. {self.remedy}"
            )
        return [Question(row["question"].strip(), row[self.answers].strip()) for row in rows]

    def choose_task(self, text: str) -> dict[str, Any]:
        """See `choose_number`; of this file, where the environment variable names it."""
        path = self.find()
        return choose_number(text) | ({"questions": path.name} if path else {})

    def list_tasks(self, benchmark: str, arguments: Mapping[str, Any]) -> list[NumberedTask]:
        """All questions of the file that the environment variable names; [] where it names none.

        arguments: those that all of them have. Raises as `load`.
        """
        path = self.find()
        task = {**arguments, "questions": path.name if path else None}
        numbers = range(len(self.load(path)) if path else 0)
        return [NumberedTask(benchmark, n, 0, {**task, "number": n}) for n in numbers]

    def choose_question(self, path: Path, number: int, split: str | None) -> Question:
        """One question; raises ValueError for a number or a split that there is not."""
        if split not in (None, "test"):
            raise ValueError(f"the benchmark's questions are all of the split test, not {split!r}")
        own = self.load(path)
        if number >= len(own):
            raise ValueError(f"no question {number} in {path}; choose 0 to {len(own) - 1}")
        return own[number]
