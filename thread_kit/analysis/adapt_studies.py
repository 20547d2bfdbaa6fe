"""ADaPT's success heuristic, of a suite's results: a table and a figure over `Results.frame`, a row
an episode, as in `analysis/statistics.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from thread_kit.analysis.cut import count_cut, describe_n
from thread_kit.analysis.figures import interval_bars
from thread_kit.analysis.records import must_be_frame
from thread_kit.analysis.statistics import check_episodes, list_columns, wilson
from thread_kit.views.palette import NEUTRAL, SERIES
from thread_kit.views.plot import dress


def compare_claims(
    frame: pd.DataFrame, by: str | Sequence[str] = ("method", "model")
) -> pd.DataFrame:
    """What methods find of their own success, and the environment's reward (appendix F).

    by: as in `success`. claimed, solved: shares of n episodes, each with Wilson's interval (95%);
    over, under: of those claimed that are not solved, and those solved that are not claimed; cut:
    how many of n a budget ended unsolved. Methods that judge nothing are left out. Raises
    ValueError for rows that say nothing of it, and as `success` does.
    """
    must_be_frame(frame)
    if "claimed" not in frame:
        raise ValueError("these rows have no column 'claimed'; play a suite")
    by = list_columns(frame, by)
    frame = check_episodes(frame[frame["claimed"].notna()], by)
    claimed, solved = frame["claimed"].astype(bool), frame["solved"].astype(bool)
    marked = frame.assign(
        claimed=claimed, solved=solved, over=claimed & ~solved, under=solved & ~claimed
    )
    groups = marked.groupby(by, sort=False)
    shares = groups[["claimed", "solved", "over", "under"]].mean()
    for column in ("claimed", "solved"):
        intervals = [wilson(int(group[column].sum()), len(group)) for _, group in groups]
        place = shares.columns.get_loc(column)
        shares.insert(place + 1, f"{column}, low", [low for low, _ in intervals])
        shares.insert(place + 2, f"{column}, high", [high for _, high in intervals])
    shares.insert(0, "n", groups.size())
    if "status" in frame:
        shares.insert(1, "cut", [count_cut(group)["cut"] for _, group in groups])
    return shares.reset_index()


def claims_figure(frame: pd.DataFrame) -> go.Figure:
    """Success as methods judge it beside the environment's reward (ADaPT paper, Figure 12)."""
    table = compare_claims(frame)
    names = [f"{row.method}, {row.model}" for row in table.itertuples()]
    figure = go.Figure()
    looks = (
        ("claimed", "judged by the model", SERIES[0][0], "/"),
        ("solved", "the environment's reward", SERIES[1][0], ""),
    )
    for column, label, colour, pattern in looks:
        rates = pd.DataFrame(
            {
                "rate": table[column],
                "low": table[f"{column}, low"],
                "high": table[f"{column}, high"],
            }
        )
        figure.add_trace(
            go.Bar(
                x=names,
                y=100 * table[column],
                error_y=interval_bars(rates),
                name=label,
                customdata=describe_n(table),
                marker={"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}},
                hovertemplate="%{y:.1f}% of %{customdata}<extra>" + label + "</extra>",
            )
        )
    dress(figure, "Success: the model's own heuristic and the environment's reward")
    figure.update_layout(height=360, barmode="group", showlegend=True)
    figure.update_xaxes(showgrid=False, linecolor=NEUTRAL)
    figure.update_yaxes(title="episodes (%)", range=[0, 105])
    return figure
