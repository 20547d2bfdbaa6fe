"""The papers as cards, and the figures that are drawn of rows alone."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from helpers.stored import stored_rows

from thread_kit.analysis.ending_states import published_ending_states
from thread_kit.analysis.item_states import State
from thread_kit.analysis.paper_items import load_items
from thread_kit.analysis.paper_map import MARKS, PaperMap, draw_map
from thread_kit.analysis.study_figures import rates_figure, states_figure, trials_figure
from thread_kit.analysis.trials import success_by_trial
from thread_kit.paths import resource


@pytest.fixture(scope="module")
def drawn() -> PaperMap:
    return draw_map(stored_rows())


@pytest.mark.slow
def test_the_map_has_every_item_with_its_state_and_a_way_to_it(drawn):
    html = drawn._repr_html_()
    assert html.count("<details>") == len(load_items())
    marks = re.findall(r"<summary>(.) ", html)
    assert marks == [MARKS[State(state)] for state in drawn.items["state"]]
    links = re.findall(r'href="\.\./([^"#]+)', html)
    listed = [item.where[0] for item in load_items()]  # each has one
    assert links == [place.partition("#")[0] for place in listed]
    counted = [sum(map(int, line.split()[1:])) for line in str(drawn).splitlines()[2:]]
    assert sum(counted) == len(load_items())


@pytest.mark.slow
def test_links_of_shown_items_lead_to_files(drawn):
    items = drawn.items
    for where in items.loc[items["state"] == "shown", "where"]:
        assert (resource("data").parent / where.partition("#")[0]).exists()


def test_bars_are_rates_with_their_intervals():
    table = pd.DataFrame(
        [
            {"environment": "textcraft", "method": method, "model": "m", "n": 40, "rate": rate}
            | {"low": rate - 0.1, "high": rate + 0.1}
            for method, rate in (("adapt-d1", 0.2), ("adapt-d2", 0.4))
        ]
    )
    (bar,) = rates_figure(table, "d_max").data
    assert (bar.x, bar.name) == (("adapt-d1", "adapt-d2"), "textcraft, m")
    assert list(bar.y) == [20, 40]
    assert list(bar.error_y.array) == pytest.approx([10, 10])
    assert [trace.x for trace in rates_figure(table, "models", x="model").data] == [("m",)] * 2


def test_the_curve_of_trials_never_falls():
    rows = pd.DataFrame({"method": "reflexion", "model": "m", "trials": [1, 2, 3, 3]})
    rows = rows.assign(solved=[True, True, True, False], task=list("abcd"), seed=0)
    (line,) = trials_figure(success_by_trial(rows), "Figure 6").data
    assert line.x == (1, 2, 3)
    assert line.y == (25, 50, 75)


def test_ending_states_are_drawn_as_they_are_counted():
    table = published_ending_states()
    traces = states_figure(table, "Table 8").data
    assert [sum(trace.y) for trace in traces] == table["failures"].tolist()
