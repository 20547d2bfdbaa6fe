"""What distillation did, as plotly figures: the loss, success by group and against tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import pandas as pd
import plotly.graph_objects as go

from thread_kit.analysis.figures import interval_bars, success_by_cost_figure
from thread_kit.distill.evaluate import TaskResult, by_group, to_frame
from thread_kit.views.palette import NEUTRAL, SERIES
from thread_kit.views.plot import dress, log_axis

ByMethod = Mapping[str, Sequence[TaskResult]]


def loss_figure(log: Sequence[Mapping[str, float]]) -> go.Figure:
    """The training loss (nats a token, logarithmic) against the tokens trained on."""
    losses = [max(line["loss"], 1e-5) for line in log]
    figure = go.Figure(
        go.Scatter(
            x=[line["tokens"] for line in log],
            y=losses,
            mode="lines",
            line={"color": SERIES[0][0], "width": 1.5},
            hovertemplate="%{x:,} tokens: %{y:.4f}<extra></extra>",
        )
    )
    dress(figure, "Training loss")
    figure.update_layout(height=360)
    figure.update_xaxes(title="training tokens", tickformat=",")
    figure.update_yaxes(title="loss (nats a token)", **log_axis(losses))
    return figure


def success_by_group_figure(
    methods: ByMethod, title: str, published: Mapping[str, float] | None = None
) -> go.Figure:
    """The share of tasks solved of each depth or type, with 95% Wilson intervals.

    published: rates over all tasks (0 to 1) to be drawn as lines, by name.
    """
    figure = go.Figure()
    for (name, results), (colour, symbol, _) in zip(methods.items(), cycle(SERIES)):
        rows = by_group(results)
        figure.add_trace(
            go.Scatter(
                x=[f"{row['tasks']}" for row in rows],
                y=[row["rate"] for row in rows],
                error_y=interval_bars(pd.DataFrame(rows), scale=1),
                customdata=[f"{row['solved']} of {row['n']}, {row['cut']} cut" for row in rows],
                name=name,
                mode="markers",
                marker={"symbol": symbol, "size": 10, "color": colour},
                hovertemplate="%{customdata} (%{y:.1%})<extra>" + name + "</extra>",
            )
        )
    # What is published: a line across all groups.
    groups = [f"{row['tasks']}" for results in methods.values() for row in by_group(results)]
    for (name, rate), dash in zip((published or {}).items(), cycle(("dot", "dash", "dashdot"))):
        figure.add_trace(
            go.Scatter(
                x=groups,
                y=[rate] * len(groups),
                name=f"{name}: {rate:.1%}",
                mode="lines",
                line={"color": NEUTRAL, "dash": dash, "width": 1},
                hovertemplate=f"{rate:.1%}<extra>{name}</extra>",
            )
        )
    dress(figure, title)
    figure.update_layout(height=460, showlegend=True)
    figure.update_yaxes(title="solved", tickformat=".0%", range=[-0.02, 1.05])
    return figure


def success_by_tokens_figure(methods: ByMethod) -> go.Figure:
    """The share of tasks solved within a budget of tokens evaluated for each (logarithmic)."""
    frames = [to_frame(results, method=name, model="") for name, results in methods.items()]
    return success_by_cost_figure(pd.concat(frames))
