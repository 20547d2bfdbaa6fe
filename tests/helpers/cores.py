"""A share of the cores for each worker of pytest-xdist, and for what that worker starts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PERIOD = 0.5  # seconds between two looks at what the cores do
GAIN = 0.2  # more of the time that another core has to be idle, to be moved to

_ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


@cache
def take_a_share() -> None:
    """Keep this process to its cores, where pytest runs several and the system can.

    Engines share the cores by themselves (`engines/core_share.py`), but by what runs beside, and
    browsers share nothing. Here what a test computes does not depend on the other workers.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):  # Linux
        number, count = int(worker[2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[number % len(cores) :: count])


_seen: tuple[float, dict[int, int]] = (0.0, {})


def move_to_an_idle_core() -> None:
    """Between two tests, where workers share cores: to one that was idle more since the last look.

    Two workers that both wait for a browser on the one core would leave it idle, and two that
    compute on the other one would be half as fast.
    """
    global _seen
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if not _ALL or workers <= len(_ALL) or time.monotonic() - _seen[0] < PERIOD:
        return
    before, _seen = _seen, (time.monotonic(), _read_idle())
    spent = (_seen[0] - before[0]) * os.sysconf("SC_CLK_TCK")
    known = before[1].keys() & _seen[1].keys()
    idle = {core: (_seen[1][core] - before[1][core]) / spent for core in known}
    own = min(os.sched_getaffinity(0))
    if own in idle and max(idle.values()) > idle[own] + GAIN:
        os.sched_setaffinity(0, {max(idle, key=idle.__getitem__)})


def _read_idle() -> dict[int, int]:
    """Clock ticks that each core was idle since the machine has started; none where nobody says."""
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text("ascii").splitlines()]
    except OSError:
        return {}
    return {
        int(words[0][3:]): int(words[4]) + int(words[5])  # idle, and waiting for a disk
        for words in lines
        if words[0][:3] == "cpu" and words[0][3:].isdigit() and int(words[0][3:]) in (_ALL or ())
    }


@contextmanager
def on_all_cores() -> Iterator[None]:
    """What is started in here goes wherever a core is idle: a browser, which computes no result."""
    if _ALL is None:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _ALL)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
