"""Suites that are killed at any moment and started again: no row is lost, none counted twice.

A process is forked for every start. SIGKILL comes from itself, in the middle of a write or between
two, or from outside by the clock; SIGTERM and SIGINT come by the clock. With `full` there is no
SIGKILL, but a disk on which no file may grow past a size drawn by the seed. At the end the suite is
run in peace: its rows, less the seconds, are those of a suite that nobody disturbed.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from helpers import suites
from tqdm.auto import tqdm

from thread_kit.distill.textcraft_teacher import speak_thread
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.results_file import EpisodeKey, read_results
from thread_kit.trace import jsonl
from thread_kit.trace.episode import Episode

from .tally import Tally

WAYS = ("in a write", "in a write", "by the clock", "by the clock", "SIGTERM", "SIGINT")
TASKS = (40, 47)
VOLATILE = ("seconds", "at_once", "trace", "reused", "evaluated")
"""What two runs may differ in: what is in the cache already depends on what ran before."""


def speak(seen: str) -> str:
    """The oracle's words; a call that an interrupt has cut goes on as it would have."""
    text = seen.removeprefix(suites.SHOWN.prompt.text)
    start = max(text.rfind("#START#\n") + len("#START#\n"), text.rfind("<=\n") + len("<=\n"))
    whole, part = speak_thread(text[:start]), text[start:]
    return whole.removeprefix(part) if whole.startswith(part) else speak_thread(text)


def play(seed: int, count: int) -> Tally:
    """Kill suites at least `count` times."""
    return _play(seed, count, full=False)


def play_full(seed: int, count: int) -> Tally:
    """Start suites on a disk that is full before long, at least `count` times."""
    return _play(seed, count, full=True)


def _play(seed: int, count: int, *, full: bool) -> Tally:
    tally, chance = Tally(), random.Random(seed)
    name = "full disks" if full else "kills"
    with tempfile.TemporaryDirectory() as folder:
        whole, begun = Path(folder, "whole.jsonl"), time.monotonic()
        _fork(whole, at_once=1, traces=True)
        if not whole.exists() or len(whole.read_bytes().splitlines()) != 2 * len(TASKS):
            tally.find("a suite in peace", "did not finish")
            return tally
        seconds = time.monotonic() - begun
        for number in range(10**9):
            if tally.counts[name] >= count:
                break
            path = Path(folder, f"{number}", "r.jsonl")
            path.parent.mkdir()
            traces, at_once = chance.random() < 0.7, chance.choice((1, 1, 3))
            place = f"suite {number} of seed {seed} ({name}, {traces=}, {at_once=})"
            _disturb(tally, chance, path, seconds, place, name, traces, at_once)
            _compare(tally, path, whole, place, traces)
            tally.counts[f"suites ({name})"] += 1
    return tally


def _disturb(
    tally: Tally,
    chance: random.Random,
    path: Path,
    seconds: float,
    place: str,
    name: str,
    traces: bool,
    at_once: int,
) -> None:
    """Start a suite again and again, until it has come to its end or was disturbed ten times."""
    before: list[dict[str, Any]] = []
    for _ in range(10):
        way = chance.choice(WAYS)
        if name == "full disks":
            way, limit = "full", int(10 ** chance.uniform(1, 4.7))
            hit = _fork(path, at_once=at_once, traces=traces, limit=limit)
        elif way == "in a write":
            hit = _fork(path, at_once=at_once, traces=traces, write=chance.randint(1, 60))
        else:
            number = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}.get(way, signal.SIGKILL)
            clock = chance.uniform(0, seconds), number
            hit = _fork(path, at_once=at_once, traces=traces, clock=clock)
        tally.counts[name] += hit
        tally.counts[f"{name}: {way}"] += hit
        rows = read_results(path) if path.exists() else []
        if rows[: len(before)] != before:
            tally.find(place, f"rows are lost: {before} became {rows}")
        if len({EpisodeKey.of(row) for row in rows}) != len(rows):
            tally.find(place, f"a row is there twice: {rows}")
        before = [] if name == "full disks" else rows  # what broke down there is played again
        if not hit:
            return


def _compare(tally: Tally, path: Path, whole: Path, place: str, traces: bool) -> None:
    """In peace it comes to its end, and to the same."""
    _fork(path, at_once=1, traces=traces)
    rows, same = (sorted(map(_lasting, read_results(file)), key=str) for file in (path, whole))
    if rows != same:
        wrong, lost = ([r for r in a if r not in b] for a, b in ((rows, same), (same, rows)))
        tally.find(place, f"{len(rows)} rows; {wrong}\nfor\n{lost}")
    tally.counts["rows that are the same"] += len(rows)
    for row in read_results(path) if traces else ():
        episode = Episode.load(path.parent / row["trace"])
        if (len(episode.threads), episode.usage.calls) != (row["threads"], row["calls"]):
            tally.find(place, f"another trace: {episode!r} for {row}")


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in VOLATILE}


def _fork(path: Path, *, at_once: int, traces: bool, **trouble: Any) -> bool:
    """Run the suite in a process of its own; whether it was killed, or could not go on."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            tqdm.set_lock(threading.RLock())  # its own would be left behind by each that is killed
            _make_trouble(**trouble)
            models = {"oracle": ScriptedEngine(speak)}
            suite = suites.suite(path, tasks=suites.tasks(*TASKS), traces=traces, models=models)
            suite.run(at_once=at_once, retry=True, progress=False)
            code = 0
        finally:
            os._exit(code)
    if "clock" in trouble:
        seconds, number = trouble["clock"]
        time.sleep(seconds)
        os.kill(child, number)
    return os.waitpid(child, 0)[1] != 0


def _make_trouble(
    *, write: int = 0, limit: int = 0, clock: tuple[float, signal.Signals] | None = None
) -> None:
    """In the child: end it in its `write`-th write, or let no file grow past `limit` bytes."""
    if limit:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    if write:
        chance, whole, left = random.Random(write), jsonl.write_line, write

        def deadly(file: Path | int, data: Any, mode: str = "ab") -> None:
            nonlocal left
            left -= 1
            if left:
                whole(file, data, mode)
                return
            line = (jsonl.to_line(data) + "\n").encode()
            with open(file, mode, buffering=0, closefd=isinstance(file, Path)) as raw:
                raw.write(line[: chance.randint(0, len(line))])
            os.kill(os.getpid(), signal.SIGKILL)

        for module in list(sys.modules.values()):
            if getattr(module, "write_line", None) is whole:
                module.write_line = deadly
