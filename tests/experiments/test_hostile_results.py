"""A results file of a stranger: what it says is read, and reaches no page, figure or other file."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from helpers.suites import THREAD, oracle, suite, tasks

from thread_kit.analysis.page_forms import to_markdown, to_text
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import ResultsFileError, read_results
from thread_kit.views.table import Table

ESCAPE = "\x1b]0;title\x07"


def write(path, **changed):
    """A file with the row of an episode that was not started, changed in this."""
    row = {"method": "thread", "model": "m", "prompt": "", "settings": "", "seed": 0}
    row |= {"error": "no start", "task": {"split": "dev", "number": 40}, "solved": False}
    row |= {"limits": None, "engine": None, "environment": "textcraft", **changed}
    path.write_text(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize("name", ["method", "model", "environment"])
@pytest.mark.parametrize(
    "text",
    [
        *("<img src=x onerror=alert(1)>", "![p](https://example.org/p.png)", r"$\frac$", "a|b"),
        *("a\n\n# Heading", ESCAPE, "\ud800", "`code`", "<a href='https://example.org'>x</a>"),
    ],
)
def test_a_name_that_acts_on_a_page_is_none(tmp_path, name, text):
    with pytest.raises(ResultsFileError, match=f"line 1: .*{name} is .*acts on a page"):
        read_results(write(tmp_path / "r.jsonl", **{name: text}))


@pytest.mark.parametrize(
    "trace",
    [
        *("../other.jsonl", "/etc/passwd", "r-traces/..", "r-traces/\0", "r-traces/\ud800.jsonl"),
        *("./r-traces/a.jsonl", "r-traces/a/b.jsonl", "a.jsonl", "r-traces/" + "a" * 300),
    ],
)
def test_a_trace_lies_in_a_folder_beside_the_file(tmp_path, trace):
    with pytest.raises(ResultsFileError, match=r"trace is .*no file in a folder beside"):
        read_results(write(tmp_path / "r.jsonl", trace=trace))


def test_a_row_of_a_stranger_takes_away_no_trace_but_its_own(tmp_path):
    path = tmp_path / "r.jsonl"
    given = {"methods": [THREAD], "models": {"oracle": oracle}, "traces": True}
    (kept,) = suite(path, tasks=tasks(47), **given).run(progress=False)
    lines = path.read_text()
    stranger = write(tmp_path / "other.jsonl", model="oracle", trace=kept["trace"])
    path.write_text(lines + stranger.read_text())
    suite(path, tasks=tasks(40), **given).run(progress=False)
    assert (tmp_path / kept["trace"]).is_file()
    assert len(read_results(path)) == 2


def test_what_an_error_says_acts_on_no_terminal(tmp_path):
    results = Results.load(write(tmp_path / "r.jsonl", error=f"Broken: {ESCAPE}"))
    assert "\x1b" not in repr(results)
    frame = pd.DataFrame({f"a{ESCAPE}": [f"b{ESCAPE}\n# <script>alert(1)</script> ![x](y) |"]})
    sections = [("Rows", frame), ("Notes", (f"it says {ESCAPE}",))]
    assert "\x1b" not in repr(Table(frame)) + to_text("A page", sections)
    (row,) = to_markdown("A page", sections[:1]).splitlines()[-1:]
    assert (row[:3], row[-2:]) == ("| b", " |")
    assert not [mark for mark in ("<script>", "![") if mark in row]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,date,command\nr.jsonl,1,x\n", "no list of commands, with command, date, file"),
        ("file,date,command\nr.jsonl,1," + "x" * 200_000 + "\n", "no list of commands .*limit"),
        (f"file,date,command\nr.jsonl,1,x{ESCAPE}\n", "acts on a page"),
        ("file,date,command\nr.jsonl,1,x` ![p](https://example.org)\n", "acts on a page"),
    ],
)
def test_a_list_of_commands_that_is_none_is_one_error(tmp_path, text, words):
    write(tmp_path / "r.jsonl")
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"runs\.csv.*{words}"):
        load_stored_rows([tmp_path])


def test_a_row_without_a_temperature_is_one_of_greedy_play(tmp_path):
    write(tmp_path / "r.jsonl", status="ended", reward=0.0)
    rows = load_stored_rows([tmp_path])
    assert "m" in set(rows["model"])
