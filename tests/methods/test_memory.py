"""A memory is a file: what a model wrote comes back from it, and what is none is one error."""

from __future__ import annotations

import pytest

from thread_kit.cli.main import main
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.memories import main as make_memory
from thread_kit.methods.memory import Guideline, Log, read_records, write_records

ODD = "a\u2028b\x85c\x0bd\x1ce\ud800f\x1b[2J\r\n"


def test_whatever_a_model_has_written_comes_back(tmp_path):
    path = tmp_path / "rap.jsonl"
    logs = [Log(ODD, ODD, ODD, ((ODD, ODD),)), Log("", "", "", ())]
    write_records(path, [*logs, Guideline(ODD, ODD)])
    *read, guideline = read_records(path)
    assert [Log.of(record) for record in read] == logs
    assert Guideline.of(guideline) == Guideline(ODD, ODD)


def test_what_cannot_be_written_leaves_the_memory_as_it_was(tmp_path):
    path = tmp_path / "rap.jsonl"
    write_records(path, [{"a": 1}])
    with pytest.raises(TypeError):
        write_records(path, [{"a": 2}, 5])
    assert read_records(path) == [{"a": 1}]
    assert [file.name for file in tmp_path.iterdir()] == ["rap.jsonl"]


@pytest.mark.parametrize(
    "line", ["[" * 100_000, "5", "null", "{", '"x"', "[]", "\ufeff{}", "\xff"], ids=repr
)
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "rap.jsonl"
    path.write_bytes(b"{}\n" + line.encode("latin-1", "replace") + b"\n")
    with pytest.raises(ValueError, match=r"rap\.jsonl, line 2: no record of a memory"):
        read_records(path)


def test_an_empty_memory_is_one(tmp_path):
    (tmp_path / "rap.jsonl").write_text("\n\n")
    assert read_records(tmp_path / "rap.jsonl") == []


@pytest.mark.parametrize(
    ("method", "record", "message"),
    [
        ("rap", '{"task": 1, "kind": 2, "plan": 3, "steps": [5]}', "no log of an episode"),
        ("rap", '{"task": 1}', "no log of an episode"),
        ("autoguide", '{"context": "\x1b[2J"}', "no guideline"),
        ("autoguide", "[]", "autoguide-webshop.jsonl, line 1: no record"),
    ],
)
def test_a_memory_of_ones_own_that_is_none_is_one_line(
    tmp_path, monkeypatch, capsys, method, record, message
):
    monkeypatch.setenv("THREAD_KIT_MEMORIES", str(tmp_path))
    (tmp_path / f"{method}-webshop.jsonl").write_text(record.replace("\x1b", "\\u001b"))
    arguments = ["run", "--env", "webshop", "--split", "dev", "--method", method]
    assert main([*arguments, "--model", "smollm2-135m", "--adapter", "none"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rap", "--calls", "5"], "rap asks no model"),
        (["rap", "--cpu-threads", "1"], "rap asks no model"),
        (["autoguide", "--calls", "-5"], "calls=-5 leaves nothing to do"),
    ],
)
def test_a_number_that_says_nothing_makes_no_memory(tmp_path, capsys, arguments, words):
    out = tmp_path / "memory.jsonl"
    assert make_memory([*arguments, "--env", "webshop", "--out", str(out)]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


OWN = """
import thread_kit as tk

def tasks(split):
    return [{"split": split, "number": number} for number in range(3)]

class Shelf(tk.TextCraft):
    name = "shelf"

    def __init__(self, split, number):
        super().__init__("dev", number)

SHELF = tk.Benchmark("shelf", Shelf, tasks, splits=("test", "train"))
BARE = tk.Benchmark("bare", Shelf, tasks)
"""


def test_the_memory_of_a_benchmark_of_ones_own_is_made_where_it_is_read(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "own_shelf.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("shelf", "bare"):
        monkeypatch.setitem(BENCHMARKS, name, None)  # so that it goes again
        del BENCHMARKS[name]
    monkeypatch.setenv("THREAD_KIT_MEMORIES", str(tmp_path / "memories"))
    run = ["run", "--env", "own_shelf:SHELF", "--method", "rap", "--task", "0"]
    assert main(run) == 2
    told = capsys.readouterr().err
    assert "thread_kit.experiments.memories rap --env module:name" in told
    assert "THREAD_KIT_MEMORIES" in told
    assert make_memory(["rap", "--env", "own_shelf:SHELF", "--tasks", "2"]) == 0
    assert len(read_records(tmp_path / "memories" / "rap-shelf.jsonl")) == 2
    assert main(run) == 2
    assert "no memory" not in capsys.readouterr().err
    assert make_memory(["rap", "--env", "own_shelf:BARE"]) == 2
    assert "splits=('test', 'train')" in capsys.readouterr().err
    assert make_memory(["rap", "--env", "nowhere"]) == 2
    assert "no benchmark 'nowhere'" in capsys.readouterr().err
