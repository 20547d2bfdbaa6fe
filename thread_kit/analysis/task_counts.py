"""How many tasks of a benchmark a paper plays for an item."""

from __future__ import annotations

from functools import cache

import pandas as pd

from thread_kit.analysis.paper_items import PAPER_NAMES, PaperItem
from thread_kit.analysis.published import load_published
from thread_kit.envs.benchmark import Benchmark

IN_WORDS = {("adapt", "TextCraft", "dev"): 297 - 77}
"""What no table counts: by paper, benchmark and split. (ADaPT paper, section 4.1: of 297 tasks of
depth 2, the test has 77, and development the rest.)"""


def count_tasks(item: PaperItem, benchmark: Benchmark) -> int:
    """Tasks of the item on a benchmark, counted in each of its settings.

    As its table prints them; of a figure without numbers as many as other tables of the paper have
    in that split, else those of the other papers.
    """
    numbers = item.load_numbers()
    printed = count_printed(numbers[numbers["benchmark"] == benchmark.published])
    return printed or _count_elsewhere(item.paper, benchmark.published, item.split)


def count_printed(numbers: pd.DataFrame) -> int:
    """How many tasks a published table counts; 0 where it is a picture."""
    every = numbers[numbers["group"] == "All"]
    if len(every):
        return int(every["n"].max())
    return int(numbers.drop_duplicates("group")["n"].sum())


@cache
def _count_elsewhere(paper: str, benchmark: str | None, split: str) -> int:
    if (paper, benchmark, split) in IN_WORDS:
        return IN_WORDS[paper, str(benchmark), split]
    rows = load_published()
    rows = rows[(rows["benchmark"] == benchmark) & (rows["split"] == split)]
    mine = rows[rows["paper"] == PAPER_NAMES[paper]]
    rows = mine if len(mine) else rows
    every = rows[rows["group"] == "All"]
    return int((every if len(every) else rows)["n"].max())
