"""On the page of an item, the paper's own method is tested against each other one."""

from __future__ import annotations

import pandas as pd
import pytest

from thread_kit.analysis.item_page import make_page
from thread_kit.analysis.item_pairs import OWN, compare_with_own
from thread_kit.analysis.paper_items import PAPER_NAMES, find_item
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.experiments.method_registry import list_methods

ITEM = find_item("thread-v2", "table-3")


def rows(**solved: list[bool]) -> pd.DataFrame:
    """Episodes of TextCraft: for each method, whether it solved the tasks 1, 2, ..."""
    return pd.DataFrame(
        [
            {"environment": "textcraft", "model": "m", "task": f"{n}", "seed": 0, "solved": won}
            | {"method": method}
            for method, results in solved.items()
            for n, won in enumerate(results, 1)
        ]
    )


def test_each_other_method_is_set_against_the_papers_own():
    won = [True] * 6 + [False] * 2
    played = rows(react=[False] * 8, thread=won, adapt=won)
    react, adapt = compare_with_own(ITEM, played).to_dict("records")
    assert (react["own"], react["other"], adapt["other"]) == ("thread", "react", "adapt")
    assert (react["tasks"], react["only_own"], react["only_other"]) == (8, 6, 0)
    assert react["p"] == pytest.approx(2 / 2**6)
    assert (adapt["p"], adapt["p_holm"]) == (1, 1)
    assert react["p_holm"] == pytest.approx(2 * react["p"]), "of two rows"


def test_only_tasks_that_both_played_once_are_paired():
    played = rows(thread=[True, False, True], react=[True, True])
    (row,) = compare_with_own(ITEM, played).to_dict("records")
    assert (row["tasks"], row["only_own"], row["only_other"]) == (2, 0, 1)
    again = pd.concat([played, played.assign(seed=1)], ignore_index=True)
    assert compare_with_own(ITEM, again).empty, "a test takes one answer a task"
    assert compare_with_own(ITEM, rows(react=[True] * 3)).empty


def test_every_paper_has_a_method_of_its_own():
    assert set(OWN) == set(PAPER_NAMES)
    assert set(OWN.values()) <= set(list_methods())


def test_the_page_shows_it_and_says_what_it_is():
    page = make_page(find_item("thread-v2", "table-1"), load_stored_rows())
    assert {"thread"} == set(page.pairs["own"])
    for text in ("Task by task", "McNemar's exact test"):
        assert text in page.markdown
