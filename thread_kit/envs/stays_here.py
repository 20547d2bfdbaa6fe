"""The stays of this machine, which the command line asks about: real ones, or made-up ones."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from pathlib import Path

from thread_kit.envs.stays import Mimic3Stays, PhysioNet2012, Stays, made_up

VARIABLE = "THREAD_KIT_ICU"
"""The environment variable that says where real stays are."""

PATIENTS, SEED = 60, 1
"""Of the made-up ones; those of the prompts' examples have seed 0."""


def stays_here() -> Stays:
    """The stays at THREAD_KIT_ICU, else made-up ones.

    A folder of mimic3-benchmarks, or set A of PhysioNet/CinC Challenge 2012 (a folder, or a tar
    file of it, with Outcomes-a.txt beside it). Read once in a process. Raises FileNotFoundError.
    """
    return _stays(os.environ.get(VARIABLE, ""))


@cache
def _stays(where: str) -> Stays:
    if not where:
        folder = tempfile.TemporaryDirectory(prefix="thread-kit-stays-")
        atexit.register(folder.cleanup)
        return made_up(folder.name, PATIENTS, SEED)
    path = Path(where).expanduser()
    if (path / "in-hospital-mortality").is_dir():
        return Mimic3Stays(path)
    return PhysioNet2012(path)


__all__ = ["VARIABLE", "stays_here"]
