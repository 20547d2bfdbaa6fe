"""A memory is a file: what a model wrote comes back from it, and what is none is one error."""

from __future__ import annotations

import pytest

from thread_kit.cli.main import main
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
