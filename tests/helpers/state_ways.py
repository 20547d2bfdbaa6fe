"""Episodes of StateFlow: what a model says in one, and the ways through a machine."""

from __future__ import annotations

import pytest

from helpers.episodes import span
from thread_kit.sequence import Provenance
from thread_kit.trace.events import Instructed

WORDS = [
    "think: The books are in bok.\n> DESC bok =>",
    "think: It is called book.\n> DESC book =>",
    "think: I count.\n> SELECT count(*) FROM book =>",
    "think: One number, as was asked.\n> submit =>",
]
WAY = ["Init", "Observe", "Error", "Solve", "Verify", "End"]


def named(*states: str) -> list[Instructed]:
    return [
        Instructed(n, span(Provenance.INSTRUCTION, f"[{state}]\n"))
        for n, state in enumerate(states, 1)
    ]


WAYS = pytest.mark.parametrize(
    ("states", "way"),
    [
        ((), ["Init"]),
        (("Init",), ["Init"]),
        (("Init", "Plan", "Pick", "Pick"), ["Init", "Plan", "Pick", "Pick"]),
        (("Init", "Init"), ["Init", "Init"]),
        (("Plan", "Init"), ["Init", "Plan", "Init"]),
    ],
)
"""What a machine's threads say, and the way: ALFWorld's Init has an agent, and says so."""
