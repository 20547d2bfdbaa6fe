"""A state machine as a picture: its states in a row, those of errors below (StateFlow, Figure 1).

The same SVG stands in a notebook, where the state at the end of an episode is marked, and in the
player, where `state_machine.js` marks the state of the moment that is shown. A state is told by its
border and its count as well as by its colour; fixed colours are readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from thread_kit.views.machine_table import OVER, MachineTable
from thread_kit.views.palette import LIVE, NEUTRAL

COLUMN, HEIGHT, ROW = 148, 42, 118  # pixels: between states, of a state, between the rows
TOP, MARGIN, GAP = 86, 0, 16

STYLE = f"""
.tk-states text {{ font: 14px system-ui, sans-serif; text-anchor: middle; }}
.tk-state rect {{ fill: #edf1f5; stroke: {NEUTRAL}; }}
.tk-state text {{ fill: #16202a; }}
.tk-state .tk-times {{ font-size: 11px; text-anchor: end; }}
.tk-state.tk-was rect {{ fill: #cfe8f7; stroke: #0072b2; }}
.tk-state.tk-now rect {{ fill: {LIVE}; stroke: #0072b2; stroke-width: 4; }}
.tk-state.tk-now text:not(.tk-times) {{ font-weight: 700; }}
.tk-state.tk-out rect {{ fill: none; stroke-dasharray: 5 4; }}
.tk-state.tk-out text {{ fill: {NEUTRAL}; text-decoration: line-through; }}
.tk-edge path {{ fill: none; stroke: {NEUTRAL}; stroke-width: 1.3; }}
.tk-edge polygon {{ fill: {NEUTRAL}; }}
.tk-edge.tk-over path {{ stroke-dasharray: 3 4; opacity: .7; }}
.tk-edge.tk-was path {{ stroke: #2f8fd0; }}
.tk-edge.tk-was polygon {{ fill: #2f8fd0; }}
.tk-edge.tk-now path {{ stroke: #2f8fd0; stroke-width: 3.5; stroke-dasharray: none; opacity: 1; }}
"""

Point = tuple[float, float]


def draw_svg(table: MachineTable, way: Sequence[str] = ()) -> str:
    """The picture as SVG; states and edges have their names as data, for who marks them."""
    places = _place(table)
    width = max(x + max(COLUMN, _width(name)) / 2 for name, (x, _) in places.items()) + MARGIN
    height = max(y for _, y in places.values()) + HEIGHT / 2 + 40
    steps = set(pairwise(way))
    last = tuple(way[-2:])
    edges = "".join(
        _draw_edge(table, source, target, places, steps, last)
        for source, target in dict.fromkeys((t.source, t.target) for t in table.transitions)
        if target in places
    )
    states = "".join(_draw_state(table, name, places[name], way) for name in places)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tk-states" role="img" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'style="max-width: 100%; height: auto">'
        f"<title>{escape(f'state machine, now in {way[-1]}' if way else 'state machine')}</title>"
        f"<style>{STYLE}</style>{edges}{states}</svg>"
    )


def _place(table: MachineTable) -> dict[str, Point]:
    """The centre of each state. Errors stand below, between their neighbours of the table."""
    places: dict[str, Point] = {}
    right = below = float(MARGIN)  # where each row ends by now
    for name in (*table.states, *table.final):
        width = max(COLUMN, _width(name) + GAP)
        if "error" in name.lower():
            places[name] = (max(right, below + width / 2), TOP + ROW)
            below = places[name][0] + width / 2
        else:
            places[name] = (right + width / 2, TOP)
            right += width
    return places


def _width(name: str) -> float:
    return max(78, 9 * len(name) + 22)


def _draw_state(table: MachineTable, name: str, place: Point, way: Sequence[str]) -> str:
    x, y = place
    width, times = _width(name), way.count(name)
    marks = ["tk-state"]
    marks += ["tk-out"] * (name in table.left_out) + ["tk-was"] * (times > 0)
    marks += ["tk-now"] * (bool(way) and way[-1] == name)
    note = table.states.get(name, "final")
    if name in table.left_out:
        note = f"left out: {table.left_out[name]} takes its place"
    count = f"×{times}" if times > 1 else ""
    right, below = x + width / 2 - 5, y + HEIGHT / 2 - 4
    radius = HEIGHT / 2 if name in table.final else 6
    return (
        f'<g class="{" ".join(marks)}" data-state="{escape(name)}">'
        f"<title>{escape(f'{name}: {note}' if note else name)}</title>"
        f'<rect x="{x - width / 2:g}" y="{y - HEIGHT / 2:g}" width="{width:g}" '
        f'height="{HEIGHT}" rx="{radius:g}"/>'
        f'<text x="{x:g}" y="{y + 4:g}">{escape(name)}</text>'
        f'<text class="tk-times" x="{right:g}" y="{below:g}">{count}</text>'
        "</g>"
    )


def _draw_edge(
    table: MachineTable,
    source: str,
    target: str,
    places: dict[str, Point],
    steps: set[tuple[str, str]],
    last: tuple[str, ...],
) -> str:
    when = table.find_transition(source, target)
    marks = ["tk-edge", *(["tk-over"] if when == OVER else [])]
    marks += ["tk-was"] * ((source, target) in steps) + ["tk-now"] * ((source, target) == last)
    points = list(_trace_edge(source, target, places))
    path = f"M{points[0][0]:g} {points[0][1]:g} " + (
        "Q" if len(points) == 3 else "C" if len(points) == 4 else "L"
    )
    path += " ".join(f"{x:g} {y:g}" for x, y in points[1:])
    return (
        f'<g class="{" ".join(marks)}" data-from="{escape(source)}" data-to="{escape(target)}">'
        f"<title>{escape(f'{source} to {target}: {when}')}</title>"
        f'<path d="{path}"/><polygon points="{_draw_head(points)}"/></g>'
    )


def _trace_edge(source: str, target: str, places: dict[str, Point]) -> Iterator[Point]:
    """Beginning, control points and end of a curve between two states."""
    (x1, y1), (x2, y2) = places[source], places[target]
    half = HEIGHT / 2
    between = [x for x, y in places.values() if y == y1 and min(x1, x2) < x < max(x1, x2)]
    if source == target:  # a loop above, or below in the lower row
        up = -1 if y1 == TOP else 1
        yield from [(x1 - 14, y1 + up * half), (x1 - 34, y1 + up * (half + 40))]
        yield from [(x1 + 34, y1 + up * (half + 40)), (x1 + 14, y1 + up * half)]
    elif y1 == y2 and x1 < x2 and not between:
        yield from [(x1 + _width(source) / 2, y1), (x2 - _width(target) / 2, y2)]
    elif y1 == y2:  # forward above, back below
        up = -1 if x1 < x2 else 1
        depth = half + 34 + 17 * len(between)
        yield from [(x1 - up * 22, y1 + up * half), ((x1 + x2) / 2, y1 + up * depth)]
        yield (x2 + up * 22, y2 + up * half)
    elif abs(x1 - x2) > COLUMN:  # from far: at the side of the lower one
        side = 1 if x2 < x1 else -1
        if y1 < y2:
            yield from [(x1, y1 + half), (x1, y2), (x2 + side * _width(target) / 2, y2)]
        else:
            yield from [(x1 - side * _width(source) / 2, y1), (x2, y1), (x2, y2 + half)]
    else:  # two that lead to one another stand side by side
        down = 1 if y1 < y2 else -1
        shift = 9 * down
        yield from [(x1 + shift + (x2 - x1) * 0.2, y1 + down * half)]
        yield (x2 + shift - (x2 - x1) * 0.2, y2 - down * half)


def _draw_head(points: Sequence[Point]) -> str:
    """The corners of an arrow's head, in the direction in which the curve ends."""
    (x1, y1), (x2, y2) = points[-2:]
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    corners = [
        (x2, y2),
        (x2 - 9 * dx - 4 * dy, y2 - 9 * dy + 4 * dx),
        (x2 - 9 * dx + 4 * dy, y2 - 9 * dy - 4 * dx),
    ]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
