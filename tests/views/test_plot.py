"""The figures of an episode."""

from __future__ import annotations

import pytest
from helpers.episodes import session, span

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Spawned
from thread_kit.views import palette
from thread_kit.views.plot import supplemental_work_figure, usage_figure


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
