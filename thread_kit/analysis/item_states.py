"""How far the kit has come with an item of the papers: computed of rows and files, never written.

A reproduction is strict here: every method of the item that the kit has, all of the paper's own
tasks, its budgets, and the weights of a model that it has used. All else with rows behind it is a
stand-in, which says in what.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pandas as pd

from thread_kit.analysis.item_differences import is_reproduction, list_differences
from thread_kit.analysis.item_tables import select_rows
from thread_kit.analysis.paper_items import PaperItem
from thread_kit.analysis.studies import LACKING, keep_usable
from thread_kit.paths import resource


class State(StrEnum):
    """Of an item."""

    REPRODUCED = "reproduced"
    STAND_IN = "stand-in"
    SHOWN = "shown"
    NOT_YET = "not yet"
    CANNOT = "cannot be here"


MEANINGS = {
    State.REPRODUCED: "its methods, tasks, budgets and the weights of one of its models",
    State.STAND_IN: "rows of ours with another model, with fewer or with other tasks or methods",
    State.SHOWN: "no numbers: a diagram, an example or a prompt, in words of this kit",
    State.NOT_YET: "no rows, or no place that shows it",
    State.CANNOT: "no benchmark or no method of its is here",
}


@dataclass(frozen=True, slots=True)
class ItemState:
    """reasons: what is other than in the paper, or missing. rows: episodes behind it."""

    state: State
    reasons: tuple[str, ...] = ()
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.state}: {'; '.join(self.reasons)}" if self.reasons else str(self.state)


def find_state(item: PaperItem, frame: pd.DataFrame) -> ItemState:
    """The state of an item. frame: of `load_stored_rows`."""
    if not item.study:
        missing = [path for path in item.where if not find_place(path)]
        if missing or not item.where:
            return ItemState(State.NOT_YET, tuple(f"no {path}" for path in missing))
        return ItemState(State.SHOWN)
    played = select_rows(item, frame)
    rows = keep_usable(item, played)
    if len(rows):
        for _, part in rows.groupby("model", sort=False):  # others beside it take nothing away
            if is_reproduction(item, part):
                return ItemState(State.REPRODUCED, rows=len(part))
    differences = list_differences(item, rows)
    if len(rows):
        return ItemState(State.STAND_IN, tuple(differences), len(rows))
    if not any(item.find_methods(benchmark) for benchmark in item.find_benchmarks()):
        return ItemState(State.CANNOT, tuple(differences))
    lacks = f"{len(played)} rows, none of which tells {LACKING[item.study]}" if len(played) else ""
    return ItemState(State.NOT_YET, (lacks or "no rows", *differences))


def find_place(path: str) -> Path | None:
    """The file that `where` names; None where it is not there, or lacks the heading."""
    file, _, heading = path.partition("#")
    root = resource("data").parent
    if not (root / file).exists():
        return None
    if heading and not re.search(rf'"#+ {re.escape(heading)}(\\n)?"', _read(root / file)):
        return None
    return root / file


def _read(path: Path) -> str:
    return path.read_text("utf-8")
