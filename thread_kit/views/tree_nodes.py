"""The tree as the player draws it: a picture with actions and a legend.

After Figure 1 of THREAD paper, which draws the threads' token sequences with phi and psi between
them; here a sequence is one node, so that many threads have room. Its area grows with the tokens
that the thread generated, its colour is its status, a square was cut short. To each
child an arrow for phi, and one back where psi gave something.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import clip, pluralize
from thread_kit.views.palette import CUT, ENDED, FAILED, LIVE, NEUTRAL, PROVENANCE, STOPPED
from thread_kit.views.palette import status_colour as colour_of
from thread_kit.views.tree_layout import layout_boxes
from thread_kit.views.tree_rows import MARGIN, make_page, short_title, write
from thread_kit.views.view_model import EpisodeView, ThreadView, view_episode

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLOT, LEVEL, LINE = 0.46, 0.72, 0.2  # inches
SMALL, LARGE = 0.1, 0.2  # radii, in inches
TIP = 0.08  # inches of an arrow's head
WIDTH = 7.6  # inches of a page at least
ACTION = 100
"""Characters of an action, at most."""

PHI, PSI = PROVENANCE[Provenance.CONTEXT], PROVENANCE[Provenance.RETURNED]
STATUSES = {
    LIVE: "at work",
    ENDED: "ended by itself",
    CUT: "cut by a limit",
    FAILED: "failed",
    STOPPED: "stopped by a person, or since the task is over",
}

Place = tuple[float, float]


def draw_nodes(episode: Episode) -> Figure:
    """The drawing, what each thread was to do and its actions, and a legend, one below the other.

    A tree with more levels than leaves goes from left to right.
    """
    view = view_episode(episode)
    # 1. Places, in inches.
    slots = layout_boxes(view)
    across = view.depth + 1 > max(x for x, _ in slots.values()) + 0.5
    places = {
        number: (MARGIN + (level + 0.5) * LEVEL, MARGIN + x * SLOT)
        if across
        else (MARGIN + x * SLOT, MARGIN + (level + 0.5) * LEVEL)
        for number, (x, level) in slots.items()
    }
    width = max(WIDTH, max(x for x, _ in places.values()) + MARGIN + SLOT)
    bottom = max(y for _, y in places.values()) + 0.6 * LEVEL

    # 2. The page: the drawing, the threads with their actions, the legend.
    rows = [view.threads[thread.id] for thread in episode.subtree()]
    lines = sum(1 + len(list_actions(thread)) for thread in rows)
    figure, axes = make_page(width, bottom + LINE * (lines + 6) + MARGIN)
    most = max(thread.usage.generated for thread in rows) or 1
    radii = {thread.id: radius(thread.usage.generated / most) for thread in rows}
    _draw_edges(axes, view, places, radii, across=across)
    for thread in rows:
        _draw_node(axes, thread, places[thread.id], radii[thread.id])
    y = _list_threads(axes, rows, width, bottom)
    _draw_legend(axes, rows, most, y)
    write(axes, MARGIN, y + 4 * LINE, f"{view.status} · {view.totals}")
    return figure


def list_actions(thread: ThreadView) -> list[str]:
    """A thread's actions, a line each; the same one several times in a row is one line."""
    lines = []
    for text, same in groupby(" ".join(action.action.split()) for action in thread.actions):
        times = len(list(same))
        text = clip(text, ACTION)
        lines.append(f"{text}  ({times} times)" if times > 1 else text)
    return lines


def radius(part: float) -> float:
    """Of a node, in inches, by its part of the most tokens that a thread generated."""
    return SMALL + (LARGE - SMALL) * float(part**0.5)


def _draw_node(axes: Axes, thread: ThreadView, place: Place, r: float) -> None:
    from matplotlib.patches import Circle, Rectangle

    x, y = place
    square = Rectangle((x - r, y - r), 2 * r, 2 * r)
    shape = square if thread.cut_short else Circle(place, r)
    shape.set(facecolor=colour_of(thread.status), edgecolor=NEUTRAL, zorder=2)
    axes.add_patch(shape)
    axes.text(x, y, str(thread.id), ha="center", va="center", fontsize=7, color="black", zorder=3)
    if thread.actions:
        note = f">{len(thread.actions)}"
        axes.text(x + 0.8 * r, y - 0.8 * r, note, ha="left", va="bottom", fontsize=6)


def _draw_edges(
    axes: Axes,
    view: EpisodeView,
    places: dict[int, Place],
    radii: dict[int, float],
    *,
    across: bool,
) -> None:
    """For each child phi's arrow down, and beside it psi's back where something came back."""
    for thread in view.threads.values():
        if thread.parent is None:
            continue
        up, down = places[thread.parent], places[thread.id]
        back = [p for p in view.threads[thread.parent].pieces if p.child == thread.id]
        aside = 0.035 if back else 0.0
        ends = radii[thread.parent], radii[thread.id]
        _draw_arrow(axes, up, down, ends, -aside, PHI, across=across)
        if back:
            waits = back[0].provenance is Provenance.REFERENCE
            _draw_arrow(axes, down, up, ends[::-1], aside, PSI, across=across, is_dashed=waits)


def _draw_arrow(
    axes: Axes,
    start: Place,
    end: Place,
    radii: tuple[float, float],
    aside: float,
    colour: str,
    *,
    across: bool,
    is_dashed: bool = False,
) -> None:
    """A curve from the edge of one node to that of another, which leaves and comes straight."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    (a, b), (c, d) = (place[::-1] if across else place for place in (start, end))
    way = 1 if d > b else -1
    b, d = b + way * radii[0], d - way * (radii[1] + 0.02)
    back, half = d - way * TIP, TIP / 2.5
    points = [(a, b), (a, (b + back) / 2), (c, (b + back) / 2), (c, back)]
    tip = [(c - half, back), (c + half, back), (c, d)]
    # Where it goes across, along a level is down.
    curve, head = (
        [(y, x + aside) if across else (x + aside, y) for x, y in shape] for shape in (points, tip)
    )
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    line = PathPatch(Path(curve, codes), fill=False, edgecolor=colour, linewidth=1.0, zorder=1)
    line.set_linestyle("--" if is_dashed else "-")
    axes.add_patch(line)
    axes.add_patch(Polygon(head, closed=True, color=colour, linewidth=0, zorder=1))


def _list_threads(axes: Axes, rows: list[ThreadView], width: float, y: float) -> float:
    """A line a thread and a line an action, from y on; where they end."""
    for thread in rows:
        write(axes, MARGIN, y, f"{thread.id}  {short_title(thread)}")
        tokens = pluralize(thread.usage.generated, "token")
        write(axes, width - MARGIN, y, tokens, right=True)
        y += LINE
        for text in list_actions(thread):
            write(axes, MARGIN + 0.35, y, f"> {text}")
            y += LINE
    return y


def _draw_legend(axes: Axes, rows: list[ThreadView], most: int, y: float) -> None:
    """What the colours, sizes and arrows of this drawing mean, on three lines."""
    x, line = MARGIN, y + LINE
    shown = {colour_of(thread.status) for thread in rows}
    for colour, label in STATUSES.items():
        if colour in shown:
            axes.plot(
                x + 0.06,
                line,
                "o" if colour in (LIVE, ENDED) else "s",
                color=colour,
                markersize=7,
                markeredgecolor=NEUTRAL,
            )
            write(axes, x + 0.18, line, label)
            x += 0.45 + 0.075 * len(label)
    line += LINE
    write(axes, MARGIN, line, f"area: tokens generated (the largest {most:,})  ·  >2: actions")
    line += LINE
    for x, colour, label in (
        (MARGIN, PHI, "phi: what a child is given"),
        (MARGIN + 2.4, PSI, "psi: what comes back"),
    ):
        axes.annotate(
            "",
            xytext=(x, line),
            xy=(x + 0.3, line),
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.0},
        )
        write(axes, x + 0.36, line, label)
