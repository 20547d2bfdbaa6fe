"""What tells one episode of a suite from another: two that differ are both played."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers.suites import SHOWN, THREAD, Yard, shown_oracle, suite, tasks

from thread_kit.dialect import AGENT
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.exchange import abstract_values, as_observed, phi_full_sequence, psi_full_sequence
from thread_kit.experiments import job
from thread_kit.experiments.job import Job
from thread_kit.experiments.method import PerTaskMethod, SessionMethod
from thread_kit.experiments.method_registry import TAUGHT, list_methods, load_method
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import read_results
from thread_kit.prompts import Example, Prompt


class Quiet(Env):
    """An environment of any benchmark's name."""

    def __init__(self, name: str) -> None:
        self.name, self.task = name, {}

    def reset(self) -> str:
        return "Do it."

    def step(self, action: str):
        raise AssertionError

    def again(self) -> Env:
        return self

    def oracle(self) -> None:
        return None


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_name_of_a_method_of_the_kit_tells_what_passes_between_its_threads(benchmark):
    built = 0
    for name in list_methods():
        for taught in {False, name in TAUGHT}:
            try:
                method = load_method(name, benchmark, taught=taught)
            except (ValueError, FileNotFoundError):
                continue  # which the benchmark does not have
            if method.fixed.get("program"):
                continue  # nothing passes
            built += 1
            env = Quiet(benchmark)
            session = method(ScriptedEngine(()), env, seed=0, path=None)
            header = session.episode.header
            session.close()
            assert job._find_exchanged(Job(method, "m", Quiet, {}, 0, {}), header) == {}, name
    assert built > 3


def play(tmp_path, name, **given):
    return suite(tmp_path / name, tasks=tasks(40), **given).run(progress=False)


@pytest.mark.parametrize(
    "fixed",
    [
        {"phi": phi_full_sequence},
        {"psi": psi_full_sequence},
        {"abstract": as_observed},
        {"dialect": replace(AGENT, as_observed=True)},
    ],
)
def test_another_function_of_the_kit_under_the_same_name_is_another_episode(tmp_path, fixed):
    method = THREAD if "dialect" in fixed else SHOWN
    changed = replace(method, fixed=fixed)
    play(tmp_path, "r.jsonl", methods=[method])
    play(tmp_path, "r.jsonl", methods=[changed])
    if method is SHOWN:  # one that is made anew for each task is the same
        play(tmp_path, "r.jsonl", methods=[PerTaskMethod(SHOWN.name, lambda examples: changed)])
    assert len(read_results(tmp_path / "r.jsonl")) == 2


def test_the_default_by_name_is_the_default(tmp_path):
    play(tmp_path, "r.jsonl", methods=[THREAD])
    play(tmp_path, "r.jsonl", methods=[replace(THREAD, fixed={"abstract": abstract_values})])
    assert len(read_results(tmp_path / "r.jsonl")) == 1  # it reads no examples


def test_prompts_that_change_places_make_another_episode(tmp_path):
    prompt = Prompt("two", (Example("say b =>", "print('b')\n#END#"),))
    one = SessionMethod("mine", SHOWN.prompt, {"main_prompt": prompt})
    other = SessionMethod("mine", prompt, {"main_prompt": SHOWN.prompt})
    play(tmp_path, "r.jsonl", methods=[one])
    play(tmp_path, "r.jsonl", methods=[other])
    assert len(read_results(tmp_path / "r.jsonl")) == 2


def test_what_a_partial_gives_the_environment_is_part_of_the_episode(tmp_path):
    class Other(TextCraft):
        def __init__(self, *, actions=None, **task):
            super().__init__(**task)
            self.max_actions = actions or self.max_actions

    for n in (3, 40):
        play(tmp_path, "r.jsonl", methods=[THREAD], environment=partial(Other, actions=n))
    assert len(read_results(tmp_path / "r.jsonl")) == 2


def test_actions_that_a_partial_gives_are_the_limit_of_all_tasks(tmp_path):
    given = {"methods": [THREAD], "environment": partial(Yard, max_actions=3)}
    results = suite(tmp_path / "r.jsonl", tasks=[{}], **given).run(progress=False)
    (row,) = results
    assert row["limits"]["actions"] == 3


# An episode that cannot be started


def test_what_cannot_be_started_stays_what_was_played_last(tmp_path):
    for calls in (5, 50, 20):
        play(tmp_path, "r.jsonl", methods=[THREAD], options={"calls": calls})
    before = read_results(tmp_path / "r.jsonl")
    gone = partial(_unmakable)
    with pytest.warns(UserWarning, match="stays as it was"):
        (row,) = play(tmp_path, "r.jsonl", methods=[THREAD], environment=gone)
    assert row == before[-1]
    assert read_results(tmp_path / "r.jsonl") == before


def _unmakable(**task):
    raise OSError("its data are gone")


def test_another_benchmark_takes_no_place_of_what_was_not_started(tmp_path):
    class Broken(TextCraft):
        name = "webshop"

        def __init__(self, **task):
            raise OSError("its data are gone")

    play(tmp_path, "r.jsonl", methods=[THREAD], environment=Broken)
    play(tmp_path, "r.jsonl", methods=[THREAD])
    rows = read_results(tmp_path / "r.jsonl")
    found = [(row["environment"], row["status"]) for row in rows]
    assert found == [("webshop", "not started"), ("textcraft", "ended")]


# What no row can hold


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"models": {3: shown_oracle}}, "3 is no name of a model"),
        ({"methods": [SessionMethod(7)]}, "is no method; load one"),
        ({"options": {"temperature": "0.7"}}, "temperature='0.7' is no number"),
        ({"options": {"temperature": float("nan")}}, "no number that a trace can hold"),
        ({"options": {"actions": 1.5}}, "actions=1.5 is no whole number"),
        ({"tasks": [{"split": "dev", "number": np.int64(40)}]}, "is no JSON .*Python's own"),
    ],
)
def test_what_no_row_can_hold_is_refused_before_anything_is_played(tmp_path, given, words):
    with pytest.raises(ValueError, match=words):
        suite(tmp_path / "r.jsonl", **given)


def test_an_environment_whose_name_is_no_text_leaves_a_file_that_can_be_read(tmp_path):
    class Seven(TextCraft):
        name = 7

    play(tmp_path, "r.jsonl", methods=[THREAD], environment=Seven)
    (row,) = read_results(tmp_path / "r.jsonl")
    assert row["environment"] is None
    assert "Seven.name is 7; give a text" in row["error"]


def test_measures_are_numbers_whoever_made_them(tmp_path):
    class Measuring(TextCraft):
        @property
        def measures(self):
            numbers = {"a": np.int64(3), "b": np.float32(0.5), "c": np.bool_(True)}
            return {**numbers, "d": float("nan"), "e": np.float32("inf"), "f": {7}}

    (live,) = play(tmp_path, "r.jsonl", methods=[THREAD], environment=Measuring).rows
    (row,) = read_results(tmp_path / "r.jsonl")
    assert [row[name] for name in "abcdef"] == [3, 0.5, True, None, None, "{7}"]
    assert live == row


def test_a_part_of_the_task_never_stands_in_for_a_measure():
    row = {"task": {"turns": 10}, "turns": 4}
    assert Results([row, {"task": {"turns": 10}}]).frame["turns"].isna().tolist() == [False, True]
