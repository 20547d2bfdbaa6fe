"""Engines of one machine count each other, and take no more threads than there are cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from thread_kit.engines import core_share
from thread_kit.engines.core_share import CoreShare
from thread_kit.engines.models import load_model
from thread_kit.paths import cache_folder

COMPUTES = """
import sys
import threading
from thread_kit.engines import core_share
core_share.own_cores = lambda: {cores}
share = core_share.CoreShare({fixed})
print(share.take(), flush=True)
sys.stdin.readline()
share.rest() if "rest" in sys.argv else share.close()
print(flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(core_share, "own_cores", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(core_share, "AGAIN", 0.0)


@pytest.fixture
def start():
    """Starts another process whose engine computes, and says how many threads it took."""
    processes = []

    def begin(cores=(0, 1, 2, 3), fixed=None, *words):
        code = COMPUTES.format(cores=list(cores), fixed=fixed)
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(core_share.__file__).parents[2])},
        )
        processes.append(process)
        return process, int(process.stdout.readline())

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()


def elsewhere(call):
    """What a call returns in another thread of this process."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def files():
    return [*cache_folder().rglob("*.engine")]


def test_an_engine_alone_takes_every_core_and_leaves_nothing_behind():
    share = CoreShare(None)
    assert not files(), "an engine that has not computed yet takes nobody's cores"
    assert share.take() == 4
    assert len(files()) == 1
    share.close()
    share.close()
    assert not files()


@pytest.mark.parametrize("folder", ["cache", "cache/../cache"])
def test_an_engine_knows_its_own_file_in_a_relative_folder(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cache").mkdir()
    share = CoreShare(None, Path(folder))
    assert [share.take(), share.take()] == [4, 4]
    share.close()


def test_engines_that_one_thread_drives_take_turns_and_no_cores_from_each_other():
    planner, executor = CoreShare(None), CoreShare(None)
    assert (planner.take(), executor.take(), planner.take()) == (4, 4, 4)
    planner._next = 0.0
    elsewhere(executor.rest)  # it is another worker's engine from now on
    assert planner.take() == 2
    planner.close()
    executor.close()


def test_two_processes_halve_the_cores_and_a_killed_one_gives_its_half_back(start):
    share = CoreShare(None)
    assert share.take() == 4
    other, theirs = start()
    assert theirs == 2
    assert share.take() == 2
    third, theirs = start()
    assert (theirs, share.take()) == (1, 1)
    other.kill()
    other.wait()
    assert share.take() == 2
    assert len(files()) == 2, "what the killed one left is gone"
    go_on(third)  # it closes its engine
    assert share.take() == 4


def test_an_engine_that_rests_keeps_its_cores_for_a_moment_only(start, monkeypatch):
    share = CoreShare(None)
    other, _ = start((0, 1, 2, 3), None, "rest")
    assert share.take() == 2
    go_on(other)
    later = time.time() + 1e9
    monkeypatch.setattr(core_share.time, "time", lambda: later)
    assert share.take() == 4
    assert other.poll() is None


def test_resting_lasts_shorter_than_computing():
    share = CoreShare(None)
    share.take()
    (file,) = files()
    busy = file.stat().st_mtime
    share.rest()
    assert file.stat().st_mtime < busy
    share.take()
    assert file.stat().st_mtime >= busy


def test_a_number_of_threads_stays_and_the_others_take_what_it_leaves(start):
    _, theirs = start((0, 1, 2, 3), 1)
    assert theirs == 1
    share, given = CoreShare(None), CoreShare(4)
    assert share.take() == 3
    assert elsewhere(given.take) == 4
    assert share.take() == 1, "never none"


def test_engines_on_other_cores_take_nothing_away(start):
    _, theirs = start((4, 5))
    assert theirs == 2
    share = CoreShare(None)
    assert share.take() == 4
    start((2, 3))
    assert share.take() == 3  # two alone, and half of two


def test_a_folder_that_is_emptied_or_cannot_be_written_ends_nothing(tmp_path):
    share = CoreShare(None)
    share.take()
    (file,) = files()
    file.unlink()
    assert share.take() == 4
    assert len(files()) == 1
    (tmp_path / "file").touch()
    assert CoreShare(None, tmp_path / "file" / "folder").take() == 4


def test_others_are_looked_at_a_few_times_a_second_not_at_every_pass(monkeypatch):
    monkeypatch.setattr(core_share, "AGAIN", 1e9)
    share, other = CoreShare(None), CoreShare(None)
    assert share.take() == 4
    assert elsewhere(other.take) == 2
    assert share.take() == 4
    share.rest()
    assert share.take() == 2


@pytest.mark.model
def test_a_model_computes_with_its_share_while_another_process_computes(start):
    with load_model(adapter=None, context=256, keep_prompts=False) as engine:

        def threads():
            engine.begin(0, engine.tokenize("One"), stops={}, max_tokens=1)
            while engine.step():
                pass
            return engine._model.cpu_threads

        assert threads() == 4
        other, _ = start()
        assert threads() == 2
        other.kill()
        other.wait()
        assert threads() == 4
    assert not files()


def test_what_is_closed_touches_no_module_when_python_ends(monkeypatch):
    share = CoreShare(1)
    share.take()
    share.close()
    monkeypatch.setattr(core_share, "contextlib", None)
    share.close()
