"""Figures of results as SVG, without a browser."""

from __future__ import annotations

import re
from itertools import pairwise

import plotly.graph_objects as go
import pytest
from helpers.episodes import session

from thread_kit.views import figure_image
from thread_kit.views.figure_image import draw_svg, save_figure
from thread_kit.views.plot import supplemental_work_figure, usage_figure


def read_texts(svg: str) -> list[str]:
    return re.findall(r">([^<>]+)</text>", svg)


@pytest.fixture
def draw(monkeypatch):
    """Draws a figure of plotly; matplotlib's axes."""
    pictures = []

    def keep(picture, **_):
        pictures.append(picture)
        return ""

    monkeypatch.setattr(figure_image, "write_svg", keep)

    def draw(figure):
        draw_svg(figure)
        pictures[-1].draw_without_rendering()
        return pictures[-1].axes[0]

    return draw


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


METHODS = ["thread", "react", "thread, no variables"]


def test_grouped_marks_stand_beside_each_other_around_their_category(draw):
    models = {"small": METHODS, "middle": METHODS[1:], "large": METHODS}
    figure = go.Figure(
        [
            go.Scatter(x=names, y=[50] * len(names), name=model, offsetgroup=model, mode="markers")
            for model, names in models.items()
        ],
        {"scattermode": "group", "scattergap": 0.4},
    )
    axes = draw(figure)
    small, middle, large = ([*line.get_xdata()] for line in axes.lines)
    assert small == pytest.approx([-0.2, 0.8, 1.8])
    assert middle == pytest.approx([1, 2])
    assert large == pytest.approx([0.2, 1.2, 2.2])
    figure.update_layout(scattermode="overlay")
    assert [*draw(figure).lines[0].get_xdata()] == [0, 1, 2]


@pytest.mark.parametrize("mark", [go.Scatter, go.Bar])
@pytest.mark.parametrize("names", [METHODS, [f"{name} of another model" for name in METHODS * 2]])
def test_names_of_categories_do_not_meet(mark, names, draw):
    names = [f"{place} {name}" for place, name in enumerate(names)]
    axes = draw(go.Figure(mark(x=names, y=[1] * len(names))))
    labels = axes.get_xticklabels()
    assert [label.get_text().replace("\n", " ") for label in labels] == names
    boxes = [label.get_window_extent() for label in labels]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize(
    ("form", "values", "labels"),
    [(".0%", [0, 1], {"0%", "20%", "100%"}), (",", [0, 20_000], {"0", "10,000", "20,000"})],
)
def test_an_axis_has_its_format(form, values, labels):
    figure = go.Figure(go.Scatter(x=[1, 2], y=values))
    figure.update_yaxes(tickformat=form)
    assert labels <= set(read_texts(draw_svg(figure)))


def test_horizontal_bars_are_stacked_by_group(draw):
    episode = session().run(progress=False)
    figure = usage_figure(episode)
    axes = draw(figure)
    assert [label.get_text() for label in axes.get_yticklabels()] == [*figure.data[0].y]
    assert axes.yaxis_inverted()
    reused, evaluated, generated = axes.containers
    for trace, bars in zip(figure.data, axes.containers, strict=True):
        assert [bar.get_width() for bar in bars] == [*trace.x]
    for first, second, third in zip(reused, evaluated, generated, strict=True):
        assert (second.get_x(), third.get_x()) == (first.get_width(), 0)
        assert first.get_y() == second.get_y() < third.get_y()
    figure.add_scatter(x=[1], y=["thread 0"])
    with pytest.raises(ValueError, match="horizontal bars beside other traces have no picture"):
        draw_svg(figure)


def test_an_episode_is_refused_with_what_to_do(tmp_path):
    episode = session().run(progress=False)
    for name in ("episode.svg", "episode.png"):
        with pytest.raises(TypeError, match=r"Episode is no figure of plotly.*tk\.save_picture"):
            save_figure(episode, tmp_path / name)


def test_what_has_no_picture_is_named():
    with pytest.raises(ValueError, match="a trace of the kind 'pie' has no picture here"):
        draw_svg(go.Figure(go.Pie(values=[1])))


def test_a_figure_of_several_plots_is_refused_with_what_to_do(tmp_path):
    figure = supplemental_work_figure(session().run(progress=False))
    with pytest.raises(ValueError, match=r"save_picture.*form='work'"):
        save_figure(figure, tmp_path / "work.svg")
