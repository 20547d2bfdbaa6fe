"""A short run of every part of `make chaos`: nothing is found."""

from __future__ import annotations

import pytest

from chaos import episodes, interrupts, jails, kills, traces


def test_traces_that_somebody_changed_open_or_are_refused():
    tally = traces.play(1, 60)
    assert tally.findings == []
    assert tally.counts["refused"]


@pytest.mark.jail
def test_hostile_episodes_of_all_methods_end_in_order(tmp_path):
    tally = episodes.play(1, 60, folder=tmp_path)
    assert tally.findings == []
    assert tally.counts["episodes in jail"]


@pytest.mark.jail
def test_no_attempt_gets_out_of_a_sandbox():
    assert len(jails.list_escapes()) > 400
    assert jails.play_escapes(1, 40).findings == []


@pytest.mark.jail
def test_no_forged_answer_ends_more_than_its_line():
    assert jails.play_forgeries(1, 200).findings == []


@pytest.mark.parametrize("part", [kills.play, kills.play_full])
def test_killed_suites_lose_no_row_and_count_none_twice(part):
    assert part(1, 3).findings == []


@pytest.mark.model
def test_interrupted_episodes_come_to_the_same_end():
    tally = interrupts.play(1, 3)
    assert tally.findings == []
    assert tally.counts["ends that are the same"]
