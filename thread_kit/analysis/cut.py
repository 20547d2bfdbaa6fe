"""Which episodes a budget ended: where there are many, a rate says what the budget was, too.

Covered: the budgets of an episode (calls, tokens, seconds, the environment's actions), one call's
tokens, and iterations of a method's own loop where they end the main thread (AdaPlanner's plans,
too). Not covered: a budget that ends a part of an episode (ADaPT's executors, a child thread, the
depth of threads), which the method answers to; the number of trials (Reflexion, ADaPT's Try Again)
and of levels (d_max of ADaPT), which are the method; and the model's context, which is no budget.
"""

from __future__ import annotations

import warnings

import pandas as pd

from thread_kit.analysis.records import list_records, must_be_frame
from thread_kit.experiments.spent_budget import find_budget


def is_cut(frame: pd.DataFrame) -> pd.Series:
    """For each episode of a frame with `status`: whether a budget ended it before it was solved.

    With a larger budget the share of tasks solved is at least what it is, but where the last round
    submits what there is (InterCode), and at most that of solved and cut ones together, but where
    parts of a method have budgets of their own, and where trials or levels could be more.
    """
    columns = "status", "solved", "out_of_actions", "environment", "actions"
    ended = [bool(find_budget(row)) for row in list_records(frame, *columns)]
    return pd.Series(ended, frame.index, dtype=bool) & ~frame["solved"].astype(bool)


def count_cut(frame: pd.DataFrame) -> dict[str, int]:
    """{"cut": how many episodes a budget ended unsolved}; empty where no status says so."""
    return {"cut": int(is_cut(frame).sum())} if "status" in frame else {}


def count_broken(frame: pd.DataFrame) -> int:
    """How many episodes broke down before they were solved; none where rows tell of no errors."""
    if "error" not in frame:
        return 0
    return int((frame["error"].fillna("").ne("") & ~frame["solved"].astype(bool)).sum())


def warn_of_broken(frame: pd.DataFrame) -> None:
    """Warn where episodes broke down: what an engine did is no outcome of a method.

    Raises ValueError for what is no frame.
    """
    must_be_frame(frame)
    if broken := count_broken(frame):
        warnings.warn(
            f"{broken} of {len(frame)} episodes broke down with an error and count as not solved; "
            "play them again: Suite.run(retry=True), or suite --retry",
            stacklevel=3,
        )


def describe_n(table: pd.DataFrame) -> list[str]:
    """For a hover, of how many each rate is, and how many of these a budget cut."""
    cuts = table["cut"] if "cut" in table else [pd.NA] * len(table)
    return [
        str(n) if pd.isna(cut) else f"{n}, {cut} cut by a budget"
        for n, cut in zip(table["n"], cuts, strict=True)
    ]
