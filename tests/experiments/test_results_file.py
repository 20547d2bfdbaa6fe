"""The file of a suite: what is no row is one error, each episode counts once, one suite writes."""

import errno
import json
import os
from pathlib import Path

import pytest
from helpers.suites import suite

from thread_kit.experiments.job import _file_name
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import (
    RENAMED,
    EpisodeKey,
    ResultsFile,
    ResultsFileError,
    read_results,
)
from thread_kit.trace import lock

ROW = {
    "method": "thread",
    "model": "m",
    "prompt": "p",
    "settings": "s",
    "task": {"number": 1},
    "seed": 0,
    "solved": True,
    "error": "",
    "limits": {"calls": 200},
    "engine": {"name": "m"},
}


def write(path, *rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def without(name: str) -> dict:
    return {key: value for key, value in ROW.items() if key != name}


@pytest.mark.parametrize(
    "row",
    [
        *[without(name) for name in ROW],
        {**ROW, "seed": float("inf")},
        {**ROW, "seed": float("nan")},
        {**ROW, "seed": 1e300},
        {**ROW, "seed": True},
        {**ROW, "method": ["thread"]},
        {**ROW, "model": {}},
        {**ROW, "task": "one"},
        {**ROW, "solved": "yes"},
        {**ROW, "error": None},
        {**ROW, "limits": 3},
        {**ROW, "status": ["ended"]},
        {**ROW, "environment": 1.5},
        {**ROW, "calls": "many"},
        {**ROW, "threads": {}},
        {**ROW, "reward": float("nan")},
        {**ROW, "out_of_actions": []},
        {**ROW, "budget": "paper"},
        {**ROW, "number": 10**400},
        [ROW],
    ],
)
def test_a_row_of_another_version_is_one_error_with_its_line(tmp_path, row):
    path = tmp_path / "r.jsonl"
    write(path, ROW, row)
    with pytest.raises(ResultsFileError, match=r"r\.jsonl, line 2: no episode of a suite"):
        Results.load(path)
    before = path.read_bytes()
    with pytest.raises(ResultsFileError, match="line 2"):
        ResultsFile(path)
    assert path.read_bytes() == before


def test_brackets_without_end_are_one_error(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(ResultsFileError, match="line 1"):
        read_results(path)


def test_an_episode_that_stands_there_twice_counts_once(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, ROW, {**ROW, "seed": 1}, ROW)
    assert repr(Results.load(path)) == "Results(2 episodes, 2 solved)"
    with ResultsFile(path) as results:
        assert results.rows == [ROW, {**ROW, "seed": 1}]


def test_several_files_are_read_as_one(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    write(first, ROW)
    write(second, {**ROW, "seed": 1}, ROW)
    assert Results.load(first, second).rows == [ROW, {**ROW, "seed": 1}]
    write(second, {**ROW, "solved": False})
    with pytest.raises(ResultsFileError, match=r"second\.jsonl, line 1: .* another outcome"):
        Results.load(first, second)


def test_two_outcomes_of_one_episode_are_refused(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, ROW, {**ROW, "solved": False})
    with pytest.raises(ResultsFileError, match=r"line 2: .* another outcome; delete one"):
        read_results(path)


@pytest.mark.parametrize("path", ["/dev/full", "/dev/zero", "/"])
def test_what_is_no_file_is_refused_and_not_read_without_end(path):
    for read in (read_results, ResultsFile):
        with pytest.raises(ResultsFileError, match="is no file"):
            read(path)


def test_a_full_disk_is_said_of_its_file_and_what_was_written_stays(tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "r.jsonl"
    with ResultsFile(path) as file:
        file.append(ROW)
        with monkeypatch.context() as full:
            full.setattr(lock, "write_line", fail)
            full.setattr(Path, "write_text", fail)
            for write_row in (file.append, file.replace):
                with pytest.raises(OSError, match=r"No space left on device: '.*r\.jsonl'"):
                    write_row({**ROW, "seed": 1})
        assert file.rows == read_results(path) == [ROW]


@pytest.mark.slow
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_to_the_file_of_another_suite_is_that_file(tmp_path, link):
    path, other = tmp_path / "r.jsonl", tmp_path / "other.jsonl"
    with ResultsFile(path):
        link(path, other)
        with pytest.raises(ResultsFileError, match=r"another suite is writing to .*other\.jsonl"):
            ResultsFile(other)
    ResultsFile(other).close()
    assert {file.name for file in tmp_path.iterdir()} == {"r.jsonl", "other.jsonl"}


@pytest.mark.slow
def test_the_file_that_takes_its_place_is_locked_too(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, ROW, {**ROW, "seed": 1, "error": "broke down"})
    with ResultsFile(path) as results:
        results.drop(lambda row: bool(row["error"]))
        assert read_results(path) == [ROW]
        with pytest.raises(ResultsFileError, match="another suite"):
            ResultsFile(path)
        results.append({**ROW, "seed": 2})
    assert read_results(path) == [ROW, {**ROW, "seed": 2}]


def folder_of(path) -> str:
    return suite(path, traces=True)._traces.name


def test_every_file_has_a_folder_of_traces_of_its_own(tmp_path):
    names = [folder_of(tmp_path / name) for name in ("a.jsonl", "a.json", "a")]
    assert names == ["a-traces", "a.json-traces", "a.-traces"]


def test_a_folder_of_traces_of_before_is_found(tmp_path):
    (tmp_path / "a-traces").mkdir()
    assert folder_of(tmp_path / "a.json") == "a-traces"
    (tmp_path / "a.jsonl").touch()
    assert folder_of(tmp_path / "a.json") == "a.json-traces"
    assert folder_of(tmp_path / "a.jsonl") == "a-traces"


@pytest.mark.parametrize("text", ["苔" * 300, "é" * 300, "x" * 300, "\ud800" * 300])
def test_a_long_task_in_any_script_has_a_name_that_a_file_can_have(tmp_path, text):
    names = {
        _file_name(EpisodeKey("thread", "m", "p", "s", json.dumps({"text": text}), seed))
        for seed in (0, 1)
    }
    for name in names:
        (tmp_path / name).with_suffix(".before").touch()
    assert len(list(tmp_path.iterdir())) == 2


# Rows of before


@pytest.mark.parametrize("name", RENAMED)
def test_a_row_of_before_has_its_methods_new_name_and_says_the_old_one(tmp_path, name):
    path = tmp_path / "r.jsonl"
    old = {**ROW, "method": name}
    path.write_text(json.dumps(old) + "\n" + json.dumps({**old, "state": None}) + "\n")
    first, second = read_results(path)
    assert (first["method"], first["was"]) == (RENAMED[name], name)
    assert (second["method"], "was" in second) == (name, False)
    with ResultsFile(path) as file:
        file.drop(lambda row: False)
    assert read_results(path) == [first, second]
