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
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan
from thread_kit.views.palette import NEUTRAL, SERIES
from thread_kit.views.plot import dress, log_axis


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
        subplot_titles=("tokens evaluated", "time, × KV-true's"),
    )
    time = table["time, times"]
    panels: tuple[tuple[pd.Series, str, str, dict[str, Any], pd.Series], ...] = (
        (table["evaluated"], "{:,}", "%{x:,} tokens", {}, table["evaluated"]),
        (time, "{:.2f}", "%{x:.2f} times", {"error_x": _whiskers(table, time)}, table["high"]),
    )
    for col, (values, form, unit, whiskers, end) in enumerate(panels, 1):
        figure.add_bar(
            x=values,
            y=table["contender"],
            orientation="h",
            marker={"color": SERIES[col - 1][0]},
            hovertemplate=f"%{{y}}: {unit}<extra></extra>",
            **whiskers,
            row=1,
            col=col,
        )
        # Behind the whisker, on the page's own ground, where it can be read in light and dark.
        figure.add_scatter(
            x=end,
            y=table["contender"],
            mode="text",
            text=[f" {form.format(value)}" for value in values],
            textposition="middle right",
            hoverinfo="skip",
            row=1,
            col=col,
        )
        figure.update_xaxes(range=[0, 1.25 * max(end)], row=1, col=col)
    work = result["workload"]
    dress(figure, f"{work['calls']} calls of {work['threads']} threads", result["model"])
    figure.update_layout(height=380, showlegend=False, margin={"t": 100})
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
    place = {"text": "bare loop", "x": 0.5, "xanchor": "center", "yanchor": "bottom"}
    figure.add_hline(y=1, line={"color": NEUTRAL, "dash": "dot"}, annotation=place)
    dress(figure, "How fast sessions write, beside a bare loop over llama.cpp")
    figure.update_layout(height=340, showlegend=False)
    figure.update_xaxes(title="sessions at once", type="log", tickvals=table["at once"])
    figure.update_yaxes(title="share of the bare loop's", tickformat=".0%", range=[0, 1.15])
    return figure


def drafts_figure(episode: Episode) -> go.Figure:
    """Tokens of each call, in order: those that came true in a draft, and the rest."""
    calls = [event for event in episode.events if isinstance(event, GeneratedSpan)]
    numbers = [*range(1, len(calls) + 1)]
    drafted = [call.accepted for call in calls]
    rest = [len(call.span) - accepted for call, accepted in zip(calls, drafted, strict=True)]
    figure = go.Figure()
    parts = (("drafted, came true", drafted), ("not in a draft", rest))
    for (name, tokens), (colour, *_) in zip(parts, SERIES, strict=False):
        figure.add_bar(
            x=numbers,
            y=tokens,
            name=name,
            marker={"color": colour},
            hovertemplate="call %{x}: %{y} tokens<extra>" + name + "</extra>",
        )
    dress(figure, "Where the tokens of each call came from")
    figure.update_layout(height=340, barmode="stack")
    figure.update_xaxes(title="calls, in order")
    figure.update_yaxes(title="tokens")
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
        broad = scheme == "one sequence"  # costs what a cached prompt does, which lies upon it
        col = list(TREES).index(str(shape)) + 1
        figure.add_scatter(
            x=group["threads"],
            y=group["evaluated"],
            name=scheme,
            legendgroup=scheme,
            showlegend=col == 1,
            mode="lines+markers",
            marker={"symbol": symbol, "size": 14 if broad else 7},
            line={"color": colour, "dash": dash, "width": 6 if broad else 2},
            customdata=group["times"],
            hovertemplate="%{x} threads: %{y:,} tokens evaluated, %{customdata:.2f} times the "
            f"distinct ones<extra>{scheme}</extra>",
            row=1,
            col=col,
        )
    dress(figure, "Tokens evaluated as trees grow (counted)")
    figure.update_layout(height=440)
    figure.update_xaxes(title="threads", type="log", tickvals=table["threads"].unique())
    figure.update_yaxes(log_axis(table["evaluated"]))
    figure.update_yaxes(title="tokens evaluated", row=1, col=1)
    return figure
