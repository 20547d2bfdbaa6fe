"""An episode's tree as a picture for a paper or a slide: SVG, PDF or PNG, drawn by matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import column_widths, describe_usage
from thread_kit.views.palette import NEUTRAL, status_colour
from thread_kit.views.view_model import ThreadView, view_episode

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (".svg", ".pdf", ".png")
ROW, INDENT, MARGIN = 0.26, 0.22, 0.3  # inches
TITLE = 60
"""Characters of a thread's title, at most."""


def save_picture(episode: Episode, path: str | Path) -> Path:
    """Draw the tree of threads, a row a thread with its costs, into a file; its path.

    The ending of the name says which kind. Text stays text in SVG and PDF. The same episode always
    gives the same file. Raises ValueError for another ending, or an episode without threads.
    """
    import matplotlib

    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path.name!r}: a picture's name ends in {', '.join(KINDS)}")
    if not episode.threads:
        raise ValueError(f"{episode!r} has no thread to draw yet; run it first")
    # No date in it, and names that do not depend on chance.
    stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        warnings.catch_warnings(),
        matplotlib.rc_context(
            {"svg.fonttype": "none", "svg.hashsalt": "thread-kit", "pdf.fonttype": 42}
        ),
    ):
        # Models write characters that no font at hand has; a box stands there then.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = draw_tree(episode)
        figure.savefig(path, dpi=200, metadata=stamp.get(path.suffix.lower()))
    return path


def draw_tree(episode: Episode) -> Figure:
    """The tree as a matplotlib figure: marks say how a thread ended, as in the other views."""
    from matplotlib.figure import Figure

    view = view_episode(episode)
    rows = [view.threads[thread.id] for thread in episode.subtree()]
    depth = max(thread.depth for thread in rows)
    width, height = 2 * MARGIN + INDENT * depth + 8.6, 2 * MARGIN + ROW * (len(rows) + 1)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
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
        marker = "s" if thread.is_cut else "o"
        colour = status_colour(thread.status)
        axes.plot(x, y, marker, color=colour, markersize=7, markeredgecolor=NEUTRAL, zorder=2)
        _write(axes, x + 0.13, y, f"{thread.id}  {_title(thread)}")
        _write(axes, width - MARGIN, y, describe_usage(thread.usage, columns), right=True)
    _write(axes, MARGIN, height - MARGIN - ROW / 2, f"{view.status} · {view.totals}")
    return figure


def _write(axes: object, x: float, y: float, text: str, *, right: bool = False) -> None:
    axes.text(  # type: ignore[attr-defined]
        x,
        y,
        text,
        parse_math=False,
        ha="right" if right else "left",
        va="center",
        fontsize=8,
        family="monospace" if right else "sans-serif",
    )


def _title(thread: ThreadView) -> str:
    ended = "" if thread.status_text == "ended" else f" ({thread.status_text})"
    label = thread.label if len(thread.label) <= TITLE else thread.label[: TITLE - 1] + "…"
    return label + ended
