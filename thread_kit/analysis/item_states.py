"""How far the kit has come with an item of the papers: computed of rows and files, never written.

A reproduction is strict here: every method of the item that the kit has, the paper's own tasks, all
of them, and the weights of a model that the paper has used. All else with rows behind it is a
stand-in, which says in what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pandas as pd

from thread_kit.analysis.item_tables import select_rows
from thread_kit.analysis.paper_items import PaperItem
from thread_kit.analysis.stored_rows import TAUGHT
from thread_kit.analysis.studies import keep_usable
from thread_kit.envs.registry import find_benchmark
from thread_kit.paths import resource

CLOSED = re.compile("gpt-|text-davinci-")
"""Checkpoints that run behind an API alone: without them a stand-in is all that can be had."""


class State(StrEnum):
    """Of an item."""

    REPRODUCED = "reproduced"
    STAND_IN = "stand-in"
    SHOWN = "shown"
    NOT_YET = "not yet"


MEANINGS = {
    State.REPRODUCED: "all its methods, on the paper's tasks, with weights that the paper used",
    State.STAND_IN: "rows of ours with another model, with fewer or with other tasks or methods",
    State.SHOWN: "no numbers: a diagram, an example or a prompt, in words of this kit",
    State.NOT_YET: "no rows, or no place that shows it",
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
    rows = keep_usable(item, select_rows(item, frame))
    differences = _list_differences(item, rows)
    if len(rows):
        state = State.STAND_IN if differences else State.REPRODUCED
        return ItemState(state, tuple(differences), len(rows))
    return ItemState(State.NOT_YET, tuple(differences))


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


def _list_differences(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """In what our rows are other than the paper's, or what is missing to play it."""
    differences = []
    here = {own.published for own in item.find_benchmarks()}
    if absent := [name for name in item.benchmarks if name not in here]:
        differences.append(f"no {' and no '.join(absent)} here")
    known = item.known_methods()
    if absent := [name for name in item.methods if name not in known]:
        differences.append(f"no method {_quote(absent)}")
    if rows.empty:
        return differences
    if missing := [name for name in known if name not in set(rows["method"])]:
        differences.append(f"without {_quote(missing)}")
    played = {find_benchmark(name).published for name in rows["environment"]}
    if unplayed := [name for name in item.benchmarks if name in here - played]:
        differences.append(f"no rows of {', '.join(unplayed)}")
    return differences + _compare_tasks(item, rows) + _compare_models(item, rows)


def _quote(methods: Iterable[str]) -> str:
    return ", ".join(map(repr, methods))


def _compare_tasks(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Of each benchmark, whether all of the paper's tasks were played, as often as there."""
    differences = []
    numbers = item.load_numbers()
    for environment, part in rows.groupby("environment", sort=False):
        benchmark = find_benchmark(str(environment))
        if benchmark.synthetic:
            differences.append(f"stand-in for {benchmark.published}")
            continue
        printed = count_printed(numbers[numbers["benchmark"] == benchmark.published])
        counts = part.groupby(["method", "model"])["task"].nunique().clip(upper=printed)
        if counts.min() < printed:
            few = " to ".join(map(str, sorted({counts.min(), counts.max()})))
            differences.append(f"{few} of {printed} tasks of {benchmark.published}")
    runs = rows.groupby(["environment", "method", "model"])["seed"].nunique().min()
    if runs < item.runs:
        differences.append(f"{runs} of {item.runs} runs")
    return differences


def count_printed(numbers: pd.DataFrame) -> int:
    """How many tasks a published table counts; 0 where it is a picture."""
    every = numbers[numbers["group"] == "All"]
    if len(every):
        return int(every["n"].max())
    return int(numbers.drop_duplicates("group")["n"].sum())


def _compare_models(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Whether every method was played with weights that the paper used, and as it was there."""
    differences = []
    checkpoints = set(item.load_numbers()["checkpoint"]) - {""}
    if checkpoints and all(map(CLOSED.match, checkpoints)):
        differences.append("the paper's models are not to be had as weights")
    files = rows["weights"] if "weights" in rows else pd.Series("", rows.index)
    same = pd.Series([_same_weights(str(file), checkpoints) for file in files], rows.index)
    if set(rows[same]["method"]) != set(rows["method"]):
        others = dict.fromkeys(rows[~same]["model"])
        differences.append(f"another model: {', '.join(others)}")
    if TAUGHT in set(rows["model"]):
        differences.append("taught ones are shown no examples")
    return differences


def _same_weights(file: str, checkpoints: set[str]) -> bool:
    """Whether a GGUF file is of one of these checkpoints, whole or quantized."""
    for checkpoint in checkpoints:
        name = re.escape(checkpoint.removesuffix("-hf"))
        if re.fullmatch(rf"{name}(-hf)?([-.](I?Q\d\w*|B?F16|F32))?\.gguf", file, re.IGNORECASE):
            return True
    return False
