"""Success by trial: Reflexion's curve (StateFlow paper, Figure 6)."""

from __future__ import annotations

import pandas as pd

from thread_kit.analysis.cut import count_cut
from thread_kit.analysis.statistics import GROUP, check_episodes, must_have_episodes, wilson


def success_by_trial(ours: pd.DataFrame, trials: int | None = None) -> pd.DataFrame:
    """The share of tasks that were solved within so many trials, with Wilson's interval (95%).

    ours: a suite's frame, one row an episode. trials: how far the curve goes; None: to the most
    that an episode had. One row for each method, model and trial; cut: of the episodes that ended
    within so many trials, those that a budget ended unsolved. Rows that do not tell their trials
    are left out. Raises ValueError for no episodes, and for one that is there twice.
    """
    must_have_episodes(ours)
    if "trials" not in ours or ours["trials"].isna().all():
        raise ValueError("no episode here tells its trials; play a method that has several")
    ours = check_episodes(ours[ours["trials"].notna()], GROUP)
    most = trials or int(ours["trials"].max())
    rows = []
    for (method, model), group in ours.groupby(GROUP, sort=False):
        for trial in range(1, most + 1):
            solved = int((group["solved"].astype(bool) & (group["trials"] <= trial)).sum())
            low, high = wilson(solved, len(group))
            row = {"method": method, "model": model, "trial": trial, "n": len(group)}
            row |= count_cut(group[group["trials"] <= trial])
            rows.append({**row, "rate": solved / len(group), "low": low, "high": high})
    return pd.DataFrame(rows)
