"""The colours of every view: Okabe and Ito's eight, which colour-blind readers can tell apart.

A colour is never the only sign: each provenance and each status is also named in words. Text keeps
the page's own colour, on a tint of these, so that it is readable on light and on dark pages.
"""

from __future__ import annotations

from thread_kit.requests import Status
from thread_kit.sequence import Provenance

PROVENANCE = {
    Provenance.PROMPT: "#999999",
    Provenance.CONTEXT: "#0072b2",
    Provenance.GENERATED: "#009e73",
    Provenance.RETURNED: "#e69f00",
    Provenance.REFERENCE: "#f0e442",
    Provenance.OBSERVED: "#cc79a7",
    Provenance.INSTRUCTION: "#56b4e9",
}

LIVE, ENDED, CUT, FAILED, STOPPED = "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#999999"

STATUS = dict.fromkeys(Status, CUT) | {
    Status.GENERATING: LIVE,
    Status.LISTENING: LIVE,
    Status.WAITING: LIVE,
    Status.ACTING: LIVE,
    Status.ENDED: ENDED,
    Status.END_OF_STREAM: ENDED,
    Status.FAILED: FAILED,
    Status.STOPPED: STOPPED,
    Status.TASK_OVER: STOPPED,
}

USAGE = {"reused": "#56b4e9", "evaluated": "#0072b2", "generated": "#009e73"}
"""What tokens cost: found in the cache, read by the model, written by it."""

SERIES = (
    ("#0072b2", "circle", "solid"),
    ("#d55e00", "square", "dash"),
    ("#009e73", "x", "dot"),
    ("#cc79a7", "diamond", "dashdot"),
    ("#e69f00", "triangle-up", "longdash"),
    ("#56b4e9", "star", "longdashdot"),
    ("#999999", "cross", "solid"),
)
"""Colour, mark and dash of what is compared in a figure; the shapes say what the colour says."""

NEUTRAL = "#7f7f7f"
"""Lines and labels that have to be seen on white and on black."""


def status_colour(status: str) -> str:
    """The colour of a status, given by its name."""
    return STATUS[Status(status)]


def tint(colour: str, alpha: float) -> str:
    """A colour that lets the page through."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def css() -> str:
    """The palette as CSS: a class for each provenance and each status sets `--tk-colour`."""
    rules = [
        f".tk-{str(name).replace(' ', '-')} {{ --tk-colour: {colour}; }}"
        for name, colour in [*PROVENANCE.items(), *STATUS.items()]
    ]
    return "\n".join(rules) + "\n"
