"""Of an item's rows, the paper's own method against each other one, task by task.

A rate beside a rate says little of so few tasks as a laptop plays. All methods play the same ones,
so each pair can be tested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

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


class Pair(NamedTuple):
    """The paper's own method and another one, and the tasks that both played.

    solved: a row a task, the own method's column first. rows: of these episodes. played: how many
    tasks the own method played in all.
    """

    benchmark: str
    model: str
    own: str
    other: str
    solved: pd.DataFrame
    rows: pd.DataFrame
    played: int


def compare_with_own(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """A row a benchmark (in each of its settings), model and other method.

    own: the method that the paper is about, in the other's form where that was played
    ("adapt-atomic" beside "react-atomic"); for a variant of it, the method itself. tasks: that both
    played once, two at least. only_own, only_other: solved by one of the two. cut_own, cut_other:
    episodes of these that a budget ended unsolved. p: McNemar's exact test; p_holm: adjusted for
    the rows of the same benchmark, settings and model. Taught models are left out.
    """
    table: list[dict[str, Any]] = []
    for pair in find_pairs(item, rows):
        test = mcnemar(pair.solved["own"], pair.solved["other"])
        table.append(
            {
                "benchmark": pair.benchmark,
                "model": pair.model,
                "own": pair.own,
                "other": pair.other,
                "tasks": len(pair.solved),
                "only_own": test.only_first,
                "only_other": test.only_second,
                **count_cut_of(pair.rows, "method", own=pair.own, other=pair.other),
                "p": test.p,
            }
        )
    frame = pd.DataFrame(table)
    if frame.empty:
        return frame
    families = frame.groupby(["benchmark", frame["model"].str.partition(" (")[0]])["p"]
    return frame.assign(p_holm=families.transform(lambda p: holm(p)))


def note_shared(item: PaperItem, rows: pd.DataFrame) -> tuple[str, ...]:
    """Lines of Markdown: the own method's rate on the tasks of each one that played fewer."""
    notes = []
    for pair in find_pairs(item, rows):
        if len(pair.solved) < pair.played:
            own, other = (100 * pair.solved[side].mean() for side in ("own", "other"))
            notes.append(
                f"On the {len(pair.solved)} tasks of {pair.benchmark} that both played: {pair.own} "
                f"{own:.1f}%, {pair.other} {other:.1f}% ({pair.model})."
            )
    return tuple(notes)


def find_pairs(item: PaperItem, rows: pd.DataFrame) -> Iterator[Pair]:
    """The own method with each other one; a model's runs of several files are set side by side."""
    rows = rows[~rows["model"].str.startswith(TAUGHT)]
    if item.study not in TESTED or rows.empty:
        return
    rows = rows.assign(
        benchmark=name_with_settings(rows), base=rows["model"].str.partition(" (")[0]
    )
    for (benchmark, _), part in rows.groupby(["benchmark", "base"], sort=False):
        once = part[~part[["method", "model", "task"]].duplicated(keep=False)]
        solved = once.pivot(index="task", columns=["method", "model"], values="solved")
        methods = solved.columns.get_level_values("method")
        for other in filter(set(methods).__contains__, item.methods):
            own = find_own(OWN[item.paper], other, methods)
            if own is None:
                continue
            for run in solved[other].columns:
                # A run of the own method from the same file, or each that there is.
                runs = [run] if run in solved[own].columns else list(solved[own].columns)
                for own_run in runs:
                    sides = {"own": (own, own_run), "other": (other, run)}
                    both = pd.DataFrame({name: solved[side] for name, side in sides.items()})
                    both = both.dropna().astype(bool)
                    if len(both) < 2:
                        continue
                    played_by = pd.MultiIndex.from_frame(once[["method", "model"]])
                    paired = once[once["task"].isin(both.index) & played_by.isin(sides.values())]
                    model = run if run == own_run else f"{own_run} and {run}"
                    played = int(solved[own, own_run].notna().sum())
                    yield Pair(str(benchmark), model, own, other, both, paired, played)


def find_own(own: str, other: str, played: Collection[str]) -> str | None:
    """What a method is set against: `own`, in its form; None for forms of `own`, and without it."""
    base = find_base(other)
    if base != own:
        alike = own + method_slug(other).removeprefix(method_slug(base))
        return next((name for name in (alike, own) if name in played), None)
    return own if ", " in other and own in played else None
