"""A share of the cores for each worker of pytest-xdist, and for what that worker starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

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
