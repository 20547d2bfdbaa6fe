"""The tree as a picture, a row a thread with its costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import clip, column_widths, describe_usage
from thread_kit.views.palette import NEUTRAL, status_colour
from thread_kit.views.view_model import ThreadView, view_episode

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, INDENT, MARGIN = 0.26, 0.22, 0.3  # inches
TITLE = 60
"""Characters of a thread's title, at most."""


def draw_rows(episode: Episode) -> Figure:
    """The tree as a matplotlib figure: marks say how a thread ended, as in the other views."""
    view = view_episode(episode)
    rows = [view.threads[thread.id] for thread in episode.subtree()]
    depth = max(thread.depth for thread in rows)
    width, height = 2 * MARGIN + INDENT * depth + 8.6, 2 * MARGIN + ROW * (len(rows) + 1)
    figure, axes = make_page(width, height)
    places = {
        thread.id: (MARGIN + INDENT * thread.depth, MARGIN + ROW * (n + 0.5))
        for n, thread in enumerate(rows)
    }
    columns = column_widths(thread.usage for thread in rows)
    for thread in rows:
        x, y = places[thread.id]
        if thread.parent is not None:
            above_x, above_y = places[thread.parent]
            line = [above_x, above_x, x], [above_y, y, y]
            axes.plot(*line, color=NEUTRAL, linewidth=0.8, zorder=1)
        marker = "s" if thread.cut_short else "o"
        colour = status_colour(thread.status)
        axes.plot(x, y, marker, color=colour, markersize=7, markeredgecolor=NEUTRAL, zorder=2)
        write(axes, x + 0.13, y, f"{thread.id}  {short_title(thread)}")
        write(axes, width - MARGIN, y, describe_usage(thread.usage, columns), right=True)
    write(axes, MARGIN, height - MARGIN - ROW / 2, f"{view.status} · {view.totals}")
    return figure


def make_page(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty page, measured in inches from its upper left corner."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return figure, axes


def write(axes: Axes, x: float, y: float, text: str, *, right: bool = False) -> None:
    """A line of text at (x, y), from there on or, in equal widths, up to there."""
    axes.text(
        x,
        y,
        text,
        parse_math=False,
        ha="right" if right else "left",
        va="center",
        fontsize=8,
        family="monospace" if right else "sans-serif",
    )


def short_title(thread: ThreadView) -> str:
    """What a thread was to do, and how it ended where that was not by itself."""
    ended = "" if thread.status_text == "ended" else f" ({thread.status_text})"
    return clip(thread.label, TITLE) + ended
