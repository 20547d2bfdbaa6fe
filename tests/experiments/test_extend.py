"""Extend: a file whose episodes a smaller budget ended goes on with a larger one."""

from __future__ import annotations

import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from helpers.suites import SHOWN, THREAD, Yard, speak, suite, tasks

from thread_kit.__main__ import main
from thread_kit.engines.models import EMBEDDED, load_model
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.webshop.env import WebShop
from thread_kit.experiments.budgets import with_own_actions
from thread_kit.experiments.extend import find_earlier
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.results_file import EpisodeKey, ResultsFileError, read_results
from thread_kit.experiments.spent_budget import find_budget
from thread_kit.trace.episode import Episode

FEW = 8
"""Calls with which one of the three tasks is ended unsolved, and two are not."""

WHERE = ("settings", "limits", "budget", "extends", "trace", "seconds", "at_once")
WHERE += ("reused", "evaluated")
"""What a row that went on and one that was played at once may differ in."""


def outcomes(rows):
    kept = [{name: row[name] for name in row if name not in WHERE} for row in rows]
    return sorted(kept, key=lambda row: (row["method"], json.dumps(row["task"])))


def few(path, **changed):
    given = {"traces": True, "tasks": tasks(40, 47, 18), "options": {"calls": FEW}}
    return suite(path, **{**given, **changed})


def test_only_what_the_budget_ended_goes_on_and_from_its_trace(tmp_path):
    path = tmp_path / "r.jsonl"
    before = few(path).run(progress=False).rows
    assert [row["status"] for row in before] == ["ended"] * 4 + ["out of calls"] * 2
    engine = ScriptedEngine(speak)
    extended = few(path, options={"calls": 200}, models={"oracle": engine})
    rows = extended.run(extend=True, progress=False).rows
    whole = few(tmp_path / "whole.jsonl", options={"calls": 200}).run(progress=False).rows
    assert outcomes(rows) == outcomes(whole)
    assert [row["settings"] for row in rows] == [row["settings"] for row in whole]
    assert {row["limits"]["calls"] for row in rows} == {200}
    assert all(row["solved"] for row in rows)
    # The model was asked for no call that the file had already.
    assert len(engine.seen) == sum(row["calls"] for row in whole[4:]) - 2 * FEW
    # The file holds each episode once, and a trace for each.
    assert read_results(path) == rows
    assert {row["extends"] for row in rows} == {row["settings"] for row in before}
    names = {(tmp_path / row["trace"]).name for row in rows}
    assert {file.name for file in (tmp_path / "r-traces").iterdir()} == names
    assert all(Episode.load(tmp_path / row["trace"]).reward == 1 for row in rows)
    # Run again, it has nothing to do.
    again = few(path, options={"calls": 200}, models={"oracle": ScriptedEngine([])})
    assert again.run(extend=True, progress=False).rows == rows


def test_where_the_environments_own_limit_of_actions_ended_it_goes_on_too(tmp_path):
    """Rows do not name that limit."""
    engine = ScriptedEngine(lambda text: "> SELECT 1 =>")
    given = {"environment": InterCodeSql, "tasks": [{"split": "train", "number": 0}]}
    given |= {"methods": [load_method("react", "sql")], "models": {"m": engine}, "traces": True}
    (row,) = suite(tmp_path / "r.jsonl", **given).run(progress=False)
    assert (row["actions"], row["out_of_actions"]) == (10, True)
    assert "actions" not in row["limits"]
    asked = len(engine.seen)
    longer = suite(tmp_path / "r.jsonl", options={"actions": 12}, **given)
    (row,) = longer.run(extend=True, progress=False)
    assert (row["actions"], len(engine.seen) - asked) == (12, 2)


@pytest.mark.parametrize("name", ["alfworld", "sql", "bash", "textcraft", "webshop"])
def test_the_own_limits_of_actions_are_those_of_the_environments(name):
    environment = BENCHMARKS[name].environment
    signature = inspect.signature(WebShop if name == "webshop" else environment)
    own = [
        signature.parameters[p].default
        for p in ("max_actions", "turns")
        if p in signature.parameters
    ]
    own = own or [None]
    assert own == [BENCHMARKS[name].max_actions]


def test_what_the_limit_of_actions_ended_goes_on_before_its_last_action(tmp_path):
    engine = ScriptedEngine(lambda text: "> go =>")
    given = {"environment": Yard, "tasks": [{}], "models": {"m": engine}, "traces": True}
    given["methods"] = [THREAD]
    (row,) = suite(tmp_path / "r.jsonl", options={"actions": 3}, **given).run(progress=False)
    assert (row["actions"], row["out_of_actions"]) == (3, True)
    asked = len(engine.seen)
    longer = suite(tmp_path / "r.jsonl", options={"actions": 6}, **given)
    (row,) = longer.run(extend=True, progress=False)
    assert (row["actions"], row["out_of_actions"]) == (6, True)
    assert len(engine.seen) == row["calls"] + 1, "one call is made again, that behind the action"
    assert asked < len(engine.seen)


def test_where_the_limit_of_actions_ended_a_trial_that_was_not_the_last_it_begins_anew(tmp_path):
    """Its row tells of the last one alone."""
    path, over = tmp_path / "r.jsonl", "Task failed!\n#END#"
    end = [over, "Look.\n#END#", "> submit =>", over]
    given = {"environment": InterCodeSql, "tasks": [{"split": "train", "number": 0}]}
    given["methods"] = [load_method("reflexion", "sql", trials=2)]
    engine = ScriptedEngine(["> SELECT 1 =>", *end])
    (row,) = suite(path, options={"actions": 1}, models={"m": engine}, **given).run(progress=False)
    assert (row["trials"], find_budget(row)) == (2, "")
    engine = ScriptedEngine(["> SELECT 1 =>", *end])
    longer = suite(path, options={"actions": 10}, models={"m": engine}, **given)
    (row,) = longer.run(extend=True, progress=False)
    assert (row["trials"], row["error"], len(engine.seen)) == (2, "", 5)


def test_without_traces_what_was_ended_begins_anew(tmp_path):
    path = tmp_path / "r.jsonl"
    few(path, traces=False).run(progress=False)
    engine = ScriptedEngine(speak)
    given = {"options": {"calls": 200}, "models": {"oracle": engine}, "traces": False}
    rows = few(path, **given).run(extend=True, progress=False).rows
    assert read_results(path) == rows
    assert all(row["solved"] for row in rows)
    assert len(engine.seen) == sum(row["calls"] for row in rows[4:])


def test_it_goes_on_from_the_one_that_came_furthest_and_from_no_failure(tmp_path):
    path = tmp_path / "r.jsonl"
    for calls in (FEW, FEW // 2):
        few(path, methods=[THREAD], tasks=tasks(18), options={"calls": calls}).run(progress=False)
    rows = read_results(path)
    assert [row["calls"] for row in rows] == [FEW, FEW // 2]
    limits = {**rows[0]["limits"], "calls": 200}

    def key_with(limits):
        return next(EpisodeKey.of(row) for row in rows if row["limits"] == limits)

    assert find_earlier(rows, limits, key_with) == rows[0]
    failed = {**rows[0], "error": "EngineError: no memory left"}
    assert find_earlier([failed, rows[1]], limits, key_with) == rows[1]


def test_it_goes_on_several_times_and_in_other_threads(tmp_path):
    path = tmp_path / "r.jsonl"
    few(path).run(progress=False)
    with ThreadPoolExecutor(2) as executor:
        for calls in (12, 16, None):
            rows = few(path, options={"calls": calls}).run(
                extend=True, executor=executor, progress=False
            )
            assert len(rows) == len(read_results(path)) == 6
            assert {row["limits"]["calls"] for row in rows} == {calls}
    whole = few(tmp_path / "whole.jsonl", options={"calls": None}).run(progress=False)
    assert outcomes(rows.rows) == outcomes(whole.rows)


@pytest.mark.parametrize(
    "changed",
    [
        {"options": {"calls": FEW - 1}},
        {"options": {"calls": 200, "new_tokens": 900}},
        {"options": {"calls": 200, "temperature": 0.5}},
        {"options": {"calls": 200}, "seeds": [1]},
        {"options": {"calls": 200}, "models": {"oracle": ScriptedEngine(speak, name="another")}},
    ],
    ids=["fewer", "tokens a call", "temperature", "seed", "engine"],
)
def test_what_is_another_episode_is_played_beside_the_old_ones(tmp_path, changed):
    path = tmp_path / "r.jsonl"
    given = {"methods": [THREAD], "tasks": tasks(18)}
    (before,) = few(path, **given).run(progress=False).rows
    (row,) = few(path, **given, **changed).run(extend=True, progress=False).rows
    assert "extends" not in row
    assert read_results(path) == [before, row]


def test_it_is_not_done_unless_it_is_asked_for(tmp_path):
    path = tmp_path / "r.jsonl"
    given = {"methods": [SHOWN], "tasks": tasks(18)}
    few(path, **given).run(progress=False)
    few(path, **given, options={"calls": 200}).run(progress=False)
    assert [row["limits"]["calls"] for row in read_results(path)] == [FEW, 200]


def test_a_kill_between_playing_and_dropping_loses_nothing(tmp_path):
    path = tmp_path / "r.jsonl"
    before = few(path).run(progress=False).rows
    after = few(path, options={"calls": 200}).run(extend=True, progress=False).rows
    lines = [json.dumps(row) + "\n" for row in before + after[:5]]
    path.write_text("".join(lines))  # the last one was in flight
    (tmp_path / after[5]["trace"]).unlink()
    rows = few(path, options={"calls": 200}).run(extend=True, progress=False).rows
    assert rows[:5] == after[:5]
    assert outcomes(rows) == outcomes(after)
    assert len({EpisodeKey.of(row) for row in read_results(path)}) == len(read_results(path)) == 6


def test_what_breaks_down_with_the_larger_budget_takes_nobodys_place(tmp_path):
    path = tmp_path / "r.jsonl"
    given = {"tasks": tasks(18), "methods": [THREAD]}
    (before,) = few(path, **given).run(progress=False)
    broken = {"models": {"oracle": ScriptedEngine([])}, "options": {"calls": 200}}
    few(path, **given, **broken).run(extend=True, progress=False)
    kept = read_results(path)
    assert before in kept
    assert any(row["error"] for row in kept)
    assert (tmp_path / before["trace"]).is_file()
    (after,) = few(path, **given, options={"calls": 200}).run(
        extend=True, retry=True, progress=False
    )
    assert (after["solved"], after["error"]) == (True, "")
    assert read_results(path) == [after]


def test_a_smaller_budget_after_a_larger_one_is_played_beside_it(tmp_path):
    path = tmp_path / "r.jsonl"
    given = {"tasks": tasks(18), "methods": [THREAD]}
    few(path, **given).run(progress=False)
    (larger,) = few(path, **given, options={"calls": 200}).run(extend=True, progress=False)
    (smaller,) = few(path, **given).run(progress=False)
    assert (smaller["limits"]["calls"], larger["limits"]["calls"]) == (FEW, 200)
    assert read_results(path) == [larger, smaller]
    assert few(path, **given).run(progress=False).rows == [smaller]


def test_rows_of_other_methods_stay_whatever_is_extended(tmp_path):
    path = tmp_path / "r.jsonl"
    few(path, tasks=tasks(18), methods=[THREAD]).run(progress=False)
    few(path, tasks=tasks(18), methods=[THREAD], options={"calls": 200}).run(
        extend=True, progress=False
    )
    few(path, tasks=tasks(18), methods=[THREAD]).run(progress=False)  # small budgets once more
    before = read_results(path)
    other = few(path, tasks=tasks(18), methods=[SHOWN], options={"calls": 200})
    rows = other.run(extend=True, progress=False).rows
    assert read_results(path) == [*before, *rows]


def test_no_file_beside_the_suites_own_traces_is_deleted_or_read(tmp_path):
    path, thesis = tmp_path / "r.jsonl", tmp_path / "thesis.jsonl"
    thesis.write_text("mine")
    given = {"tasks": tasks(18), "methods": [THREAD]}
    (row,) = few(path, **given).run(progress=False)
    for trace in ("r-traces/../thesis.jsonl", str(thesis)):
        path.write_text(json.dumps({**row, "trace": trace}) + "\n")
        with pytest.raises(ResultsFileError, match=r"trace is .*no file in a folder beside"):
            few(path, **given, options={"calls": 200}).run(extend=True, progress=False)
        assert thesis.read_text() == "mine"


@pytest.mark.model
def test_the_embedded_model_goes_on_where_it_was_cut(tmp_path):
    def small(path, calls):
        return suite(
            path,
            models={EMBEDDED: partial(load_model, cpu_threads=1)},
            methods=[THREAD],
            tasks=tasks(47, 58),
            traces=True,
            options={"calls": calls, "new_tokens": 100},
        )

    path = tmp_path / "r.jsonl"
    cut = small(path, 4).run(progress=False)
    assert {row["status"] for row in cut} == {"out of calls"}
    rows = small(path, 20).run(extend=True, at_once=2, progress=False).rows
    whole = small(tmp_path / "whole.jsonl", 20).run(at_once=2, progress=False).rows
    names = ("solved", "status", "calls", "generated", "threads", "settings")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in whole
    ]
    assert all(row["solved"] for row in rows)


@pytest.mark.model
def test_the_command_line_extends_a_file(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    command = ["suite", "--split", "dev", "--tasks", "1", "--new-tokens", "120", "--traces"]
    assert main([*command, "--calls", "1", "--out", str(out)]) == 0
    assert "1 cut by a budget" in capsys.readouterr().out
    assert main([*command, "--calls", "2", "--extend", "--out", str(out)]) == 0
    (row,) = read_results(out)
    assert (row["calls"], row["limits"]["calls"]) == (2, 2)


def test_the_command_line_refuses_a_limit_that_is_none(tmp_path, capsys):
    command = ["suite", "--tasks", "1", "--actions", "0", "--out", str(tmp_path / "r.jsonl")]
    assert main(command) == 2
    assert "actions is 0; give 1 or more" in capsys.readouterr().err


def test_the_limit_of_a_benchmark_of_ones_own_is_known_where_rows_do_not_name_it(monkeypatch):
    own = Benchmark("yard", Yard, lambda split: [{}], max_actions=50)
    monkeypatch.setitem(BENCHMARKS, "yard", own)
    row = {"environment": "yard", "solved": False, "actions": 50, "status": "ended"}
    assert find_budget(row) == "actions"
    assert find_budget({**row, "actions": 49}) == ""
    assert with_own_actions({}, "yard") == {"actions": 50}
    assert with_own_actions({"actions": 60}, "yard") == {"actions": 60}
    assert with_own_actions({}, "nobody's") == {}
