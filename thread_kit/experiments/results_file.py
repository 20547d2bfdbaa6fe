"""The file of a suite: one line of JSON an episode, on disk as soon as the episode is over.

A process that is killed can leave a torn last line: readers skip it, and the next writer cuts it
off. One writer at a time; any number of readers. Not covered: two machines on one network drive
whose file system knows no locks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from filelock import FileLock, Timeout

from thread_kit.trace.jsonl import to_line, write_line


class LedgerError(RuntimeError):
    """A file is no ledger, or another suite is writing to it."""


class Key(NamedTuple):
    """What tells one episode of a suite from another; two rows with the same key never exist.

    prompt, settings: hashes, of the few-shot prompts, and of the budgets, the sampling and the
    model's file. task: as JSON.
    """

    method: str
    model: str
    prompt: str
    settings: str
    task: str
    seed: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Key:
        """The key of a row."""
        task = canonical(row["task"])
        return cls(
            row["method"], row["model"], row["prompt"], row["settings"], task, int(row["seed"])
        )


def canonical(value: Any) -> str:
    """A value as JSON text that does not depend on the order in which its parts were given."""
    return json.dumps(value, sort_keys=True)


def read_ledger(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a ledger; of an episode that is being written, none.

    Raises FileNotFoundError, or LedgerError naming the line that is no row.
    """
    path = Path(path)
    *lines, _torn = path.read_bytes().split(b"\n")
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            Key.of(row)
        except (ValueError, TypeError, KeyError) as error:
            raise LedgerError(f"{path}, line {number}: no episode of a suite ({error})") from error
        rows.append(row)
    return rows


class ResultsFile:
    """A ledger that is open for writing; nobody else can open it until it is closed.

    Raises LedgerError if another suite has it open, or it is no ledger.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(f"{self.path}.lock")
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise LedgerError(
                f"another suite is writing to {self.path}; wait until it has ended, or write to "
                "another file"
            ) from None
        try:
            self.path.touch()
            self.rows = read_ledger(self.path)
            self._cut_torn_line()
        except BaseException:
            self._lock.release()
            raise

    def _cut_torn_line(self) -> None:
        with self.path.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)

    def append(self, row: dict[str, Any]) -> None:
        """Add an episode; it is in the file when this returns. Raises OSError (a full disk)."""
        write_line(self.path, row)
        self.rows.append(row)

    def drop(self, unwanted: Callable[[dict[str, Any]], bool]) -> None:
        """Take rows out; the file is replaced at once or not at all."""
        kept = [row for row in self.rows if not unwanted(row)]
        part = self.path.with_name(self.path.name + ".part")
        part.write_text("".join(to_line(row) + "\n" for row in kept), encoding="utf-8")
        part.replace(self.path)
        self.rows = kept

    def close(self) -> None:
        """Let others write."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
