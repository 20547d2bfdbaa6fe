"""The interface of the database systems in which InterCode SQL is played."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

ROWS = 10_000
"""Of an output, at most; a query with more has failed."""

CHARACTERS = 1_000_000
"""Of all rows of an output, at most; a query with more has failed."""

SECONDS = 10
"""Of the processor (SQLite) or the clock (MariaDB), for a statement."""

TOO_MUCH = f"the output is longer than {ROWS:,} rows or {CHARACTERS:,} characters"
TOO_LONG = "the statement took too long and was stopped"


class Output(NamedTuple):
    """What a statement gave.

    rows: each as the text of a Python tuple, which is what the official reward compares; None where
    it is no query or failed. error: what the database says of one that failed.
    """

    rows: list[str] | None
    error: str | None = None


class SqlEngine(ABC):
    """One database in one system, for one episode."""

    @abstractmethod
    def execute(self, statement: str) -> Output:
        """Execute one statement; never raises for what it says."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds; closing twice is fine."""
