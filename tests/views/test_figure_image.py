"""Figures of results as SVG, without a browser."""

from __future__ import annotations

import re

import plotly.graph_objects as go
import pytest
from helpers.episodes import session

from thread_kit.views.figure_image import draw_svg, save_figure
from thread_kit.views.plot import supplemental_work_figure


def read_texts(svg: str) -> list[str]:
    return re.findall(r">([^<>]+)</text>", svg)


def test_bars_are_drawn_with_their_names_and_the_same_each_time():
    figure = go.Figure(
        [
            go.Bar(x=["a", "b"], y=[1, 2], name="first", marker={"color": "#0072b2"}),
            go.Bar(x=["a"], y=[3], name="second", marker={"pattern": {"shape": "/"}}),
        ],
        {"title": {"text": "A title<br>of two"}, "barmode": "stack"},
    )
    svg = draw_svg(figure)
    assert {"a", "b", "first", "second", "A title", "of two"} <= set(read_texts(svg))
    assert svg == draw_svg(figure)


def test_a_figure_is_saved_as_a_picture(tmp_path):
    figure = go.Figure(go.Bar(x=["a"], y=[1]))
    path = save_figure(figure, tmp_path / "new" / "figure.svg")
    assert path.read_text() == draw_svg(figure)
    with pytest.raises(ValueError, match=r"'figure\.pdf': the picture of a figure is an \.svg"):
        save_figure(figure, "figure.pdf")


def test_an_axis_keeps_its_own_labels():
    figure = go.Figure(go.Scatter(x=[1, 2], y=[1, 100], name="line", mode="lines+markers"))
    figure.update_yaxes(type="log", tickvals=[1, 10, 100], ticktext=["1", "10", "100"], title="n")
    assert {"1", "10", "100", "n", "line"} <= set(read_texts(draw_svg(figure)))


def test_what_has_no_picture_is_named():
    with pytest.raises(ValueError, match="a trace of the kind 'pie' has no picture here"):
        draw_svg(go.Figure(go.Pie(values=[1])))


def test_a_figure_of_several_plots_is_refused_with_what_to_do(tmp_path):
    figure = supplemental_work_figure(session().run(progress=False))
    with pytest.raises(ValueError, match=r"save_picture.*form='work'"):
        save_figure(figure, tmp_path / "work.svg")
