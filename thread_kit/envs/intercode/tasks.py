"""What the tasks of InterCode's benchmarks have in common.

"test" is InterCode's, in its order (data/intercode/official; `envs/intercode/files.py`). "dev" and
"train" were made for this kit (data/intercode): prompts show "train" alone, and nothing is tuned on
"test".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from thread_kit.paths import resource

SPLITS = ("test", "dev", "train")


@dataclass(frozen=True, slots=True)
class Task:
    """A question and its gold command. number: counts from 0 within the split."""

    split: str
    number: int
    question: str
    gold: str


def read_own(path: str, split: str) -> list[dict[str, Any]]:
    """The rows of a split among the kit's own tasks, in the order of their file."""
    lines = resource(path).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["split"] == split]
