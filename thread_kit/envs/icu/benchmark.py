"""ICU QA's record; pandas and scipy are not imported before a question is made."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from thread_kit.dialect import QA
from thread_kit.envs.benchmark import Benchmark, NumberedTask, list_questions
from thread_kit.envs.env import Env
from thread_kit.envs.icu.official_questions import QUESTIONS
from thread_kit.errors.rules import QuestionRules


def make_question(**arguments: Any) -> Env:
    """A question; arguments and errors are those of `IcuQA`."""
    from thread_kit.envs.icu.env import IcuQA

    if arguments.get("split") == "train":
        arguments.pop("questions", None)  # `choose_task` does not know the split
    return IcuQA(**arguments)


def list_tasks(split: str) -> list[NumberedTask]:
    """Questions of a split about the stays of this machine, which each task names: the benchmark's
    own where THREAD_KIT_ICU_QUESTIONS names its file.
    """
    from thread_kit.envs.icu.questions import kinds_of
    from thread_kit.envs.icu.stays import load_stays

    task = {"stays": load_stays().name, "split": split}
    own = QUESTIONS.list_tasks("icu", task) if split == "test" else []
    return own or list_questions("icu", len(kinds_of(load_stays())), task)


def are_generated(row: Mapping[str, Any]) -> bool:
    """Whether the question is none of the released program's file, about stays of MIMIC-III."""
    is_of_mimic = str(row.get("stays")).startswith("mimic3-benchmarks ")
    return not is_of_mimic or row.get("questions") != QUESTIONS.name


ICU = Benchmark(
    "icu",
    make_question,
    list_tasks,
    splits=("test", "train"),
    arguments=attrgetter("arguments"),
    choose=QUESTIONS.choose_task,
    dialect=QA,
    methods=("thread, async", "thread, lines", "nlep", "nlep+react", "reflexion, gold answer"),
    handlers=(
        *("create_table", "get_variable", "calc_min", "calc_max", "calc_avg", "calc_slope"),
        *("calc_timepoint_max", "calc_timepoint_min", "calc_timepoint_incr"),
        *("calc_timepoint_decr", "calc_expected_value"),
    ),
    error_rules=QuestionRules,
    adapters={"smollm2-135m": "thread-135m"},
    published="MIMIC-III ICU QA",
    stands_in=are_generated,
)
