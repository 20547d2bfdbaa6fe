"""The questions of InterCode SQL: the 1,034 of Spider's dev part, and the kit's own.

"test" is InterCode's, in its order; the user brings it (`envs/intercode/files.py`). "dev" and
"train" are about databases made for this kit (data/intercode): prompts show "train" alone, and
nothing is tuned on "test".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from thread_kit.envs.intercode.files import read_file
from thread_kit.envs.intercode_sql.dump import Database, read_dump
from thread_kit.paths import resource

SPLITS = ("test", "dev", "train")
HARDNESS = ("easy", "medium", "hard", "extra")


@dataclass(frozen=True, slots=True)
class Task:
    """A question. number: counts from 0 within the split. hardness: Spider's, one of `HARDNESS`."""

    split: str
    number: int
    database: str
    question: str
    gold: str
    hardness: str

    @property
    def type(self) -> str:
        """Part of a split has as many of each difficulty."""
        return self.hardness


def tasks(split: str) -> list[Task]:
    """All questions of a split.

    Raises ValueError for another name, FileNotFoundError where the test questions are missing.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    return list(_load(split))


@cache
def _load(split: str) -> tuple[Task, ...]:
    if split == "test":
        rows = json.loads(read_file("data/sql/spider/ic_spider_dev.json"))
    else:
        lines = resource("data/intercode/questions.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [row for row in map(json.loads, lines) if row["split"] == split]
    return tuple(
        Task(split, number, row["db"], row["query"], row["gold"], row["hardness"])
        for number, row in enumerate(rows)
    )


def read_databases(split: str) -> str:
    """The dump of the databases that a split is about; raises what `read_file` raises."""
    if split == "test":
        return read_file("data/sql/spider/ic_spider_dbs.sql")
    return resource("data/intercode/own.sql").read_text(encoding="utf-8")


@cache
def load_databases(split: str) -> dict[str, Database]:
    """The databases of a split for SQLite, by name."""
    return read_dump(read_databases(split))
