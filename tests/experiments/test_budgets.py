"""Budgets: the table of the papers' numbers, and what a suite makes of it."""

from __future__ import annotations

import csv
import re
from itertools import count

import pytest
from helpers.suites import THREAD, Yard, speak, suite, tasks

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.registry import BENCHMARKS, OWN, find_benchmark
from thread_kit.experiments import memory_builders, method_builders, stateflow_builders
from thread_kit.experiments.budgets import (
    Limit,
    apply_budget,
    budget_of,
    own_limit,
    sources_of,
)
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_registry import BUILDERS, VARIANTS, has_trials, load_method
from thread_kit.paths import resource
from thread_kit.trace.header import LIMITS

with resource("data/budgets.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def look_around(text: str) -> str:
    return "#END#" if text.count("=>") == 60 else "> look =>"


# The table


def test_each_limit_is_printed_once_and_says_where():
    places = [(row["method"], row["benchmark"], row["unit"], row["paper"]) for row in ROWS]
    assert len(set(places)) == len(places)
    units = {"calls", "new_tokens", "actions", "iterations", "trials", "turns", "d_max", "subtasks"}
    units.add("steps")
    assert {unit for _, _, unit, _ in places} == units
    assert {paper for *_, paper in places} == {"", "stateflow", "thread"}
    for row in ROWS:
        assert re.fullmatch(r"[1-9]\d*|", row["value"]), row
        assert re.match(
            r"(THREAD|ADaPT|StateFlow|"
            r"(LATS|AdaPlanner|RAP|AutoGuide) \(\w+ et al\. 202\d\)), |this kit",
            row["source"],
        ), row
        assert row["value"] or row["unit"] in ("calls", "actions"), "others are never without"


def test_every_method_has_a_budget_on_every_benchmark_of_the_papers():
    for method in BUILDERS | VARIANTS:
        for benchmark in BENCHMARKS:
            budget = budget_of(method, benchmark)
            assert {"calls", "new_tokens"} <= set(budget), (method, benchmark)


@pytest.mark.parametrize(
    ("method", "benchmark", "unit", "value"),
    [
        # THREAD, released code
        ("thread", "textcraft", "calls", 200),
        ("thread", "alfworld-heat", "new_tokens", 800),
        ("thread, lines", "icu", "new_tokens", 1000),
        ("thread, no variables", "alfworld", "actions", 50),
        # ADaPT, appendix A and section 4.2
        ("adapt", "textcraft", "iterations", 20),
        ("adapt-by-type", "alfworld-look", "d_max", 3),
        ("adapt", "textcraft", "d_max", 4),
        ("adapt", "webshop", "iterations", 15),
        ("adapt", "alfworld", "actions", None),
        ("react", "textcraft", "iterations", 60),
        ("react", "webshop", "iterations", 45),
        ("naive", "webshop", "iterations", 15),
        ("try again", "textcraft", "trials", 4),
        ("reflexion", "alfworld", "trials", 3),
        # StateFlow, sections 4.1 and 4.2, appendix B.1
        ("stateflow, 10 states", "alfworld", "actions", 50),
        ("react+reflexion", "alfworld", "iterations", 50),
        ("react+reflexion", "alfworld", "trials", 6),
        ("stateflow+reflexion", "alfworld", "trials", 6),
        ("stateflow", "sql", "actions", 10),
        ("plan-and-solve", "sql", "turns", 10),
        ("tdag", "webshop", "iterations", 15),
        ("decomp", "webshop", "iterations", 45),
        ("thread+reflexion", "alfworld", "calls", 600),
        ("react", "bash", "actions", 10),
        ("rap", "webshop", "iterations", 14),
    ],
)
def test_the_papers_numbers(method, benchmark, unit, value):
    assert budget_of(method, benchmark)[unit].value == value


@pytest.fixture(scope="module")
def consumed():
    """The lines of the table that a method reads when it is made, or a session when it is played.

    Whatever the kit can make is made, so a pair of its own that lacks a line is an error here.
    """
    lines: set[tuple[str, str, str]] = set()
    table = {(row["method"], row["benchmark"], row["unit"]) for row in ROWS}

    def read(method: str, benchmark: str, unit: str) -> None:
        name = method.partition(",")[0]
        while not any(place[:2] == (name, benchmark) for place in table) and "-" in name:
            name = name.rpartition("-")[0]
        name = {"try-again": "try again"}.get(name, name)
        lines.update({(name, benchmark, unit), ("*", benchmark, unit)} & table)

    def own_limit_noted(method, benchmark, unit):
        value = own_limit(method, benchmark, unit)
        read(method, benchmark.name, unit)
        return value

    with pytest.MonkeyPatch.context() as patch:
        for module in (memory_builders, method_builders, stateflow_builders):
            patch.setattr(module, "own_limit", own_limit_noted)
        for benchmark in OWN:
            for method in (*BUILDERS, *benchmark.methods):
                try:
                    load_method(method, benchmark.examples or benchmark.name)
                except FileNotFoundError:
                    continue
                except ValueError as error:
                    if "budgets.csv" in str(error):
                        raise
                    continue
                for unit in (*LIMITS, "actions"):
                    read(method, benchmark.name, unit)
    return lines


@pytest.mark.parametrize(
    ("method", "paper", "unit", "value"),
    [
        ("react", "adapt", "actions", None),
        ("react", "stateflow", "actions", 50),  # appendix B.1: rounds; thoughts are none
        ("react", "stateflow", "iterations", 100),
        ("react", "thread-v2", "actions", 50),  # Table 10: the environment's own maximum
        ("react", "thread-v1", "iterations", 60),
        ("adapt", "thread-v1", "actions", 50),
        ("adapt-by-type", "adapt", "actions", None),
    ],
)
def test_a_paper_can_give_anothers_method_another_budget(method, paper, unit, value):
    assert budget_of(method, "alfworld-heat", paper)[unit].value == value


@pytest.mark.parametrize(("paper", "rounds"), [("stateflow", 50), ("adapt", 60)])
def test_react_has_the_rounds_of_the_paper_in_whose_tables_it_stands(tmp_path, paper, rounds):
    """StateFlow paper, appendix B.1: 50 rounds; ADaPT paper, appendix A: 60 iterations."""
    iterations = budget_of("react", "alfworld", paper)["iterations"].value
    react = load_method("react", "alfworld-heat", iterations=iterations)
    given = {"methods": [react], "environment": Yard, "tasks": [{}]}
    models = {"oracle": ScriptedEngine(["> look =>"] * 99)}
    played = suite(tmp_path / "r.jsonl", **given, models=models, options={}, paper=paper)
    (row,) = played.run(progress=False)
    assert row["actions"] == rounds
    assert row["out_of_actions"] is (rounds == 50)
    assert "chosen" not in row["budget"].values()


def test_every_line_is_read_and_no_method_lacks_one(consumed):
    places = {(row["method"], row["benchmark"], row["unit"]) for row in ROWS}
    assert places - consumed == set()


def test_a_benchmark_of_the_kit_without_a_line_is_an_error():
    assert own_limit("mine", find_benchmark("hanoi"), "iterations") == 20
    with pytest.raises(ValueError, match="has no iterations of 'mine' on textcraft; add the line"):
        own_limit("mine", find_benchmark("textcraft"), "iterations")


@pytest.mark.parametrize("method", ["stateflow", "sf_chat", "stateflow, 10 states"])
def test_stateflow_has_its_fifty_rounds_with_the_environment(tmp_path, method):
    """Init and Plan, which need none, are not counted among them."""
    numbers = count()

    def speak(text: str) -> str:
        return f"> go to cabinet {next(numbers)} =>"

    made = load_method(method, "alfworld-heat")
    row = play(tmp_path, method, methods=[made], models={"scripted": ScriptedEngine(speak)})
    assert not row["error"]
    assert (row["actions"], row["out_of_actions"]) == (50, True)


def test_a_benchmark_of_ones_own_has_none():
    assert budget_of("thread", "hanoi") == budget_of("mine", "hanoi-long") == {}
    assert budget_of("mine", "textcraft")["calls"] == Limit(200, "this kit, as THREAD")


# What a suite makes of it


def test_what_is_chosen_comes_before_the_table():
    yard, budget = Yard(), budget_of("thread", "alfworld")
    assert apply_budget(budget, yard, {}) == {"calls": 200, "new_tokens": 800}
    chosen = {"calls": None, "actions": 7, "temperature": 0.5}
    options = apply_budget(budget, yard, chosen)
    assert options == {"calls": None, "new_tokens": 800, "temperature": 0.5}
    assert yard.max_actions == 7
    assert chosen["actions"] == 7
    assert set(options) - {"temperature"} <= set(LIMITS)
    apply_budget(budget_of("adapt", "alfworld"), yard, {})
    assert yard.max_actions is None
    said = sources_of({"calls": 200, "new_tokens": 40, "depth": 30}, budget)
    assert said == {"calls": "THREAD, released code", "new_tokens": "chosen"}


@pytest.mark.parametrize("benchmark", ["datacommons", "icu"])
def test_questions_count_no_actions(benchmark):
    env = find_benchmark(benchmark).environment(split="test", number=0)
    with pytest.raises(ValueError, match="only where they are counted"):
        apply_budget(budget_of("thread", benchmark), env, {"actions": 5})
    env.close()


@pytest.mark.parametrize("actions", [0, -1, 5])
def test_actions_are_limited_where_they_are_counted(actions):
    class Endless(Yard):
        def __init__(self):
            super().__init__()
            del self.max_actions

    with pytest.raises(ValueError, match=f"actions is {actions}; give 1 or more"):
        apply_budget({}, Endless() if actions > 0 else Yard(), {"actions": actions})


def play(tmp_path, method: str, **changed):
    given = {
        "methods": [SessionMethod(method, THREAD.prompt, THREAD.fixed)],
        "models": {"scripted": ScriptedEngine(look_around)},
        "environment": Yard,
        "tasks": [{}],
    }
    (row,) = suite(tmp_path / "r.jsonl", **{**given, **changed}).run(progress=False)
    return row


def test_a_row_says_its_limits_and_where_they_are_from(tmp_path):
    row = play(tmp_path, "thread")
    assert (row["limits"]["calls"], row["limits"]["new_tokens"]) == (200, 800)
    assert row["budget"] == {
        "actions": "THREAD, released code",
        "calls": "THREAD, released code",
        "new_tokens": "THREAD, released code",
    }
    (chosen,) = suite(
        tmp_path / "s.jsonl", methods=[THREAD], tasks=tasks(40), options={"calls": 150}
    ).run(progress=False)
    assert chosen["limits"]["calls"] == 150
    assert chosen["budget"] == {"calls": "chosen", "new_tokens": "THREAD, released code"}


@pytest.mark.parametrize(
    ("method", "changed", "actions", "out"),
    [
        ("thread", {}, 50, True),
        ("adapt", {}, 60, False),
        ("adapt", {"options": {"actions": 12}}, 12, True),
        ("adapt", {"tasks": [{"max_actions": 20}]}, 20, True),
    ],
    ids=["of the paper", "none", "chosen", "of the task"],
)
def test_the_limit_on_actions_is_the_methods_unless_it_was_chosen(
    tmp_path, method, changed, actions, out
):
    row = play(tmp_path, method, **changed)
    assert (row["actions"], row["out_of_actions"]) == (actions, out)


def test_another_limit_on_actions_makes_another_episode(tmp_path):
    settings = [
        play(tmp_path, "thread", options=options)["settings"]
        for options in ({}, {"actions": 50}, {"actions": 51})
    ]
    assert settings[0] == settings[1] != settings[2]


def test_the_defaults_of_before_are_still_the_same_episode(tmp_path):
    """THREAD on TextCraft was always played with the paper's budget."""
    path, given = tmp_path / "r.jsonl", {"methods": [THREAD], "tasks": tasks(40)}
    first = suite(path, **given).run(progress=False)
    engine = ScriptedEngine(speak)
    options = {"calls": 200, "new_tokens": 1000}
    models = {"oracle": engine}
    again = suite(path, **given, options=options, models=models).run(progress=False)
    assert again.rows == first.rows
    assert engine.seen == []


@pytest.mark.parametrize("name", [*BUILDERS, *VARIANTS])
def test_trials_can_be_chosen_where_a_program_has_them(name):
    """Of each method, wherever the kit can make it."""
    for benchmark in OWN:
        try:
            method = load_method(name, benchmark.examples or benchmark.name)
        except (ValueError, FileNotFoundError):
            continue
        program = method.fixed.get("program")
        takes_them = "trials" in getattr(program, "keywords", {})
        assert has_trials(name) is takes_them, benchmark.name
