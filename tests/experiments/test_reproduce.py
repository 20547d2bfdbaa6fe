"""An item of the papers by one call: what is missing is played, and its page is made."""

from __future__ import annotations

import pytest

import thread_kit as tk
from thread_kit.analysis.item_differences import list_differences
from thread_kit.analysis.item_states import State
from thread_kit.analysis.item_tables import select_rows
from thread_kit.analysis.paper_items import find_item
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.cli.main import main
from thread_kit.distill.textcraft_teacher import speak_thread
from thread_kit.experiments.results import Results

pytestmark = pytest.mark.slow

EXAMPLES = tk.load_prompt("textcraft").text


def oracle() -> tk.ScriptedEngine:
    """The oracle's words as THREAD, which take no notice of the few-shot prompt."""
    return tk.ScriptedEngine(lambda text: speak_thread(text.removeprefix(EXAMPLES)))


def test_without_a_model_nothing_is_played(tmp_path):
    page = tk.reproduce("thread-v2", "table-3", folder=tmp_path)
    assert page.state.rows == 520
    assert list(tmp_path.iterdir()) == []


def test_with_a_model_the_methods_of_the_paper_play_its_tasks(tmp_path):
    """The oracle's words are THREAD's; other methods fail with them, and are rows all the same."""
    page = tk.reproduce(
        "thread-v2", "table-3", {"oracle": oracle()}, tasks=2, folder=tmp_path, progress=False
    )
    rows = Results.load(tmp_path / "textcraft.jsonl").rows
    played = {row["method"] for row in rows}
    assert played == {"thread", "react", "adapt", "reflexion", "tdag", "decomp"}
    assert len(rows) == 2 * len(played)
    assert all(row["limits"]["calls"] is None or row["limits"]["calls"] > 50 for row in rows)
    ours = page.ours.set_index(["method", "model"]).loc[("thread", "oracle")]
    assert (ours["n"], ours["success rate"]) == (2, 100)
    assert page.state.state == State.STAND_IN
    item = find_item("thread-v2", "table-3")
    stored = load_stored_rows([tmp_path])
    fresh = list_differences(item, select_rows(item, stored[stored["model"] == "oracle"]))
    assert not [line for line in fresh if line.startswith(("earlier prompts", "budgets"))]
    assert "textcraft.jsonl: 12 episodes, oracle" in page.markdown

    before = (tmp_path / "textcraft.jsonl").read_bytes()
    again = tk.reproduce(
        "thread-v2", "table-3", {"oracle": oracle()}, tasks=2, folder=tmp_path, progress=False
    )
    assert (tmp_path / "textcraft.jsonl").read_bytes() == before  # played once
    assert again.markdown == page.markdown


def test_another_item_finds_what_was_played_for_the_first(tmp_path):
    tk.reproduce("adapt", "table-3", {"o": oracle()}, tasks=1, folder=tmp_path, progress=False)
    page = tk.reproduce("adapt", "figure-7", folder=tmp_path)
    assert {"react", "adapt"} <= set(page.ours.loc[page.ours["model"] == "o", "method"])
    assert page.figure is not None


def test_failures_and_misread_feedback_are_of_the_traces_that_were_kept(tmp_path):
    tk.reproduce("adapt", "table-3", {"o": oracle()}, tasks=1, folder=tmp_path, progress=False)
    failures = tk.reproduce("thread-v2", "figure-4", folder=tmp_path)
    rows = failures.ours[failures.ours["method"].str.contains(", o, ")]
    assert set(rows["n"]) == {1}
    misread = tk.reproduce("thread-v2", "figure-5", folder=tmp_path)
    assert misread.ours["method"].str.contains(", o, textcraft").any()


def test_some_of_an_items_benchmarks_and_methods_can_be_chosen(tmp_path):
    chosen = {"only": ["textcraft", "react"], "tasks": 1, "folder": tmp_path, "progress": False}
    tk.reproduce("adapt", "figure-7", {"o": oracle()}, **chosen)
    (row,) = Results.load(tmp_path / "textcraft.jsonl").rows
    assert row["method"] == "react"
    with pytest.raises(ValueError, match=r"ADaPT, Figure 7 has no 'thread'; it has: .*textcraft"):
        tk.reproduce("adapt", "figure-7", {"o": oracle()}, only=["thread"], folder=tmp_path)


def test_what_cannot_be_played_says_why():
    with pytest.raises(ValueError, match=r"ADaPT, Figure 9 cannot be played: it has no numbers"):
        tk.reproduce("adapt", "figure-9", {"o": oracle()})
    with pytest.raises(ValueError, match="there is no paper 'react' here; known: thread-v2"):
        tk.reproduce("react", "table-1")
    with pytest.raises(ValueError, match="adapt has no 'table-99'; it has: figure-1"):
        tk.reproduce("adapt", "table-99")


def test_the_command_lists_checks_and_writes_a_page(tmp_path, capsys):
    results = ["--results", str(tmp_path)]
    assert main(["reproduce", "--check", *results]) == 0
    assert "THREAD v1 (thread-v1)" in capsys.readouterr().out
    assert main(["reproduce", "stateflow", *results]) == 0
    assert "THREAD" not in capsys.readouterr().out.partition(" items:")[0].replace("StateFlow", "")
    out = tmp_path / "page.md"
    assert main(["reproduce", "adapt", "table-2", *results, "--out", str(out)]) == 0
    assert out.read_text("utf-8").startswith("# ADaPT, Table 2: WebShop and TextCraft")
    assert main(["reproduce", "adapt", "table-99", *results]) == 2
    assert "adapt has no 'table-99'" in capsys.readouterr().err
