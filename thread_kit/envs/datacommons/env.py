"""DataCommons QA (THREAD paper, section 4.4 and appendix F): questions about places and years.

Two kinds of tasks: the benchmark's 140 questions, from a file of one's own, answered with Data
Commons (a key and a network); and generated questions of the same kinds on open statistics that a
package carries, so that everything here also runs without either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, final

from thread_kit.envs.datacommons.client import KEY, DataCommons, MissingDataError
from thread_kit.envs.datacommons.official_questions import QUESTIONS
from thread_kit.envs.datacommons.questions import generate
from thread_kit.envs.datacommons.statistics import ListedStatistics, OpenStatistics, Statistics
from thread_kit.envs.env import Step
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.paths import cache_folder


def find_data() -> DataCommons:
    """Data Commons with its cache in the kit's cache folder.

    Raises ImportError without its client, ValueError where there is neither a key nor a cache.
    """
    folder = cache_folder() / "datacommons"
    if not os.environ.get(KEY) and not folder.is_dir():
        raise ValueError(
            f"the benchmark's own questions need Data Commons: set {KEY} to a key of yours "
            f"(free, from Data Commons), or unset {QUESTIONS.variable} for questions made here"
        )
    return DataCommons(folder)


@final
class DataCommonsQA(QuestionEnv):
    """One question.

    split: "test" or "train". number: counts from 0; of generated ones there is no end. questions:
    the path of the benchmark's file, all of which is "test"; of that of THREAD_KIT_DATACOMMONS the
    name is enough, so that a task can be named on any machine; None: they are generated.
    source: where the data are from; None is Data Commons for the benchmark's own questions
    (`find_data`) and `OpenStatistics` for generated ones.
    Raises ValueError for an unknown number or split, or without key and cache; FileNotFoundError or
    ImportError with the remedy.
    """

    name = "datacommons"

    def __init__(
        self,
        split: str = "test",
        number: int = 0,
        *,
        questions: str | Path | None = None,
        source: Statistics | None = None,
        weaker_sandbox: bool = False,
    ) -> None:
        super().__init__(weaker_sandbox=weaker_sandbox)
        self._missed = ""
        if number < 0:
            raise ValueError(f"no question {number}; questions are counted from 0")
        self.split = split
        self.number = int(number)
        self.task = {"split": split, "number": self.number}
        if not questions:
            self.source = source or OpenStatistics()
            self._path: Path | None = None
            if not isinstance(self.source, ListedStatistics):
                raise ValueError(
                    f"questions are generated on `ListedStatistics`, not on {self.source!r}"
                )
            self.question = generate(self.source, number, split)
            return
        self._path = path = QUESTIONS.locate(questions)
        self.question = QUESTIONS.choose_question(path, number, split)
        self.source = source or find_data()
        self.task["questions"] = path.name

    def __repr__(self) -> str:
        return f"DataCommonsQA({self.split!r}, {self.number}: {self.question.text})"

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """`find_places(words)`, `find_variables(words)`, `observations(place_ID, variable_ID)`."""
        return {
            "find_places": self._note_missed(self.source.find_places),
            "find_variables": self._note_missed(self.source.find_variables),
            "observations": self._note_missed(self._observations),
        }

    def _note_missed(self, look_up: Callable[..., Any]) -> Callable[..., Any]:
        """A function that keeps in mind whether data were missing in this episode."""

        @wraps(look_up)
        def noting(*arguments: Any, **named: Any) -> Any:
            try:
                return look_up(*arguments, **named)
            except MissingDataError as missed:
                self._missed = str(missed)
                raise

        return noting

    def reset(self) -> str:
        """See QuestionEnv."""
        self._missed = ""
        return super().reset()

    def step(self, action: str) -> Step:
        """See QuestionEnv. Raises ConnectionError where data were missing that nobody could fetch:
        such an episode says nothing of a method.
        """
        if self._missed:
            raise ConnectionError(f"{self._missed} Play the episode again when it can be.")
        return super().step(action)

    def _observations(self, place_ID: Any, variable_ID: Any) -> list[dict[str, Any]]:
        place, variable = str(place_ID), str(variable_ID)
        rows = self.source.observations(place, variable)
        self.lookups[place, variable] = None
        return rows

    def again(self) -> DataCommonsQA:
        """See Env."""
        return DataCommonsQA(
            self.split,
            self.number,
            questions=self._path,
            source=self.source,
            weaker_sandbox=self.weaker_sandbox,
        )
