"""docs/results.md: its tables are those of the rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from thread_kit.analysis.results_card import fill_page, make_table
from thread_kit.analysis.stored_rows import load_stored_rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
ROWS = load_stored_rows()


def test_the_page_is_current():
    text = PAGE.read_text("utf-8")
    current = "run: python -m thread_kit.analysis.results_card"
    assert text == fill_page(text, ROWS), current


def test_a_changed_row_is_seen():
    text = PAGE.read_text("utf-8")
    changed = ROWS.assign(solved=ROWS["solved"] | (ROWS.index == ROWS.index[~ROWS["solved"]][0]))
    assert text != fill_page(text, changed)


def test_a_model_without_a_table_is_named():
    renamed = ROWS.assign(model=ROWS["model"].where(ROWS.index > 0, "new"))
    with pytest.raises(ValueError, match=r"rows and tables of new do not go together"):
        fill_page(PAGE.read_text("utf-8"), renamed)


def test_the_best_of_a_benchmark_stands_first_and_stand_ins_are_called_so():
    lines = make_table(ROWS[ROWS["model"] == "qwen2.5-coder-1.5b"]).splitlines()[2:]
    cells = [line.split(" | ") for line in lines]
    assert cells[0][:4] == ["| TextCraft", "thread", "50", "30 of 40"]
    for first, second in pairwise(cells):
        if first[0] == second[0]:
            assert float(first[5][:-1]) >= float(second[5][:-1])
    assert all("(stand-in)" in row[0] for row in cells if "QA" in row[0])
