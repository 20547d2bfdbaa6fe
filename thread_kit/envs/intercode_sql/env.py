"""InterCode SQL (Yang et al. 2023; StateFlow paper, section 4.1): a question about a database.

A model finds out what tables there are, queries them, and submits what its last query gave. The
reward is the official one (`reward.py`). Observations are InterCode's: the list of rows, "Error
executing query: ...", at most 25 rows and 350 characters of a text, as in its scripts. Differences:

- The gold query runs in a copy of its own: what a model writes into the database does not change
  the answer. A gold query that the system refuses has an empty output, as in the official code.
- What a row shows is cut after 4,000 characters in all, since a value can be a megabyte long.
- Errors are worded by the system that is used: SQLite's are not MySQL's. `mariadb` is the closest
  to InterCode's MySQL; results of both are kept apart.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any, final

from thread_kit.envs.intercode.interaction import (
    TURNS,
    CommandResult,
    InterCodeEnv,
    Script,
)
from thread_kit.envs.intercode.tasks import choose_question
from thread_kit.envs.intercode_sql.engine import TOO_LONG, TOO_MUCH, Output, SqlEngine
from thread_kit.envs.intercode_sql.questions import Task, find_database, tasks
from thread_kit.envs.intercode_sql.reward import compute_reward
from thread_kit.envs.intercode_sql.sqlite import SqliteEngine

SHOWN_CHARACTERS = 4_000


@final
class InterCodeSql(InterCodeEnv):
    """One question, for one episode.

    split, number: the task. mariadb: play in MariaDB or MySQL instead of SQLite
    (`envs/intercode_sql/mariadb.py`). files: those of the task, where these are not the
    official ones (`Task`); None takes those at hand. turns: as in `InterCodeEnv`.
    Raises ValueError for an unknown task, or of other files than those named; FileNotFoundError
    where the test questions are missing, RuntimeError where MariaDB is.
    """

    name = "sql"

    def __init__(
        self,
        split: str = "test",
        number: int = 0,
        *,
        mariadb: bool = False,
        files: str | None = None,
        turns: int | None = TURNS,
    ) -> None:
        self.chosen: Task = choose_question(tasks(split), split, number, files)
        self.mariadb = mariadb
        self.task = self.chosen.arguments | ({"mariadb": True} if mariadb else {})
        self._gold = find_gold(self.chosen, mariadb)
        self._engine: SqlEngine | None = None
        super().__init__(turns)

    def _begin(self) -> None:
        super()._begin()
        self._last: list[str] | None = None

    def execute(self, command: str) -> CommandResult:
        """Execute one statement; what stands behind its `;` is not, as in InterCode's scripts."""
        if self._engine is None:
            self._engine = open_engine(self.chosen, self.mariadb)
        output = self._engine.execute(command.partition(";")[0].strip())
        self._last = output.rows
        return CommandResult(show_output(output, self.script), output.error is not None)

    def grade(self) -> float:
        """See InterCodeEnv: the last output against that of the gold query."""
        return compute_reward(self._last, self._gold)

    @property
    def measures(self) -> dict[str, Any]:
        return super().measures | {"hardness": self.chosen.hardness}

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def open_engine(task: Task, mariadb: bool) -> SqlEngine:
    """The system in which a question is played, with a copy of its database."""
    if mariadb:
        from thread_kit.envs.intercode_sql.mariadb import URL_VARIABLE, MariaDbEngine

        if not os.environ.get(URL_VARIABLE):  # a server of the user's may have others
            find_database(task)
        return MariaDbEngine(task.split, task.database)
    return SqliteEngine(task.database, find_database(task))


@cache  # methods and seeds ask for each task; the gold query changes nothing
def find_gold(task: Task, mariadb: bool) -> tuple[str, ...]:
    """The rows of the gold query; none where the system refuses it, as in the official code.

    Of other questions than the official ones, where nobody may know, it is a warning, too. Raises
    RuntimeError where it was stopped: what it would have given is not known.
    """
    engine = open_engine(task, mariadb)
    try:
        output = engine.execute(task.gold)
        if output.error in (TOO_LONG, TOO_MUCH):
            raise RuntimeError(f"the gold query of task {task.number}: {output.error}")
        if output.error is not None and task.files:
            warnings.warn(
                f"the gold query of task {task.number} fails: {output.error}; an empty output "
                "counts as right",
                stacklevel=3,
            )
        return tuple(output.rows or ())
    finally:
        engine.close()


def show_output(output: Output, script: Script) -> str:
    """An output as the model observes it."""
    if output.error is not None:
        return f"Error executing query: {output.error}"[: script.characters]
    if output.rows is None:
        return "None"
    shown = f"[{', '.join(output.rows[: script.rows])}]"
    return shown if len(shown) <= SHOWN_CHARACTERS else shown[:SHOWN_CHARACTERS] + "..."
