"""Jobs in other processes: each loads its own engine, once, and its threads share it."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from thread_kit.engines.engine import Engine
from thread_kit.experiments.job import Job, Playing
from thread_kit.experiments.results_file import Key


@dataclass(slots=True)
class _Held:
    engine: Engine
    users: int = 0


_lock = threading.RLock()
_held: dict[bytes, _Held] = {}


def play(job: Job, load: Callable[[], Engine]) -> tuple[Key, dict[str, Any] | None]:
    """Play a job here; its key, and its row unless it is done already.

    Raises what `load` raises, and nothing that comes of the episode.
    """
    with _shared(load) as engine:
        playing = Playing(job, engine)
        if playing.is_done:
            return playing.key, None
        try:
            for _ in playing:
                pass
        finally:
            playing.close()
        return playing.key, playing.row()


@contextmanager
def _shared(load: Callable[[], Engine]) -> Iterator[Engine]:
    """This process's engine of that kind. Another kind makes room when nobody uses it."""
    kind = pickle.dumps(load)
    with _lock:
        if kind not in _held:
            close_idle()
            _held[kind] = _Held(load())
        held = _held[kind]
        held.users += 1
    try:
        yield held.engine
    finally:
        with _lock:
            held.users -= 1


def close_idle() -> None:
    """Close the engines of this process that no job uses."""
    with _lock:
        for kind in [kind for kind, held in _held.items() if not held.users]:
            _held.pop(kind).engine.close()
