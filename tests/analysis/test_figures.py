"""The figures of a suite: that they show the numbers of the tables, and can be told apart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from thread_kit.analysis.figures import calls_figure, success_by_cost_figure, success_figure
from thread_kit.analysis.published import compare_with_published
from thread_kit.analysis.statistics import COSTS, calls, success_by_cost, wilson
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.analysis.trials import success_by_trial
from thread_kit.views.palette import SERIES

MODELS = ("smollm2-135m", "qwen2.5-coder-1.5b")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        {
            "method": method,
            "model": model,
            "environment": "textcraft",
            "task": f"t{task}",
            "split": "test",
            "seed": 0,
            "solved": bool(rng.random() < rate),
            "solvable": True,
            "error": "",
            "evaluated": int(rng.integers(100, 3000)),
            "generated": int(rng.integers(50, 900)),
            "prompt_tokens": int(rng.integers(900, 90_000)),
            "dollars": rng.uniform(0.01, 0.5),
            "calls": int(rng.integers(5, 80)),
            "seconds": float(rng.random()),
        }
        for model in MODELS
        for method, rate in (("thread", 0.9), ("react", 0.5))
        for task in range(40)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def table(frame) -> pd.DataFrame:
    table = compare_with_published(frame)
    return table[table["method"].str.casefold().isin(["thread", "react"])]


def named(figure: go.Figure, name: str):
    (trace,) = (trace for trace in figure.data if trace.name == name)
    return trace


def test_success_stands_beside_the_published_with_model_n_and_source(frame, table):
    figure = success_figure(table)
    own = named(figure, "smollm2-135m, n = 40 (own run)")
    quoted = named(figure, "Llama-3-8b, n = 200 (THREAD v2, Table 3)")
    assert list(own.x) == list(quoted.x)[::-1] == ["THREAD", "ReAct"]  # as published
    solved = int(frame.query("model == 'smollm2-135m' and method == 'thread'")["solved"].sum())
    assert own.y[0] == 100 * solved / 40
    low, high = wilson(solved, 40)
    assert own.y[0] - own.error_y.arrayminus[0] == pytest.approx(100 * low)
    assert own.y[0] + own.error_y.array[0] == pytest.approx(100 * high)
    assert list(quoted.y) == [12.5, 92.0]
    assert not own.marker.symbol.endswith("-open")
    assert quoted.marker.symbol.endswith("-open")
    assert len({trace.name for trace in figure.data}) == len(figure.data)


def test_a_method_of_another_name_stands_where_the_paper_has_it():
    sql = load_stored_rows()
    sql = sql[(sql["environment"] == "sql") & sql["method"].isin(["react, refined", "thread"])]
    sql = sql[sql["task"].isin(sql.loc[sql["method"] == "thread", "task"])]  # one n, one trace
    places = {tuple(trace.x) for trace in success_figure(compare_with_published(sql)).data}
    assert ("ReAct_Refined", "thread") in places or ("thread", "ReAct_Refined") in places
    assert not any("react, refined" in place for place in places)


def test_a_mean_over_runs_is_drawn_without_an_interval(table):
    mean = named(success_figure(table), "GPT-3.5, n = 200 (THREAD v2, Table 7)")
    assert list(mean.y) == [93.7]
    assert np.isnan(mean.error_y.array[0])


def test_a_model_looks_the_same_wherever_it_is_and_like_no_other(table):
    looks = {}
    for trace in success_figure(table).data:
        model = trace.name.partition(",")[0]
        look = trace.marker.color, trace.marker.symbol.removesuffix("-open")
        assert looks.setdefault(model, look) == look
    assert len(set(looks.values())) == len(looks) == 6
    for place in range(2):
        assert len({look[place] for look in looks.values()}) == 6


@pytest.mark.parametrize("cost", COSTS)
def test_the_figure_is_the_curve_of_success_by_cost(frame, cost):
    figure = success_by_cost_figure(frame, cost)
    assert len(figure.data) == 4
    curve = success_by_cost(frame, cost).groupby(["method", "model"])
    for (method, model), rows in curve:
        trace = named(figure, f"{method}, {model}")
        reached = dict(zip(trace.x, trace.y, strict=True))  # of equal costs the last counts
        for _, row in rows.iterrows():
            assert reached[row["budget"]] == pytest.approx(row["rate"])
        assert trace.x[-1] == frame[cost].max()
        assert list(trace.y) == sorted(trace.y)
    assert figure.layout.xaxis.title.text == f"{COSTS[cost]} for one task"
    assert len({(trace.line.color, trace.line.dash) for trace in figure.data}) == 4


def test_a_method_that_solved_nothing_has_a_line_from_the_smallest_cost_to_the_largest(frame):
    none = frame["method"] == "react"
    figure = success_by_cost_figure(frame.assign(solved=frame["solved"] & ~none))
    ends = [frame["evaluated"].min(), frame["evaluated"].max()]
    for trace in figure.data:
        assert [trace.x[0], trace.x[-1]] == ends
        if trace.name.startswith("react"):
            assert list(trace.y) == [0, 0]


def test_what_cost_nothing_counts_from_the_smallest_cost_above(frame):
    free = frame["model"] == MODELS[0]
    paid = frame[~free]
    figure = success_by_cost_figure(
        frame.assign(dollars=frame["dollars"].where(~free, 0)), "dollars"
    )
    line = named(figure, f"thread, {MODELS[0]}")
    rate = frame[free & (frame["method"] == "thread")]["solved"].mean()
    assert list(line.x) == [paid["dollars"].min(), paid["dollars"].max()]
    assert list(line.y) == [rate, rate]
    assert figure.layout.xaxis.type == "log"


@pytest.mark.parametrize("dollars", [0, 0.5])
def test_of_one_cost_the_rates_are_marks(frame, dollars):
    figure = success_by_cost_figure(frame.assign(dollars=dollars), "dollars")
    assert {trace.mode for trace in figure.data} == {"markers"}
    assert {tuple(trace.x) for trace in figure.data} == {(dollars,)}
    assert figure.layout.xaxis.type == ("log" if dollars else None)


def test_a_cost_that_there_is_not_is_refused(frame):
    with pytest.raises(
        ValueError, match="'money' is no cost of an episode; choose one of generated"
    ):
        success_by_cost_figure(frame, "money")


def test_calls_are_the_means_of_the_table(frame):
    figure, means = calls_figure(frame), calls(frame).set_index(["model", "method"])
    for model in MODELS:
        bars = named(figure, model)
        for method, height, error in zip(bars.x, bars.y, bars.error_y.array, strict=True):
            assert height == means.loc[model, method]["mean"]
            assert error == means.loc[model, method]["stderr"]
    assert len({bar.marker.color for bar in figure.data}) == 2
    assert len({bar.marker.pattern.shape for bar in figure.data}) == 2


def test_figures_are_the_same_every_time(frame, table):
    assert success_figure(table).to_json() == success_figure(table).to_json()
    for make in (success_by_cost_figure, calls_figure):
        assert make(frame).to_json() == make(frame).to_json()


def test_what_is_compared_differs_in_colour_in_mark_and_nearly_always_in_dash():
    colours, marks, dashes = map(set, zip(*SERIES, strict=True))
    assert len(colours) == len(marks) == len(SERIES)
    assert len(dashes) >= len(SERIES) - 1


NAMED = partial(compare_with_published, benchmark="TextCraft")


@pytest.mark.parametrize(
    "make", [success_by_cost_figure, success_by_trial, compare_with_published, NAMED]
)
def test_no_episodes_are_one_clear_error(make, frame):
    for empty in (frame.iloc[:0], pd.DataFrame()):
        with pytest.raises(ValueError, match="there is no episode in this frame"):
            make(empty)
