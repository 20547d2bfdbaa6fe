"""DataCommons QA's record; pandas and scipy are not imported before a question is made."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from thread_kit.dialect import QA
from thread_kit.envs.benchmark import Benchmark, NumberedTask, always, list_questions
from thread_kit.envs.env import Env
from thread_kit.errors.rules import QuestionRules


def make_question(**arguments: Any) -> Env:
    """A question; arguments and errors are those of `DataCommonsQA`."""
    from thread_kit.envs.datacommons.env import DataCommonsQA

    return DataCommonsQA(**arguments)


def list_tasks(split: str) -> list[NumberedTask]:
    """Generated questions of a split."""
    from thread_kit.envs.datacommons.questions import KINDS

    return list_questions("datacommons", len(KINDS), {"split": split})


DATACOMMONS = Benchmark(
    "datacommons",
    make_question,
    list_tasks,
    splits=("test", "train"),
    arguments=attrgetter("arguments"),
    dialect=QA,
    methods=("thread, async", "thread, lines", "nlep", "nlep+react", "reflexion, gold answer"),
    handlers=("get", "compute"),
    error_rules=QuestionRules,
    adapters={"smollm2-135m": "thread-135m"},
    published="DataCommons QA",
    stands_in=always,
)
