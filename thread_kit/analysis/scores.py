"""Scores: what methods get where an answer can be right in part (WebShop, InterCode).

A score is a hundred times the mean reward, as in WebShop's paper and in Table 4 of THREAD paper.
An episode without a reward, which broke down, counts as 0. The frame is that of `Results`, as in
`analysis/statistics.py`, which has the same for success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from thread_kit.analysis.cut import count_broken, count_cut, warn_of_broken
from thread_kit.analysis.records import read_rewards
from thread_kit.analysis.statistics import (
    ACROSS,
    check_episodes,
    count_cut_of,
    holm,
    list_columns,
    must_have_episodes,
    pair_methods,
    paired_bootstrap,
)

EXACT = 34
"""Tasks that differ, for a test over all ways to change places; of more, some are drawn."""

DRAWS, BLOCK = 100_000, 2_000
"""Ways to change places that are drawn then, and of these so many at a time."""

TIE = 1e-9  # of points: less is no difference


def score(frame: pd.DataFrame, by: str | Sequence[str] = ("method", "model")) -> pd.DataFrame:
    """The score of each group, 0 to 100, with the interval of a bootstrap over tasks (95%).

    by: as in `success`. n: episodes; solved: those with the whole reward; cut: those not solved
    that a budget ended; errors: those that broke down. Of a single task there is no interval. Warns
    of episodes that broke down. Raises ValueError as `success` does.
    """
    must_have_episodes(frame)
    warn_of_broken(frame)
    by = list_columns(frame, by)
    rows = []
    for key, group in check_episodes(frame, by).groupby(by, sort=False, dropna=False):
        means = _rewards(group).groupby("task", sort=False)["reward"].mean().to_numpy()
        low = high = np.nan
        if len(means) > 1:
            spread = paired_bootstrap(means, np.zeros(len(means)))
            low, high = spread.low, spread.high
        row = dict(zip(by, key, strict=True))
        row |= {"n": len(group), "solved": int(group["solved"].sum()), **count_cut(group)}
        row |= {"errors": count_broken(group)} if "error" in group else {}
        rows.append(row | {"score": float(means.mean()), "low": low, "high": high})
    return pd.DataFrame(rows)


def compare_scores(frame: pd.DataFrame, *, of: str = "method", seed: int = 0) -> pd.DataFrame:
    """Each pair of methods of a model, on the tasks that both have played.

    of: "method", or "model" for each pair of models with a method. difference, low, high: of the
    scores, first less second, in points, with the interval of a bootstrap over tasks (of repeats
    the mean counts). better_first, better_second: tasks with the larger reward. cut_first,
    cut_second: episodes that a budget cut. p: of a paired permutation test, which asks whether the
    two could change places on each task (two-sided; exact, but for 100,000 draws where more than
    `EXACT` tasks differ). p_holm: adjusted for all pairs of the table. Warns of episodes that broke
    down. Raises ValueError if an episode occurs twice.
    """
    warn_of_broken(frame)
    rows = []
    for name, paired, both in pair_methods(_rewards(frame), "reward", of):
        first, second = both.columns
        cut = count_cut_of(paired, of, first=first, second=second)
        rows.append({ACROSS[of]: name, **_compare(both, seed, cut)})
    table = pd.DataFrame(rows, columns=None if rows else [ACROSS[of], *COLUMNS])
    table["p_holm"] = holm(table["p"])
    return table


COLUMNS = (
    *("first", "second", "tasks", "difference", "low", "high", "better_first", "better_second"),
    "p",
)
"""The columns of `compare_scores`, behind what is the same in a pair."""


def permutation_p(differences: np.ndarray, seed: int = 0) -> float:
    """The two-sided p of a paired permutation test: signs of differences, changed at random.

    Up to `EXACT` of them that are not 0, all signs count: the sums of one half, sorted, are looked
    up for each sum of the other. Else the signs of `DRAWS` draws do, and those that there are.
    """
    differences = differences[~np.isclose(differences, 0, rtol=0, atol=TIE)]
    found = abs(differences.sum()) - TIE  # sums of thirds are not exact
    if found <= 0:
        return 1.0  # every way is as far from 0
    if len(differences) > EXACT:
        rng, as_far = np.random.default_rng(seed), 1
        for _ in range(DRAWS // BLOCK):
            flipped = rng.integers(0, 2, (BLOCK, len(differences)), dtype=np.int8)
            as_far += int((np.abs(differences.sum() - 2 * (flipped @ differences)) >= found).sum())
        return as_far / (1 + DRAWS)
    half = len(differences) // 2
    some, others = (np.sort(_sums(part)) for part in (differences[:half], differences[half:]))
    above = len(some) - np.searchsorted(some, found - others, side="left")
    below = np.searchsorted(some, -found - others, side="right")
    return float((above + below).sum() / 2 ** len(differences))


def _sums(values: np.ndarray) -> np.ndarray:
    """The sums of these numbers under all signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _compare(both: pd.DataFrame, seed: int, cut: Mapping[str, int]) -> dict[str, Any]:
    first, second = both.to_numpy(float).T
    gap = paired_bootstrap(first, second, seed=seed)
    return {
        "first": both.columns[0],
        "second": both.columns[1],
        "tasks": len(both),
        **cut,
        "difference": gap.mean,
        "low": gap.low,
        "high": gap.high,
        "better_first": int((first > second).sum()),
        "better_second": int((first < second).sum()),
        "p": permutation_p(first - second, seed),
    }


def _rewards(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(reward=100 * read_rewards(frame))
