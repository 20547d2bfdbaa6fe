"""InterCode's results as the StateFlow paper prints them: Tables 1, 2, 5, 6 and 4."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from thread_kit.analysis.cut import is_cut
from thread_kit.analysis.prices import add_dollars
from thread_kit.analysis.records import read_rewards
from thread_kit.analysis.statistics import GROUP, check_episodes
from thread_kit.envs.intercode_sql.questions import HARDNESS


def make_intercode_table(
    frame: pd.DataFrame,
    *,
    priced_as: str = "gpt-3.5-turbo-1106",
    prices: pd.DataFrame | str | Path | None = None,
) -> pd.DataFrame:
    """A row a method and model, in the columns of Tables 5 and 6.

    success, error_rate: percent. reward, turns, prompt_tokens, generated: means of an episode; of
    several trials the turns are those of all, and no error rate is told: rows have the last one's.
    dollars: of all episodes, at the price of `priced_as`, for the tokens of the model that played.
    prices: a list of one's own, or its path.
    cut: how many episodes a budget ended unsolved, most often the ten rounds.
    """
    frame = add_dollars(check_episodes(frame, GROUP), priced_as=priced_as, prices=prices)
    measured = frame.columns.union(["turns", "error_rate"], sort=False)
    frame = frame.reindex(columns=measured)  # none may have been started
    frame, cut = _mark_cut(_count_all_trials(frame).assign(reward=read_rewards(frame)))
    groups = frame.groupby(GROUP, sort=False)
    return groups.agg(
        n=("solved", "size"),
        **cut,
        success=("solved", lambda solved: 100 * solved.mean()),
        reward=("reward", "mean"),
        turns=("turns", "mean"),
        error_rate=("error_rate", lambda rate: 100 * rate.mean()),
        dollars=("dollars", "sum"),
        prompt_tokens=("prompt_tokens", "mean"),
        generated=("generated", "mean"),
    ).reset_index()


def _count_all_trials(frame: pd.DataFrame) -> pd.DataFrame:
    """The turns of all trials, where rows have the last one's; then no error rate is known."""
    if "trials" not in frame:
        return frame
    trials = frame["trials"].fillna(1)
    several = trials.groupby([frame[name] for name in GROUP]).transform("max") > 1
    turns = frame["turns"].where(trials <= 1, frame["actions"])
    return frame.assign(turns=turns, error_rate=frame["error_rate"].mask(several))


def group_by_hardness(frame: pd.DataFrame) -> pd.DataFrame:
    """Success in percent by difficulty (Table 4), and what was cut: a row a method and model.

    weighed: of all, each difficulty as often as among the benchmark's questions, of which a sample
    has as many of each; missing where one of them was not played.
    A question that could not be started has the difficulty that other rows tell of it.
    """
    frame = _fill_hardness(frame)
    table = 100 * _average_by_hardness(frame, "solved")
    frame, cut = _mark_cut(frame)
    every = frame.groupby(GROUP, sort=False).agg(all=("solved", "mean"), **cut)
    every["all"] *= 100
    every["weighed"] = _weigh(table)
    return table.join(every).rename_axis(columns=None).reset_index()


def _fill_hardness(frame: pd.DataFrame) -> pd.DataFrame:
    frame = check_episodes(frame, GROUP)
    told = frame.groupby("task")["hardness"].transform("first")
    return frame.assign(hardness=frame["hardness"].fillna(told))


def _average_by_hardness(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    table = frame.assign(mean=pd.to_numeric(frame[column])).pivot_table(
        index=GROUP, columns="hardness", values="mean", aggfunc="mean", sort=False
    )
    return table[[name for name in HARDNESS if name in table]].astype(float)


def _weigh(table: pd.DataFrame) -> pd.Series:
    """The means of all questions, of those by difficulty; missing where one has none."""
    whole = sum(HARDNESS.values())
    parts = [table.get(name, np.nan) * n / whole for name, n in HARDNESS.items()]
    return pd.Series(sum(parts), table.index)


WEIGHED = {
    "reward": ("reward", 1, 2),
    "turns": ("turns", 1, 2),
    "error rate": ("error_rate", 100, 1),
}
"""Metrics that are weighed beside success, by the paper's name: our column, a factor, places."""


def note_weighed(frame: pd.DataFrame, metrics: Collection[str] = ()) -> tuple[str, ...]:
    """Lines of Markdown: success on SQL, weighed by difficulty, where as many of each were played.

    metrics: those of `WEIGHED` that are wanted, too. Nothing where all questions were played, or
    none of a difficulty.
    """
    frame = frame[frame["environment"].eq("sql") & frame["split"].eq("test")]
    if frame.empty or frame["task"].nunique() == sum(HARDNESS.values()):
        return ()
    frame = _fill_hardness(frame)
    of_each = ", ".join(f"{n} {name}" for name, n in HARDNESS.items())
    lines = [
        "Success on as many questions of each difficulty, weighed as the benchmark's are "
        f"({of_each}): {_list_weighed(frame, 'solved', 100, 1)}."
    ]
    if "reward" in metrics:
        frame = frame.assign(reward=read_rewards(frame))
    for metric in (name for name in WEIGHED if name in metrics):
        lines.append(
            f"{metric.capitalize()}, weighed so: {_list_weighed(frame, *WEIGHED[metric])}."
        )
    return tuple(line for line in lines if not line.endswith(": ."))


def _list_weighed(frame: pd.DataFrame, column: str, factor: float, places: int) -> str:
    means = factor * _weigh(_average_by_hardness(frame, column)).dropna()
    return ", ".join(f"{method} {mean:.{places}f}" for (method, _), mean in means.items())


def note_stateflow(frame: pd.DataFrame) -> tuple[str, ...]:
    """Lines of Markdown: what StateFlow paper, appendix A.2, counts of its own method, and ours.

    For each model, failed tasks whose reward is over 0.5 on Bash and over 0 on SQL; solved
    questions of SQL that went over the state Error, by difficulty, where rows tell their states
    (those before 2026-11-28 do not). Which tasks the paper's percentages are of: `BASH_A2`.
    """
    lines = []
    for model, rows in frame[frame["method"].eq("stateflow")].groupby("model", sort=False):
        solved, on = rows["solved"].astype(bool), rows["environment"]
        for name, above, theirs in (("bash", 0.5, BASH_A2), ("sql", 0.0, SQL_A2)):
            tasks, failed = rows[on.eq(name)], rows[on.eq(name) & ~solved]
            if len(failed):
                partly = int((read_rewards(failed) > above).sum())
                lines.append(
                    f"Of {len(failed)} failed tasks of StateFlow ({model}) {partly} have a reward "
                    f"over {above:g} ({100 * partly / len(failed):.1f}%, and "
                    f"{100 * partly / len(tasks):.1f}% of all {len(tasks)}; paper, A.2: {theirs})."
                )
        told = rows[on.eq("sql") & solved]
        told = told.dropna(subset="states") if "states" in told else told.iloc[:0]
        if len(told):
            goes_over = told["states"].map(lambda states: "Error" in states)
            over = goes_over.groupby(told["hardness"]).agg(["sum", "size"])
            each = (f"{row['sum']} of {row['size']} {name}" for name, row in over.iterrows())
            lines.append(
                f"Solved questions that went over Error ({model}): {', '.join(each)} (paper, A.2: "
                "9% of the easy, 20% of the extra hard)."
            )
    return tuple(lines)


BASH_A2 = '58.5% "of the bash tasks", as 117 of all 200 are; 75 of the 128 that failed are 58.6%'
SQL_A2 = '0.5% "of the failed tasks"; the rewards of Table 5 need 28 of the 375, 7.5%, or more'
"""What appendix A.2 says of failed tasks that have a reward, and what its tables say of that.

Of SQL 659 of 1,034 are solved, and the mean reward is 0.6637: 27.3 are left to those that failed.
"""


def _mark_cut(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, tuple[str, str]]]:
    """The frame with a column that says what was cut, and its sum; none where no status is."""
    if "status" not in frame:
        return frame, {}
    return frame.assign(cut=is_cut(frame)), {"cut": ("cut", "sum")}
