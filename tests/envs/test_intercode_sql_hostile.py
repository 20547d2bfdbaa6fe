"""Hostile SQL: nothing is written outside, nothing hangs, nothing ends the session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from thread_kit.envs.intercode_sql import sqlite_worker
from thread_kit.envs.intercode_sql.engine import TOO_LONG, TOO_MUCH
from thread_kit.envs.intercode_sql.questions import load_databases
from thread_kit.envs.intercode_sql.sqlite import SqliteEngine

FERRIES = load_databases("train")["ferries"]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
MANY = "replace(hex(zeroblob({})), '0', 'a')"
INSIDE_ONE_FUNCTION = f"SELECT instr({MANY.format(499_000)}, {MANY.format(240_000)} || 'b')"

HOSTILE = [
    # files
    "ATTACH DATABASE '{folder}/out.db' AS out",
    "ATTACH ':memory:' AS more",
    "ATTACH 'file:{folder}/out.db?mode=rwc' AS out",
    "VACUUM INTO '{folder}/out.db'",
    "VACUUM",
    "DETACH main",
    "SELECT writefile('{folder}/out', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x', 'touch {folder}/out')",
    "SELECT load_extension('/usr/lib/x86_64-linux-gnu/libc.so.6')",
    "SELECT LOAD_EXTENSION('x', 'y')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "CREATE VIRTUAL TABLE t USING csv(filename='/etc/passwd')",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM ship INTO OUTFILE '{folder}/out'",
    "SELECT LOAD_FILE('/etc/passwd')",
    # settings
    "PRAGMA writable_schema = ON",
    "PRAGMA temp_store_directory = '{folder}'",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA max_page_count = 4294967294",
    "SELECT * FROM pragma_database_list",
    "UPDATE sqlite_master SET sql = 'x'",
    "DELETE FROM sqlite_schema",
    # time
    f"{ENDLESS} SELECT count(*) FROM n",
    f"{ENDLESS} SELECT max(i) FROM n WHERE i < 0",
    "SELECT count(*) FROM crossing a, crossing b, crossing c, crossing d, crossing e, crossing f, "
    "crossing g, crossing h, crossing i, crossing j",
    f"{ENDLESS} INSERT INTO ship (name) SELECT i FROM n",
    INSIDE_ONE_FUNCTION,
    "SELECT SLEEP(100000)",
    # memory and length
    "SELECT zeroblob(2147483647)",
    "SELECT randomblob(1e9)",
    "SELECT printf('%.*c', 2000000000, 'x')",
    "SELECT group_concat(a.name || b.name || c.name, zeroblob(900000)) FROM crossing, ship a, "
    "ship b, ship c",
    f"{ENDLESS} SELECT i, randomblob(900000) FROM n ORDER BY 2",
    f"{ENDLESS} SELECT i FROM n",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "SELECT 1 " + "UNION SELECT 1 " * 5000,
    "SELECT '" + "x" * 2_000_000 + "'",
    "CREATE TRIGGER t AFTER INSERT ON ship BEGIN INSERT INTO ship (name) VALUES ('x'); END",
    # what is no text
    "SELECT 'a\0b'",
    "\0",
    "SELECT char(55296), '\ud800'",
    "SELECT CAST(x'ff00fe' AS TEXT)",
    "SELECT 1; ATTACH '{folder}/out.db' AS out",
    "EXPLAIN SELECT * FROM ship",
    "BEGIN EXCLUSIVE",
    "DROP TABLE ship",
    "SELECT 9223372036854775807 + 1, 1e999, -1e999",
]


@pytest.fixture
def engine():
    engine = SqliteEngine("ferries", FERRIES, operations=3_000_000, seconds=1)
    yield engine
    engine.close()


def test_there_are_forty_of_them():
    assert len(HOSTILE) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_statement_does_no_harm(engine, number, tmp_path):
    before = os.listdir(tmp_path)
    output = engine.execute(HOSTILE[number].replace("{folder}", str(tmp_path)))
    assert output.error is None or 0 < len(output.error) < 10_000
    assert sum(map(len, output.rows or ())) <= 1_000_000
    assert engine.execute("SELECT 1").rows == ["(1,)"]
    assert os.listdir(tmp_path) == before
    for secret in ("root:", "/bin/bash"):
        assert secret not in str(output)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ATTACH ':memory:' AS more", "not authorized|authorization denied|too many"),
        ("PRAGMA writable_schema = ON", "not authorized"),
        ("VACUUM INTO '/tmp/out.db'", "not authorized|authorization denied|too many"),
        ("EXPLAIN PRAGMA user_version", "not authorized"),
        ("SELECT load_extension('x')", "not authorized"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", "not authorized"),
        ("UPDATE sqlite_master SET sql = 'x'", "may not be modified|not authorized"),
        ("SELECT zeroblob(2147483647)", "too big"),
    ],
)
def test_what_is_refused_is_said(engine, statement, why):
    output = engine.execute(statement)
    assert output.rows is None
    assert re.search(why, output.error), output.error


def test_a_query_without_end_is_stopped_after_so_many_operations(engine):
    assert engine.execute(f"{ENDLESS} SELECT count(*) FROM n").error == TOO_LONG
    assert engine.execute(f"{ENDLESS} SELECT i FROM n").error == TOO_MUCH


@pytest.mark.slow
def test_a_function_without_end_costs_its_process_which_is_replaced_with_the_database(engine):
    engine.execute("DROP TABLE IF EXISTS crossing")
    assert engine.execute(INSIDE_ONE_FUNCTION).error == TOO_LONG
    assert engine.execute("SELECT count(*) FROM crossing").rows == ["(9,)"]


def test_the_database_cannot_grow_without_bound(engine):
    output = engine.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) "
        "INSERT INTO ship (name) SELECT randomblob(900000) FROM n"
    )
    assert output.error
    assert engine.execute("SELECT 1").rows == ["(1,)"]


def test_the_process_may_write_no_file(tmp_path):
    """The last wall, should a way around the authorizer be found."""
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import sqlite_worker as w; "
        "from multiprocessing import Pipe; import json, threading, signal; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); ours, theirs = Pipe(); "
        "ours.send_bytes(json.dumps({'script': '', 'operations': 1, 'seconds': 9}).encode())\n"
        "try:\n ours.close(); w.main(theirs)\nexcept (EOFError, ConnectionError): pass\n"
        "try:\n with open(sys.argv[2], 'w') as f: f.write('x')\nexcept OSError as e: print(e.errno)"
    )
    folder = str(Path(sqlite_worker.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code, folder, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "27", done.stderr  # EFBIG


def test_the_process_ends_with_its_engine():
    engine = SqliteEngine("ferries", FERRIES)
    engine.execute("SELECT 1")
    process = engine._process
    _, _, (popen, _), _ = process.close.peek()
    engine.close()
    engine.close()
    assert popen.returncode is not None


@pytest.mark.parametrize(
    "reply",
    [b"", b"5", b"[]", b"[" * 100_000, b'{"rows": [5]}', b'{"rows": 5}', b'{"error": 5}',
     b'{"rows": {"a": 1}, "error": {}}'],
    ids=lambda reply: repr(reply[:30]),
)  # fmt: skip
def test_whatever_comes_out_of_the_process_is_an_output(monkeypatch, reply):
    engine = SqliteEngine("ferries", FERRIES)
    engine.execute("SELECT 1")
    monkeypatch.setattr(engine._process._pipe, "recv_bytes", lambda limit: reply, raising=False)
    output = engine.execute("SELECT 1")
    assert output.error == TOO_LONG or all(isinstance(row, str) for row in output.rows or ())
    engine.close()
