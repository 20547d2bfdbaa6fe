"""How the fields of a trace's events are read back: nothing but what they can be is let in.

Each function takes what stands in a line of JSON, and raises one of `MALFORMED` for anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from thread_kit.sequence import Provenance, Span

Read = Callable[[Any], Any]
"""Reads one kind of field back; raises one of `MALFORMED` for whatever else stands there."""


def read_as(*kinds: type) -> Read:
    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"{value!r:.60} is no {kinds[0].__name__}")
        return value

    return read


read_text = read_as(str)


def read_number(value: Any) -> float:
    """A number that a float has room for; a whole one stays an int."""
    if type(value) not in (float, int) or not math.isfinite(value):
        raise TypeError(f"{value!r:.60} is no number")
    return value


def read_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise TypeError(f"{value!r:.60} is no count")
    return value


def read_span(value: Any) -> Span:
    provenance, text, tokens = value
    return Span(Provenance(provenance), read_text(text), tuple(map(read_count, tokens)))


def or_none(read: Read) -> Read:
    return lambda value: None if value is None else read(value)
