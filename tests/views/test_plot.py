"""The figures of an episode."""

from __future__ import annotations

import pytest
from helpers.episodes import session, span

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Spawned
from thread_kit.views import palette
from thread_kit.views.plot import log_axis, supplemental_work_figure, usage_figure


@pytest.fixture(scope="module")
def episode() -> Episode:
    one = session()
    for _ in one:
        pass
    return one.episode


def test_figure_3_is_the_supplemental_work_of_the_trace(episode):
    for thread in episode.threads:
        figure = supplemental_work_figure(episode, thread)
        work = episode.supplemental_work(thread)
        assert list(figure.data[0].y) == work
        assert list(figure.data[0].x) == list(range(len(work)))
        assert figure.layout.xaxis3.title.text.endswith("(tokens)")
        assert "(tokens)" in figure.layout.yaxis.title.text


def test_figure_3_shows_each_thread_below_once_and_the_whole_sequence(episode):
    figure = supplemental_work_figure(episode)
    nodes = figure.data[-1]
    assert sorted(label[:8] for label in nodes.customdata) == ["thread 1", "thread 2", "thread 3"]
    assert len(set(zip(nodes.x, nodes.y, strict=True))) == 3
    ribbon = [bar for bar in figure.data if bar.type == "bar"]
    assert sum(sum(bar.x) for bar in ribbon) == len(episode.threads[0].sequence)
    assert [bar.marker.color for bar in ribbon] == [
        palette.PROVENANCE[Provenance(bar.name)] for bar in ribbon
    ]


def test_figures_are_the_same_every_time(episode):
    for make in (supplemental_work_figure, usage_figure):
        assert make(episode).to_json() == make(episode).to_json()


def test_figures_of_a_thread_that_wrote_nothing():
    episode = Episode({})
    episode.add(Spawned(0, None, 0, span(Provenance.CONTEXT, "c"), ""))
    assert not supplemental_work_figure(episode).data[0].y
    assert list(usage_figure(episode).data[0].x) == [0]


def test_usage_figure_has_what_each_thread_cost(episode):
    bars = {bar.name.split()[0]: list(bar.x) for bar in usage_figure(episode).data}
    for name, values in bars.items():
        assert values == [getattr(one.usage, name) for one in episode.threads.values()]


def test_figure_3_says_what_its_marks_mean(episode):
    figure = supplemental_work_figure(episode)
    marks = [trace for trace in figure.data if trace.name and trace.name.startswith("thread, ")]
    statuses = {str(thread.status) for number, thread in episode.threads.items() if number}
    assert {mark.name.split()[1] for mark in marks} == {name.split()[0] for name in statuses}
    assert "(area: tokens that it generated)" in marks[0].name
    for mark in marks:
        assert mark.marker.color in figure.data[-1].marker.color


def test_a_title_is_no_markup_and_a_long_one_ends_at_a_word():
    episode = Episode({})
    title = "<b>Go</b> " + "on " * 60
    episode.add(Spawned(0, None, 0, span(Provenance.CONTEXT, title), title))
    subtitle = supplemental_work_figure(episode).layout.title.subtitle.text
    assert subtitle.startswith("&lt;b&gt;Go")
    assert subtitle.endswith("on …")


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((1, 39), ["1", "2", "5", "10", "20", "50", "100", "200", "500"]),
        (
            (490, 3700),
            ["100", "200", "500", "1,000", "2,000", "5,000", "10,000", "20,000", "50,000"],
        ),
        ((0.007, 2.7), ["0.001", "0.01", "0.1", "1", "10"]),
    ],
)
def test_a_logarithmic_axis_is_labelled_with_whole_numbers(values, labels):
    axis = log_axis(values)
    assert list(axis["ticktext"]) == labels
    assert axis["type"] == "log"
    assert log_axis([0, *values]) == axis  # which 0 has no place on


def test_where_nothing_is_above_zero_an_axis_is_linear():
    assert log_axis([0, 0]) == {}
