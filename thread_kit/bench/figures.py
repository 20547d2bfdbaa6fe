"""What was measured, as plotly figures."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from thread_kit.bench import tables
from thread_kit.bench.growth import TREES
from thread_kit.bench.tables import Result
from thread_kit.views.palette import NEUTRAL, SERIES
from thread_kit.views.plot import dress


def _whiskers(table: pd.DataFrame, values: pd.Series) -> dict[str, Any]:
    ends = {"array": table["high"] - values, "arrayminus": values - table["low"]}
    return {"type": "data", "symmetric": False, "color": NEUTRAL, **ends}


def contenders_figure(result: Result) -> go.Figure:
    """Tokens evaluated, and time as a multiple of KV-true's; whiskers are the extremes."""
    table = tables.contenders(result).iloc[::-1]
    figure = make_subplots(
        1,
        2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        subplot_titles=("tokens evaluated", "time, as a multiple of KV-true's"),
    )
    tokens, times = (colour for colour, _, _ in SERIES[:2])
    figure.add_bar(
        x=table["evaluated"],
        y=table["contender"],
        orientation="h",
        marker={"color": tokens},
        text=[f"{n:,}" for n in table["evaluated"]],
        hovertemplate="%{y}: %{x:,} tokens<extra></extra>",
        row=1,
        col=1,
    )
    time = table["time, times"]
    figure.add_bar(
        x=time,
        y=table["contender"],
        orientation="h",
        marker={"color": times, "pattern": {"shape": "/"}},
        error_x=_whiskers(table, time),
        text=[f"{n:.2f}" for n in time],
        textposition="inside",
        hovertemplate="%{y}: %{x:.2f} times<extra></extra>",
        row=1,
        col=2,
    )
    work = result["workload"]
    dress(figure, f"{work['calls']} calls of {work['threads']} threads, {result['model']}")
    figure.update_layout(height=340, showlegend=False)
    figure.update_yaxes(showgrid=False)
    return figure


def rates_figure(result: Result) -> go.Figure:
    """The rate of sessions side by side as a share of llama.cpp's own, with quartiles."""
    table = tables.rates(result)
    figure = go.Figure()
    share, (colour, symbol, _) = table["share of bare loop"], SERIES[0]
    figure.add_scatter(
        x=table["at once"],
        y=share,
        mode="lines+markers",
        marker={"symbol": symbol, "size": 10},
        line={"color": colour},
        error_y=_whiskers(table, share),
        hovertemplate="%{x} at once: %{y:.1%} of the bare loop<extra></extra>",
    )
    figure.add_hline(y=1, line={"color": NEUTRAL, "dash": "dot"}, annotation_text="bare loop")
    dress(figure, "How fast sessions write, beside a bare loop over llama.cpp")
    figure.update_layout(height=340, showlegend=False)
    figure.update_xaxes(title="sessions at once", type="log", tickvals=table["at once"])
    figure.update_yaxes(title="share of the bare loop's rate", tickformat=".0%", rangemode="tozero")
    return figure


def growth_figure() -> go.Figure:
    """Tokens evaluated by the number of threads: a panel a shape of tree, a line a scheme."""
    table = tables.growth()
    figure = make_subplots(
        1, len(TREES), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=list(TREES)
    )
    looks = dict(zip(table["scheme"].unique(), cycle(SERIES)))
    for (shape, scheme), group in table.groupby(["shape", "scheme"], sort=False):
        colour, symbol, dash = looks[scheme]
        col = list(TREES).index(str(shape)) + 1
        figure.add_scatter(
            x=group["threads"],
            y=group["evaluated"],
            name=scheme,
            legendgroup=scheme,
            showlegend=col == 1,
            mode="lines+markers",
            marker={"symbol": symbol, "size": 8},
            line={"color": colour, "dash": dash},
            customdata=group["times"],
            hovertemplate="%{x} threads: %{y:,} tokens evaluated, %{customdata:.2f} times the "
            f"distinct ones<extra>{scheme}</extra>",
            row=1,
            col=col,
        )
    dress(figure, "Tokens evaluated as trees grow (counted)")
    figure.update_layout(height=420, legend={"orientation": "h", "y": -0.25})
    figure.update_xaxes(title="threads", type="log", dtick="D1")
    figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title="tokens evaluated", row=1, col=1)
    return figure
