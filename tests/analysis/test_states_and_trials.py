"""Failures by the state in which they end, and success by trial."""

from __future__ import annotations

import pandas as pd
import pytest

from thread_kit.analysis.ending_states import count_ending_states, published_ending_states
from thread_kit.analysis.trials import success_by_trial
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.budgets import own_limit
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.suite import Suite


def rows(*episodes: tuple[str, str | None, bool, int]) -> pd.DataFrame:
    columns = ["method", "state", "solved", "trials"]
    table = pd.DataFrame(episodes, columns=columns).assign(model="m", seed=0)
    return table.assign(task=[f"t{number}" for number in range(len(table))])


def test_failures_are_counted_by_their_last_state():
    frame = rows(
        ("stateflow", "Put", False, 1),
        ("stateflow", "Pick", False, 1),
        ("stateflow", "Pick", False, 1),
        ("stateflow", "Put", True, 1),
        ("stateflow, 10 states", "Find", False, 1),
        ("react", None, False, 1),
    )
    table = count_ending_states(frame)
    assert list(table.columns) == ["method", "model", "Pick", "Find", "Put", "failures", "n"]
    assert table.values.tolist() == [
        ["stateflow", "m", 2, 0, 1, 3, 4],
        ["stateflow, 10 states", "m", 0, 1, 0, 1, 1],
    ]


@pytest.mark.parametrize(
    ("method", "state", "kind", "column"),
    [
        ("stateflow", "Pick", "pick", "Pick/Find"),
        ("stateflow", "Process", "cool", "Cool"),
        ("stateflow", "Process", "heat", "Heat"),
        ("stateflow", "Process", "clean", "Clean"),
        ("stateflow", "Pick_Error", "pick2", "Error"),
        ("stateflow", "FindLamp", "look", "FindLamp"),
        ("stateflow", "Plan", "look", "Plan"),
        ("stateflow, 10 states", "Find", "pick", "Pick/Find"),
        ("stateflow, 10 states", "Take", "pick", "Pick/Find"),
        ("stateflow, 10 states", "GoProcess", "cool", "Cool"),
        ("stateflow, 10 states", "GoPut", "pick", "Put"),
        ("stateflow, 10 states", "Put", "pick", "Put"),
    ],
)
def test_on_alfworld_the_columns_are_those_of_table_8(method, state, kind, column):
    frame = rows((method, state, False, 1)).assign(environment="alfworld", game=f"{kind}-0")
    table = count_ending_states(frame)
    printed = list(published_ending_states().drop(columns=["method", "model", "failures"]))
    columns = list(table.drop(columns=["method", "model", "failures", "n"]))
    assert columns == [*printed, *({column} - set(printed))]
    assert table[column].tolist() == table["failures"].tolist() == [1]


def test_states_of_other_machines_keep_their_names():
    frame = rows(("stateflow", "Pick_Error", False, 1)).assign(environment="mine", game="cool-0")
    assert "Pick_Error" in count_ending_states(frame)


def test_rows_of_other_methods_have_no_states():
    for frame in (
        rows(("react", None, False, 1)),
        rows(("react", None, True, 1)).drop(columns="state"),
    ):
        with pytest.raises(ValueError, match="play the method 'stateflow'"):
            count_ending_states(frame)


@pytest.mark.parametrize("count", [count_ending_states, success_by_trial])
def test_an_episode_under_two_settings_is_not_counted_twice(count):
    frame = rows(("stateflow", "Put", False, 1), ("stateflow", "Pick", True, 2))
    with pytest.raises(ValueError, match="2 episodes occur twice"):
        count(pd.concat([frame, frame]))


def test_rows_that_tell_no_trials_are_no_failures():
    frame = rows(("reflexion", None, True, 1), ("reflexion", None, True, 2))
    frame["trials"] = [1, None]
    assert success_by_trial(frame)["n"].tolist() == [1]
    with pytest.raises(ValueError, match="tells its trials"):
        success_by_trial(frame.drop(columns="trials"))


def test_the_published_table_has_the_same_form():
    table = published_ending_states().set_index("method")
    assert table.loc["StateFlow (7-state)", "Pick/Find"] == 15
    assert table.loc["StateFlow (10-state)", "Error"] == 2
    states = table.drop(columns=["model", "failures"])
    assert (states.sum(axis="columns") == table["failures"]).all()


def test_success_grows_with_the_trials():
    frame = rows(*[("reflexion", None, n < 3, n + 1 if n < 3 else 4) for n in range(4)])
    table = success_by_trial(frame, 6)
    assert list(table["rate"]) == [0.25, 0.5, 0.75, 0.75, 0.75, 0.75]
    assert (table["low"] < table["rate"]).all()
    assert len(success_by_trial(frame)) == 4
    cut = success_by_trial(frame.assign(status="out of calls"), 6)
    assert list(cut["cut"]) == [0, 0, 0, 1, 1, 1]


def test_a_row_says_the_last_state_and_the_trials(tmp_path):
    def speak(text: str) -> str:
        return "no idea #END#"

    methods = [load_method(name, "textcraft", trials=trials) for name, trials in PLAYED]
    suite = Suite(
        tmp_path / "r.jsonl",
        methods=methods,
        models={"m": ScriptedEngine(speak)},
        environment=TextCraft,
        tasks=[{"split": "dev", "number": 47}],
    )
    results = suite.run(progress=False)
    ways = {row["method"]: row["states"] for row in results}
    assert (ways["stateflow"][0], ways["stateflow"][-1]) == ("Observe", "Error")
    assert all(way is None for name, way in ways.items() if "stateflow" not in name)
    by_method = {row["method"]: (row["state"], row["trials"]) for row in results}
    assert by_method == {
        "stateflow": ("Error", 1),
        "stateflow+reflexion": ("Error", 2),
        "react": (None, 1),
    }
    assert count_ending_states(results.frame)["failures"].tolist() == [1, 1]
    loops = {row["method"]: row["loop"] for row in results}
    turns = own_limit("stateflow", BENCHMARKS["textcraft"], "turns")
    assert loops == {
        "stateflow": {"machine repeats": 3, "turns": turns},
        "stateflow+reflexion": {"trials": 2, "actor machine repeats": 3, "actor turns": turns},
        "react": {"iterations": 60},
    }


PLAYED = [("stateflow", None), ("stateflow+reflexion", 2), ("react", None)]
