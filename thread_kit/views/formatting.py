"""How every view writes texts, numbers and costs."""

from __future__ import annotations

from collections.abc import Iterable

from thread_kit.sequence import Provenance
from thread_kit.trace.costs import Usage

_ACTING = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029], 0xFFFD),
}


def legible(text: str) -> str:
    """Text without the characters that act on a page or a terminal instead of being read.

    Control characters become their pictures (an escape reads "␛"); halves of surrogate pairs,
    which no file or page can hold, and marks that turn the direction of writing become "\ufffd".
    """
    return text.translate(_ACTING)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, and how many more there were."""
    cut = len(text) - limit
    return text if cut <= 0 else f"{text[:limit]} … ({cut:,} more characters)"


def origin(provenance: Provenance, child: int | None) -> str:
    """Where a piece comes from: "returned by thread 2", "reference to thread 2"."""
    if child is None:
        return str(provenance)
    return f"{provenance} {'to' if provenance is Provenance.REFERENCE else 'by'} thread {child}"


def count(number: int, what: str) -> str:
    """ "1 thread", "1,200 threads"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def costs(usage: Usage, widths: tuple[int, int, int] = (0, 0, 0)) -> str:
    """The tokens of a usage in words; with `widths`, the numbers of several lines stand in line."""
    generated, evaluated, reused = widths
    return (
        f"generated {usage.generated:{generated},} · evaluated {usage.evaluated:{evaluated},} · "
        f"reused {usage.reused:{reused},}"
    )


def column_widths(usages: Iterable[Usage]) -> tuple[int, int, int]:
    """How wide the numbers of `costs` are at most."""
    all_of = list(usages)

    def widest(name: str) -> int:
        return max((len(f"{getattr(one, name):,}") for one in all_of), default=0)

    return widest("generated"), widest("evaluated"), widest("reused")
