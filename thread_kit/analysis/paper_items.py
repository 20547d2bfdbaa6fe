"""Every table, figure and algorithm of the four papers, from data/papers.csv.

    find_item("thread-v2", "table-3").title  # "TextCraft"

The list says what is played for an item and where the kit has what is not played; how far the kit
has come with it is computed (`analysis/item_states.py`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from thread_kit.analysis.published import PAPERS, list_published_names, load_published
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.method_registry import find_base, list_methods
from thread_kit.paths import resource

PAPER_NAMES = {Path(file).stem: name for name, file in PAPERS.items()}
"""The papers as the command line calls them, and as they are cited here."""

DEV = ("dev", "valid_seen")
"""Our names of the papers' development splits (ADaPT paper, section 4.1, for ALFWorld)."""

MADE_HERE = "generated"
"""The split of games that the kit makes, where those of a development split are not at hand."""

DRAWN = "valid_seen"
"""Of its games the ADaPT paper has drawn ten of each type; here as many are evenly spread."""

TEMPERATURE = 0.7
"""At which `command` repeats runs, this kit's own: at 0, THREAD's (appendix B; StateFlow prints
none for ALFWorld), the runs of a local model are the same."""

EXECUTOR_ALONE, PLANNERS = "react-hybrid", "--planner-model"
"""ADaPT's executor as a method, and what `needs` says where another model plans."""

PAIRED = ", planner "
"""Between the names of a model and of the one that plans for it, in rows (`reproduce`)."""


@dataclass(frozen=True, slots=True)
class PaperItem:
    """A table, figure or algorithm.

    benchmarks: by the papers' names. methods: ours; those whose rows belong to it. split: the
    papers' name. settings: arguments of the environment; every task is played in each of them.
    runs: over all tasks. study: what is made of the rows (`analysis/studies.py`); ""
    for what has no rows: a diagram, an example, a prompt. checkpoints: of the models, where the
    item prints no numbers, which would name them (of THREAD's Figure 4 and ADaPT's 4 and 12 the
    paper's own GPT-3.5, which their captions do not name; THREAD's E.4 names Llama-3-8b for 6).
    where: paths from the project's folder, of notebooks with a heading (`#`). fidelity: the page
    that says what differs. needs: beside a model.
    """

    paper: str
    item: str
    title: str
    benchmarks: tuple[str, ...]
    methods: tuple[str, ...]
    split: str
    settings: tuple[Mapping[str, Any], ...]
    runs: int
    study: str
    checkpoints: tuple[str, ...]
    where: tuple[str, ...]
    fidelity: str
    needs: str

    @property
    def label(self) -> str:
        """As it is cited: "THREAD v2, Table 3"."""
        return f"{PAPER_NAMES[self.paper]}, {self.number}"

    @property
    def number(self) -> str:
        """As it is printed: "Table 3"."""
        return self.item.replace("-", " ").capitalize()

    @property
    def command(self) -> str:
        """What plays it and writes its page; MODEL is to be chosen, and OTHER for the planner."""
        words = ["python -m thread_kit reproduce", self.paper, self.item]
        if self.study:
            words.append("--model MODEL")
            words += ["--planner-model OTHER"] if PLANNERS in self.needs else []
            words += [f"--temperature {TEMPERATURE}"] if self.runs > 1 else []
        return " ".join(words)

    def find_benchmarks(self) -> list[Benchmark]:
        """Those of its benchmarks that are registered."""
        return [own for own in BENCHMARKS.values() if own.published in self.benchmarks]

    def find_split(self, benchmark: Benchmark) -> str | None:
        """The benchmark's own name of its split; None where it has none."""
        names = {split: benchmark.published_splits.get(split, split) for split in benchmark.splits}
        if self.split == "dev":
            return next((split for split in names if split in DEV), None)
        return next((split for split, name in names.items() if name == self.split), None)

    def list_splits(self, benchmark: Benchmark) -> list[str]:
        """Those whose rows belong to it: its split, and for development what is made here."""
        splits = [self.find_split(benchmark)]
        if self.split == "dev" and MADE_HERE in benchmark.splits:
            splits.append(MADE_HERE)
        return [split for split in splits if split]

    def list_groups(self, benchmark: Benchmark) -> set[str]:
        """The groups of tasks of which its table consists; empty where it has all tasks."""
        numbers = self.load_numbers()
        groups = set(numbers.loc[numbers["benchmark"] == benchmark.published, "group"])
        return set() if "All" in groups else groups

    def known_methods(self) -> list[str]:
        """Those of its methods that the kit has."""
        known = set(list_methods())
        return [method for method in self.methods if method in known]

    def find_methods(self, benchmark: Benchmark) -> list[str]:
        """Those of `known_methods` that the paper has there; all where it prints no numbers.

        ReAct beside ADaPT is its executor alone (ADaPT paper, section 4.2): where the benchmark has
        that one as a method of its own, it stands for ReAct.
        """
        numbers = self.load_numbers()
        printed = set(numbers.loc[numbers["benchmark"] == benchmark.published, "method"])
        names = {name.casefold() for name in printed}
        methods = [
            method
            for method in self.known_methods()
            if not names or names & list_names(method, benchmark.published)
        ]
        if {"react", EXECUTOR_ALONE} <= set(methods):
            methods.remove("react" if EXECUTOR_ALONE in benchmark.methods else EXECUTOR_ALONE)
        return methods

    def load_numbers(self) -> pd.DataFrame:
        """Its published numbers, one a row; empty for what is printed as a picture.

        printed: the text, with the standard error if there is one.
        """
        return _load_numbers().get((PAPER_NAMES[self.paper], self.number), _load_nothing())


def list_names(method: str, benchmark: str | None) -> set[str]:
    """Under which names an item can print a method of ours: a variant's are its method's, too."""
    return {*list_published_names(method, benchmark), find_base(method)}


@cache
def load_items() -> Sequence[PaperItem]:
    """All items, in the order of the papers."""
    with resource("data/papers.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_parse(row) for row in csv.DictReader(file))


@cache  # four files, which every item asks
def _load_numbers() -> dict[tuple[str, str], pd.DataFrame]:
    """The published numbers by paper and table, with `printed`: the text, with its error."""
    texts = pd.concat(
        [
            pd.read_csv(resource(f"data/published/{file}"), dtype=str, keep_default_na=False)
            for file in PAPERS.values()
        ],
        ignore_index=True,
    )
    value, error = texts["value"].str.strip(), texts["stderr"]
    rows = load_published().assign(printed=value.where(error == "", value + " ± " + error))
    return {
        (str(paper), str(table)): part.reset_index(drop=True)
        for (paper, table), part in rows.groupby(["paper", "table"], sort=False)
    }


@cache
def _load_nothing() -> pd.DataFrame:
    return next(iter(_load_numbers().values())).iloc[:0]


def _parse(row: dict[str, str]) -> PaperItem:
    names = "benchmarks", "methods", "checkpoints", "where"
    lists: dict[str, Any] = {name: _split(row[name]) for name in names}
    lists["settings"] = tuple(map(_parse_setting, _split(row["settings"])))
    return PaperItem(**{**row, **lists, "runs": int(row["runs"] or 1)})


def _parse_setting(text: str) -> dict[str, Any]:
    """ "products=10" or a flag, "nearest"."""
    name, _, value = text.partition("=")
    return {name: int(value) if value else True}


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(";")))


def check_paper(paper: str) -> None:
    """Raises ValueError, naming the papers that there are, where this is none of them."""
    if paper not in PAPER_NAMES:
        raise ValueError(f"there is no paper {paper!r} here; known: {', '.join(PAPER_NAMES)}")


def find_item(paper: str, item: str) -> PaperItem:
    """An item by the names of the command line; raises ValueError, naming those that there are."""
    check_paper(paper)
    items = {known.item: known for known in load_items() if known.paper == paper}
    # "Table 1" and "Fig. 4a" are table-1 and figure-4.
    name = "-".join(re.findall(r"[a-z]{3,}|\d+", item.lower())).replace("fig-", "figure-")
    if name not in items:
        raise ValueError(f"{paper} has no {item!r}; it has: {', '.join(items)}")
    return items[name]
