"""On the page of an item, the paper's own method is tested against each other one."""

from __future__ import annotations

import pandas as pd
import pytest
from helpers.stored import stored_rows

from thread_kit.analysis.item_page import make_page
from thread_kit.analysis.item_pairs import OWN, compare_with_own, find_own, note_shared
from thread_kit.analysis.paper_items import PAPER_NAMES, find_item
from thread_kit.analysis.stored_rows import TAUGHT
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


def test_runs_of_several_files_are_paired_with_what_there_is():
    """`load_stored_rows` names a model's runs apart; a method played anew loses no test."""
    thread = rows(thread=[True] * 6)
    played = pd.concat(
        [
            thread.assign(model="m (before)"),
            thread.assign(model="m (now)", solved=False),
            rows(react=[False] * 6),
            rows(tdag=[False] * 6).assign(model="m (now)"),
        ]
    )
    pairs = compare_with_own(ITEM, played)
    assert pairs[["model", "other", "only_own"]].values.tolist() == [
        ["m (before) and m", "react", 6],
        ["m (now) and m", "react", 0],
        ["m (now)", "tdag", 0],
    ]
    assert pairs["p_holm"].tolist() == pytest.approx([3 * 2 / 2**6, 1, 1])


def test_what_played_fewer_tasks_is_compared_on_those():
    played = rows(thread=[True, True, False, False], react=[False, True])
    assert note_shared(ITEM, played) == (
        "On the 2 tasks of TextCraft that both played: thread 100.0%, react 50.0% (m).",
    )
    assert note_shared(ITEM, rows(thread=[True, True], react=[True, False])) == ()


def test_each_is_set_against_its_like_and_a_variant_against_the_method_itself():
    played = {"adapt", "adapt-atomic", "stateflow+reflexion", "thread"}
    assert find_own("adapt", "react-atomic", played) == "adapt-atomic"
    assert find_own("adapt", "react-hybrid", played) == "adapt"
    assert find_own("adapt", "try-again-by-type", {"adapt-by-type"}) == "adapt-by-type"
    assert find_own("adapt", "adapt-atomic", played) is None, "how it is executed, no rival"
    assert find_own("stateflow", "react+reflexion", played) == "stateflow+reflexion"
    assert find_own("thread", "thread, no variables", played) == "thread"
    assert find_own("thread", "thread", played) is None
    assert find_own("stateflow", "react", played) is None, "it was not played"


def test_other_settings_and_taught_models_are_kept_apart():
    played = rows(thread=[True, False], react=[False, False])
    longer = played.assign(products=10, task=played["task"] + ", 10")
    first, second = compare_with_own(ITEM, pd.concat([played, longer])).to_dict("records")
    assert (first["benchmark"], second["benchmark"]) == ("TextCraft", "TextCraft, products=10")
    assert first["p_holm"] == second["p_holm"] == first["p"], "each is adjusted for its own rows"
    assert compare_with_own(ITEM, played.assign(model=TAUGHT)).empty


def test_the_test_is_left_to_studies_of_what_is_solved():
    calls = find_item("adapt", "figure-7")
    assert calls.study == "calls"
    assert compare_with_own(calls, rows(adapt=[True] * 3, react=[False] * 3)).empty


def test_every_paper_has_a_method_of_its_own():
    assert set(OWN) == set(PAPER_NAMES)
    assert set(OWN.values()) <= set(list_methods())


def test_the_page_shows_it_and_says_what_it_is():
    page = make_page(find_item("thread-v2", "table-1"), stored_rows())
    assert {"thread"} == set(page.pairs["own"])
    for row in page.pairs.itertuples():
        assert f" | {row.own} | {row.other} | {row.tasks} | " in page.markdown
    for text in ("Task by task", "McNemar's exact test"):
        assert text in page.markdown
