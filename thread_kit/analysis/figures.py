"""A suite's results as plotly figures: success with intervals, success against cost, calls."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from thread_kit.analysis.statistics import (
    CONFIDENCE,
    COSTS,
    calls,
    must_have_episodes,
    success_by_cost,
)
from thread_kit.views.palette import NEUTRAL, SERIES, tint
from thread_kit.views.plot import dress, log_axis

PATTERNS = ("", "/", "x", ".", "\\", "+", "-")
"""Of bars, in the order of `SERIES`: they say what the colour says, and tell apart those of more
series than there are colours."""


def add_bars(
    figure: go.Figure, place: int, name: str, x: list[Any], y: list[Any], **look: Any
) -> None:
    """Bars of one colour and pattern, the `place`-th of a figure's; look: as of `go.Bar`."""
    marker = {
        "color": SERIES[place % len(SERIES)][0],
        "pattern": {"shape": PATTERNS[(place + place // len(SERIES)) % len(PATTERNS)]},
        "line": {"width": 0},
    }
    figure.add_trace(go.Bar(x=x, y=y, name=name, marker=marker, **look))


def interval_bars(table: pd.DataFrame, rate: str = "rate", *, scale: float = 100) -> dict[str, Any]:
    """Plotly's error bars of a table with low, high and a column `rate`; scale: 1 to percent."""
    return {
        "type": "data",
        "symmetric": False,
        "array": (scale * (table["high"] - table[rate])).tolist(),
        "arrayminus": (scale * (table[rate] - table["low"])).tolist(),
    }


def success_figure(table: pd.DataFrame) -> go.Figure:
    """The share of tasks solved by each method, ours filled and the published ones hollow.

    table: of `compare_with_published`, or some of its rows. A trace a model and source, with its
    number of tasks in the legend; bars are Wilson's 95% intervals, which a mean over runs does not
    have.
    """
    if "published_as" not in table:
        raise ValueError(
            "this is no table of compare_with_published; of episodes of your own, "
            "success_by_cost_figure(frame) draws each method's rate"
        )
    # One name for a method, the papers' where they have it.
    papers_name = table["published_as"]
    table = table.assign(x=table["method"].where(papers_name == "", papers_name))
    # A colour and a symbol for a model; for each of its sources a trace.
    figure = go.Figure()
    looks = dict(zip(table["model"].unique(), cycle(SERIES)))
    for (kind, model, source, n), group in table.groupby(
        ["kind", "model", "source", "n"], sort=False
    ):
        colour, symbol, _ = looks[model]
        hollow = kind == "published"
        name = f"{model}, n = {n} ({source if hollow else kind})"
        figure.add_trace(
            go.Scatter(
                x=group["x"],
                y=group["success"],
                error_y=interval_bars(group, "success", scale=1)
                | {"thickness": 1 if hollow else 2, "width": 3},
                customdata=group.assign(cut=_describe_cut(group))[["method", "split", "cut"]],
                name=name,
                offsetgroup=name,
                mode="markers",
                marker={
                    "symbol": f"{symbol}-open" if hollow else symbol,
                    "size": 9 if hollow else 12,
                    "color": colour,
                },
                hovertemplate="%{customdata[0]}, %{customdata[1]}: %{y:.1f}%%{customdata[2]}"
                f"<extra>{name}</extra>",
            )
        )
    # Traces of one method stand side by side.
    dress(figure, f"Tasks solved, with {CONFIDENCE:.0%} Wilson intervals; hollow: published")
    figure.update_layout(height=500, scattermode="group", scattergap=0.3, showlegend=True)
    figure.update_xaxes(showgrid=False, showline=True, linecolor=NEUTRAL)
    figure.update_yaxes(title="solved (%)", range=[-2, 105])
    return figure


def _describe_cut(table: pd.DataFrame) -> list[str]:
    """For a hover, how many episodes a budget cut, row by row; "" where nobody knows."""
    cuts = table["cut"] if "cut" in table else [pd.NA] * len(table)
    return ["" if pd.isna(cut) else f"<br>{cut} cut by a budget" for cut in cuts]


def success_by_cost_figure(frame: pd.DataFrame, cost: str = "evaluated") -> go.Figure:
    """The share of tasks solved within a budget for each (logarithmic): the equal-budget view.

    frame: of `Results`, a row an episode; the curves are of `success_by_cost`. Where two lines are
    read at the same place, the methods had the same to spend. A cost of 0, as of a free model, has
    no place on the axis: what it solved counts from the smallest cost above. Raises ValueError for
    another cost, and for no episodes.
    """
    must_have_episodes(frame)
    table = success_by_cost(frame, cost)
    if len(above := table[table["budget"] > 0]):
        table = above
    unit = COSTS[cost].split()[0]
    figure = go.Figure()
    several = table["model"].nunique() > 1
    points = table["budget"].nunique() == 1  # of one cost there is no line
    groups = table.groupby(["method", "model"], sort=False)
    for ((method, model), group), (colour, symbol, dash) in zip(groups, cycle(SERIES)):
        name = f"{method}, {model}" if several else str(method)
        figure.add_trace(
            go.Scatter(
                x=group["budget"].tolist(),
                y=group["rate"].tolist(),
                name=name,
                mode="markers" if points else "lines",
                marker={"symbol": symbol, "color": colour, "size": 10} if points else None,
                line={"color": colour, "dash": dash, "shape": "hv"},
                fill="tozeroy",
                fillcolor=tint(colour, 0.06),
                customdata=_describe_cut(group),
                hovertemplate=f"%{{y:.1%}} within %{{x:,}} {unit}%{{customdata}}"
                f"<extra>{name}</extra>",
            )
        )
    dress(figure, f"Tasks solved, by the {unit} that a task may cost")
    figure.update_layout(height=440)
    figure.update_xaxes(title=f"{COSTS[cost]} for one task", **log_axis(table["budget"]))
    figure.update_yaxes(title="solved", tickformat=".0%", range=[-0.02, 1.05])
    return figure


def calls_figure(frame: pd.DataFrame) -> go.Figure:
    """The average number of the model's calls an episode (Figure 7 of ADaPT paper).

    frame: of `Results`, a row an episode. Whiskers: the standard error of the mean.
    """
    table = calls(frame)
    figure = go.Figure()
    groups = table.groupby("model", sort=False)
    for place, (model, group) in enumerate(groups):
        add_bars(
            figure,
            place,
            str(model),
            group["method"].tolist(),
            group["mean"].tolist(),
            error_y={"type": "data", "array": group["stderr"].fillna(0), "color": NEUTRAL},
            customdata=group.assign(cut=_describe_cut(group))[["n", "median", "maximum", "cut"]],
            hovertemplate="%{y:.1f} calls on average over %{customdata[0]} episodes<br>"
            "median %{customdata[1]:.0f}, at most %{customdata[2]}%{customdata[3]}"
            f"<extra>{model}</extra>",
        )
    dress(figure, "Calls of the model for one task, with the standard error")
    figure.update_layout(height=420, barmode="group", showlegend=True)
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(title="calls (mean)", rangemode="tozero")
    return figure
