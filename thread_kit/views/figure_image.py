"""A plotly figure of bars, lines and marks as SVG, drawn by matplotlib: without a browser.

Covered is what figures of results have: grouped and stacked bars with patterns, horizontal bars,
lines with marks, marks side by side, error bars, a logarithmic axis, percent. Not covered:
subplots, fills, and what a pointer shows.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

from thread_kit.replace_file import replace_text
from thread_kit.views.palette import NEUTRAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (9.0, 4.6)
"""Inches."""
LETTERS = 110
"""So many have room side by side, in the labels below a picture."""
HATCHES = {"": "", "/": "///", "x": "xxx", ".": "...", "\\": "\\\\\\", "+": "+++", "-": "---"}
MARKS = {"circle": "o", "square": "s", "x": "X", "diamond": "D", "triangle-up": "^", "star": "*"}
DASHES = {
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 2, 3)),
}
FORMATS = re.compile(r",|,?\.\d+[%f]")
"""Of an axis' numbers, those that Python writes as plotly does; others stay matplotlib's own."""


def draw_svg(figure: go.Figure) -> str:
    """The figure as SVG (`write_svg`), on no background.

    Raises TypeError for what is no figure of plotly, as an episode; ValueError for a trace that is
    neither bar nor scatter, for horizontal bars beside other traces, and for several plots.
    """
    if not isinstance(figure, BaseFigure):
        raise TypeError(
            f"{type(figure).__name__} is no figure of plotly; the picture of an episode: "
            "tk.save_picture(episode, path)"
        )
    if "xaxis2" in figure.layout:
        raise ValueError(
            "a figure of several plots has no picture here; that of supplemental work: "
            "tk.save_picture(episode, path, form='work', thread=N)"
        )
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"hatch.linewidth": 0.8}):
        bars = [trace for trace in figure.data if isinstance(trace, go.Bar)]
        horizontal = any(map(_is_horizontal, bars))
        if horizontal and not all(_is_horizontal(trace) for trace in figure.data):
            raise ValueError("horizontal bars beside other traces have no picture here")
        places = _find_places(figure, horizontal)
        height = max(SIZE[1], 1.5 + 0.26 * len(places)) if horizontal else SIZE[1]
        picture = Figure(figsize=(SIZE[0], height), layout="constrained")
        axes = picture.add_subplot()
        _dress(axes, figure, horizontal)
        if bars:
            _draw_bars(axes, bars, places, horizontal, stacked=figure.layout.barmode == "stack")
        shifts = _find_shifts(figure)
        for trace, shift in zip(figure.data, shifts, strict=True):
            if isinstance(trace, go.Scatter):
                _draw_scatter(axes, trace, places, shift)
            elif not isinstance(trace, go.Bar):
                raise ValueError(f"a trace of the kind {trace.type!r} has no picture here")
        if places:
            _label_places(axes, places, figure.layout, horizontal)
        if len(axes.get_legend_handles_labels()[0]):
            picture.legend(
                loc="outside lower left", ncols=2, frameon=False, fontsize=8, labelcolor=NEUTRAL
            )
        return write_svg(picture, transparent=True)


def save_figure(figure: go.Figure, path: str | Path) -> Path:
    """Write a figure of results as SVG, for a paper; its path. An old file stays until it is whole.

    Raises ValueError for another ending, and what `draw_svg` raises.
    """
    path, text = Path(path), draw_svg(figure)
    if path.suffix.lower() != ".svg":
        raise ValueError(f"{path.name!r}: the picture of a figure is an .svg")
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


def _is_horizontal(trace: Any) -> bool:
    return isinstance(trace, go.Bar) and trace.orientation == "h"


def _find_places(figure: go.Figure, horizontal: bool) -> dict[Any, int]:
    """Where on the axis each category stands: what bars have, and marks with names; else none."""
    values = [
        value
        for trace in figure.data
        if isinstance(trace, go.Bar | go.Scatter)
        for value in (trace.y if horizontal else trace.x)
        if isinstance(value, str) or (isinstance(trace, go.Bar) and value is not None)
    ]
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _find_shifts(figure: go.Figure) -> list[float]:
    """How far from a category's place the marks of each trace stand, where they are grouped."""
    if figure.layout.scattermode != "group":
        return [0.0] * len(figure.data)
    groups = [trace.offsetgroup or number for number, trace in enumerate(figure.data)]
    return _put_side_by_side(groups, 1 - (figure.layout.scattergap or 0))


def _put_side_by_side(groups: list[Any], room: float) -> list[float]:
    """How far from the middle of a room each of these groups stands."""
    order = list(dict.fromkeys(groups))
    step = room / max(1, len(order))
    return [(order.index(group) - (len(order) - 1) / 2) * step for group in groups]


def _draw_bars(
    axes: Axes, bars: list[go.Bar], places: dict[Any, int], horizontal: bool, *, stacked: bool
) -> None:
    # Bars of one group stand on each other where they are stacked; without groups all do.
    groups = [bar.offsetgroup if stacked else number for number, bar in enumerate(bars)]
    width = 0.8 / len(set(groups))
    reached: dict[tuple[Any, Any], float] = {}
    for bar, group, shift in zip(bars, groups, _put_side_by_side(groups, 0.8), strict=True):
        names, lengths = (bar.y, bar.x) if horizontal else (bar.x, bar.y)
        (axes.barh if horizontal else axes.bar)(
            [places[name] + shift for name in names],
            list(lengths),
            0.95 * width,
            [reached.get((group, name), 0) for name in names],
            **{"xerr" if horizontal else "yerr": _read_errors(bar)},
            ecolor=NEUTRAL,
            label=bar.name,
            facecolor="none" if bar.marker.pattern.shape else bar.marker.color,
            edgecolor=bar.marker.color,
            linewidth=1,
            hatch=HATCHES.get(bar.marker.pattern.shape or "", ""),
        )
        if stacked:
            for name, length in zip(names, lengths, strict=True):
                reached[group, name] = reached.get((group, name), 0) + length


def _label_places(axes: Axes, places: dict[Any, int], layout: Any, horizontal: bool) -> None:
    """The categories' names: broken at commas, and turned where they would meet."""
    axis = layout.yaxis if horizontal else layout.xaxis
    names = dict(zip(axis.tickvals or (), axis.ticktext or (), strict=True))
    labels = [_strip(str(names.get(x, x))).replace(", ", ",\n") for x in places]
    if horizontal:
        axes.set_yticks([*places.values()], labels, fontsize=8)
        return
    longest = max(len(line) for label in labels for line in label.split("\n"))
    turned = len(places) > 8 or longest * len(places) > LETTERS
    axes.set_xticks([*places.values()], labels, fontsize=8, rotation=90 if turned else 0)


def _draw_scatter(axes: Axes, trace: go.Scatter, places: dict[Any, int], shift: float) -> None:
    mode, symbol = trace.mode or "lines", str(trace.marker.symbol or "circle")
    axes.errorbar(
        [places[x] + shift if x in places else x for x in trace.x],
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


def _dress(axes: Axes, figure: go.Figure, horizontal: bool) -> None:
    """Title, axes and lines, in the grey that is seen on light and on dark pages."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_title(_strip(figure.layout.title.text or ""), loc="left", fontsize=10, color=NEUTRAL)
    axes.tick_params(colors=NEUTRAL, labelsize=8, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(NEUTRAL)
    axes.grid(axis="x" if horizontal else "y", color=NEUTRAL, alpha=0.25, linewidth=0.8)
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
        elif layout.type != "log" and FORMATS.fullmatch(layout.tickformat or ""):
            form = ",.12g" if layout.tickformat == "," else layout.tickformat
            axis.set_major_formatter(StrMethodFormatter(f"{{x:{form}}}"))
    if figure.layout.yaxis.autorange == "reversed":
        axes.invert_yaxis()


def _strip(text: str) -> str:
    """Plotly's text without its HTML."""
    return re.sub(r"<[^>]+>", "", text.replace("<br>", "\n"))
