"""Thread depths by three ways to count, on committed episodes."""

from __future__ import annotations

import pytest

from thread_kit.analysis.depths import count_depths
from thread_kit.analysis.statistics import repeats
from thread_kit.experiments.results import Results
from thread_kit.paths import resource
from thread_kit.trace.episode import Episode

SAVED = sorted(resource("data/episodes").glob("*.jsonl"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.name[:20])
def test_levels_count_the_main_thread_and_then_the_listening(path):
    episode = Episode.load(path)
    counts = count_depths(episode)
    assert counts["depth"] == episode.depth
    assert counts["levels"] == episode.depth + 1
    acting = [thread.depth for thread in episode.threads.values() if thread.actions]
    assert counts["listening_levels"] == max(counts["levels"], *(depth + 2 for depth in acting))


def test_an_episode_of_nothing_has_one_level():
    assert count_depths(Episode()) == {"depth": 0, "levels": 1, "listening_levels": 1}


def test_the_committed_rows_have_depths_and_levels_of_one_run():
    frame = Results.load(resource("data/results/textcraft-qwen.jsonl")).frame
    table = repeats(frame).set_index("method")
    assert table.loc["thread", "runs"] == 1
    assert table["stderr"].isna().all(), "a single run has none"
    depth = frame.query("method == 'thread'")["depth"]
    assert table.loc["thread", "average_depth"] == depth.mean() == 5.875
    assert table.loc["thread", "average_levels"] == pytest.approx(6.875)
    assert table.loc["thread", ["maximum_depth", "maximum_levels"]].tolist() == [31, 32]
