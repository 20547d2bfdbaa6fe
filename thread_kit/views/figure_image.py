"""A plotly figure of bars, lines and marks as SVG, drawn by matplotlib: without a browser.

Covered is what figures of results have: grouped and stacked bars with patterns, lines with marks,
error bars, a logarithmic axis. Not covered: subplots, fills, and what a pointer shows.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from thread_kit.replace_file import replace_text
from thread_kit.views.palette import NEUTRAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (9.0, 4.6)
"""Inches."""
HATCHES = {"": "", "/": "///", "x": "xxx", ".": "...", "\\": "\\\\\\", "+": "+++", "-": "---"}
MARKS = {"circle": "o", "square": "s", "x": "X", "diamond": "D", "triangle-up": "^", "star": "*"}
DASHES = {"dash": "--", "dot": ":", "dashdot": "-.", "longdash": (0, (8, 3))}


def draw_svg(figure: go.Figure) -> str:
    """The figure as SVG (`write_svg`), on no background.

    Raises ValueError for a trace that is neither bar nor scatter, and for several plots.
    """
    if "xaxis2" in figure.layout:
        raise ValueError(
            "a figure of several plots has no picture here; that of supplemental work: "
            "tk.save_picture(episode, path, form='work', thread=N)"
        )
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"hatch.linewidth": 0.8}):
        picture = Figure(figsize=SIZE, layout="constrained")
        axes = picture.add_subplot()
        _dress(axes, figure)
        bars = [trace for trace in figure.data if isinstance(trace, go.Bar)]
        if bars:
            _draw_bars(axes, bars, figure.layout)
        for trace in figure.data:
            if isinstance(trace, go.Scatter):
                _draw_scatter(axes, trace)
            elif not isinstance(trace, go.Bar):
                raise ValueError(f"a trace of the kind {trace.type!r} has no picture here")
        if len(axes.get_legend_handles_labels()[0]):
            picture.legend(
                loc="outside lower left", ncols=2, frameon=False, fontsize=8, labelcolor=NEUTRAL
            )
        return write_svg(picture, transparent=True)


def save_figure(figure: go.Figure, path: str | Path) -> Path:
    """Write a figure of results as SVG, for a paper; its path. An old file stays until it is whole.

    Raises ValueError for another ending, and what `draw_svg` raises.
    """
    path = Path(path)
    if path.suffix.lower() != ".svg":
        raise ValueError(f"{path.name!r}: the picture of a figure is an .svg")
    text = draw_svg(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text)
    return path


def write_svg(picture: Figure, *, transparent: bool = False) -> str:
    """A matplotlib figure as SVG: text stays text, and the same figure is the same file."""
    import matplotlib

    out = io.StringIO()
    stamp = {"Date": None, "Creator": None}
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "thread-kit"}):
        picture.savefig(out, format="svg", transparent=transparent, metadata=stamp)
    return out.getvalue()


def _draw_bars(axes: Axes, bars: list[go.Bar], layout: Any) -> None:
    places = {x: place for place, x in enumerate(dict.fromkeys(x for bar in bars for x in bar.x))}
    stacked = layout.barmode == "stack"
    width = 0.8 if stacked else 0.8 / len(bars)
    heights = dict.fromkeys(places, 0.0)
    for number, bar in enumerate(bars):
        shift = 0 if stacked else (number - (len(bars) - 1) / 2) * width
        axes.bar(
            [places[x] + shift for x in bar.x],
            list(bar.y),
            0.95 * width,
            bottom=[heights[x] for x in bar.x] if stacked else None,
            yerr=_read_errors(bar),
            ecolor=NEUTRAL,
            label=bar.name,
            facecolor="none" if bar.marker.pattern.shape else bar.marker.color,
            edgecolor=bar.marker.color,
            linewidth=1,
            hatch=HATCHES.get(bar.marker.pattern.shape or "", ""),
        )
        if stacked:
            heights |= {x: heights[x] + y for x, y in zip(bar.x, bar.y, strict=True)}
    names = dict(zip(layout.xaxis.tickvals or (), layout.xaxis.ticktext or (), strict=True))
    labels = [_strip(str(names.get(x, x))).replace(", ", ",\n") for x in places]
    turned = len(places) > 8 and 90
    axes.set_xticks([*places.values()], labels, fontsize=8, rotation=turned or 0)


def _draw_scatter(axes: Axes, trace: go.Scatter) -> None:
    mode, symbol = trace.mode or "lines", str(trace.marker.symbol or "circle")
    axes.errorbar(
        list(trace.x),
        list(trace.y),
        yerr=_read_errors(trace),
        color=trace.line.color or trace.marker.color,
        label=trace.name,
        linestyle=DASHES.get(trace.line.dash, "-") if "lines" in mode else "none",
        linewidth=1.2,
        drawstyle="steps-post" if trace.line.shape == "hv" else "default",
        marker=MARKS.get(symbol.removesuffix("-open"), "P") if "markers" in mode else None,
        markerfacecolor="none" if symbol.endswith("-open") else None,
        markersize=6,
    )


def _read_errors(trace: go.Bar | go.Scatter) -> Any:
    error = trace.error_y
    if error.array is None:
        return None
    up = list(error.array)
    return [up if error.arrayminus is None else list(error.arrayminus), up]


def _dress(axes: Axes, figure: go.Figure) -> None:
    """Title, axes and lines, in the grey that is seen on light and on dark pages."""
    from matplotlib.ticker import MaxNLocator

    axes.set_title(_strip(figure.layout.title.text or ""), loc="left", fontsize=10, color=NEUTRAL)
    axes.tick_params(colors=NEUTRAL, labelsize=8, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(NEUTRAL)
    axes.grid(axis="y", color=NEUTRAL, alpha=0.25, linewidth=0.8)
    axes.set_axisbelow(True)
    for layout, axis, label, limit in (
        (figure.layout.xaxis, axes.xaxis, axes.set_xlabel, axes.set_xlim),
        (figure.layout.yaxis, axes.yaxis, axes.set_ylabel, axes.set_ylim),
    ):
        label(_strip(layout.title.text or ""), color=NEUTRAL, fontsize=9)
        if layout.type == "log":
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            axis.set_ticks(layout.tickvals, layout.ticktext)
            axis.set_ticks([], minor=True)
        elif layout.range:
            limit(*layout.range)
        if layout.tickformat == "d" or layout.dtick == 1:
            axis.set_major_locator(MaxNLocator(integer=True))


def _strip(text: str) -> str:
    """Plotly's text without its HTML."""
    return re.sub(r"<[^>]+>", "", text.replace("<br>", "\n"))
