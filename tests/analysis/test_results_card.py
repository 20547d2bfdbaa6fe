"""docs/results.md: its tables are those of the rows."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.stored import stored_rows

from thread_kit.analysis.paper_items import find_item, load_items
from thread_kit.analysis.plan import (
    list_parts,
    load_throughput,
    make_plan,
    measure_tokens,
    price_parts,
    select_tokens,
)
from thread_kit.analysis.results_card import fill_page, fill_plan, make_table, summarize_rows
from thread_kit.analysis.results_picture import draw_results

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"

pytestmark = pytest.mark.slow


def test_the_page_is_current():
    text = PAGE.read_text("utf-8")
    current = "run: python -m thread_kit.analysis.results_card"
    assert text == fill_page(text, stored_rows()), current


@pytest.mark.slow
def test_the_picture_says_what_the_rows_say():
    drawn = draw_results(summarize_rows(stored_rows()))
    stored = (PAGE.parent / "images/results.svg").read_text("utf-8")
    current = "run: python -m thread_kit.analysis.results_card"
    assert re.findall(r">([^<>]+)</text>", stored) == re.findall(r">([^<>]+)</text>", drawn), (
        current
    )
    assert draw_results(summarize_rows(stored_rows())) == drawn
    row = stored_rows().query("environment == 'textcraft' and method == 'thread'")
    row = row[row["model"] == "qwen2.5-coder-1.5b"]
    for text in (
        f"{row['solved'].sum()} of {len(row)}",
        f"{row['generated'].median():,.0f} tokens",
    ):
        assert f">{text}</text>" in drawn


def test_the_plan_for_a_cluster_is_current():
    text = (PAGE.parent / "howto/scale.md").read_text("utf-8")
    assert text == fill_plan(text, stored_rows()), "run: python -m thread_kit.analysis.results_card"


@pytest.mark.slow
def test_a_plan_adds_up():
    """Each method with each model is counted once, at the price of its tokens."""
    table = make_plan(stored_rows())
    every, rest = table.iloc[-1], table.iloc[:-1].set_index("model")
    assert every["episodes"] == rest["episodes"].sum()
    assert every["api_dollars"] == pytest.approx(rest["api_dollars"].sum())
    parts = price_parts(select_tokens(stored_rows()), list_parts(load_items()))
    assert not parts.duplicated(["file", "split", "method", "model"]).any()
    davinci = parts[parts["model"] == "text-davinci-003"]
    tokens = davinci["prompt_tokens"].sum() + davinci["generated"].sum()
    assert rest["api_dollars"]["text-davinci-003"] == pytest.approx(20 * tokens / 1e6)
    quick = load_throughput().assign(output=5_000)
    faster = make_plan(stored_rows(), throughput=quick).set_index("model")
    llama = "LLaMA-2-70B-chat"
    assert faster["gpu_hours"][llama] < rest["gpu_hours"][llama]


def test_what_is_played_by_other_rules_is_no_part_of_what_is_played_without_them():
    """ReAct with the nearest action and 50 rounds (StateFlow, Table 10) is not THREAD paper's."""
    played = select_tokens(stored_rows())
    alone = price_parts(played, list_parts([find_item("stateflow", "table-10")]))
    every = price_parts(played, list_parts(load_items()))
    same = every[every["file"].isin(alone["file"]) & every["model"].isin(alone["model"])]
    assert set(alone["method"]) == {"stateflow", "react"} == set(same["method"])
    assert same["episodes"].sum() == alone["episodes"].sum() == 2 * 134


def test_a_method_that_nobody_played_is_counted_as_its_next_of_kin():
    played = select_tokens(stored_rows())
    own, measured = measure_tokens(played, "adapt", "textcraft")
    kin, guessed = measure_tokens(played, "adapt-atomic", "textcraft")
    assert (measured, guessed) == (True, False)
    assert own.equals(kin)
    assert not measure_tokens(played, "lats", "webshop")[1]


def test_a_changed_row_is_seen():
    text = PAGE.read_text("utf-8")
    rows = stored_rows()
    changed = rows.assign(solved=rows["solved"] | (rows.index == rows.index[~rows["solved"]][0]))
    assert text != fill_page(text, changed)


def test_a_model_without_a_table_is_named():
    rows = stored_rows()
    renamed = rows.assign(model=rows["model"].where(rows.index > 0, "new"))
    with pytest.raises(ValueError, match=r"rows and tables of new do not go together"):
        fill_page(PAGE.read_text("utf-8"), renamed)


def _count_tasks(cells: list[str]) -> int:
    return int(cells[3].split(" of ")[1])


def test_the_best_of_as_many_tasks_stands_first_and_stand_ins_are_called_so():
    lines = make_table(stored_rows().query("model == 'qwen2.5-coder-1.5b'")).splitlines()[2:]
    cells = [line.split(" | ") for line in lines]
    assert cells[0][:4] == ["| TextCraft", "thread", "200 calls", "20 of 40"]
    most = dict[str, int]()
    for row in cells:
        most[row[0]] = max(most.get(row[0], 0), _count_tasks(row))
    for first, second in pairwise(cells):
        if first[0] == second[0]:
            samples = [_count_tasks(row) < most[row[0]] for row in (first, second)]
            assert samples == sorted(samples), "what was played on fewer tasks stands below"
            if samples[0] == samples[1]:
                assert float(first[5][:-1]) >= float(second[5][:-1])
    assert all("(stand-in)" in row[0] for row in cells if "QA" in row[0])
    budgets = {(row[0].strip("| "), row[1]): row[2] for row in cells}
    assert budgets["TextCraft", "react"] == "60 iterations"  # its calls have no limit
    assert budgets["ALFWorld", "decomp"] == "50 actions, 60 iterations, 200 calls"
