"""DataCommons QA (THREAD paper, section 4.4 and appendix F): questions about places and years.

Two kinds of tasks: the benchmark's 140 questions, from a file of one's own, answered with Data
Commons (a key and a network); and generated questions of the same kinds on open statistics that a
package carries, so that everything here also runs without either.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from thread_kit.envs.datacommons.questions import generate
from thread_kit.envs.datacommons.statistics import ListedStatistics, OpenStatistics, Statistics
from thread_kit.envs.qa.env import Question, QuestionEnv
from thread_kit.envs.qa.kinds import SPLITS

WHERE = (
    "The file is datacommons_qa/datacommons_qa_benchmark.txt of the repository philipmit/thread; "
    "or take generated questions: DataCommonsQA('test', 0)"
)


def load_questions(path: str | Path) -> list[Question]:
    """The benchmark's questions, from its file (tab-separated: question, dc_answer).

    Raises FileNotFoundError, and ValueError for a file of another form.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}. {WHERE}")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if not rows or not all(row.get("question") and row.get("dc_answer") for row in rows):
        raise ValueError(f"{path} has no columns question and dc_answer in all rows. {WHERE}")
    return [Question(row["question"].strip(), row["dc_answer"].strip()) for row in rows]


@final
class DataCommonsQA(QuestionEnv):
    """One question.

    split: "test" or "train" (generated), or the path of the benchmark's file. number: counts from
    0; of generated ones there is no end. source: where the data are from; None is
    `OpenStatistics`, which does not have what the benchmark's own questions ask for.
    Raises ValueError for an unknown number, FileNotFoundError or ImportError with the remedy.
    """

    name = "datacommons"

    def __init__(
        self,
        split: str | Path = "test",
        number: int = 0,
        *,
        source: Statistics | None = None,
        weaker_sandbox: bool = False,
    ) -> None:
        super().__init__(weaker_sandbox=weaker_sandbox)
        if number < 0:
            raise ValueError(f"no question {number}; questions are counted from 0")
        self.split = split
        self.number = number
        self.source = source or OpenStatistics()
        if split in SPLITS:
            if not isinstance(self.source, ListedStatistics):
                raise ValueError(
                    f"questions are generated on `ListedStatistics`, not on {self.source!r}"
                )
            self.question = generate(self.source, number, str(split))
            self.task = {"split": str(split), "number": number}
            return
        questions = load_questions(split)
        if number >= len(questions):
            raise ValueError(f"no question {number} in {split}; choose 0 to {len(questions) - 1}")
        self.question = questions[number]
        self.task = {"split": Path(split).name, "number": number}

    def __repr__(self) -> str:
        return f"DataCommonsQA({self.task['split']!r}, {self.number}: {self.question.text})"

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """`find_places(words)`, `find_variables(words)`, `observations(place_ID, variable_ID)`."""
        return {
            "find_places": self.source.find_places,
            "find_variables": self.source.find_variables,
            "observations": self._observations,
        }

    def _observations(self, place_ID: Any, variable_ID: Any) -> list[dict[str, Any]]:
        place, variable = str(place_ID), str(variable_ID)
        rows = self.source.observations(place, variable)
        self.lookups[place, variable] = None
        return rows

    def again(self) -> DataCommonsQA:
        """See Env."""
        return DataCommonsQA(
            self.split, self.number, source=self.source, weaker_sandbox=self.weaker_sandbox
        )
