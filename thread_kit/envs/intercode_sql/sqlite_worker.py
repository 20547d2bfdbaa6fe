"""The process in which SQLite executes model-written SQL; needs the standard library alone.

Started by `envs/intercode_sql/sqlite.py` with the number of a pipe; each message is JSON. The first
one makes the database, in memory; each other is a statement.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sqlite3
import sys
import unicodedata
from multiprocessing.connection import Connection
from typing import Any

ALLOWED = {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in (
        *("SELECT", "READ", "FUNCTION", "RECURSIVE", "INSERT", "UPDATE", "DELETE", "TRANSACTION"),
        *("SAVEPOINT", "ANALYZE", "REINDEX", "ALTER_TABLE"),
        *(
            f"{verb}_{temporary}{kind}"
            for verb in ("CREATE", "DROP")
            for temporary in ("", "TEMP_")
            for kind in ("TABLE", "INDEX", "VIEW", "TRIGGER")
        ),
    )
}
"""What a statement may do; not ATTACH, DETACH, PRAGMA, virtual tables and what is not known yet."""

REFUSED = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}

LIMITS = {
    "LENGTH": 1_000_000,  # of a value, in bytes
    "SQL_LENGTH": 100_000,
    "EXPR_DEPTH": 200,
    "COMPOUND_SELECT": 50,
    "LIKE_PATTERN_LENGTH": 200,
    "ATTACHED": 0,
    "WORKER_THREADS": 0,
    "TRIGGER_DEPTH": 20,
}
MEMORY = 256 * 2**20  # of SQLite; twice as much of the process
PAGES = 16_384  # of the database: 64 MB
OPERATIONS = 10_000  # between two looks at how many there were


def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """SQLite asks it of everything that a statement wants to do."""
    refused = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in REFUSED
    return sqlite3.SQLITE_DENY if refused or action not in ALLOWED else sqlite3.SQLITE_OK


def compare_texts(first: str, second: str) -> int:
    """-1, 0 or 1, as MySQL's utf8mb4_general_ci: no capitals, no accents, padded with spaces."""
    first, second = (_without_accents(text).upper() for text in (first, second))
    width = max(len(first), len(second))
    first, second = first.ljust(width), second.ljust(width)
    return (first > second) - (first < second)


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))


class Database:
    """The database, and how many operations the statement under way has left."""

    def __init__(self, name: str, script: str, operations: int) -> None:
        self.operations = operations
        self.left = 0
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        # Attached, so that its tables can be called `name.table`, too.
        self.connection.execute(f"ATTACH ':memory:' AS `{name}`")
        for pragma in (
            "temp_store = MEMORY",
            f"main.max_page_count = {PAGES}",
            f"`{name}`.max_page_count = {PAGES}",
            f"hard_heap_limit = {MEMORY}",
            "trusted_schema = OFF",
        ):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.create_collation("NOCASE", compare_texts)
        self.connection.executescript(script)
        for name, limit in LIMITS.items():
            self.connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{name}"), limit)
        self.connection.set_authorizer(authorize)
        self.connection.set_progress_handler(self._count, OPERATIONS)

    def _count(self) -> bool:
        self.left -= OPERATIONS
        return self.left < 0  # stops the statement

    def execute(self, statement: str, rows: int, characters: int) -> dict[str, Any]:
        """The reply: rows, "error", or what there was too much of ("many", "long")."""
        self.left = self.operations
        cursor = self.connection.cursor()
        texts: list[str] = []
        try:
            cursor.execute(statement)
            if cursor.description is None:
                return {"rows": None}
            for row in cursor:
                texts.append(str(row))
                characters -= len(texts[-1])
                if len(texts) > rows or characters < 0:
                    return {"many": True}
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            return {"long": True} if self.left < 0 else {"error": str(error)}
        except MemoryError:
            return {"error": "out of memory"}
        finally:
            cursor.close()
        return {"rows": texts}


def main(pipe: Connection) -> None:
    """Serve statements until the host is gone."""
    first = json.loads(pipe.recv_bytes())
    for kind, limit in (("AS", 2 * MEMORY), ("FSIZE", 0), ("NOFILE", 32), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (limit, limit))
    try:
        database = Database(first["name"], first["script"], first["operations"])
    except Exception as error:
        pipe.send_bytes(json.dumps({"error": str(error)}).encode())
        return
    pipe.send_bytes(b"{}")
    while True:
        request = json.loads(pipe.recv_bytes())
        # Of the processor's time, so that nothing is stopped because the machine is busy: inside
        # one function SQLite counts no operations.
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime) + 1 + first["seconds"]
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
        reply = database.execute(request["sql"], request["rows"], request["characters"])
        pipe.send_bytes(json.dumps(reply).encode())


if __name__ == "__main__":
    with contextlib.suppress(EOFError, ConnectionError):
        main(Connection(int(sys.argv[1])))
