"""A published table, and ours in the same shape: the same columns, computed of our rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import pandas as pd

from thread_kit.analysis.cut import count_broken, count_cut
from thread_kit.analysis.paper_items import MADE_HERE, PAIRED, PLANNERS, PaperItem
from thread_kit.analysis.prices import add_dollars
from thread_kit.analysis.records import (
    DEFAULTS,
    TASK,
    is_sampled,
    list_other_settings,
    list_records,
    read_rewards,
)
from thread_kit.analysis.statistics import interval_of
from thread_kit.analysis.task_counts import count_tasks
from thread_kit.envs.registry import BENCHMARKS, find_benchmark


class Column(NamedTuple):
    """What a number of a table is of: `benchmark` is "" where its row says it."""

    benchmark: str
    group: str
    metric: str


def _mean(name: str, scale: float = 1) -> Callable[[pd.DataFrame], float]:
    return lambda rows: scale * float(pd.to_numeric(rows[name]).mean())


def find_priced_as(item: PaperItem) -> str:
    """Whose price our tokens are given, since a model of one's own has none; "" where none is.

    The checkpoint whose costs the item prints, of several the first.
    """
    numbers = item.load_numbers()
    checkpoints = numbers.loc[numbers["metric"] == "cost", "checkpoint"]
    return str(checkpoints.iloc[0]) if len(checkpoints) else ""


def add_costs(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `cost`: US dollars for all of the paper's tasks, if each cost as much as this.

    At the price of `find_priced_as`; nan where the item prints no cost, or no tokens were counted.
    Raises ValueError for a model without a price.
    """
    priced_as = find_priced_as(item)
    if not priced_as or "prompt_tokens" not in rows:
        return rows.assign(cost=float("nan"))
    names = rows["environment"].unique()
    tasks = rows["environment"].map(
        {name: count_tasks(item, find_benchmark(name)) for name in names}
    )
    return rows.assign(cost=tasks * add_dollars(rows, priced_as=priced_as)["dollars"])


def _mean_reward(rows: pd.DataFrame) -> float:
    return float(read_rewards(rows).mean())


MEASURES: dict[str, Callable[[pd.DataFrame], float]] = {
    "success rate": _mean("solved", 100),
    "accuracy": _mean("solved", 100),
    "score": lambda rows: 100 * _mean_reward(rows),
    "reward": _mean_reward,
    "turns": _mean("turns"),
    "error rate": _mean("error_rate", 100),
    "prompt tokens": _mean("prompt_tokens"),
    "completion tokens": _mean("generated"),
    "cost": _mean("cost"),
    "average thread depth": lambda rows: 1 + float(rows["depth"].mean()),
    "maximum thread depth": lambda rows: 1 + float(rows["depth"].max()),
    "average depth of decomposition": lambda rows: _mean("k_max")(rows[rows["solved"]]),
}
"""By the papers' names of their metrics, what our rows say of it. Depths count the main thread
(`analysis/depths.py`).
"""


def select_rows(item: PaperItem, frame: pd.DataFrame) -> pd.DataFrame:
    """Of stored rows, those of the item: its benchmarks, split, groups of tasks and methods.

    Those in which another model plans belong only to items that ask for one, those played at a
    temperature only to items of runs that repeat.
    """
    wanted = {
        (own.name, split, method)
        for own in item.find_benchmarks()
        for split in item.list_splits(own)
        for method in item.find_methods(own)
    }
    keys = zip(frame["environment"], frame["split"], frame["method"], strict=True)
    with_planner = PLANNERS in item.needs
    wanted_here = [
        key in wanted and (with_planner or PAIRED not in model)
        for key, model in zip(keys, frame["model"], strict=True)
    ]
    mine = pd.Series(wanted_here, frame.index, dtype=bool)
    if item.runs == 1:
        mine &= ~is_sampled(frame)
    rows = frame[mine].reset_index(drop=True)
    groups = {own.name: item.list_groups(own) for own in item.find_benchmarks()}
    wanted_groups = [
        not groups[row["environment"]] or find_group(row) in groups[row["environment"]]
        for row in list_records(rows, *TASK, "hardness")
    ]
    return rows[wanted_groups].reset_index(drop=True)


def make_published_table(item: PaperItem) -> pd.DataFrame:
    """The item's numbers as they are printed: a row a label and model; empty where it has none."""
    numbers = item.load_numbers()
    if numbers.empty:
        return pd.DataFrame()
    numbers = numbers.assign(column=_list_columns(numbers))
    table = numbers.pivot_table(
        index=["row", "model"], columns="column", values="printed", aggfunc="first", sort=False
    )
    table = table[list(dict.fromkeys(numbers["column"]))]
    return _name_columns(table).rename_axis(columns=None).reset_index()


def list_remarks(item: PaperItem) -> list[str]:
    """What is to be said of published numbers: a line a remark, with those that it is on."""
    numbers = item.load_numbers()
    lines: dict[str, list[str]] = {}
    for row, column in zip(numbers.itertuples(), _list_columns(numbers), strict=True):
        for remark in filter(None, row.note.split("; ")):
            parts = row.row, row.model, *(part for part in column if part not in ("", "All"))
            lines.setdefault(remark, []).append(f"{row.printed} ({', '.join(parts)})")
    return [
        f"{CONTRADICTS if re.match(OTHER_NUMBER, remark) else ''}{remark}: "
        + (", ".join(names) if len(names) < 5 else f"{len(names)} of {len(numbers)} numbers")
        for remark, names in lines.items()
    ]


CONTRADICTS, OTHER_NUMBER = "**the paper contradicts itself**, ", r"[\d.]+ in "
"""What is said of a number of which the paper prints another elsewhere, and how its note begins."""


def make_our_table(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """Our rows of an item (`select_rows`) in the published columns, then n, cut and interval.

    A row a benchmark, method and model. A number that the rows do not tell is missing.
    """
    if rows.empty:
        return pd.DataFrame()
    numbers = item.load_numbers()
    columns = list(dict.fromkeys(_list_columns(numbers))) if len(numbers) else []
    printed = set(zip(numbers["benchmark"], numbers["metric"], strict=True))
    benchmarks = {name: find_benchmark(name) for name in rows["environment"].unique()}
    rows = add_costs(item, rows).assign(
        benchmark=rows["environment"].map({n: own.published for n, own in benchmarks.items()}),
        shown=name_rows(item, rows),
        group=_find_groups(rows),
    )
    by = ["shown", "method", "model"]
    table = []
    for key, part in rows.groupby(by, sort=False):
        row: dict[Any, Any] = dict(zip(["benchmark", *by[1:]], key, strict=True))
        row |= {  # empty for a benchmark that has another metric
            column: _measure(part, column)
            if (part["benchmark"].iloc[0], column.metric) in printed
            else float("nan")
            for column in columns
        }
        table.append(row | _count(part) | {"date": part["date"].max()})
    frame = _name_columns(pd.DataFrame(table))
    order = {method: place for place, method in enumerate(item.methods)}
    return frame.sort_values("method", key=lambda names: names.map(order), ignore_index=True)


def note_groups(item: PaperItem, rows: pd.DataFrame) -> tuple[str, ...]:
    """A line of Markdown: of how many episodes each group's column is; nothing without groups."""
    groups = [name for name in dict.fromkeys(item.load_numbers()["group"]) if name != "All"]
    if len(groups) < 2:
        return ()
    counts = rows.assign(group=_find_groups(rows)).pivot_table(
        index=["environment", "method", "model"],
        columns="group",
        values="solved",
        aggfunc="size",
        fill_value=0,
    )
    shown = [
        f"{name} {' to '.join(dict.fromkeys((str(few), str(many))))}"
        for name in groups
        if name in counts
        for few, many in [(counts[name].min(), counts[name].max())]
    ]
    return (f"Episodes behind a number, by group: {', '.join(shown)}.",) if shown else ()


def name_rows(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """`name_with_settings` of an item's rows, which says nothing of the settings that it plays."""
    return name_with_settings(rows, {name for setting in item.settings for name in setting})


def name_with_settings(rows: pd.DataFrame, known: Collection[str] = ()) -> list[str]:
    """`name_benchmarks`, with the settings beside `known` that are not the usual ones."""
    others = (list_other_settings(row, known) for row in list_records(rows, *DEFAULTS))
    named = zip(name_benchmarks(rows), others, strict=True)
    return [", ".join([benchmark, *settings]) for benchmark, settings in named]


def name_benchmarks(rows: pd.DataFrame) -> list[str]:
    """The papers' name of each episode's benchmark; it says so where others stand in for theirs.

    rows: of a frame of results, with `environment` and what tasks name.
    """
    return list(map(_name_benchmark, list_records(rows, *TASK)))


def _name_benchmark(row: Mapping[Any, Any]) -> str:
    benchmark = find_benchmark(str(row["environment"]))
    name = benchmark.published or benchmark.name
    others = benchmark.stands_in(row) or row.get("split") == MADE_HERE
    return f"{name} (stand-in)" if others else name


def _list_columns(numbers: pd.DataFrame) -> list[Column]:
    """The column of each number; its benchmark is in it where a label stands in several."""
    apart = numbers.groupby(["row", "model"])["benchmark"].nunique().max() > 1
    return [
        Column(row.benchmark if apart else "", row.group, row.metric)
        for row in numbers.itertuples()
    ]


def _name_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Columns by what tells them apart, which is what the papers print above them."""
    columns = [name for name in table.columns if isinstance(name, Column)]
    parts = [place for place in range(3) if len({column[place] for column in columns}) > 1]
    parts = parts or [2]  # a table of one number is named by its metric
    names = {
        column: ", ".join(column[part] for part in parts if column[part]) for column in columns
    }
    return table.set_axis([names.get(name, name) for name in table.columns], axis="columns")


def _measure(rows: pd.DataFrame, column: Column) -> float:
    if column.benchmark:
        rows = rows[rows["benchmark"] == column.benchmark]
    if column.group != "All":
        rows = rows[rows["group"] == column.group]
    if column.metric not in MEASURES or rows.empty:
        return float("nan")
    try:
        return MEASURES[column.metric](rows)
    except KeyError:  # rows from before this was recorded
        return float("nan")


def _count(rows: pd.DataFrame) -> dict[str, Any]:
    solved, n = int(rows["solved"].sum()), len(rows)
    # The same goal under another setting (Table 8 of ADaPT) is the same task.
    task = [name for name in TASK if name in rows and name not in DEFAULTS]
    low, high = interval_of(rows, solved, task)
    broken = count_broken(rows)
    counts = {**count_cut(rows), **({"broke down": broken} if broken else {})}
    return {"n": n, "solved": solved, **counts, "low": 100 * low, "high": 100 * high}


def _find_groups(rows: pd.DataFrame) -> list[str]:
    return list(map(find_group, list_records(rows, *TASK, "hardness")))


def find_group(row: Mapping[Any, Any]) -> str:
    """Of an episode, the group of tasks by which tables are divided."""
    own = BENCHMARKS.get(row["environment"])
    return own.group_of(row) if own else ""
