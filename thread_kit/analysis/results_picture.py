"""All that has been played, in one picture: the rate of each method with its interval."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import pandas as pd

from thread_kit.views.figure_image import write_svg
from thread_kit.views.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, ROW = 9.0, 0.21
"""Inches: of the picture, and of a line of it."""


def draw_results(table: pd.DataFrame) -> str:
    """An SVG: a line a method, by benchmark and model, the best first; on white, text as text.

    table: of `summarize_rows`. Beside each rate stand the tasks solved of those played, and the
    tokens that an episode wrote (median). Of what was played on fewer tasks than others the point
    is hollow. The same rows always give the same picture.
    """
    from matplotlib.figure import Figure

    groups = list(table.groupby(["benchmark", "model"], sort=False))
    lines = len(table) + 1.6 * len(groups)
    models = dict.fromkeys(map(str, table["model"]))
    colours = {model: colour for model, (colour, _, _) in zip(models, cycle(SERIES))}
    height = ROW * lines + 0.7
    picture = Figure(figsize=(WIDTH, height), facecolor="white")
    axes = picture.add_axes((0.24, 0.45 / height, 0.42, 1 - 0.5 / height))
    top = 0.0
    for (benchmark, model), rows in groups:
        title = f"{benchmark} · {model}"
        axes.text(-57, top + 0.1, title, fontsize=9, fontweight="bold", clip_on=False)
        axes.axhline(top - 0.6, -0.57, 1.8, color="#dddddd", linewidth=0.8, clip_on=False)
        colour = colours[str(model)]
        for place, row in enumerate(rows.to_dict("records"), start=1):
            _draw_row(axes, top + place, row, colour)
        top += len(rows) + 1.6
    axes.set(xlim=(0, 100), ylim=(lines - 0.4, -0.7), yticks=[])
    told = "solved (%), with Wilson's interval, 95%; hollow: on fewer tasks"
    axes.set_xlabel(told, fontsize=8)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.tick_params(labelsize=8, length=0)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    return write_svg(picture)


def name_row(method: str, *, nearest: bool) -> str:
    """A method, and whether the environment took invalid actions for the nearest admissible one."""
    return method + ", nearest action" * nearest


def _draw_row(axes: Axes, y: float, row: dict[str, Any], colour: str) -> None:
    rate, low, high = (100 * row[name] for name in ("rate", "low", "high"))
    axes.plot([low, high], [y, y], color=colour, linewidth=2, alpha=0.45, solid_capstyle="butt")
    fill = "white" if row["is_sample"] else colour
    axes.plot(rate, y, "o", color=colour, markerfacecolor=fill, markersize=5, clip_on=False)
    cut = f"{row['cut']} cut" if row["cut"] else ""
    texts = f"{rate:.1f}%", f"{row['solved']} of {row['n']}", cut, f"{row['generated']:,.0f} tokens"
    name = name_row(row["method"], nearest=row["nearest"])
    style = {"fontsize": 8, "va": "center", "ha": "right", "clip_on": False}
    for x, text in zip((-2, 115, 135, 152, 180), (name, *texts), strict=True):
        axes.text(x, y, text, **style)  # type: ignore[arg-type]
