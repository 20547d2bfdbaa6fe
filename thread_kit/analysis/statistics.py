"""What a suite's episodes say about its methods, and how sure one can be.

Every function on a frame takes the frame of `Results`: one row an episode, among its columns
method, model, task, seed, solved. Covered: the share of tasks solved with its interval, methods
compared on the same tasks, repeats, and success and calls as functions of cost. Beside each rate
and mean stands how many episodes a budget cut (`analysis/cut.py`), where the frame has their
status. Rewards between 0 and 1 are in `analysis/scores.py`.

scipy.stats, which statsmodels needs, too, takes a second to import; a process that plays episodes
and shows none of this does without.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from thread_kit.analysis.cut import count_broken, count_cut, is_cut, warn_of_broken
from thread_kit.analysis.records import must_be_frame

EPISODE = ["method", "model", "task", "seed"]
"""The columns that tell one episode from another."""

GROUP = ["method", "model"]
"""The columns whose episodes are counted together."""

COSTS = {
    "generated": "tokens generated",
    "evaluated": "tokens evaluated",
    "calls": "calls of the model",
    "seconds": "seconds",
    "prompt_tokens": "tokens read, by calls",
    "dollars": "dollars",
}
"""What an episode costs: columns of a suite's frame, and what they count. Of `prompt_tokens` each
call has its whole context, as an API bills it; `analysis/prices.py` adds `dollars`."""

MEDIANS = ("generated", "evaluated", "calls", "seconds")
"""The costs of which tables have the median."""

CONFIDENCE = 0.95
RESAMPLES = 10_000


def wilson(solved: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of Wilson (1927) for a proportion, 0 to 1.

    Raises ValueError if `n` is 0, or `solved` is no whole number from 0 to `n`.
    """
    if n < 1 or not 0 <= solved <= n or solved != int(solved):
        raise ValueError(
            f"{solved} of {n} is no proportion; give a whole number of 0 to n solved, and an n "
            "above 0 (of rewards in part: tk.score)"
        )
    from scipy.stats import binomtest

    interval = binomtest(int(solved), int(n)).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True, slots=True)
class McNemar:
    """How many tasks two methods, of which each played every task, solved; p is two-sided."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """McNemar's test in its exact (binomial) form, on two sequences of solved or not.

    It asks whether the tasks that only one of the two solved are shared out evenly. Raises
    ValueError if the lengths differ or there is nothing to compare.
    """
    from statsmodels.stats.contingency_tables import mcnemar as _mcnemar

    a, b = _pair(first, second)
    if not set(np.unique([a, b])) <= {0.0, 1.0}:
        raise ValueError("McNemar's test takes solved or not, and here are values between")
    a, b = a.astype(bool), b.astype(bool)
    both, only_first, only_second = (int(x.sum()) for x in (a & b, a & ~b, ~a & b))
    neither = len(a) - both - only_first - only_second
    p = _mcnemar([[both, only_first], [only_second, neither]], exact=True).pvalue
    return McNemar(both, only_first, only_second, neither, float(p))


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference, first less second, with the interval of its bootstrap."""

    mean: float
    low: float
    high: float


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """The difference of two means over the same tasks, with a percentile bootstrap interval.

    Tasks are drawn with replacement, each with both its values; where all differ alike that says
    nothing of other tasks, and there is no interval (nan). Raises ValueError if the lengths differ,
    there are fewer than two tasks, or a value is missing.
    """
    from scipy.stats import bootstrap

    a, b = _pair(first, second)
    if not np.isfinite([a, b]).all():
        raise ValueError("a bootstrap takes numbers, and here is a task without one; leave it out")
    if len(a) < 2:
        raise ValueError("a bootstrap needs at least two tasks; here is one")
    differences = a - b
    if np.allclose(differences, differences[0], rtol=0, atol=1e-9):  # thirds are not exact
        return Difference(float(differences[0]), np.nan, np.nan)
    interval = bootstrap(
        (differences,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, 1_000_000 // len(a)),
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Difference(float(differences.mean()), float(interval.low), float(interval.high))


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.asarray(first, float), np.asarray(second, float)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"one value a task is wanted of both; here are {a.shape} and {b.shape}")
    if not len(a):
        raise ValueError("the two have no task in common")
    return a, b


def holm(p: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted by Holm's (1979) step-down procedure.

    A value that is no number (a test that was not made) stays, and does not count as a test.
    """
    from statsmodels.stats.multitest import multipletests

    values = np.array(p, float)
    made = np.isfinite(values)
    if made.any():
        gc.freeze()  # statsmodels collects all garbage each time, for longer than all else takes
        try:
            values[made] = multipletests(values[made], method="holm")[1]
        finally:
            gc.unfreeze()
    return values.tolist()


def success(frame: pd.DataFrame, by: str | Sequence[str] = ("method", "model")) -> pd.DataFrame:
    """The share of episodes solved in each group, with its Wilson interval.

    by: the columns, or the one, whose values make a group.
    tasks, n: different tasks, episodes. cut: those not solved that a budget ended. solvable: of
    these tasks, those that the oracle solves (one of which no solution is known counts as not
    solvable). errors: episodes that broke down and count as not solved. failures, where there
    are any: threads without which an episode went on, and results of children, that the method's
    own code lost in an exception. Medians: tokens generated and evaluated, calls, seconds.

    Episodes that repeat a task are not independent, as the interval would have them: there is none
    then, and `repeats` tells of several seeds. Raises ValueError if there is no episode, or one
    twice, and for a column that the frame has not.
    """
    must_have_episodes(frame)
    by = list_columns(frame, by)
    rows = []
    for key, group in check_episodes(frame, by).groupby(by, sort=False, dropna=False):
        solved, n = int(group["solved"].sum()), len(group)
        low, high = interval_of(group, solved)
        row = dict(zip(by, key, strict=True))
        row |= {"tasks": group["task"].nunique(), "n": n}
        row |= {"solved": solved, **count_cut(group)}
        row |= {"rate": solved / n, "low": low, "high": high}
        if "solvable" in group:
            row["solvable"] = group.loc[group["solvable"].eq(True), "task"].nunique()
        if "error" in group:
            row["errors"] = count_broken(group)
        if "failures" in frame and frame["failures"].sum():
            row["failures"] = int(group["failures"].sum())
        for cost in MEDIANS:
            if cost in group:
                row[cost] = float(group[cost].median())
        rows.append(row)
    return pd.DataFrame(rows)


def list_columns(frame: pd.DataFrame, by: str | Sequence[str]) -> list[str]:
    """The columns by which episodes are grouped; raises ValueError for what is none of the frame's.

    by: their names, or one name. (Of those of `EPISODE`, `check_episodes` says that they lack.)
    """
    names = [by] if isinstance(by, str) else list(by)
    if not names or not {*names} <= {*frame, *EPISODE}:
        raise ValueError(
            f"by={by!r} names no columns to group by; give some of {', '.join(map(str, frame))}"
        )
    return names


def interval_of(
    rows: pd.DataFrame, solved: int, task: Sequence[str] = ("task",)
) -> tuple[float, float]:
    """Wilson's interval of so many of these episodes, 0 to 1; none (nan) where a task repeats.

    task: the columns that tell one from another. Episodes of one are not independent, as the
    interval would have them.
    """
    repeats = rows[[*task]].duplicated().any()
    return (np.nan, np.nan) if repeats else wilson(solved, len(rows))


def compare(
    frame: pd.DataFrame,
    *,
    of: str = "method",
    within: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Each pair of methods of a model, on the tasks that both have played.

    of: "method", or "model" for each pair of models with a method. difference, low, high: of the
    success rates, first less second; the interval is the paired bootstrap's, over tasks (of repeats
    the mean counts), none where all tasks differ alike; it is not adjusted for the other pairs.
    only_first, only_second, p: McNemar's exact test; none if a task was played
    more than once, since it takes one answer a task. p_holm: adjusted for all pairs of the table.
    cut_first, cut_second: episodes of these that a budget cut. within: what an episode may have
    cost to count as solved, {"prompt_tokens": 60_000} (`COSTS`), so that all had as much to spend;
    cut are then those that a budget ended before they had. Episodes of unknown cost are left out.
    Rows of two files: pd.concat([one.frame, other.frame]), where methods or models differ. Warns of
    episodes that broke down. Raises ValueError if an episode occurs twice, or for a limit that is
    no number.
    """
    # What counts as solved, and of which episodes a budget may have decided.
    warn_of_broken(frame)
    if within is not None and not isinstance(within, Mapping):
        raise ValueError(f"within={within!r} limits no cost; give {{'prompt_tokens': 60_000}}")
    frame, known = frame.reset_index(drop=True), frame.reset_index(drop=True)
    for cost, most in (within or {}).items():
        _check_cost(frame, cost, most)
        known = known[known[cost] <= most]  # of the others the outcome at this cost is known
        frame = frame[frame[cost].notna()]
        frame = frame.assign(solved=frame["solved"].astype(bool) & (frame[cost] <= most))
    # Each pair on the tasks of both.
    rows = []
    for name, paired, both in pair_methods(frame, "solved", of):
        first, second = both.columns
        once = paired.groupby([of, "task"]).size().max() == 1
        a, b = both[first].to_numpy(float), both[second].to_numpy(float)
        gap = paired_bootstrap(a, b)
        test = mcnemar(a, b) if once else None
        rows.append(
            {
                ACROSS[of]: name,
                "first": first,
                "second": second,
                "tasks": len(both),
                **count_cut_of(
                    known.loc[known.index.intersection(paired.index)],
                    of,
                    first=first,
                    second=second,
                ),
                "difference": gap.mean,
                "low": gap.low,
                "high": gap.high,
                "only_first": test.only_first if test else None,
                "only_second": test.only_second if test else None,
                "p": test.p if test else np.nan,
            }
        )
    table = pd.DataFrame(rows, columns=None if rows else [ACROSS[of], *COLUMNS])
    table["p_holm"] = holm(table["p"])
    return table


COLUMNS = (
    "first",
    "second",
    "tasks",
    "difference",
    "low",
    "high",
    "only_first",
    "only_second",
    "p",
)
"""The columns of `compare` that do not depend on the frame."""

ACROSS = {"method": "model", "model": "method"}
"""What is paired, and what is the same in a pair."""


def count_cut_of(paired: pd.DataFrame, of: str, **names: str) -> dict[str, int]:
    """`count_cut` of each of these methods, or models: "cut_first" for first=NAME."""
    return {
        f"cut_{which}": cut
        for which, name in names.items()
        for cut in count_cut(paired[paired[of] == name]).values()
    }


def pair_methods(
    frame: pd.DataFrame, value: str, of: str = "method"
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Each pair of methods of a model: its name, the episodes of both on the tasks that both have
    played, and a row for each of these tasks with the mean of this column for either; pairs with
    fewer than two such tasks are left out, with a warning where both have played more. of:
    "method", or "model" for pairs of models with a method. Raises ValueError for another, and if an
    episode occurs twice.
    """
    if of not in ACROSS:
        raise ValueError(f"of={of!r} cannot be paired; choose one of {', '.join(ACROSS)}")
    for name, group in check_episodes(frame).groupby(ACROSS[of], sort=False):
        means = group.pivot_table(index="task", columns=of, values=value, sort=False)
        for pair in combinations(means.columns, 2):
            both = means[[*pair]].dropna()
            if len(both) > 1:
                paired = group[group[of].isin(pair) & group["task"].isin(both.index)]
                yield str(name), paired, both
            elif means[[*pair]].notna().sum().min() > 1:
                warnings.warn(
                    f"{pair[0]} and {pair[1]} are not compared: they have {len(both)} tasks in "
                    "common, and a task is the same only where all that was given for it is",
                    stacklevel=3,
                )


def repeats(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over runs, and thread depths, as in Table 7 of THREAD paper.

    A run is all tasks with one seed. mean, stderr: of the runs' success rates, in percent; the
    standard error of a single run is none. average_depth: of the deepest thread of an episode;
    maximum_depth: of the deepest thread of all; the main thread is at depth 0. levels: the same,
    with the main thread as level 1. The paper does not say which it counts; `analysis/depths.py`
    has what can be told. Warns of episodes that broke down. Raises ValueError if there is no
    episode, or the runs of a method are not over the same tasks.
    """
    must_have_episodes(frame)
    warn_of_broken(frame)
    rows = []
    for (method, model), group in check_episodes(frame, GROUP).groupby(GROUP, sort=False):
        played = group.groupby("seed")["task"].agg(frozenset)
        if played.nunique() > 1:
            fewest, most = played.map(len).min(), played.map(len).max()
            raise ValueError(
                f"the runs of {method} with {model} are over different tasks ({fewest} to {most} "
                "a run); let the suite end, or leave out what not every run has"
            )
        rates = 100 * group.groupby("seed")["solved"].mean()
        depths = group["depth"].dropna() if "depth" in group else pd.Series(dtype=float)
        deepest = int(depths.max()) if len(depths) else np.nan
        rows.append(
            {
                "method": method,
                "model": model,
                "runs": len(rates),
                "tasks": group["task"].nunique(),
                **count_cut(group),
                "mean": float(rates.mean()),
                "stderr": float(rates.sem()) if len(rates) > 1 else np.nan,
                "average_depth": float(depths.mean()),
                "maximum_depth": deepest,
                "average_levels": 1 + float(depths.mean()),
                "maximum_levels": 1 + deepest,
            }
        )
    return pd.DataFrame(rows)


def _check_cost(frame: pd.DataFrame, cost: str, *limits: float) -> None:
    if cost not in COSTS or cost not in frame:
        known = ", ".join(name for name in COSTS if name in frame)
        raise ValueError(f"{cost!r} is no cost of an episode; choose one of {known}")
    for limit in limits:
        if not isinstance(limit, int | float | np.number) or not 0 <= limit < np.inf:
            raise ValueError(f"{limit!r} is no limit of {cost}; give a number, 0 or more")


def success_by_cost(
    frame: pd.DataFrame, cost: str = "evaluated", budgets: Sequence[float] | None = None
) -> pd.DataFrame:
    """The share of episodes that were solved at a cost of at most `budget`, for each method.

    cost: one of `COSTS`. budgets: None takes every cost at which a method gains a task, and of all
    methods' costs the smallest above 0 and the largest, which is the whole curve. At one budget it
    is the view in which methods had the same to spend: an episode that cost more counts as not
    solved. cut: episodes that a budget of their own ended unsolved before they had cost so much, so
    that their outcome is not known. Episodes of unknown cost, as the seconds of one that was
    interrupted, are left out, also of n. Of episodes that repeat a task there is no interval. Warns
    of episodes that broke down. Raises ValueError for another cost, or one that the frame has not,
    for a budget that is no number, and where there is no episode.
    """
    must_have_episodes(frame)
    _check_cost(frame, cost, *(() if budgets is None else budgets))
    warn_of_broken(frame)
    frame = frame[frame[cost].notna()]
    if frame.empty:
        raise ValueError(f"of no episode here {cost} is known; choose another cost")
    most = frame[cost].max()
    least = frame.loc[frame[cost] > 0, cost].min() if most else most
    rows = []
    for (method, model), group in check_episodes(frame, GROUP).groupby(GROUP, sort=False):
        costs = np.sort(group.loc[group["solved"].astype(bool), cost].to_numpy(float))
        for budget in np.union1d(costs, [least, most]) if budgets is None else budgets:
            solved, n = int(np.searchsorted(costs, budget, side="right")), len(group)
            low, high = interval_of(group, solved)
            rows.append(
                {
                    "method": method,
                    "model": model,
                    "cost": cost,
                    "budget": budget,
                    "n": n,
                    "solved": solved,
                    **count_cut(group[group[cost] <= budget]),
                    "rate": solved / n,
                    "low": low,
                    "high": high,
                }
            )
    return pd.DataFrame(rows)


def calls(frame: pd.DataFrame) -> pd.DataFrame:
    """The average number of the model's calls an episode, as in Figure 7 of ADaPT paper.

    stderr: of the mean over episodes; none for a single one. cut: of these n, those that a budget
    ended unsolved: they would have called more often.
    """
    groups = check_episodes(frame, GROUP).groupby(GROUP, sort=False)
    columns = {"n": "size", "mean": "mean", "stderr": "sem", "median": "median", "maximum": "max"}
    table = groups["calls"].agg(**columns)
    if "status" in frame:
        table.insert(1, "cut", [count_cut(group)["cut"] for _, group in groups])
    return table.reset_index()


def must_have_episodes(frame: pd.DataFrame) -> None:
    """Raises ValueError for a frame without a row, and for what is none."""
    must_be_frame(frame)
    if frame.empty:
        raise ValueError("there is no episode in this frame; play some, or load another file")


def check_episodes(frame: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """The frame, if it has a row an episode of one benchmark and none twice; else ValueError.

    by: what it is grouped by; then each group has one benchmark.
    """
    must_be_frame(frame)
    missing = [name for name in [*EPISODE, "solved"] if name not in frame]
    if missing:
        raise ValueError(
            "a row an episode is wanted, as in the `frame` of tk.Results.load(PATH); there is no "
            f"column {', '.join(missing)}"
        )
    if "environment" in frame:
        groups = frame.groupby(list(by)) if by else [("", frame)]
        for _, group in groups:
            played = group["environment"].dropna().unique()
            if len(played) > 1:
                raise ValueError(
                    f"here are episodes of {' and '.join(map(str, played))}, whose tasks have "
                    f"nothing in common; choose one: frame[frame['environment'] == {played[0]!r}]"
                )
    episode = [*EPISODE, *(name for name in by if name == "environment")]
    twice = frame[frame.duplicated(episode)]
    if len(twice):
        first = ", ".join(f"{name} {twice.iloc[0][name]}" for name in episode)
        same = frame[(frame[episode] == twice.iloc[0][episode]).all(axis="columns")]
        apart = [
            name for name in ("prompt", "settings") if name in same and same[name].nunique() > 1
        ]
        raise ValueError(
            f"{len(twice)} episodes occur twice, the first is {first}; choose one of each"
            + (f" by {' or '.join(apart)}: {_choose(same, apart[0])}" if apart else "")
        )
    return frame


def _choose(rows: pd.DataFrame, column: str) -> str:
    """How to choose one of the values of a column, in Python."""
    return " or ".join(f"frame[frame[{column!r}] == {value!r}]" for value in rows[column].unique())


def pair_by_task(frame: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """A row an episode that both methods have played; the columns are pairs (what, method).

    frame: a suite's. What: whether it was solved, whether a budget cut it, and `COSTS`; seconds can
    be compared where the same number of episodes ran at once. Raises ValueError for a method that
    the frame has not, and for an episode that occurs twice.
    """
    must_be_frame(frame)
    check_episodes(frame[frame["method"].isin([first, second])])
    parts = {}
    for method in (first, second):
        played = frame[frame["method"] == method]
        if played.empty:
            known = ", ".join(frame["method"].unique())
            raise ValueError(f"no episode of {method!r} is here; known: {known}")
        if "status" in played:
            played = played.assign(cut=is_cut(played))
        columns = [name for name in ("solved", "cut", *MEDIANS) if name in played]
        parts[method] = played.set_index(["model", "task", "seed"])[columns]
    table = pd.concat(parts, axis="columns", join="inner")
    return table.swaplevel(axis="columns").sort_index(axis="columns")


def summarize_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `pair_by_task`, a row a method: episodes, solved, cut, median costs."""
    methods = table.columns.unique(1)
    counts = [name for name in ("solved", "cut") if name in table]
    rows = {
        method: {
            "episodes": len(table),
            **{name: int(table[name, method].sum()) for name in counts},
        }
        | {cost: float(table[cost, method].median()) for cost in MEDIANS if cost in table}
        for method in methods
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method").reset_index()
