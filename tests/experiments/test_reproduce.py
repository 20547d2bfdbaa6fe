"""An item of the papers by one call: what is missing is played, and its page is made."""

from __future__ import annotations

import json
import os
import shutil

import pandas as pd
import pytest
from helpers.real_server import needs_server, start_server
from helpers.suites import shown_oracle as oracle
from helpers.weights import few_layers

import thread_kit as tk
from thread_kit.analysis.item_differences import list_differences
from thread_kit.analysis.item_states import State
from thread_kit.analysis.item_tables import select_rows
from thread_kit.analysis.paper_items import find_item
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.analysis.trace_summaries import load_action_runs, write_summaries
from thread_kit.cli.main import main
from thread_kit.engines.engine import EngineError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.budgets import Limit
from thread_kit.experiments.reproduce import _list_tasks, _make_suites
from thread_kit.experiments.results import Results
from thread_kit.trace.jsonl import replace_lines

pytestmark = pytest.mark.slow

OF_A_PROCESS = ("seconds", "at_once", "trace", "reused", "evaluated")
"""Of a row, what depends on the engine that was at hand: a worker's cache is its own."""


def test_without_a_model_nothing_is_played(tmp_path):
    page = tk.reproduce("thread-v2", "table-3", folder=tmp_path)
    assert page.state.rows == 615
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
    command = "python -m thread_kit reproduce thread-v2 table-3 --model oracle --tasks 2"
    assert f"by `{command}`" in page.markdown

    commands = tmp_path / "runs.csv"  # one may note something beside them
    commands.write_text(
        commands.read_text("utf-8").replace("--tasks 2,", "--tasks 2,mine"), "utf-8"
    )
    again = tk.reproduce(
        "thread-v2", "table-3", {"oracle": oracle()}, tasks=2, folder=tmp_path, progress=False
    )
    after = Results.load(tmp_path / "textcraft.jsonl").rows
    assert len(after) == len(rows)
    whole = [row for row in rows if not row["error"]]
    assert [row for row in after if row in whole] == whole  # played once, but for what broke down
    assert again.markdown == page.markdown


def test_what_broke_down_is_told_and_played_again(tmp_path):
    class Down(ScriptedEngine):
        def step(self):
            raise EngineError("the server does not answer")

    chosen = {"only": ["textcraft", "thread"], "tasks": 2, "folder": tmp_path, "progress": False}
    page = tk.reproduce("thread-v2", "table-3", {"o": Down([])}, **chosen)
    ours = page.ours.set_index(["method", "model"]).loc[("thread", "o")]
    assert (ours["n"], ours["solved"], ours["broke down"]) == (2, 0, 2)
    assert "2 of 617 episodes broke down" in page.markdown
    page = tk.reproduce("thread-v2", "table-3", {"o": oracle()}, **chosen)
    ours = page.ours.set_index(["method", "model"]).loc[("thread", "o")]
    assert (ours["n"], ours["solved"]) == (2, 2)


def test_fewer_goals_of_the_shop_are_among_the_papers_own():
    item, shop = find_item("thread-v2", "table-4"), BENCHMARKS["webshop"]
    numbers = [task["number"] for task in _list_tasks(item, shop, 20, (), "test")]
    assert (len(numbers), max(numbers)) == (20, 95)


def test_another_item_finds_what_was_played_for_the_first(tmp_path):
    tk.reproduce("adapt", "table-3", {"o": oracle()}, tasks=1, folder=tmp_path, progress=False)
    page = tk.reproduce("adapt", "figure-7", folder=tmp_path)
    assert {"react", "adapt"} <= set(page.ours.loc[page.ours["model"] == "o", "method"])
    assert page.figure is not None


def test_what_another_item_keeps_in_a_file_of_its_own_is_not_played_again(tmp_path):
    """As THREAD's on ALFWorld, where another method of the item has another paper's budget."""
    chosen = {"only": ["textcraft", "thread"], "tasks": 1, "folder": tmp_path, "progress": False}
    tk.reproduce("thread-v2", "table-3", {"o": oracle()}, **chosen)
    (tmp_path / "textcraft.jsonl").rename(tmp_path / "textcraft-other.jsonl")

    def ask(text: str) -> str:
        raise AssertionError("a model was asked")

    tk.reproduce("thread-v2", "table-3", {"o": type(oracle())(ask)}, **chosen)
    rows = [Results.load(tmp_path / f"textcraft{more}.jsonl").rows for more in ("", "-other")]
    assert rows[0] == rows[1]
    stored = load_stored_rows([tmp_path])
    assert len(stored[stored["model"] == "o"]) == 1


def test_failures_and_misread_feedback_are_of_the_traces_that_were_kept(tmp_path):
    tk.reproduce("adapt", "table-3", {"o": oracle()}, tasks=1, folder=tmp_path, progress=False)
    failures = tk.reproduce("thread-v2", "figure-4", folder=tmp_path)
    rows = failures.ours[failures.ours["method"].str.contains(", o, ")]
    assert set(rows["n"]) == {1}
    misread = tk.reproduce("thread-v2", "figure-5", folder=tmp_path)
    assert misread.ours["method"].str.contains(", o, textcraft").any()


def test_what_was_counted_in_traces_stays_when_they_go(tmp_path):
    tk.reproduce("adapt", "table-3", {"o": oracle()}, tasks=1, folder=tmp_path, progress=False)
    items = ("figure-4", "figure-5")
    before = [tk.reproduce("thread-v2", item, folder=tmp_path).ours for item in items]
    write_summaries(tmp_path / "textcraft.jsonl")
    shutil.rmtree(tmp_path / "textcraft-traces")
    after = [tk.reproduce("thread-v2", item, folder=tmp_path).ours for item in items]
    assert all(map(pd.DataFrame.equals, before, after))
    with pytest.raises(ValueError, match=r"no trace of its episodes is there.*--traces"):
        write_summaries(tmp_path / "textcraft.jsonl")


def test_a_trace_that_was_written_after_the_summary_counts(tmp_path):
    """As after a retry: what the summary says is of the episode before."""
    tk.reproduce("adapt", "table-3", {"o": oracle()}, tasks=1, folder=tmp_path, progress=False)
    path = tmp_path / "textcraft.jsonl"
    rows = Results.load(path).frame.assign(path=str(path))
    write_summaries(path)
    known = load_action_runs(rows)
    beside = tmp_path / "textcraft-action-runs.jsonl"
    stale = [{"trace": trace, "runs": [[77, 0]]} for trace in rows["trace"]]
    replace_lines(beside, stale)
    assert set(load_action_runs(rows)["actions"]) == {77}
    for trace in (tmp_path / "textcraft-traces").iterdir():
        os.utime(trace, ns=(beside.stat().st_mtime_ns + 1,) * 2)
    assert load_action_runs(rows).equals(known)


def test_what_the_kit_has_of_the_same_episodes_is_taken_over_and_not_played(tmp_path, monkeypatch):
    chosen = {"only": ["textcraft", "thread"], "tasks": 2, "progress": False}
    first = tmp_path / "first"
    tk.reproduce("thread-v2", "table-3", {"o": oracle()}, folder=first, **chosen)
    rows = Results.load(first / "textcraft.jsonl").rows
    monkeypatch.setattr("thread_kit.experiments.reproduce.load_kit_rows", lambda *where: rows)

    class Silent(type(oracle())):
        def step(self):
            raise AssertionError("a model was asked")

    engine = Silent(lambda text: "")
    page = tk.reproduce("thread-v2", "table-3", {"o": engine}, folder=tmp_path / "then", **chosen)
    assert Results.load(tmp_path / "then" / "textcraft.jsonl").rows == rows
    assert page.ours.set_index("model").loc["o", "n"] == 2
    both = load_stored_rows([first, tmp_path / "then"])
    assert len(both[both["model"] == "o"]) == 2  # taken over, they are there once
    part = tmp_path / "part" / "textcraft.jsonl"
    part.parent.mkdir()
    part.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    twice = load_stored_rows([first, first, first / "..", first])
    assert len(twice[twice["model"] == "o"]) == 2
    models = load_stored_rows([first, part.parent]).query("path.str.contains(@tmp_path.name)")
    assert len(models[models["path"].str.contains("first")]) == 2  # no run is torn in two
    assert len(models[models["path"].str.contains("part")]) == 1


@pytest.mark.parametrize(
    ("item", "options", "message"),
    [
        (("thread-v2", "table-3"), {"temperature": 0.7}, "is of greedy runs"),
        (("adapt", "table-2"), {"planner": {"other": tk.ScriptedEngine([])}}, "one model for all"),
        (("thread-v2", "table-3"), {"split": "dev"}, "shows no tasks of 'dev'; it shows: test"),
    ],
)
def test_what_a_page_would_not_show_is_not_played(tmp_path, item, options, message):
    with pytest.raises(ValueError, match=message):
        tk.reproduce(*item, {"m": tk.ScriptedEngine([])}, folder=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("thread-v2 --model smollm2-135m --only texcraft", "--only texcraft: no item has such"),
        ("--plan --tasks 3", "--tasks is for what is played; --plan plays nothing"),
        ("--plan --model x", "--model is for what is played; --plan plays nothing"),
        ("adapt --nearest --at-once 8", "--nearest, --at-once is for what is played; give --model"),
        ("--prices prices.csv", "--prices is for --plan"),
        ("--check --temperature 2 --server http://x", "--temperature, --server is for what"),
        ("thread-v2 table-3 --context 17 --quantize Q8_0", "--quantize, --context is for what"),
        ("thread-v2 table-3 --draft 4", "--draft is for what is played"),
        ("--results no/such/folder", "--results no/such/folder is no folder"),
        ("thread-v2 table-3 --out page.txt", "--out page.txt: a page is .md or .html"),
    ],
)
def test_options_that_would_do_nothing_are_refused(capsys, words, message):
    assert main(["reproduce", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_benchmark_that_is_named_is_the_only_one(monkeypatch, capsys):
    played = []

    def reproduce(paper, item, models, *, only, **options):
        played.append(only)
        raise ValueError("enough")

    monkeypatch.setattr("thread_kit.experiments.reproduce.reproduce", reproduce)
    assert (
        main(["reproduce", "thread-v2", "--model", "smollm2-135m", "--only", "textcraft", "thread"])
        == 0
    )
    assert played
    assert all(only == ["textcraft", "thread"] for only in played)


def test_another_split_and_methods_by_their_slugs(tmp_path, capsys):
    command = ["reproduce", "adapt", "figure-5", "--model", "helpers.suites:shown_oracle"]
    command += ["--split", "generated", "--tasks", "1", "--results", str(tmp_path)]
    pytest.importorskip("textworld")
    assert main([*command, "--only", "react-hybrid"]) == 0
    (row,) = Results.load(tmp_path / "alfworld.jsonl").rows
    assert row["task"]["split"] == "generated"
    text = " ".join(capsys.readouterr().out.split())
    assert "games made here instead of valid_seen" in text
    assert "--tasks 1 --split generated" in text
    command[1:3] = ["thread-v1", "figure-4"]
    assert main([*command, "--only", "textcraft", "thread-no-variables"]) == 0
    (row,) = Results.load(tmp_path / "textcraft.jsonl").rows
    assert row["method"] == "thread, no variables"


def test_some_of_an_items_benchmarks_and_methods_can_be_chosen(tmp_path):
    chosen = {"only": ["textcraft", "react"], "tasks": 1, "folder": tmp_path, "progress": False}
    tk.reproduce("adapt", "figure-7", {"o": oracle()}, **chosen)
    (row,) = Results.load(tmp_path / "textcraft.jsonl").rows
    assert row["method"] == "react"
    with pytest.raises(ValueError, match=r"ADaPT, Figure 7 has no 'thread'; it has: .*textcraft"):
        tk.reproduce("adapt", "figure-7", {"o": oracle()}, only=["thread"], folder=tmp_path)


def test_a_split_that_nothing_has_is_no_other_one(tmp_path):
    chosen = {"only": ["textcraft", "thread"], "tasks": 1, "folder": tmp_path, "progress": False}
    with pytest.raises(ValueError, match=r"has the split 'tst'; they have: test"):
        tk.reproduce("thread-v2", "table-3", {"o": oracle()}, split="tst", **chosen)


def test_what_cannot_be_played_says_why():
    with pytest.raises(ValueError, match=r"ADaPT, Figure 9 cannot be played: it has no numbers"):
        tk.reproduce("adapt", "figure-9", {"o": oracle()})
    with pytest.raises(ValueError, match="there is no paper 'react' here; known: thread-v2"):
        tk.reproduce("react", "table-1")
    with pytest.raises(ValueError, match="adapt has no 'table-99'; it has: figure-1"):
        tk.reproduce("adapt", "table-99")


@pytest.fixture
def scheduler():
    """The address of a Dask cluster of two worker processes."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_a_cluster_of_two_workers_plays_what_one_process_plays(tmp_path, scheduler, capsys):
    command = ["reproduce", "thread-v2", "table-3", "--model", "helpers.suites:shown_oracle"]
    command += ["--only", "thread", "--tasks", "4", "--results"]
    assert main([*command, str(tmp_path / "here")]) == 0
    assert main([*command, str(tmp_path / "there"), "--executor", scheduler]) == 0
    capsys.readouterr()
    here, there = (
        [
            {name: value for name, value in row.items() if name not in OF_A_PROCESS}
            for row in Results.load(tmp_path / folder / "textcraft.jsonl").rows
        ]
        for folder in ("here", "there")
    )
    assert sorted(here, key=str) == sorted(there, key=str)
    assert [row["solved"] for row in here] == [True] * 4
    traces = list((tmp_path / "there" / "textcraft-traces").iterdir())
    assert len(traces) == 4


def test_without_an_item_all_of_a_paper_is_played_and_what_is_not_here_is_said(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    command = ["reproduce", "adapt", "--model", "helpers.suites:shown_oracle", "--tasks", "1"]
    command += ["--only", "react", "react-hybrid", "--results", str(tmp_path)]
    command += ["--mariadb"]  # a rule of another benchmark
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "ADaPT, Table 1 on alfworld\n  left out: no ALFWorld games in" in text
    assert f"ADaPT, Table 3 on textcraft\n  {tmp_path / 'adapt-table-3.html'}" in text
    assert (tmp_path / "adapt-figure-7.svg").exists()
    assert {row["method"] for row in Results.load(tmp_path / "textcraft.jsonl").rows} == {"react"}
    command[3] = "helpers.suites:nothing_such"
    assert main(command) == 2
    assert "nothing_such" in capsys.readouterr().err


def test_an_executor_that_there_is_not_is_named(tmp_path, capsys):
    command = ["reproduce", "thread-v2", "table-3", "--results", str(tmp_path), "--model", "none"]
    assert main([*command, "--executor", "ssh://somewhere"]) == 2
    assert "give dask://HOST:PORT or processes://N" in capsys.readouterr().err


@pytest.mark.model
@needs_server
def test_a_model_on_llama_server_is_asked_there(tmp_path, capsys, monkeypatch):
    """Plan & Solve has a short prompt, and here two rounds of few tokens."""
    monkeypatch.setattr("thread_kit.experiments.method_builders.own_limit", lambda *whose: 2)
    few = {"new_tokens": Limit(30, "a test")}
    monkeypatch.setattr("thread_kit.experiments.job.budget_of", lambda *whose: few)
    command = ["reproduce", "stateflow", "table-1", "--only", "plan-and-solve", "--tasks", "1"]
    with start_server(tmp_path, context=10_240, model=few_layers()) as url:
        command += ["--model", "smollm2-135m", "--server", url, "--results", str(tmp_path)]
        assert main(command) == 0
    (row,) = Results.load(tmp_path / "sql.jsonl").rows
    assert (row["model"], row["error"]) == ("smollm2-135m", "")
    assert row["calls"] > 0
    assert (row["engine"]["engine"], row["engine"]["tokens"]) == ("server", "the model's")
    assert "--server URL" in capsys.readouterr().out


def test_the_plan_says_what_the_papers_models_cost(tmp_path, capsys):
    assert main(["reproduce", "--plan", "adapt", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "LLaMA-2-70B-chat" in text
    assert "assumed: 16 bits, vLLM" in text
    own = tmp_path / "prices.csv"
    own.write_text("model,input,output,date,source\nother,1,1,2026-01-01,mine\n", encoding="utf-8")
    assert main(["reproduce", "--plan", "adapt", "--prices", str(own)]) == 2
    assert "there is no price of 'text-davinci-003'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_lists_checks_and_writes_a_page(tmp_path, capsys):
    results = ["--results", str(tmp_path)]
    assert main(["reproduce", "--check", *results]) == 0
    assert "items hold: their rows" in capsys.readouterr().out
    for idle in (["--check", "thread-v2"], ["thread-v2", "--out", "page.md"], ["--tasks", "3"]):
        assert main(["reproduce", *idle]) == 2
    assert "--tasks is for what is played; give --model" in capsys.readouterr().err
    assert main(["reproduce", "stateflow", *results]) == 0
    assert "THREAD" not in capsys.readouterr().out.partition(" items:")[0].replace("StateFlow", "")
    out = tmp_path / "page.md"
    assert main(["reproduce", "adapt", "table-2", *results, "--out", str(out)]) == 0
    assert out.read_text("utf-8").startswith("# ADaPT, Table 2: WebShop and TextCraft")
    assert main(["reproduce", "adapt", "table-99", *results]) == 2
    assert "adapt has no 'table-99'" in capsys.readouterr().err


@pytest.mark.parametrize("repeats", [False, True])
def test_a_model_behind_a_server_is_asked_again_where_the_paper_has_several_runs(tmp_path, repeats):
    """Two greedy runs differ there, as the paper's did (THREAD paper, Table 7)."""
    options = {"only": ["textcraft"], "tasks": 1, "split": "", "temperature": 0.0, "rules": ()}
    item, models = find_item("thread-v2", "table-7"), {"m": ScriptedEngine([])}
    (suite,) = _make_suites(item, models, {}, **options, repeats=repeats, folder=tmp_path)
    assert len(suite.seeds) == (5 if repeats else 1)
