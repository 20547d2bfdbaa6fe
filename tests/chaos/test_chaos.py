"""A short run of every part of `make chaos`: nothing is found."""

from __future__ import annotations

import pytest
from helpers.escapes import list_escapes

from chaos.parts import PARTS, run_part

pytestmark = pytest.mark.slow

JAILED = ("episodes", "escapes", "forgeries")
COUNTS = {
    "episodes": 40,
    "largest": 1,
    "interrupts": 1,
    "escapes": 30,
    "forgeries": 100,
    "traces": 60,
}
MARKS = {**dict.fromkeys(JAILED, pytest.mark.jail), "interrupts": pytest.mark.model}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in PARTS])
def test_nothing_is_found(name):
    tally = run_part(name, 1, COUNTS.get(name, 3))
    assert tally.findings == []
    assert tally.counts


def test_the_list_of_escapes_is_long():
    assert len(list_escapes()) > 400
