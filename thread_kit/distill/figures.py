"""What distillation did, as plotly figures: the loss, and success against depth and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import plotly.graph_objects as go

from thread_kit.distill.report import Outcome, by_depth
from thread_kit.views.palette import NEUTRAL, tint
from thread_kit.views.plot import dress

# Of the palette; the mark's shape and the line's dash say the same for those who see no colour.
LOOKS = (("#0072b2", "circle", "solid"), ("#d55e00", "square", "dash"), ("#009e73", "x", "dot"))

Results = Mapping[str, Sequence[Outcome]]


def loss_figure(log: Sequence[Mapping[str, float]]) -> go.Figure:
    """The training loss (nats a token, logarithmic) against the tokens trained on."""
    figure = go.Figure(
        go.Scatter(
            x=[line["tokens"] for line in log],
            y=[max(line["loss"], 1e-5) for line in log],
            mode="lines",
            line={"color": LOOKS[0][0], "width": 1.5},
            hovertemplate="%{x:,} tokens: %{y:.4f}<extra></extra>",
        )
    )
    dress(figure, "Training loss")
    figure.update_layout(height=360)
    figure.update_xaxes(title="training tokens")
    figure.update_yaxes(title="loss (nats a learnt token)", type="log")
    return figure


def success_by_depth_figure(
    results: Results, published: Mapping[str, float] | None = None
) -> go.Figure:
    """The share of tasks solved at each depth, with 95% Wilson intervals.

    published: rates over all depths (0 to 1) to be drawn as lines, by name.
    """
    figure = go.Figure()
    for (name, outcomes), (colour, symbol, _) in zip(results.items(), cycle(LOOKS)):
        rows = by_depth(outcomes)
        figure.add_trace(
            go.Scatter(
                x=[f"{row['tasks']}" for row in rows],
                y=[row["rate"] for row in rows],
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [row["high"] - row["rate"] for row in rows],
                    "arrayminus": [row["rate"] - row["low"] for row in rows],
                },
                customdata=[f"{row['solved']} of {row['n']}" for row in rows],
                name=name,
                mode="markers",
                marker={"symbol": symbol, "size": 10, "color": colour},
                hovertemplate="%{customdata} (%{y:.1%})<extra>" + name + "</extra>",
            )
        )
    for name, rate in (published or {}).items():
        figure.add_hline(
            y=rate,
            line={"color": NEUTRAL, "dash": "dot", "width": 1},
            annotation={"text": f"{name}: {rate:.1%}", "xanchor": "right", "yanchor": "top"},
        )
    dress(figure, "Tasks solved, by the depth of the goal")
    figure.update_layout(height=420)
    figure.update_yaxes(title="solved", tickformat=".0%", range=[0, 1.05])
    return figure


def success_by_tokens_figure(results: Results) -> go.Figure:
    """The share of tasks solved within a budget of tokens evaluated for each (logarithmic)."""
    figure = go.Figure()
    for (name, outcomes), (colour, _, dash) in zip(results.items(), cycle(LOOKS)):
        costs = sorted(one.evaluated for one in outcomes if one.solved)
        most = max((one.evaluated for one in outcomes), default=1)
        figure.add_trace(
            go.Scatter(
                x=[*costs, most],
                y=[
                    *((n + 1) / len(outcomes) for n in range(len(costs))),
                    len(costs) / len(outcomes),
                ],
                name=name,
                mode="lines",
                line={"color": colour, "dash": dash, "shape": "hv"},
                fill="tozeroy",
                fillcolor=tint(colour, 0.06),
                hovertemplate="%{y:.1%} within %{x:,} tokens<extra>" + name + "</extra>",
            )
        )
    dress(figure, "Tasks solved, by the tokens that a task may cost")
    figure.update_layout(height=420)
    figure.update_xaxes(title="tokens evaluated for one task", type="log")
    figure.update_yaxes(title="solved", tickformat=".0%", range=[0, 1.05])
    return figure


__all__ = ["loss_figure", "success_by_depth_figure", "success_by_tokens_figure"]
