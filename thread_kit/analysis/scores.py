"""Scores: what methods get where an answer can be right in part (WebShop, InterCode).

A score is a hundred times the mean reward, as in WebShop's paper and in Table 4 of THREAD paper.
An episode without a reward, which broke down, counts as 0. The frame is that of `Results`, as in
`analysis/statistics.py`, which has the same for success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from thread_kit.analysis.cut import count_cut
from thread_kit.analysis.records import read_rewards
from thread_kit.analysis.statistics import (
    ACROSS,
    RESAMPLES,
    check_episodes,
    holm,
    pair_methods,
    paired_bootstrap,
)


def score(frame: pd.DataFrame, by: Sequence[str] = ("method", "model")) -> pd.DataFrame:
    """The score of each group, 0 to 100, with the interval of a bootstrap over tasks (95%).

    n: episodes; solved: those with the whole reward; cut: those not solved that a budget ended. Of
    a single task there is no interval. Raises ValueError if an episode occurs twice.
    """
    rows = []
    for key, group in check_episodes(frame, by).groupby(list(by), sort=False, dropna=False):
        means = _rewards(group).groupby("task", sort=False)["reward"].mean().to_numpy()
        low = high = np.nan
        if len(means) > 1:
            spread = paired_bootstrap(means, np.zeros(len(means)))
            low, high = spread.low, spread.high
        row = dict(zip(by, key, strict=True))
        row |= {"n": len(group), "solved": int(group["solved"].sum()), **count_cut(group)}
        rows.append(row | {"score": float(means.mean()), "low": low, "high": high})
    return pd.DataFrame(rows)


def compare_scores(frame: pd.DataFrame, *, of: str = "method", seed: int = 0) -> pd.DataFrame:
    """Each pair of methods of a model, on the tasks that both have played.

    of: "method", or "model" for each pair of models with a method. difference, low, high: of the
    scores, first less second, in points, with the interval of a bootstrap over tasks (of repeats
    the mean counts). better_first, better_second: tasks with the larger reward. p: of a paired
    permutation test, which asks whether the two could change places on each task (two-sided, 10,000
    draws, or all where there are fewer). p_holm: adjusted for all pairs of the table. Raises
    ValueError if an episode occurs twice.
    """
    pairs = pair_methods(_rewards(frame), "reward", of)
    rows = [{ACROSS[of]: name, **_compare(both, seed)} for name, _, both in pairs]
    table = pd.DataFrame(rows, columns=None if rows else [ACROSS[of], *COLUMNS])
    table["p_holm"] = holm(table["p"])
    return table


COLUMNS = (
    *("first", "second", "tasks", "difference", "low", "high", "better_first", "better_second"),
    "p",
)
"""The columns of `compare_scores`, behind what is the same in a pair."""


def _compare(both: pd.DataFrame, seed: int) -> dict[str, Any]:
    from scipy.stats import permutation_test  # here: it takes a second

    first, second = both.to_numpy(float).T
    gap = paired_bootstrap(first, second, seed=seed)
    p = 1.0  # of two that are the same everywhere
    if (first != second).any():
        p = permutation_test(
            (first, second),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=RESAMPLES,
            rng=np.random.default_rng(seed),
        ).pvalue
    return {
        "first": both.columns[0],
        "second": both.columns[1],
        "tasks": len(both),
        "difference": gap.mean,
        "low": gap.low,
        "high": gap.high,
        "better_first": int((first > second).sum()),
        "better_second": int((first < second).sum()),
        "p": float(p),
    }


def _rewards(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(reward=100 * read_rewards(frame))
