"""Figures of the papers' studies that need only rows: rates by method, success by trial."""

from __future__ import annotations

from itertools import cycle

import pandas as pd
import plotly.graph_objects as go

from thread_kit.analysis.cut import describe_n
from thread_kit.analysis.figures import add_bars, interval_bars
from thread_kit.views.palette import NEUTRAL, SERIES
from thread_kit.views.plot import dress


def rates_figure(table: pd.DataFrame, title: str, *, x: str = "method") -> go.Figure:
    """Bars of success with Wilson's interval, by `x`; the other names tell the bars apart.

    table: a row an environment, method and model, with n, rate, low and high between 0 and 1
    (`success`). For ADaPT paper, Figures 4 (d_max), 5 (executors) and 6 (models), and THREAD v1,
    Figure 4 (variables).
    """
    series = [name for name in ("environment", "method", "model") if name != x]
    figure = go.Figure()
    groups = table.groupby(series, sort=False)
    for place, (names, group) in enumerate(groups):
        label = ", ".join(map(str, names))
        add_bars(
            figure,
            place,
            label,
            group[x].tolist(),
            (100 * group["rate"]).tolist(),
            customdata=describe_n(group),
            error_y={**interval_bars(group), "color": NEUTRAL},
            hovertemplate="%{y:.1f}% of %{customdata}<extra>" + label + "</extra>",
        )
    dress(figure, title)
    figure.update_layout(height=420, barmode="group", showlegend=True)
    figure.update_xaxes(showgrid=False, linecolor=NEUTRAL)
    figure.update_yaxes(title="solved (%)", range=[0, 105])
    return figure


def trials_figure(table: pd.DataFrame, title: str) -> go.Figure:
    """Success by trial (StateFlow paper, Figure 6). table: of `success_by_trial`."""
    figure = go.Figure()
    groups = table.groupby(["method", "model"], sort=False)
    for ((method, model), group), (colour, symbol, dash) in zip(groups, cycle(SERIES)):
        name = f"{method}, {model}"
        figure.add_trace(
            go.Scatter(
                x=group["trial"].tolist(),
                y=(100 * group["rate"]).tolist(),
                name=name,
                mode="lines+markers",
                customdata=describe_n(group),
                error_y={**interval_bars(group), "thickness": 1},
                line={"color": colour, "dash": dash},
                marker={"symbol": symbol, "size": 9},
                hovertemplate=f"%{{y:.1f}}% within %{{x}} of %{{customdata}}<extra>{name}</extra>",
            )
        )
    dress(figure, title)
    figure.update_layout(height=420, showlegend=True)
    figure.update_xaxes(title="trials", dtick=1)
    figure.update_yaxes(title="solved (%)", range=[0, 105])
    return figure


def states_figure(table: pd.DataFrame, title: str) -> go.Figure:
    """Failures by the state in which they end, as bars (StateFlow paper, Table 8).

    table: of `count_ending_states` or `published_ending_states`.
    """
    counts = ("method", "model", "failures", "n", "cut")
    states = [name for name in table.columns if name not in counts]
    figure = go.Figure()
    for place, row in enumerate(table.to_dict("records")):
        name = f"{row['method']}, {row['model']}"
        add_bars(
            figure,
            place,
            name,
            states,
            [row[state] for state in states],
            hovertemplate=f"%{{y}} failures in %{{x}}<extra>{name}</extra>",
        )
    dress(figure, title)
    figure.update_layout(height=360, barmode="group", showlegend=True)
    figure.update_yaxes(title="failed tasks", rangemode="tozero")
    return figure
