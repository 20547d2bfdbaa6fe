"""The questions of InterCode SQL: the 1,034 of Spider's dev part, and the kit's own.

"dev" and "train" are about databases made for this kit (`envs/intercode/tasks.py` says what else of
them).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thread_kit.envs.env import check_split
from thread_kit.envs.intercode.files import (
    SQL_DUMP,
    SQL_FILES,
    SQL_QUESTIONS,
    cache_by_folder,
    find_file,
    name_files,
    read_file,
)
from thread_kit.envs.intercode.tasks import SPLITS, read_own, read_rows
from thread_kit.envs.intercode.tasks import Task as InterCodeTask
from thread_kit.envs.intercode_sql.dump import Database, read_dump
from thread_kit.paths import resource

HARDNESS = {"easy": 248, "medium": 446, "hard": 174, "extra": 166}
"""Spider's classes of difficulty, and how many of the test questions are of each."""


@dataclass(frozen=True, slots=True)
class Task(InterCodeTask):
    """database: its name. hardness: Spider's, one of `HARDNESS`."""

    database: str
    hardness: str

    @property
    def type(self) -> str:
        """Part of a split has as many of each difficulty."""
        return self.hardness


def tasks(split: str) -> list[Task]:
    """All questions of a split.

    Raises ValueError for another name, FileNotFoundError where the test questions are missing.
    """
    check_split(split, SPLITS)
    return list(_load(split))


@cache_by_folder
def _load(split: str) -> tuple[Task, ...]:
    files = ""
    if split == "test":
        rows = read_rows(SQL_QUESTIONS, "query", "gold", "db", "hardness")
        files = name_files(SQL_FILES)
    else:
        rows = read_own("data/intercode/questions.jsonl", split)
    return tuple(
        Task(
            *(split, number, row["query"], row["gold"], row["db"], row["hardness"]),
            files=files,
        )
        for number, row in enumerate(rows)
    )


def read_databases(split: str) -> str:
    """The dump of the databases that a split is about; raises what `read_file` raises."""
    if split == "test":
        return read_file(SQL_DUMP)
    return _find_dump(split).read_text(encoding="utf-8")


def _find_dump(split: str) -> Path:
    return find_file(SQL_DUMP) if split == "test" else resource("data/intercode/own.sql")


@cache_by_folder
def load_databases(split: str) -> dict[str, Database]:
    """The databases of a split for SQLite, by name."""
    dump = read_databases(split)
    try:
        return read_dump(dump)
    except ValueError as error:
        raise ValueError(f"{_find_dump(split)}: {error}") from error


def find_database(task: Task) -> Database:
    """The one that a question is about; raises ValueError where the dump lacks it."""
    databases = load_databases(task.split)
    if task.database not in databases:
        raise ValueError(
            f"question {task.number} is about the database {task.database!r}, which "
            f"{_find_dump(task.split)} does not have; it has {', '.join(databases)}"
        )
    return databases[task.database]
