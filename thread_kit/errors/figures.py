"""Figures 4 and 5 of the THREAD paper, from reviews of people or of the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import pandas as pd
import plotly.graph_objects as go

from thread_kit.analysis.figures import add_bars
from thread_kit.errors.error_types import ErrorType
from thread_kit.errors.first_error import measure_action_runs
from thread_kit.trace.episode import Episode
from thread_kit.views.palette import SERIES
from thread_kit.views.plot import dress, log_axis


def count_failures(reviews: pd.DataFrame, episodes: Mapping[str, str]) -> pd.DataFrame:
    """How many episodes of each method failed by each type: a row a method, a column a type.

    reviews: of one reviewer (`reviews_to_frame`). episodes: the method of each trace, solved ones
    included, so that a method without a failure has its row. Raises ValueError where an episode was
    reviewed twice.
    """
    if reviews["episode"].duplicated().any():
        raise ValueError("an episode was reviewed twice; choose the reviews of one reviewer")
    counts = pd.crosstab(reviews["episode"].map(episodes), reviews["type"].astype(str))
    methods = list(dict.fromkeys(episodes.values()))
    types = [str(error_type) for error_type in ErrorType if str(error_type) in counts.columns]
    table = counts.reindex(index=methods, columns=types, fill_value=0)
    return table.rename_axis(index="method", columns="first error")


def failure_figure(table: pd.DataFrame, reviewer: str) -> go.Figure:
    """Figure 4 of THREAD paper: failures by method and type. table: of `count_failures`.

    A name has a line for each part between commas, or breaks where it says so itself (`<br>`).
    """
    figure = go.Figure()
    for place, kind in enumerate(table.columns):
        hover = f"%{{y}} of %{{x}}: {kind}<extra></extra>"
        counts = table[kind].tolist()
        add_bars(figure, place, str(kind), list(table.index), counts, hovertemplate=hover)
    dress(figure, f"Failed episodes by their first error (reviewer: {reviewer})")
    figure.update_layout(height=440, barmode="stack", showlegend=True)
    names = map(str, table.index)
    lines = [name if "<br>" in name else name.replace(", ", ",<br>") for name in names]
    figure.update_xaxes(showgrid=False, tickvals=list(table.index), ticktext=lines)
    most = int(table.sum(axis="columns").max())
    figure.update_yaxes(title="failed episodes", rangemode="tozero", dtick=1 if most < 8 else None)
    return figure


def action_runs(episodes: Mapping[str, Sequence[Episode]]) -> pd.DataFrame:
    """Of each method's actions, how many misread feedback, by the actions in a row so far."""
    rows = [
        {"method": method, "in a row": length, "actions": 1, "misread": int(misread)}
        for method, played in episodes.items()
        for episode in played
        for length, misread in measure_action_runs(episode)
    ]
    frame = pd.DataFrame(rows, columns=["method", "in a row", "actions", "misread"])
    return frame.groupby(["method", "in a row"], sort=False, as_index=False).sum()


def misreading_figure(table: pd.DataFrame) -> go.Figure:
    """Figure 5 of THREAD paper: how often feedback is misread, by the length of a row of actions.

    table: of `action_runs`. Counts are on a logarithmic axis, all actions hollow, misread ones
    filled; a method's marks share a colour.
    """
    figure = go.Figure()
    groups = table.groupby("method", sort=False)
    for (method, group), (colour, symbol, dash) in zip(groups, cycle(SERIES)):
        for column, look in (("actions", f"{symbol}-open"), ("misread", symbol)):
            shown = group[group[column] > 0]
            figure.add_trace(
                go.Scatter(
                    x=shown["in a row"].tolist(),
                    y=shown[column].tolist(),
                    name=f"{method}, {'all' if column == 'actions' else 'misread'}",
                    mode="lines+markers" if column == "actions" else "markers",
                    marker={"symbol": look, "color": colour, "size": 9},
                    line={"color": colour, "dash": dash, "width": 1},
                    hovertemplate=f"%{{y}} {column}, %{{x}} in a row<extra>{method}</extra>",
                )
            )
    dress(figure, "Actions, and those that misread feedback, by actions in a row")
    figure.update_layout(height=440, showlegend=True)
    if table.empty:  # of questions, say
        return figure.add_annotation(text="no actions", showarrow=False)
    figure.update_xaxes(title="actions of one thread in a row", tickformat="d")
    figure.update_yaxes(title="count", **log_axis(table["actions"]))
    return figure
