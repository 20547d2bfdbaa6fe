"""DataCommons QA's record; pandas and scipy are not imported before a question is made."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from thread_kit.dialect import QA
from thread_kit.envs.benchmark import Benchmark, NumberedTask, list_questions
from thread_kit.envs.datacommons.official_questions import QUESTIONS
from thread_kit.envs.env import Env
from thread_kit.errors.rules import QuestionRules


def make_question(**arguments: Any) -> Env:
    """A question; arguments and errors are those of `DataCommonsQA`."""
    from thread_kit.envs.datacommons.env import DataCommonsQA

    if arguments.get("split") == "train":
        arguments.pop("questions", None)  # `choose_task` does not know the split
    return DataCommonsQA(**arguments)


def list_tasks(split: str) -> list[NumberedTask]:
    """Questions of a split: the benchmark's own where THREAD_KIT_DATACOMMONS names its file.

    Raises FileNotFoundError and ValueError as `QuestionFile.load` and `find_data` do.
    """
    from thread_kit.envs.datacommons.env import find_data
    from thread_kit.envs.datacommons.questions import KINDS

    if split == "test" and (own := QUESTIONS.list_tasks("datacommons", {"split": split})):
        find_data()  # before the first of them is asked
        return own
    return list_questions("datacommons", len(KINDS), {"split": split})


def are_generated(row: Mapping[str, Any]) -> bool:
    """Whether the question is none of the benchmark's file, by its name there."""
    return row.get("questions") != QUESTIONS.name


DATACOMMONS = Benchmark(
    "datacommons",
    make_question,
    list_tasks,
    splits=("test", "train"),
    arguments=attrgetter("arguments"),
    choose=QUESTIONS.choose_task,
    dialect=QA,
    methods=("thread, async", "thread, lines", "nlep", "nlep+react", "reflexion, gold answer"),
    handlers=(
        *("create_table", "get_variable", "calc_min", "calc_max", "calc_avg", "calc_median"),
        *("calc_value", "calc_slope", "calc_expected_value", "calc_corr"),
    ),
    error_rules=QuestionRules,
    adapters={"smollm2-135m": "thread-135m"},
    published="DataCommons QA",
    stands_in=are_generated,
)
