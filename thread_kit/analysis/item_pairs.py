"""Of an item's rows, the paper's own method against each other one, task by task.

A rate beside a rate says little of so few tasks as a laptop plays. All methods play the same ones,
so each pair can be tested.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from thread_kit.analysis.item_tables import name_with_settings
from thread_kit.analysis.paper_items import PaperItem
from thread_kit.analysis.statistics import count_cut_of, holm, mcnemar
from thread_kit.analysis.stored_rows import TAUGHT
from thread_kit.experiments.method_registry import find_base, method_slug

OWN = {"thread-v1": "thread", "thread-v2": "thread", "adapt": "adapt", "stateflow": "stateflow"}
"""By paper, the method that it is about."""

TESTED = ("table", "rates", "failures")
"""Studies of what is solved; others are about something else (calls, ending states, repeats)."""


def compare_with_own(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """A row a benchmark (in each of its settings), model and other method.

    own: the method that the paper is about, in the other's form where that was played
    ("adapt-atomic" beside "react-atomic"); for a variant of it, the method itself. tasks: that both
    played once, two at least. only_own, only_other: solved by one of the two. cut_own, cut_other:
    episodes of these that a budget ended unsolved. p: McNemar's exact test; p_holm: adjusted for
    the rows of the same benchmark, settings and model. Taught models are left out.
    """
    rows = rows[~rows["model"].str.startswith(TAUGHT)]
    if item.study not in TESTED or rows.empty:
        return pd.DataFrame()
    rows = rows.assign(benchmark=name_with_settings(rows))
    groups = rows.groupby(["benchmark", "model"], sort=False)
    parts = [_compare(item, part) for _, part in groups]
    return pd.concat(parts, ignore_index=True)


def _compare(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """Of one benchmark and model."""
    once = rows[~rows.duplicated(["method", "task"], keep=False)]
    solved = once.pivot(index="task", columns="method", values="solved")
    table: list[dict[str, Any]] = []
    for other in filter(solved.columns.__contains__, item.methods):
        own = find_own(OWN[item.paper], other, solved.columns)
        if own is None:
            continue
        both = solved[[own, other]].dropna()
        if len(both) < 2:
            continue
        test = mcnemar(both[own], both[other])
        paired = once[once["task"].isin(both.index)]
        table.append(
            {
                "benchmark": rows["benchmark"].iloc[0],
                "model": rows["model"].iloc[0],
                "own": own,
                "other": other,
                "tasks": len(both),
                "only_own": test.only_first,
                "only_other": test.only_second,
                **count_cut_of(paired, own=own, other=other),
                "p": test.p,
            }
        )
    frame = pd.DataFrame(table)
    return frame.assign(p_holm=holm(frame["p"])) if table else frame


def find_own(own: str, other: str, played: Collection[str]) -> str | None:
    """What a method is set against: `own`, in its form; None for forms of `own`, and without it."""
    base = find_base(other)
    if base != own:
        alike = own + method_slug(other).removeprefix(method_slug(base))
        return next((name for name in (alike, own) if name in played), None)
    return own if ", " in other and own in played else None
