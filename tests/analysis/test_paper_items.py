"""The list of the papers' tables and figures: complete, with a state and a page for each item."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from helpers.stored import stored_rows

from thread_kit.analysis import item_checks
from thread_kit.analysis.item_checks import check_items
from thread_kit.analysis.item_list import describe_items, list_items
from thread_kit.analysis.item_page import make_page
from thread_kit.analysis.item_states import MEANINGS, State, find_place, find_state
from thread_kit.analysis.item_tables import (
    find_group,
    make_our_table,
    make_published_table,
    select_rows,
)
from thread_kit.analysis.paper_items import PAPER_NAMES, PaperItem, find_item, load_items
from thread_kit.analysis.records import TASK, list_records
from thread_kit.analysis.stored_rows import (
    ACTION_RUNS,
    ERRORS,
    TAUGHT,
    load_commands,
    load_stored_rows,
)
from thread_kit.experiments.budgets import budget_of
from thread_kit.paths import resource

COUNTS = {  # tables, figures and algorithms, as the papers number them
    "thread-v2": (12, 8, 2),
    "thread-v1": (8, 5, 2),
    "stateflow": (19, 11, 1),
    "adapt": (8, 12, 1),
}


@pytest.mark.parametrize("paper", PAPER_NAMES)
def test_every_number_that_a_paper_prints_above_a_table_or_figure_is_listed(paper):
    listed = {item.item for item in load_items() if item.paper == paper}
    kinds = zip(("table", "figure", "algorithm"), COUNTS[paper], strict=True)
    assert listed == {f"{kind}-{number + 1}" for kind, most in kinds for number in range(most)}


@pytest.mark.slow
def test_a_wrong_list_is_found(monkeypatch):
    """A heading that is gone, an item that is missing, a row that nobody has played."""
    from dataclasses import replace

    items = list(load_items())
    gone = replace(items[0], where=("notebooks/01_first_episode.ipynb#No such heading",))
    rest = [item for item in items[1:] if item.label != "ADaPT, Table 1"]
    check = item_checks._check  # the command's test makes the pages of the others
    monkeypatch.setattr(
        item_checks, "_check", lambda item, frame: check(item, frame) if item is gone else []
    )
    monkeypatch.setattr(item_checks, "load_items", lambda: [gone, *rest, items[5]])
    problems = "\n".join(check_items(stored_rows()))
    assert "has no heading 'No such heading'" in problems
    assert "ADaPT, Table 1 has published numbers and is not listed" in problems
    assert f"{items[5].paper} {items[5].item} is listed 2 times" in problems


def test_a_run_that_was_stopped_and_tasks_that_were_looked_at_are_told_on_the_page(monkeypatch):
    page = make_page(find_item("thread-v2", "table-3"), stored_rows()).markdown
    assert "results-thread: earlier adapters had played these test tasks" in page
    assert "textcraft-tdag-qwen: the run of forty was stopped" in page
    commands = {name: {**row, "note": ""} for name, row in item_checks.load_commands().items()}
    monkeypatch.setattr(item_checks, "load_commands", lambda: commands)
    told = "\n".join(item_checks._check_commands())
    assert "results/textcraft-tdag-qwen.jsonl has 35 of 40 tasks, and no note" in told


def test_states_follow_the_rows():
    item = find_item("thread-v2", "table-3")
    state = find_state(item, stored_rows())
    assert state.state == State.STAND_IN
    assert state.rows == len(select_rows(item, stored_rows())) == 615
    assert any("another model" in reason for reason in state.reasons)
    nothing = find_state(item, stored_rows().query("environment != 'textcraft'"))
    assert (nothing.state, nothing.rows) == (State.NOT_YET, 0)


def table_2() -> PaperItem:
    """THREAD's Table 2, without the method that needs a memory: none comes with the kit."""
    item = find_item("thread-v2", "table-2")
    return replace(item, methods=tuple(name for name in item.methods if "skills" not in name))


def official_run(**changed: object) -> pd.DataFrame:
    """All methods of that item on all its games, with weights that the paper used."""
    item = table_2()
    row = {"environment": "alfworld", "split": "valid_unseen", "seed": 0, "model": "llama"}
    row |= {"weights": "Meta-Llama-3-8B.Q8_0.gguf", "solved": True}
    tokens = {name: budget_of(name, "alfworld")["new_tokens"].value for name in item.methods}
    limits = {name: json.dumps({"new_tokens": most}) for name, most in tokens.items()}
    return pd.DataFrame(
        [
            {**row, "method": method, "task": str(task), "limits": limits[method], **changed}
            for method in item.methods
            for task in range(134)
        ]
    )


def test_a_reproduction_has_the_papers_methods_tasks_and_weights():
    item = table_2()
    assert find_state(item, official_run()).state == State.REPRODUCED
    beside = official_run(model="small", weights="small.gguf")[:3]
    assert find_state(item, pd.concat([official_run(), beside])).rows == len(official_run())
    for rows, reason in (
        (official_run(weights="Meta-Llama-3-8B-Instruct.Q8_0.gguf"), "another model"),
        (official_run()[5:], "129 to 134 of 134 tasks"),
        (official_run()[134:], "without 'thread'"),
        (official_run(model=TAUGHT), "no examples"),
        (
            official_run(limits='{"calls": 7}'),
            "budgets other than the paper's of 'adaplanner', 'adapt'",
        ),
        (official_run(prompt="x", game="pick_and_place_simple-x"), "earlier prompts of 'thread'"),
    ):
        state = find_state(item, rows)
        assert state.state == State.STAND_IN
        assert reason in str(state)


def test_what_is_missing_is_told_of_each_benchmark():
    item = find_item("thread-v1", "figure-4")
    rows = select_rows(item, stored_rows())
    rows = rows[(rows["method"] == "thread") | (rows["environment"] == "textcraft")]
    state = str(find_state(item, rows))
    assert "without 'thread, no variables' on ALFWorld" in state
    assert "without 'thread, no variables' on TextCraft" not in state


def test_a_page_says_of_how_many_episodes_a_groups_number_is():
    notes = make_page(find_item("adapt", "table-3"), stored_rows()).notes
    (line,) = (note for note in notes if note.startswith("Episodes behind a number"))
    assert re.fullmatch(r".*: depth 2 \d+( to \d+)?, depth 3 \d+( to \d+)?\.", line)
    others = make_page(find_item("thread-v2", "table-3"), stored_rows()).notes
    assert not any("by group" in note for note in others)


def test_a_table_of_some_groups_of_tasks_has_those_alone():
    item = find_item("adapt", "table-3")
    rows = select_rows(item, stored_rows())
    groups = {find_group(row) for row in list_records(rows, *TASK)}
    assert groups == {"depth 2", "depth 3"}, "footnote 6: none of depth 4"
    assert len(select_rows(find_item("adapt", "table-2"), stored_rows())) > 0


@pytest.mark.slow
def test_ours_has_the_published_columns():
    for item in load_items():
        rows = select_rows(item, stored_rows())
        if item.study == "table" and len(rows):
            theirs, ours = make_published_table(item), make_our_table(item, rows)
            shared = [name for name in theirs.columns if name not in ("row", "model")]
            assert [name for name in ours.columns if name in shared] == shared, item.label
            assert {"n", "solved", "cut", "low", "high", "date"} <= set(ours.columns)


def test_our_numbers_are_those_of_the_rows():
    item = find_item("thread-v2", "table-1")
    table = make_our_table(item, select_rows(item, stored_rows())).set_index(["method", "model"])
    row = table.loc[("thread", "qwen2.5-coder-1.5b")]
    assert (row["solved"], row["n"], row["cut"]) == (8, 24, 11)
    assert row["All"] == pytest.approx(100 * 8 / 24)
    types = ["Pick", "Clean", "Heat", "Cool", "Look", "Pick2"]
    assert row[types].mean() == pytest.approx(row["All"])  # four games of each type


def test_the_published_table_is_as_it_is_printed():
    for item in load_items():
        numbers, table = item.load_numbers(), make_published_table(item)
        if len(numbers):
            cells = table.drop(columns=["row", "model"]).notna().to_numpy().sum()
            assert cells == len(numbers), item.label


@pytest.mark.slow
def test_a_page_can_be_made_again_and_says_where_its_rows_are_from():
    item = find_item("thread-v2", "table-3")
    page = make_page(item, stored_rows())
    assert page.markdown == make_page(item, load_stored_rows()).markdown
    assert "| TextCraft | thread | qwen2.5-coder-1.5b | 50.0 | 40 | 20 | 16 |" in page.markdown
    assert "THREAD | Llama-3-8b | 92.0" in page.markdown
    assert "python -m thread_kit reproduce thread-v2 table-3 --model MODEL" in page.markdown
    assert "textcraft-qwen.jsonl" in page.markdown


@pytest.mark.parametrize(
    ("paper", "item", "here", "elsewhere"),
    [
        ("adapt", "table-2", "32.0", "29.0 in Table 7"),
        ("adapt", "table-7", "29.0", "32.0 in Table 2"),
        (
            "adapt",
            "table-2",
            "19.0",
            "17.0 in Table 3 at most, with 21 of 78, 2 of 111 and all eleven of depth 4",
        ),
        ("adapt", "table-3", "26.9", "19.0 in Table 2 of all depths"),
        ("stateflow", "table-8", "21", "23 in the text of appendix B.2"),
    ],
)
def test_a_page_says_where_a_paper_contradicts_itself(paper, item, here, elsewhere):
    page = make_page(find_item(paper, item), stored_rows())
    remark = f"the paper contradicts itself**, {elsewhere}: {here} ("
    assert remark in page.markdown
    assert elsewhere in page.html
    assert elsewhere in " ".join(str(page).split())


@pytest.mark.parametrize("item", ["table-3", "table-4"])
def test_a_page_says_that_the_thread_paper_describes_another_tdag(item):
    page = make_page(find_item("thread-v2", item), stored_rows())
    (remark,) = (text for text in page.remarks if "TDAG" in text.partition(":")[0])
    assert "a planner that takes a failed step apart" in remark


def test_depths_stand_by_the_papers_count_and_by_the_kits():
    table = make_page(find_item("thread-v2", "table-7"), stored_rows()).ours.set_index(
        ["benchmark", "model"]
    )
    row = table.loc[("TextCraft", "qwen2.5-coder-1.5b")]
    assert row["average thread depth"] == pytest.approx(1 + row["depth, average"])
    assert (row["maximum thread depth"], row["depth, maximum"]) == (32, 31)
    assert pd.isna(table["accuracy"]["TextCraft"]).all()


@pytest.mark.slow
def test_runs_have_a_standard_error_and_traces_a_third_count_of_depths(tmp_path):
    from helpers.suites import shown_oracle

    import thread_kit as tk

    options = {"only": ["textcraft"], "tasks": 2, "temperature": 0.7, "progress": False}
    page = tk.reproduce("thread-v2", "table-7", {"o": shown_oracle()}, folder=tmp_path, **options)
    row = page.ours[page.ours["model"] == "o, temperature 0.7"].iloc[0]
    assert (row["runs"], row["n"], row["standard error"]) == (5, 10, 0)
    assert row["listening, average"] > row["average thread depth"]
    assert "Depths: the paper does not say how it counts" in page.markdown


@pytest.mark.slow
def test_a_saved_page_opens_without_a_network(tmp_path):
    page = make_page(find_item("thread-v2", "figure-6"), stored_rows())
    text = page.save(tmp_path / "page.html").read_text("utf-8")
    assert set(re.findall(r'src="([^"]+)"', text)) == {"plotly.min.js", "page.svg"}
    assert (tmp_path / "plotly.min.js").stat().st_size > 1_000_000
    picture = (tmp_path / "page.svg").read_text("utf-8")
    assert "misread results" in picture
    assert not re.search(r'(href|src)="http', picture)
    written = page.save(tmp_path / "page.md").read_text("utf-8")
    assert "](page.svg)" in written
    unlinked = [re.sub(r"!?\[.*?\]\(.*?\)", "", text) for text in (written, page.markdown)]
    assert unlinked[0].replace("\n\n\n", "\n") == unlinked[1].replace("\n\n\n", "\n")
    links = re.findall(r"\]\(([^)#]+)", written)
    assert len(links) > 3
    assert all((tmp_path / link).exists() for link in links)


@pytest.mark.slow
def test_the_list_says_how_many_items_have_which_state(monkeypatch):
    table = list_items(stored_rows())
    monkeypatch.setattr("thread_kit.analysis.item_list.list_items", lambda *_: table)
    text = describe_items(stored_rows())
    hours = table.set_index(["paper", "item"])["hours"]
    assert hours["thread-v2", "table-1"] > hours["thread-v2", "table-8"] > 0
    assert "134 episodes" in text
    assert len(table) == len(load_items()) == sum(map(sum, COUNTS.values()))
    for state, number in table["state"].value_counts().items():
        assert re.search(rf"  {state} +{number}  {re.escape(MEANINGS[State(state)])}", text)
    with pytest.raises(ValueError, match="there is no paper 'x' here; known: thread-v2"):
        list_items(stored_rows(), "x")


def test_a_heading_is_a_heading_and_no_other_line():
    assert find_place("notebooks/01_first_episode.ipynb#1. A finished episode")
    assert not find_place("notebooks/01_first_episode.ipynb#finished episode")
    assert not find_place("notebooks/no-such-notebook.ipynb")


def test_every_file_of_results_has_its_command_as_its_card_prints_it():
    commands = load_commands()
    for folder in ("results", "adapters"):
        card = (resource("data") / folder / "README.md").read_text("utf-8")
        files = {
            f"{folder}/{path.name}"
            for path in (resource("data") / folder).glob("*.jsonl")
            if not path.stem.endswith((ERRORS, ACTION_RUNS))
        }
        assert files == {file for file in commands if file.startswith(folder)}
        assert all(commands[file]["command"] in card for file in files)


@pytest.mark.parametrize("name", ["table-1", "Table 1", "table1", "TABLE 1"])
def test_an_item_is_found_by_the_words_of_its_paper(name):
    assert find_item("thread-v2", name).item == "table-1"
    assert find_item("thread-v2", "Fig. 4a").item == "figure-4"
    with pytest.raises(ValueError, match=r"thread-v2 has no 'Table 99'; it has: .*table-12"):
        find_item("thread-v2", "Table 99")
