"""What a budget cut: counted by status, beside every rate, in the committed rows, too."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from thread_kit.analysis.adapt_studies import claims_figure
from thread_kit.analysis.cut import count_cut, is_cut
from thread_kit.analysis.figures import calls_figure, success_by_cost_figure, success_figure
from thread_kit.analysis.published import by_type, compare_with_published
from thread_kit.analysis.statistics import (
    calls,
    compare,
    pair_by_task,
    repeats,
    success,
    success_by_cost,
    summarize_pairs,
)
from thread_kit.analysis.study_figures import rates_figure, trials_figure
from thread_kit.analysis.trials import success_by_trial
from thread_kit.distill.evaluate import by_group, load_results, to_frame
from thread_kit.experiments.results import Results
from thread_kit.experiments.spent_budget import BUDGETS, find_budget
from thread_kit.paths import resource
from thread_kit.requests import Status


def load(name: str, form: str = "") -> Results:
    return Results.load(resource(f"data/results/{name}-qwen{form}.jsonl"))


TEXTCRAFT = load("textcraft").frame
ALFWORLD = pd.concat([load("alfworld").frame, load("alfworld-thread").frame])


# One row


@pytest.mark.parametrize("status", list(Status))
def test_a_budget_is_told_by_the_status_and_nothing_else_by_it(status):
    budgets = {
        "out of calls": "calls",
        "out of tokens": "tokens",
        "out of time": "seconds",
        "truncated": "tokens a call",
    }
    row = {"status": str(status), "solved": False}
    assert find_budget(row) == budgets.get(str(status), "")
    assert (status in BUDGETS) == (str(status) in budgets)


@pytest.mark.parametrize(
    ("changed", "budget"),
    [
        ({"out_of_actions": True}, "actions"),
        ({"out_of_actions": False, "actions": 50}, ""),
        ({"out_of_actions": None, "actions": 50}, "actions"),
        ({"actions": 49}, ""),
        ({"actions": 50}, "actions"),
        ({"actions": 50, "solved": True}, ""),
        ({"actions": 90, "environment": "textcraft"}, ""),
        ({"actions": 50, "status": "out of calls"}, "actions"),
    ],
)
def test_actions_are_told_by_the_row_or_by_their_number(changed, budget):
    row = {"environment": "alfworld", "status": "ended", "solved": False}
    assert find_budget({**row, **changed}) == budget


def test_what_was_solved_before_the_budget_ended_it_is_not_cut():
    status, solved = ["out of calls", "out of calls", "ended"], [True, False, False]
    frame = pd.DataFrame({"status": status, "solved": solved})
    assert is_cut(frame).tolist() == [False, True, False]
    assert count_cut(frame) == {"cut": 1}
    assert count_cut(frame.drop(columns="status")) == {}
    assert count_cut(frame[:0]) == {"cut": 0}


# The committed rows


@pytest.mark.parametrize(
    ("frame", "cuts"),
    [
        (TEXTCRAFT, {"thread": 16, "react": 22, "adapt": 0}),
        (ALFWORLD, {"thread": 11, "decomp": 3}),
        (load("datacommons").frame, {}),
        (load("icu").frame, {}),
    ],
    ids=["textcraft", "alfworld", "datacommons", "icu"],
)
def test_the_committed_results_say_what_was_cut(frame, cuts):
    table = success(frame).set_index("method")
    assert table["cut"].to_dict() == {method: cuts.get(method, 0) for method in table.index}
    assert list(table.columns)[2:5] == ["n", "solved", "cut"]


def test_of_the_adapters_episodes_those_that_were_cut_are_counted():
    cuts = {}
    for name in ("react", "thread", "thread-alfworld", "thread-datacommons", "thread-icu"):
        results = load_results(resource(f"data/adapters/results-{name}.jsonl"))
        (total,) = (row for row in by_group(results) if row["tasks"] == "all")
        frame = to_frame(results, method=name, model="m")
        cuts[name] = total["cut"]
        assert count_cut(frame) == {"cut": total["cut"]}
    assert (cuts.pop("react"), cuts.pop("thread")) == (108, 1)
    assert set(cuts.values()) == {0}


def test_pairs_say_what_was_cut_of_each():
    pairs = compare(TEXTCRAFT).set_index(["first", "second"])
    assert pairs.loc[("thread", "adapt"), ["cut_first", "cut_second"]].tolist() == [16, 0]
    assert pairs.loc[("react", "adapt"), ["cut_first", "cut_second"]].tolist() == [22, 0]
    both = pair_by_task(TEXTCRAFT, "thread", "react")
    short = summarize_pairs(both).set_index("method")
    assert short["cut"].to_dict() == {"thread": 16, "react": 22}


def test_only_what_both_have_played_is_counted_in_a_pair():
    thread, react = (TEXTCRAFT[TEXTCRAFT["method"] == name] for name in ("thread", "react"))
    (pair,) = compare(pd.concat([thread, react[:4]])).to_dict("records")
    shared = thread[thread["task"].isin(react["task"][:4])]
    assert (pair["tasks"], pair["cut_first"]) == (4, int(is_cut(shared).sum()))


def test_at_a_budget_those_are_cut_whose_own_was_smaller():
    table = success_by_cost(TEXTCRAFT, "calls", budgets=[49, 50, 200])
    cuts = {method: group["cut"].tolist() for method, group in table.groupby("method")}
    assert cuts == {"thread": [1, 1, 16], "react": [22, 22, 22], "adapt": [0, 0, 0]}


def test_every_table_and_hover_has_it():
    assert calls(TEXTCRAFT)["cut"].tolist() == repeats(TEXTCRAFT)["cut"].tolist() == [16, 22, 0]
    types = by_type(ALFWORLD)
    assert types["cut"].tolist()[:2] == [3, 11]
    assert types["cut"][2:].isna().all()
    beside = compare_with_published(TEXTCRAFT)
    assert beside["cut"].tolist()[:3] == [16, 22, 0]
    assert beside["cut"][3:].isna().all()
    for figure in (
        success_figure(beside),
        success_by_cost_figure(TEXTCRAFT, "calls"),
        calls_figure(TEXTCRAFT),
    ):
        hovers = json.dumps(figure.to_dict()["data"], default=lambda value: value.tolist())
        for cut in (16, 22, 0):
            assert f"<br>{cut} cut by a budget" in hovers
    results = load("textcraft")
    assert repr(results) == "Results(120 episodes, 28 solved, 38 cut by a budget)"
    assert "<th>cut</th>" in results._repr_html_()


def test_a_frame_without_statuses_has_no_such_column():
    frame = TEXTCRAFT.drop(columns="status")
    for table in (success(frame), compare(frame), repeats(frame), calls(frame)):
        assert not any("cut" in column for column in table)
    assert "cut" not in compare_with_published(frame)
    assert "cut by" not in success_by_cost_figure(frame).to_json()


def test_the_papers_figures_say_it_in_their_hovers():
    rows = TEXTCRAFT.assign(trials=1, claimed=False)
    table = success(rows, ["environment", "method", "model"])
    for figure in (
        rates_figure(table, "rates"),
        trials_figure(success_by_trial(rows), "trials"),
        claims_figure(rows),
    ):
        hovers = {text for trace in figure.data for text in trace.customdata}
        assert hovers == {f"40, {cut} cut by a budget" for cut in (16, 22, 0)}
