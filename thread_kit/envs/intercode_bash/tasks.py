"""The tasks of InterCode Bash: 200 of NL2Bash in four file systems, and the kit's own.

"test" has one file system after the other; "dev" and "train" are in one made for this kit
(`envs/intercode/tasks.py` says what else of them).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from thread_kit.envs.env import check_split
from thread_kit.envs.intercode.files import read_file
from thread_kit.envs.intercode.tasks import SPLITS, read_own
from thread_kit.envs.intercode.tasks import Task as InterCodeTask
from thread_kit.paths import resource

SYSTEMS = (1, 2, 3, 4)
OWN = 0
"""The file system of the kit's own tasks."""


@dataclass(frozen=True, slots=True)
class Task(InterCodeTask):
    """system: the number of its file system."""

    system: int

    @property
    def type(self) -> int:
        """Part of a split has as many of each file system."""
        return self.system


def tasks(split: str) -> list[Task]:
    """All tasks of a split.

    Raises ValueError for another name, FileNotFoundError where the test tasks are missing.
    """
    check_split(split, SPLITS)
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
        rows = [{**row, "system": OWN} for row in read_own("data/intercode/commands.jsonl", split)]
    return tuple(
        Task(split, number, row["query"], row["gold"], row["system"])
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
