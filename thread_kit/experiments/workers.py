"""Jobs in other processes: each loads its own engine, once, and its threads share it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from thread_kit.engines.engine import Engine
from thread_kit.experiments.job import Job, RunningJob
from thread_kit.experiments.results_file import EpisodeKey


@dataclass(slots=True)
class _SharedEngine:
    engine: Engine
    users: int = 0


@cache
def _end_with_host() -> None:
    """Have this process end when the one that started it does, also if that is killed.

    A worker of a ProcessPoolExecutor would wait for ever, with its engine: it reads from a pipe
    whose other end it holds itself.
    """
    host = multiprocessing.parent_process()

    def wait() -> None:
        assert host
        host.join()
        os._exit(1)

    if host:
        threading.Thread(target=wait, daemon=True).start()


_lock = threading.RLock()
_engines: dict[bytes, _SharedEngine] = {}


def run_job(job: Job, load: Callable[[], Engine]) -> tuple[EpisodeKey, dict[str, Any] | None]:
    """Play a job in this process; its key, and its row unless it is done already.

    Raises what `load` raises, and nothing that comes of the episode.
    """
    with _shared(load) as engine:
        running = RunningJob(job, engine)
        if running.is_done:
            return running.key, None
        with closing(running):
            deque(running, maxlen=0)
        return running.key, running.row()


@contextmanager
def _shared(load: Callable[[], Engine]) -> Iterator[Engine]:
    """This process's engine of that kind. Another kind makes room when nobody uses it."""
    _end_with_host()
    kind = pickle.dumps(load)
    with _lock:
        if kind not in _engines:
            close_idle()
            _engines[kind] = _SharedEngine(load())
        shared = _engines[kind]
        shared.users += 1
    try:
        yield shared.engine
    finally:
        with _lock:
            shared.users -= 1


def close_idle() -> None:
    """Close the engines of this process that no job uses."""
    with _lock:
        for kind in [kind for kind, shared in _engines.items() if not shared.users]:
            _engines.pop(kind).engine.close()
