"""The parts by name, each run in a process of its own.

A process that has run a sandbox may not be forked (`sandbox/monty.py`), as `kills` does it; and so
the memory of a part is its own.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from . import episodes, interrupts, jails, kills, races, traces
from .tally import Tally

PARTS: dict[str, Callable[[int, int], Tally]] = {
    "episodes": episodes.play,
    "largest": episodes.play_largest,
    "escapes": jails.play_escapes,
    "forgeries": jails.play_forgeries,
    "traces": traces.play,
    "kills": kills.play,
    "full disks": kills.play_full,
    "interrupts": interrupts.play,
    "races": races.play,
}


def run_part(name: str, seed: int, count: int) -> Tally:
    """So many attempts of a part, each of which a seed and its number bring back."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as process:
        return process.submit(PARTS[name], seed, count).result()
