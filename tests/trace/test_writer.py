"""A trace has one writer at a time, and its file is free once the episode is over."""

import os
import signal
import subprocess
import sys

import pytest

import thread_kit as tk
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.trace.episode import Episode
from thread_kit.trace.lock import LockedFile, LockError

REPLIES = ["First, I need 1 cup. =>", "print('cup')\n#END#", "\n#END#"]


def session(path) -> tk.Session:
    return tk.Session(ScriptedEngine(REPLIES), context="Goal: tea.", path=path)


@pytest.mark.slow
def test_a_second_session_on_the_path_of_a_running_one_is_refused(tmp_path):
    path = tmp_path / "mine.jsonl"
    first = session(path)
    next(first)
    with pytest.raises(LockError, match=r"another session .*mine\.jsonl; close that one .*path"):
        session(path)
    first.run(progress=False)
    assert Episode.load(path).events == first.episode.events
    assert [file.name for file in tmp_path.iterdir()] == ["mine.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_to_the_trace_of_a_running_session_is_the_same_file(tmp_path, link):
    first = session(tmp_path / "mine.jsonl")
    link(tmp_path / "mine.jsonl", tmp_path / "other.jsonl")
    with pytest.raises(LockError):
        session(tmp_path / "other.jsonl")
    first.close()


@pytest.mark.slow
def test_an_episode_is_not_saved_over_the_trace_that_is_being_written(tmp_path):
    path = tmp_path / "mine.jsonl"
    first = session(path)
    next(first)
    with pytest.raises(LockError, match=r"session is writing its trace to .*mine\.jsonl; close"):
        first.episode.save(path)
    first.run(progress=False)
    assert Episode.load(path).events == first.episode.events
    assert [file.name for file in tmp_path.iterdir()] == ["mine.jsonl"]
    assert Episode.load(first.episode.save(path)).events == first.episode.events


@pytest.mark.parametrize("end", ["run", "close", "stop", "drop"])
def test_the_path_is_free_once_the_session_is_over_or_garbage(tmp_path, end):
    path = tmp_path / "mine.jsonl"
    first = session(path)
    next(first)
    match end:
        case "run":
            first.run(progress=False)
        case "close":
            first.close()
        case "stop":
            first.stop()
            first.run(progress=False)
        case "drop":
            del first
    second = session(path)
    second.run(progress=False)
    assert Episode.load(path).events == second.episode.events
    assert not Episode.load(tmp_path / "mine.1.jsonl").status.is_live


def test_the_path_is_free_once_the_disk_was_full(tmp_path, monkeypatch):
    def fail(file, data):
        raise OSError("no space left on device")

    first = session(tmp_path / "mine.jsonl")
    with monkeypatch.context() as full:
        full.setattr("thread_kit.trace.lock.write_line", fail)
        assert "no space" in first.run(progress=False).detail
    session(tmp_path / "mine.jsonl").run(progress=False)


HOLD = """
import sys
from pathlib import Path
from thread_kit.trace.lock import LockedFile
held = LockedFile(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_file_is_free_once_its_writer_is_killed(tmp_path):
    path = tmp_path / "mine.jsonl"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(LockError, match=r"mine\.jsonl"):
            LockedFile(path)
        other.send_signal(signal.SIGKILL)
        other.wait()
    LockedFile(path).close()


@pytest.mark.slow
def test_a_forked_process_that_ends_gives_nothing_back(tmp_path):
    first = LockedFile(tmp_path / "mine.jsonl")
    if (child := os.fork()) == 0:
        first.close()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(LockError):
        LockedFile(tmp_path / "mine.jsonl")
    first.close()


def test_what_is_no_regular_file_can_have_any_number_of_writers():
    for _ in range(2):
        assert session("/dev/null").run(progress=False).status.value == "ended"
    one, other = session("/dev/null"), session("/dev/null")
    one.close()
    other.close()
