"""What is made of an item's rows: a table in the paper's shape, and a figure where it prints one.

One function a study, by the name that data/papers.csv gives it. Each takes the item and its rows
(`select_rows`), and says by an empty table that these rows do not tell what it needs: a column that
was not recorded when they were played, traces that are not kept, failures that nobody reviewed.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from thread_kit.analysis.adapt_studies import claims_figure, compare_claims
from thread_kit.analysis.cut import is_cut
from thread_kit.analysis.depths import count_depths
from thread_kit.analysis.ending_states import count_ending_states
from thread_kit.analysis.figures import calls_figure
from thread_kit.analysis.intercode import note_stateflow, note_weighed
from thread_kit.analysis.item_pairs import note_shared
from thread_kit.analysis.item_tables import (
    add_costs,
    make_our_table,
    name_rows,
    note_groups,
)
from thread_kit.analysis.paper_items import PaperItem
from thread_kit.analysis.records import is_of_whole_run, list_records
from thread_kit.analysis.statistics import calls, success
from thread_kit.analysis.study_figures import rates_figure, states_figure, trials_figure
from thread_kit.analysis.trace_summaries import (
    TRACE,
    are_reviewed,
    find_trace,
    have_action_runs,
    load_action_runs,
    load_reviews,
)
from thread_kit.analysis.trials import success_by_trial
from thread_kit.errors.error_types import AGENT_TYPES, QUESTION_TYPES, ErrorType
from thread_kit.errors.figures import count_failures, failure_figure, misreading_figure
from thread_kit.errors.review import RULES
from thread_kit.trace.episode import Episode


class Outcome(NamedTuple):
    """table: ours; empty where no row tells it. figure: None for a table of the paper.

    notes: what is to be known of its columns, lines of Markdown.
    """

    table: pd.DataFrame
    figure: go.Figure | None = None
    notes: tuple[str, ...] = ()


Study = Callable[[PaperItem, pd.DataFrame], Outcome]


def make_outcome(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    """The study of an item on its rows. rows: of `select_rows`, with those it cannot use."""
    rows = keep_usable(item, rows)
    if rows.empty:
        return Outcome(pd.DataFrame())
    first = keep_first_run(rows) if item.study in COUNTS else rows
    outcome = STUDIES[item.study](item, first)
    if left_out := len(rows) - len(first):
        outcome = outcome._replace(notes=(*outcome.notes, FIRST_RUN.format(left_out)))
    return outcome


FIRST_RUN = (
    "Counted in one run of each task, as in the paper: {} episodes of later ones are left out."
)


def keep_first_run(rows: pd.DataFrame) -> pd.DataFrame:
    """Of several runs of a task, by a method and a model, the one with the lowest seed."""
    seeds = rows.groupby(["environment", "method", "model", "task"])["seed"]
    return rows[rows["seed"] == seeds.transform("min")].reset_index(drop=True)


def keep_usable(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that tell what the item's study needs."""
    if item.study in USABLE and len(rows):
        rows = rows[USABLE[item.study](rows)]
    return rows.reset_index(drop=True)


def _table(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    weighed = note_weighed(rows, set(item.load_numbers()["metric"]))
    notes = (*note_groups(item, rows), *weighed, *note_shared(item, rows))
    if item.paper == "stateflow":
        notes += note_stateflow(rows)
    return Outcome(make_our_table(item, rows), None, notes)


def _runs(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    """The table, with the error over runs, and depths by each way to count (`analysis/depths.py`).

    Without runs of the same tasks there is no error; without traces, no depth with what listens.
    A run that was broken off is none.
    """
    whole = is_of_whole_run(rows)
    rows, broken_off = rows[whole], int((~whole).sum())
    left_out = (
        (f"{broken_off} episodes of runs that are not over are left out.",) if broken_off else ()
    )
    table = make_our_table(item, rows)
    names = pd.Series(name_rows(item, rows), rows.index)
    more = []
    for row in table.to_dict("records"):
        mine = rows[
            (rows["method"] == row["method"])
            & (rows["model"] == row["model"])
            & (names == row["benchmark"])
        ]
        rates = 100 * mine.groupby("seed")["solved"].mean()
        more.append(
            {"runs": len(rates), "standard error": float(rates.sem()), **_count_depths(mine)}
        )
    columns = pd.DataFrame(more).dropna(axis="columns", how="all")
    if DEPTH not in table:
        return Outcome(table.join(columns.filter(["runs", "standard error"])), notes=left_out)
    return Outcome(table.join(columns), notes=(DEPTHS, *left_out))


DEPTH = "average thread depth"
DEPTHS = (
    "Depths: the paper does not say how it counts. In its columns the main thread is level 1; "
    "'depth' is this kit's own count, in which it is 0; 'listening' has one level more where a "
    "thread listens to an action or to the interpreter, and needs traces. Beside each: the "
    "average over episodes, and the maximum. [More](docs/fidelity/reproduce.md)"
)


def _count_depths(rows: pd.DataFrame) -> dict[str, float]:
    """By this kit's count, of the rows, and with what listens, where all their traces are kept."""
    nothing = float("nan")
    own = rows["depth"] if "depth" in rows else pd.Series(dtype=float)
    traces = list(map(find_trace, list_records(rows, *TRACE)))
    kept = [] if None in traces else list(filter(None, traces))
    deepest = [count_depths(Episode.load(trace))["listening_levels"] for trace in kept]
    return {
        "depth, average": float(own.mean()),
        "depth, maximum": float(own.max()),
        "listening, average": fmean(deepest) if deepest else nothing,
        "listening, maximum": max(deepest, default=nothing),
    }


def _rates(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    named = rows.assign(benchmark=name_rows(item, rows))
    table = success(named, ["benchmark", "method", "model"])
    table = _sort(item, table.rename(columns={"benchmark": "environment"}))
    x = "model" if (item.paper, item.item) == ("adapt", "figure-6") else "method"
    return Outcome(table, rates_figure(table, item.title, x=x), note_shared(item, rows))


def _calls(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    """A row an environment, method and model; the bars of one environment are named with it."""
    parts = [
        calls(part).assign(environment=environment)
        for environment, part in rows.groupby("environment", sort=False)
    ]
    table = _sort(item, pd.concat(parts, ignore_index=True))
    named = rows.assign(model=rows["model"] + ", " + rows["environment"])
    return Outcome(table, calls_figure(named))


def _claims(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    table = compare_claims(rows, ["environment", "method", "model"])
    named = rows.assign(model=rows["model"] + ", " + rows["environment"])
    return Outcome(_sort(item, table), claims_figure(named))


def _trials(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    """Success by trial; beside the last one what all of them cost, since no row has it of each."""
    by = ["method", "model"]
    table = success_by_trial(rows).merge(add_costs(item, rows).groupby(by)["cost"].mean(), on=by)
    table["cost"] = table["cost"].where(table["trial"] == table["trial"].max())
    return Outcome(table, trials_figure(table, item.title), (ALL_TRIALS,))


ALL_TRIALS = (
    "The cost is that of all trials together. The paper's curve of costs by trial is not computed: "
    "a row has the tokens of its whole episode."
)


def _states(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    table = count_ending_states(rows)
    return Outcome(table, states_figure(table, item.title))


def _failures(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    """Figure 4 has a panel for each benchmark, Figure 6 both kinds of questions together.

    Together only where every method has the same tasks of both, since more tasks fail more often.
    Types that the paper does not have there are its "other" (Tables 9 to 12).
    """
    names = rows["method"] + ", " + rows["model"]
    labels = rows["method"] + ("<br>" + rows["model"] if rows["model"].nunique() > 1 else "")
    tasks = rows.groupby([names, "environment"])["task"].agg(frozenset).unstack()
    if item.item != "figure-6" or len(tasks.drop_duplicates()) > 1:
        names += ", " + rows["environment"]
        labels += "<br>" + rows["environment"]
    episodes = dict(zip(rows["trace"], names, strict=True))
    reviews = pd.concat([load_reviews(part) for _, part in rows.groupby("path")], ignore_index=True)
    reviews = reviews[reviews["episode"].isin(episodes)]
    printed = QUESTION_TYPES if item.item == "figure-6" else AGENT_TYPES
    types = [one if one in printed else ErrorType.OTHER for one in reviews["type"]]
    table = count_failures(reviews.assign(type=types), episodes)
    counted = table.rename_axis(columns=None).reset_index()
    for name, column in _count_episodes(rows, names).items():
        counted.insert(counted.columns.get_loc("method") + 1, name, counted["method"].map(column))
    sizes = names.map(names.value_counts())
    shown = dict(zip(names, labels + " (" + sizes.astype(str) + ")", strict=True))
    figure = failure_figure(table.rename(index=shown), RULES)
    others = reviews.loc[~reviews["type"].isin(printed), "type"].astype(str).value_counts()
    listed = ", ".join(f"{name} {count}" for name, count in others.items())
    return Outcome(counted, figure, (f"Counted as the paper's other: {listed}.",) if listed else ())


def _count_episodes(rows: pd.DataFrame, names: pd.Series) -> dict[str, pd.Series]:
    """By name: how many of its episodes a budget ended unsolved, and n."""
    counts = {"n": names.value_counts()}
    return {"cut": is_cut(rows).groupby(names).sum(), **counts} if "status" in rows else counts


def _misreading(item: PaperItem, rows: pd.DataFrame) -> Outcome:
    """By benchmark and method."""
    names = rows["method"] + ", " + rows["model"] + ", " + rows["environment"]
    runs = pd.concat([load_action_runs(part) for _, part in rows.groupby("path")])
    runs["method"] = runs["trace"].map(dict(zip(rows["trace"], names, strict=True)))
    lengths = runs.groupby(["method", "in a row"], as_index=False)
    table = lengths[["actions", "misread"]].sum()
    for name, column in _count_episodes(rows, names).items():
        table.insert(1, name, table["method"].map(column))
    return Outcome(table, misreading_figure(table))


def _sort(item: PaperItem, table: pd.DataFrame) -> pd.DataFrame:
    """The table with the methods in the item's order."""
    order = {method: place for place, method in enumerate(item.methods)}
    key = lambda column: column.map(order) if column.name == "method" else column  # noqa: E731
    return table.sort_values(["environment", "method", "model"], key=key, ignore_index=True)


STUDIES: dict[str, Study] = {
    "table": _table,
    "runs": _runs,
    "rates": _rates,
    "calls": _calls,
    "claims": _claims,
    "trials": _trials,
    "states": _states,
    "failures": _failures,
    "misreading": _misreading,
}
"""By the name of a study in data/papers.csv."""

COUNTS = {"states", "failures", "misreading"}
"""Those that count failures, of which several runs of a task have more than the paper's one."""


def _have(column: str) -> Callable[[pd.DataFrame], pd.Series]:
    """Which rows tell a column that earlier rows have not."""
    return lambda rows: (
        rows[column].notna() if column in rows else pd.Series(False, index=rows.index)
    )


USABLE: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "claims": _have("claimed"),
    "trials": _have("trials"),
    "states": _have("state"),
    "failures": are_reviewed,
    "misreading": have_action_runs,
}
"""By the name of a study, which rows tell what it needs; of any other all do."""

LACKING = {
    "claims": "what the method thought of its success",
    "trials": "in which trial it succeeded",
    "states": "the state in which it ended",
    "failures": "what failed: no trace is kept, and no review",
    "misreading": "what was misread: no trace is kept, and no count",
}
"""By the name of such a study, what rows that it cannot use do not tell."""
