"""Two methods on the same tasks, task by task: what each cost, and what each came to."""

from __future__ import annotations

import pandas as pd

COSTS = ("generated", "evaluated", "calls", "seconds")
"""Tokens, tokens, calls of the model, seconds: as in a suite's rows."""


def on_same_tasks(frame: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """A row an episode that both methods have played; the columns are pairs (what, method).

    frame: a suite's. What: whether it was solved, and `COSTS`; seconds can be compared where the
    same number of episodes ran at once. Raises ValueError for a method that the frame has not.
    """
    parts = {}
    for method in (first, second):
        played = frame[frame["method"] == method]
        if played.empty:
            known = ", ".join(frame["method"].unique())
            raise ValueError(f"no episode of {method!r} is here; known: {known}")
        parts[method] = played.set_index(["model", "task", "seed"])[["solved", *COSTS]]
    table = pd.concat(parts, axis="columns", join="inner")
    return table.swaplevel(axis="columns").sort_index(axis="columns")


def shared_out(table: pd.DataFrame) -> pd.DataFrame:
    """`on_same_tasks` in short: a row a method: episodes, solved, median costs."""
    methods = table.columns.unique(1)
    rows = {
        one: {"episodes": len(table), "solved": int(table["solved", one].sum())}
        | {cost: float(table[cost, one].median()) for cost in COSTS}
        for one in methods
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method").reset_index()


__all__ = ["COSTS", "on_same_tasks", "shared_out"]
