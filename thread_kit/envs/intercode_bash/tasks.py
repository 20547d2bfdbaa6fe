"""The tasks of InterCode Bash: 200 of NL2Bash in four file systems, and the kit's own.

"test" has one file system after the other; "dev" and "train" are in one made for this kit
(`envs/intercode/tasks.py` says what else of them).
"""

from __future__ import annotations

from dataclasses import dataclass

from thread_kit.envs.env import check_split
from thread_kit.envs.intercode.files import (
    BASH_FILES,
    BASH_IGNORED,
    BASH_SCRIPT,
    BASH_TASKS,
    cache_by_folder,
    name_files,
    read_file,
)
from thread_kit.envs.intercode.tasks import SPLITS, read_own, read_rows
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


@cache_by_folder
def _load(split: str) -> tuple[Task, ...]:
    files = ""
    if split == "test":
        rows = [
            {**row, "system": system}
            for system in SYSTEMS
            for row in read_rows(BASH_TASKS.format(system), "query", "gold")
        ]
        files = name_files(BASH_FILES)
    else:
        rows = [{**row, "system": OWN} for row in read_own("data/intercode/commands.jsonl", split)]
    return tuple(
        Task(split, number, row["query"], row["gold"], row["system"], files=files)
        for number, row in enumerate(rows)
    )


@cache_by_folder
def read_system(system: int) -> tuple[str, str]:
    """The setup script of a file system, and what git does not watch in it.

    Raises what `read_file` raises.
    """
    if system == OWN:
        script = resource("data/intercode/workshop.sh").read_text(encoding="utf-8")
        return script, "\n".join(UNWATCHED)
    return read_file(BASH_SCRIPT.format(system)), read_file(BASH_IGNORED)


UNWATCHED = ("bin", "dev", "etc", "home", "lib", "lib64", "proc", "root", "run", "sbin", "usr")
