"""SQLite as the embedded engine of InterCode SQL: nothing to install, a process an episode.

Covered (tests/envs/test_intercode_sql_hostile.py, a test a line, and 40 hostile statements):
- the database is a copy in the memory of a process of its own: what a statement changes is gone
  with the episode, and no file is opened; the process may write none (RLIMIT_FSIZE)
- ATTACH, DETACH, PRAGMA, VACUUM INTO, new virtual tables, extensions: refused by the authorizer
  (those of SQLite itself, `json_each` say, can be read)
- queries without end: stopped after so many of SQLite's operations, or after `SECONDS` of the
  processor inside one function; then the process is replaced, with the database as it was
- outputs without bound: `ROWS` and `CHARACTERS`; a value has at most a megabyte
- memory: a limit of SQLite's own, and one of the process

Not covered: defects of SQLite that let SQL run code, within a process of this user.

MySQL's SHOW TABLES, SHOW COLUMNS, DESC and USE are answered here, from the dump.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import weakref
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, final

from thread_kit.envs.intercode_sql.dump import Database
from thread_kit.envs.intercode_sql.engine import (
    CHARACTERS,
    ROWS,
    SECONDS,
    TOO_LONG,
    TOO_MUCH,
    Output,
    SqlEngine,
)

WORKER = Path(__file__).parent / "sqlite_worker.py"
OPERATIONS = 100_000_000
"""Of SQLite's virtual machine, for a statement: some seconds."""

PATIENCE = 120.0  # seconds of the clock, for a process that is not even given the processor
REPLY_BYTES = 12 * CHARACTERS + 10 * ROWS + 2**16  # of JSON: a character takes twelve at most

DATABASE = r"`?(?P<database>(?<=`)[^`]+(?=`)|\w+)`?"
SHOW_TABLES = re.compile(rf"SHOW (?:FULL )?TABLES(?: (?:FROM|IN) {DATABASE})?", re.I)
DESCRIBE = re.compile(
    r"(?:DESC|DESCRIBE|SHOW (?:FULL )?COLUMNS (?:FROM|IN)|SHOW FIELDS (?:FROM|IN)) "
    rf"(?:{DATABASE}\.)?`?(?P<table>[^`\s.]+)`?",
    re.I,
)
USE = re.compile(rf"USE {DATABASE}", re.I)
CREATE = re.compile(
    r"\s*CREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s+(?:IF\s+NOT\s+EXISTS\s+)?+"
    r"(?=(?:`[^`]*`|\"[^\"]*\"|\w++)\s*+(?!\.))",
    re.I,
)
"""The beginning of a statement that makes something, up to a name without its database."""


@final
class SqliteEngine(SqlEngine):
    """A copy of one database.

    Raises RuntimeError if its process does not start, or SQLite cannot read what is in the dump.
    """

    def __init__(
        self, name: str, database: Database, *, operations: int = OPERATIONS, seconds: int = SECONDS
    ) -> None:
        self.name, self.database = name, database
        self._settings = {"operations": operations, "seconds": seconds}
        self._process: _Process | None = None

    def execute(self, statement: str) -> Output:
        words = " ".join(statement.split())
        use, tables, described = (
            pattern.fullmatch(words) for pattern in (USE, SHOW_TABLES, DESCRIBE)
        )
        match = use or tables or described
        database = match["database"] if match else None
        if database and database.lower() != self.name.lower():
            return Output(None, f"Unknown database '{database}'")
        if use:
            return Output(None)
        if tables:
            return Output([str((table,)) for table in sorted(self.database.tables)])
        if words.upper() in ("SHOW DATABASES", "SHOW SCHEMAS"):
            return Output([str((self.name,))])
        if described:
            return self._describe(described["table"])
        return self._run(statement)

    def _describe(self, table: str) -> Output:
        columns = self.database.tables.get(table.lower())
        if columns is None:
            return Output(None, f"Table '{self.name}.{table}' doesn't exist")
        return Output([str(column) for column in columns])

    def _run(self, statement: str) -> Output:
        if made := CREATE.match(statement):
            statement = f"{made[0]}`{self.name}`.{statement[made.end() :]}"
        if self._process is None:
            first = {"name": self.name, "script": self.database.script, **self._settings}
            self._process = _Process(first)
        try:
            reply = self._process.ask({"sql": statement, "rows": ROWS, "characters": CHARACTERS})
        except Exception:  # it was stopped, or does not answer as it should
            self.close()
            return Output(None, TOO_LONG)
        except BaseException:  # what it would still send is not the reply to the next statement
            self.close()
            raise
        if "many" in reply:
            return Output(None, TOO_MUCH)
        return Output(reply.get("rows"), TOO_LONG if "long" in reply else reply.get("error"))

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


class _Process:
    """The worker; it ends when nobody holds it any more."""

    def __init__(self, first: Mapping[str, Any]) -> None:
        self._pipe, theirs = Pipe()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WORKER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.close = weakref.finalize(self, _end, process, self._pipe)
        problem = ""
        try:
            if error := self.ask(first).get("error"):
                problem = f"the dump of database {first['name']!r} cannot be read: {error}"
        except (OSError, EOFError, ValueError) as error:
            problem = f"the process of SQLite does not start: {error!r}"
        if problem:
            self.close()
            raise RuntimeError(problem)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._pipe.send_bytes(json.dumps(request).encode())
        if not self._pipe.poll(PATIENCE):
            raise TimeoutError("no answer")
        reply = json.loads(self._pipe.recv_bytes(REPLY_BYTES))
        texts = [reply.get("error") or "", *(reply.get("rows") or ())]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("no reply")
        return reply


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    pipe.close()
    process.kill()  # it holds nothing that would have to be saved
    process.wait()
