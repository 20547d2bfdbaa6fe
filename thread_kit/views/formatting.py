"""How every view writes texts, numbers and costs."""

from __future__ import annotations

from collections.abc import Iterable

from thread_kit.sequence import Provenance
from thread_kit.trace.costs import Usage
from thread_kit.trace.printable import sanitize as sanitize


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, and how many more there were."""
    cut = len(text) - limit
    return text if cut <= 0 else f"{text[:limit]} … ({cut:,} more characters)"


def clip(text: str, limit: int) -> str:
    """At most `limit` characters; "…" is the last of them where there were more."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def describe_origin(provenance: Provenance, child: int | None) -> str:
    """Where a piece comes from: "returned by thread 2", "reference to thread 2"."""
    if child is None:
        return str(provenance)
    return f"{provenance} {'to' if provenance is Provenance.REFERENCE else 'by'} thread {child}"


def pluralize(number: int, noun: str) -> str:
    """ "1 thread", "1,200 threads"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def describe_reward(reward: float | None) -> str:
    """A reward in few digits; "none" where there is none."""
    try:
        return "none" if reward is None else f"{reward:g}"
    except OverflowError:  # an integer that is larger than any float, from an odd file
        return "out of range"


def describe_usage(usage: Usage, widths: tuple[int, int, int] = (0, 0, 0)) -> str:
    """The tokens of a usage in words; with `widths`, the numbers of several lines stand in line."""
    generated, evaluated, reused = widths
    return (
        f"generated {usage.generated:{generated},} · evaluated {usage.evaluated:{evaluated},} · "
        f"reused {usage.reused:{reused},}"
    )


def describe_totals(reward: float | None, threads: int, depth: int, usage: Usage) -> str:
    """A whole episode in a line; `usage` is that of its threads."""
    parts = [
        f"reward {describe_reward(reward)}",
        pluralize(threads, "thread"),
        f"depth {depth}",
        pluralize(usage.calls, "call"),
        describe_usage(usage),
    ]
    return " · ".join(parts)


def column_widths(usages: Iterable[Usage]) -> tuple[int, int, int]:
    """How wide the numbers of `describe_usage` are at most, in characters."""
    rows = [(usage.generated, usage.evaluated, usage.reused) for usage in usages]
    columns = zip((0, 0, 0), *rows, strict=True)
    generated, evaluated, reused = (max(len(f"{n:,}") for n in column) for column in columns)
    return generated, evaluated, reused
