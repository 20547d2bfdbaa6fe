"""Some of a benchmark's official tasks, where to play all of them takes long."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

Task = TypeVar("Task")

ALL = "THREAD_KIT_ALL_TASKS"


def take_sample(tasks: Iterable[Task], step: int) -> list[Task]:
    """Every so manieth; all of them where the environment names `ALL`."""
    return list(tasks)[:: 1 if os.environ.get(ALL) else step]
