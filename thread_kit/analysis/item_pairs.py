"""Of an item's rows, the paper's own method against each other one, task by task.

A rate beside a rate says little of so few tasks as a laptop plays. All methods play the same ones,
so each pair can be tested.
"""

from __future__ import annotations

import pandas as pd

from thread_kit.analysis.item_tables import name_benchmarks
from thread_kit.analysis.paper_items import PaperItem
from thread_kit.analysis.statistics import EPISODE, holm, mcnemar, pair_methods

OWN = {"thread-v1": "thread", "thread-v2": "thread", "adapt": "adapt", "stateflow": "stateflow"}
"""By paper, the method that it is about."""


def compare_with_own(item: PaperItem, rows: pd.DataFrame) -> pd.DataFrame:
    """A row a benchmark, model and other method; empty where no task was played by both.

    tasks: that both played. only_own, only_other: solved by one of the two. p: McNemar's exact
    test; p_holm: adjusted for all rows of the table. Repeats of a task and several settings of it
    have no such test, and are left out.
    """
    own = OWN[item.paper]
    table = []
    for benchmark, part in rows.groupby(name_benchmarks(rows), sort=False):
        once = part[~part.duplicated([*EPISODE[:-1]], keep=False)]
        for model, _, both in pair_methods(once, "solved"):
            if own not in both:
                continue
            (other,) = both.columns.drop(own)
            test = mcnemar(both[own], both[other])
            table.append(
                {
                    "benchmark": benchmark,
                    "model": model,
                    "own": own,
                    "other": other,
                    "tasks": len(both),
                    "only_own": test.only_first,
                    "only_other": test.only_second,
                    "p": test.p,
                }
            )
    frame = pd.DataFrame(table)
    return frame.assign(p_holm=holm(frame["p"])) if table else frame
