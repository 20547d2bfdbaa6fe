"""The states in which StateFlow fails: Table 8 of its paper, and ours in the same form."""

from __future__ import annotations

import pandas as pd

from thread_kit.analysis.cut import is_cut
from thread_kit.analysis.published import load_published


def count_ending_states(ours: pd.DataFrame) -> pd.DataFrame:
    """The failed episodes of each method and model by the state in which they ended.

    ours: a suite's frame, one row an episode. A column a state, in the order of their counts, and
    `failures`, all of them, of n episodes; cut: of these, those that a budget ended. Raises
    ValueError where no episode has a state.
    """
    if "state" not in ours or ours["state"].isna().all():
        raise ValueError("no episode here has a state; play the method 'stateflow'")
    told = ours[ours["state"].notna()]
    failed = told[~told["solved"].astype(bool)]
    table = pd.crosstab([failed["method"], failed["model"]], failed["state"])
    table = table[table.sum().sort_values(ascending=False, kind="stable").index]
    table.insert(len(table.columns), "failures", table.sum(axis="columns"))
    groups = told.groupby(["method", "model"])
    table = table.reindex(groups.size().index, fill_value=0)  # one that never failed has a row, too
    table["n"] = groups.size()
    if "status" in told:
        table["cut"] = is_cut(told).groupby([told["method"], told["model"]]).sum()
    return table.rename_axis(columns=None).reset_index()


def published_ending_states() -> pd.DataFrame:
    """Table 8 of the StateFlow paper, in the same form.

    Its Cool and Heat are Process of these types here, and Error is Pick_Error.
    """
    rows = load_published(paper="StateFlow", benchmark="ALFWorld")
    rows = rows[rows["metric"] == "failures by ending state"]
    table = rows.pivot_table(
        index=["method", "model"], columns="group", values="value", aggfunc="first", sort=False
    )
    table = table.astype(float).astype(int).rename(columns={"All": "failures"})
    return table.rename_axis(columns=None).reset_index()
