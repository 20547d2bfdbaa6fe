"""The states in which StateFlow fails: Table 8 of its paper, and ours in the same form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from thread_kit.analysis.cut import is_cut
from thread_kit.analysis.published import find_type, load_published
from thread_kit.analysis.records import list_records
from thread_kit.analysis.statistics import GROUP, check_episodes

COLUMNS = ("Pick/Find", "Put", "Cool", "Heat", "FindLamp", "Error")
"""Of StateFlow paper, Table 8, in its order."""

IN_COLUMNS = {
    **dict.fromkeys(("Pick", "Find", "Take"), "Pick/Find"),
    "GoPut": "Put",
    "Pick_Error": "Error",
}
"""The states of ALFWorld's machines that have another name in Table 8. It does not say where the
ten-state machine's Take and GoPut are counted; they are parts of Pick and Put (Figure 7)."""


def count_ending_states(ours: pd.DataFrame) -> pd.DataFrame:
    """The failed episodes of each method and model by the state in which they ended.

    ours: a suite's frame, one row an episode. On ALFWorld the columns of StateFlow paper, Table 8,
    in which Process is divided by what is done; then a column for each other state, in the order of
    their counts, and `failures`, all of them, of n episodes; cut: of these, those that a budget
    ended. Raises ValueError where no episode has a state, or one is there twice.
    """
    if "state" not in ours or ours["state"].isna().all():
        raise ValueError("no episode here has a state; play the method 'stateflow'")
    told = check_episodes(ours[ours["state"].notna()], GROUP)
    failed = told[~told["solved"].astype(bool)]
    records = list_records(failed, "environment", "game", "state")
    states = pd.Series(map(_name_column, records), failed.index, dtype=object)
    table = pd.crosstab([failed[name] for name in GROUP], states)
    printed = COLUMNS if "alfworld" in set(told.get("environment", ())) else ()
    others = table.sum().drop(list(printed), errors="ignore")
    others = others.sort_values(ascending=False, kind="stable")
    table = table.reindex(columns=[*printed, *others.index], fill_value=0)
    table.insert(len(table.columns), "failures", table.sum(axis="columns"))
    groups = told.groupby(GROUP)
    table = table.reindex(groups.size().index, fill_value=0)  # one that never failed has a row, too
    table["n"] = groups.size()
    if "status" in told:
        table["cut"] = is_cut(told).groupby([told[name] for name in GROUP]).sum()
    return table.rename_axis(columns=None).reset_index()


def _name_column(row: Mapping[Any, Any]) -> str:
    """In which column an episode's last state is counted; of other machines, its own name."""
    state = str(row["state"])
    if row.get("environment") != "alfworld":
        return state
    if state in ("Process", "GoProcess"):
        return find_type(row["game"]) or state  # of the six types: "Clean" has no column there
    return IN_COLUMNS.get(state, state)


def published_ending_states() -> pd.DataFrame:
    """Table 8 of the StateFlow paper, in the same form."""
    rows = load_published(paper="StateFlow", benchmark="ALFWorld")
    rows = rows[rows["metric"] == "failures by ending state"]
    table = rows.pivot_table(
        index=["method", "model"], columns="group", values="value", aggfunc="first", sort=False
    )
    table = table.astype(float).astype(int).rename(columns={"All": "failures"})
    return table.rename_axis(columns=None).reset_index()
