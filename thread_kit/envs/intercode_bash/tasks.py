"""The tasks of InterCode Bash: 200 of NL2Bash in four file systems, and the kit's own.

"test" is InterCode's, one file system after the other; the user brings it
(`envs/intercode/files.py`). "dev" and "train" are in a file system made for this kit
(data/intercode): prompts show "train" alone, and nothing is tuned on "test".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from thread_kit.envs.intercode.files import read_file
from thread_kit.paths import resource

SPLITS = ("test", "dev", "train")
SYSTEMS = (1, 2, 3, 4)
OWN = 0
"""The file system of the kit's own tasks."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task. number: counts from 0 within the split. system: the number of its file system."""

    split: str
    number: int
    system: int
    question: str
    gold: str

    @property
    def type(self) -> int:
        """Part of a split has as many of each file system."""
        return self.system


def tasks(split: str) -> list[Task]:
    """All tasks of a split.

    Raises ValueError for another name, FileNotFoundError where the test tasks are missing.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    return list(_load(split))


@cache
def _load(split: str) -> tuple[Task, ...]:
    if split == "test":
        rows = [
            {**row, "system": system}
            for system in SYSTEMS
            for row in json.loads(read_file(f"data/nl2bash/nl2bash_fs_{system}.json"))
        ]
    else:
        lines = resource("data/intercode/commands.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [{**row, "system": OWN} for row in map(json.loads, lines) if row["split"] == split]
    return tuple(
        Task(split, number, row["system"], row["query"], row["gold"])
        for number, row in enumerate(rows)
    )


@cache
def read_system(system: int) -> tuple[str, str]:
    """The setup script of a file system, and what git does not watch in it.

    Raises what `read_file` raises.
    """
    if system == OWN:
        script = resource("data/intercode/workshop.sh").read_text(encoding="utf-8")
        return script, "\n".join(UNWATCHED)
    script = read_file(f"docker/bash_scripts/setup_nl2b_fs_{system}.sh")
    return script, read_file("docker/docker.gitignore")


UNWATCHED = ("bin", "dev", "etc", "home", "lib", "lib64", "proc", "root", "run", "sbin", "usr")
