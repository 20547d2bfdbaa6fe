"""One edge of the tree as a figure for a slide: what phi took of a parent, what psi gave back.

Two boxes of text: the parent up to the spawn, and the child. What passed is marked where it stood,
as in the player (`views/xray.py`); lines that say nothing about it are left out ("⋯").
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from thread_kit.replace_file import replace_text
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode, Thread, must_be_episode
from thread_kit.trace.events import Returned, Spawned
from thread_kit.views.formatting import sanitize, shorten
from thread_kit.views.palette import PROVENANCE, tint
from thread_kit.views.view_model import name_exchange
from thread_kit.views.xray import Xray

WIDTH, LINE, CHARACTER = 960, 19, 7.25  # pixels
TEXT = 48
"""Characters of a line."""
WORD = 9
"""Characters at the end of a line, in which it may end before a word."""
KEPT = 5
"""Lines at the end of a box that are shown, marked or not."""
NAME = 40
"""Characters of the name of a phi or psi, at most."""
PASSED = 400
"""Characters of a text that passed, at most."""

MARKS = {
    "taken": (tint(PROVENANCE[Provenance.RETURNED], 0.45), "taken as it stands"),
    "value": (tint(PROVENANCE[Provenance.INSTRUCTION], 0.5), "a variable, and its value"),
    "assigned": (tint(PROVENANCE[Provenance.INSTRUCTION], 0.2), "where it was assigned"),
}
INK, PHI, PSI = "#1a1a1a", PROVENANCE[Provenance.CONTEXT], PROVENANCE[Provenance.RETURNED]

Run = tuple[str, str]  # characters, and the kind of their mark
Lines = list[tuple[Provenance, list[Run]]]


@dataclass(slots=True)
class _Edge:
    """Both ends of an edge: the lines of the parent and of the child, and the texts that passed.

    labels: what phi and psi were when they passed.
    """

    parent: Lines
    child: Lines
    phi: list[Run]
    psi: list[Run]
    labels: dict[str, str]


def save_edge(episode: Episode, child: int, path: str | Path) -> Path:
    """Draw the edge to a child (`draw_edge`) into an SVG file; its path.

    Raises what `draw_edge` raises, ValueError for another ending than .svg, and OSError.
    """
    path = Path(path)
    if path.suffix.lower() != ".svg":
        raise ValueError(f"{path.name!r}: the figure of an edge is an .svg")
    text = draw_edge(episode, child)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text)
    return path


def draw_edge(episode: Episode, child: int) -> str:
    """The edge from a thread's parent to it and back, as SVG, 960 pixels wide (THREAD paper, 2.3).

    Raises KeyError for a thread that there is not, ValueError for the main thread.
    """
    thread = must_be_episode(episode).threads[child]
    if thread.parent is None:
        raise ValueError(f"thread {child} has no parent; give the number of a thread below it")
    edge = _read(episode, child)
    box = TEXT * CHARACTER + 24
    right = WIDTH - box - 10
    # 1. What came back stands in the parent, what was asked on top of the child.
    left_lines = [*edge.parent, *_passed(edge.psi, Provenance.RETURNED)]
    right_lines = [*_passed(edge.phi, Provenance.CONTEXT), *edge.child]
    height = 78 + LINE * max(len(left_lines), len(right_lines)) + 40
    asked = 58 + LINE * (len(edge.parent) - 1)
    back = 58 + LINE * (len(left_lines) - 1)
    marked = [n for n, (_, line) in enumerate(right_lines) if any(kind for _, kind in line)]
    printed = 58 + LINE * (marked[-1] if marked else len(right_lines) - 1)

    # 2. The boxes, the arrows, the legend.
    parts = [
        _box(10, box, f"Thread {thread.parent}", left_lines, height - 46),
        _box(right, box, f"Thread {child}", right_lines, height - 46),
        _arrow(10 + box, asked, right, 58, PHI, edge.labels["phi"]),
    ]
    if edge.psi:
        parts.append(_arrow(right, printed, 10 + box, back, PSI, edge.labels["psi"]))
    parts.append(_legend(height - 14))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="12"><title>What thread {thread.parent} gave thread {child}, and what came '
        f'back</title><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _read(episode: Episode, child: int) -> _Edge:
    """The edge at its two moments: at the spawn, and when the child had returned."""
    seen, xray = Episode(episode.header), Xray({})
    parent, own, down, up = [], [], [], []
    labels = dict.fromkeys(("phi", "psi"), "")
    for place, event in enumerate(episode.events):
        seen.add(event)
        taken = xray.add(seen, event)
        match event:
            case Spawned(thread=number, parent=int(above)) if number == child:
                parent = _lines(seen, seen.threads[above], taken, only=None)
                down = _runs(taken, seen.dialect.asked(event.context.text))
                labels["phi"] = _label(episode, "phi", "φ", place)
            case Returned(child=number) if number == child:
                own = _lines(seen, seen.threads[child], taken, only=Provenance.GENERATED)
                up = _runs(taken, event.span.text)
                labels["psi"] = _label(episode, "psi", "ψ", place)
    own = own or _lines(seen, seen.threads[child], None, only=Provenance.GENERATED)
    return _Edge(parent, own, down, up, labels)


def _label(episode: Episode, kind: str, symbol: str, place: int) -> str:
    """What an arrow is called; nothing where a method has no phi and psi."""
    name = name_exchange(episode, kind, place)
    return f"{symbol}  {name}" if name else ""


def _runs(taken: dict[str, Any] | None, text: str) -> list[Run]:
    if taken is None or len(text) > PASSED:
        return [(shorten(sanitize(text), PASSED), "")]
    return [(text, kind) for text, kind, _ in taken["passed"]]


def _passed(runs: list[Run], provenance: Provenance) -> Lines:
    """A text that passed, as lines of a box."""
    return [(provenance, line) for line in _split(runs)] if runs else []


def _lines(
    seen: Episode, thread: Thread, taken: dict[str, Any] | None, *, only: Provenance | None
) -> Lines:
    """A thread's lines with their marks; those that are neither marked nor at the end are "⋯"."""
    context = seen.dialect.asked(thread.context.text)
    spans = [(Provenance.CONTEXT, context), *((s.provenance, s.text) for s in thread.sequence)]
    marks = taken["marks"] if taken else []
    lines: Lines = []
    for number, (provenance, text) in enumerate(spans):
        own = [mark for mark in marks if mark[0] == number]
        if only is None or provenance is only or own:
            lines += [(provenance, line) for line in _split(_mark(sanitize(text), own))]
    shown: Lines = []
    for place, (provenance, line) in enumerate(lines):
        if place >= len(lines) - KEPT or any(kind for _, kind in line):
            shown.append((provenance, line))
        elif not shown or shown[-1][1] != [("⋯", "")]:
            shown.append((provenance, [("⋯", "")]))
    return shown


def _mark(text: str, marks: list[list[Any]]) -> list[Run]:
    """A text in runs of one kind each; a value hides what is taken, and that what is assigned."""
    kinds = [""] * len(text)
    for kind in ("assigned", "taken", "value"):
        for _, start, stop, own, _ in marks:
            if own == kind:
                kinds[start:stop] = [kind] * (min(stop, len(text)) - start)
    return list(zip(text, kinds, strict=True))


def _split(runs: list[Run]) -> list[list[Run]]:
    """Runs in lines of at most TEXT characters; neighbours of one kind are one run."""
    lines: list[list[Run]] = [[]]
    length = 0
    for text, kind in runs:
        for character in text.replace("\t", "    "):
            is_break = character == "\n" or (character == " " and length > TEXT - WORD)
            if is_break or length == TEXT:
                lines.append([])
                length = 0
            if is_break:
                continue
            line, length = lines[-1], length + 1
            if line and line[-1][1] == kind:
                line[-1] = (line[-1][0] + character, kind)
            else:
                line.append((character, kind))
    return [line for line in lines if line]


def _box(x: float, width: float, title: str, lines: Lines, height: float) -> str:
    parts = [
        f'<rect x="{x}" y="10" width="{width:g}" height="{height}" rx="5" fill="none" '
        f'stroke="{INK}" stroke-opacity="0.4"/>',
        f'<text x="{x + 10}" y="32" font-weight="bold" font-size="14" fill="{INK}">{title}</text>',
    ]
    for number, (provenance, line) in enumerate(lines):
        y = 46 + LINE * number
        colour = PROVENANCE[provenance]
        parts.append(f'<rect x="{x + 4}" y="{y}" width="3" height="{LINE}" fill="{colour}"/>')
        at = x + 14.0
        for text, kind in line:
            long = len(text) * CHARACTER
            if kind:
                parts.append(
                    f'<rect x="{at:g}" y="{y + 1}" width="{long:g}" height="{LINE - 2}" '
                    f'fill="{MARKS[kind][0]}"/>'
                )
            # Its length is said, so that marks fit whichever font there is.
            parts.append(
                f'<text x="{at:g}" y="{y + 14}" textLength="{long:g}" xml:space="preserve" '
                f'lengthAdjust="spacingAndGlyphs" fill="{INK}">{escape(text)}</text>'
            )
            at += long
    return "".join(parts)


def _arrow(x: float, y: float, u: float, v: float, colour: str, label: str) -> str:
    """From (x, y) to (u, v), with its name on the way."""
    way = 1 if u > x else -1
    middle, tip = (x + u) / 2, u - 8 * way
    name = escape(sanitize(shorten(label, NAME)))
    return (
        f'<path d="M{x:g} {y}C{middle:g} {y} {middle:g} {v} {tip:g} {v}" fill="none" '
        f'stroke="{colour}" stroke-width="2.5"/>'
        f'<path d="M{u:g} {v}l{-10 * way} -5v10z" fill="{colour}"/>'
        f'<text x="{middle:g}" y="{(y + v) / 2 - 8:g}" text-anchor="middle" fill="{INK}" '
        f'stroke="white" stroke-width="4" paint-order="stroke">{name}</text>'
    )


def _legend(y: float) -> str:
    parts, x = [], 10.0
    for colour, label in MARKS.values():
        long = len(label) * CHARACTER
        parts.append(
            f'<rect x="{x:g}" y="{y - 14}" width="{long + 12:g}" height="18" fill="{colour}"/>'
            f'<text x="{x + 6:g}" y="{y}" textLength="{long:g}" fill="{INK}">{label}</text>'
        )
        x += long + 26
    return "".join(parts)
