"""InterCode SQL in MariaDB: a server of our own, its reader's rights, hostile statements."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.intercode import use_own_files
from helpers.samples import take_sample

from thread_kit.envs.intercode.files import FOLDER_VARIABLE
from thread_kit.envs.intercode_sql import mariadb
from thread_kit.envs.intercode_sql.engine import ROWS, TOO_LONG, TOO_MUCH
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.envs.intercode_sql.mariadb import (
    MISSING,
    NEEDED,
    NO_CLIENT,
    URL_VARIABLE,
    MariaDbEngine,
    check_server,
    start_server,
)
from thread_kit.envs.intercode_sql.questions import tasks
from thread_kit.envs.intercode_sql.reward import compute_reward

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(shutil.which(name, path=PLACES) for name in NEEDED), reason=MISSING),
    pytest.mark.skipif(not importlib.util.find_spec("pymysql"), reason=NO_CLIENT),
]

RESERVED = {164, 178, 225, 531, 638, 802}
"""Gold queries with a word that is none of SQLite's keywords and one of MariaDB's."""

HOSTILE = [
    "SELECT 'x' INTO OUTFILE '{folder}/out'",
    "SELECT 'x' INTO DUMPFILE '{folder}/out'",
    "SELECT * FROM ship INTO OUTFILE '/tmp/thread-kit-out'",
    "SELECT LOAD_FILE('/etc/passwd')",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE ship",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE ship",
    "CREATE TABLE t (a int) ENGINE=CONNECT TABLE_TYPE=DOS FILE_NAME='/etc/passwd'",
    "CREATE FUNCTION f RETURNS STRING SONAME 'libc.so'",
    "INSTALL SONAME 'ha_archive'",
    "SET GLOBAL general_log_file = '{folder}/out'",
    "SET GLOBAL general_log = ON",
    "SET GLOBAL max_statement_time = 0",
    "SET GLOBAL local_infile = 1",
    "SHUTDOWN",
    "KILL 1",
    "FLUSH TABLES WITH READ LOCK",
    "CREATE USER evil",
    "GRANT ALL ON *.* TO reader@localhost",
    "SET PASSWORD = PASSWORD('x')",
    "ALTER USER CURRENT_USER() ACCOUNT LOCK",
    "SELECT * FROM mysql.user",
    "DROP DATABASE ferries",
    "DROP TABLE ship",
    "DELETE FROM ship",
    "UPDATE ship SET name = 'x'",
    "INSERT INTO ship (name) VALUES ('x')",
    "CREATE TABLE t (a int)",
    "CREATE TEMPORARY TABLE t (a int)",
    "CREATE PROCEDURE p() BEGIN LOOP SET @a = 1; END LOOP; END",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM ship",
    "SELECT SLEEP(100000)",
    "DO BENCHMARK(1000000000000, SHA2('x', 512))",
    "SELECT BENCHMARK(1000000000000, 1 + 1)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "SELECT count(*) FROM crossing a, crossing b, crossing c, crossing d, crossing e, crossing f, "
    "crossing g, crossing h, crossing i, crossing j, crossing k, crossing l",
    "SELECT a.name, b.name, c.name, d.name, e.name, f.name, g.name FROM ship a, ship b, ship c, "
    "ship d, ship e, ship f, ship g",
    "SELECT REPEAT('x', 2000000000)",
    "SELECT REPEAT(a.name, 20000) FROM ship a, ship b, ship c, ship d",
    "SELECT GET_LOCK('x', 100000), RELEASE_ALL_LOCKS()",
    "XA START 'x'",
    "LOCK TABLES ship WRITE",
    "/*!50000 SET PASSWORD = PASSWORD('x') */",
    "SET STATEMENT max_statement_time = 0 FOR SELECT SLEEP(100000)",
    "(SELECT 1) INTO OUTFILE '{folder}/out'",
    "EXPLAIN DELETE FROM ship",
    "SELECT 1\0",
    "SELECT '\ud800'",
    "",
]


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    engine = MariaDbEngine("train", "ferries", seconds=1)
    yield engine
    engine.close()


def test_there_are_forty_of_them():
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_statement_does_no_harm(engine, number, tmp_path):
    output = engine.execute(HOSTILE[number].replace("{folder}", str(tmp_path)))
    assert "/bin/bash" not in str(output)
    assert sum(map(len, output.rows or ())) <= 1_000_000
    assert os.listdir(tmp_path) == []
    assert not os.path.exists("/tmp/thread-kit-out")
    engine.close()
    assert engine.execute("SELECT name FROM ship WHERE ship_id = 1").rows == ["('Gull',)"]
    assert engine.execute("SELECT count(*) FROM ship").rows == ["(6,)"]


def test_what_has_no_end_is_stopped(engine, monkeypatch):
    every = "SELECT count(*) FROM crossing a" + "".join(f", crossing b{n}" for n in range(12))
    assert engine.execute(every).error == TOO_LONG
    many = "SELECT a.ship_id FROM ship a" + "".join(f", ship b{n}" for n in range(6))
    patient = MariaDbEngine("train", "ferries", seconds=100)  # for a machine that is busy
    assert patient.execute(many).error == TOO_MUCH
    assert patient.execute(f"{many} LIMIT {ROWS}").rows is not None
    patient.close()
    monkeypatch.setattr(mariadb, "PATIENCE", -99)  # read_timeout is 1
    silent = MariaDbEngine("train", "ferries", seconds=100)
    assert silent.execute("SELECT SLEEP(100000)").error == TOO_LONG
    assert silent.execute("SELECT 1").rows == ["(1,)"]
    silent.close()


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT @v:=REPEAT('x', 1000000)", "SELECT 1 into/**/ @v", "SELECT 1\nINTO\n@v"),
        *("SELECT /* ' */ @v:=1 /* ' */", "SELECT '\\'', @v:=1, '\\''", "SELECT `'`, @v:=1, `'`"),
    ],
)
def test_no_variable_outlives_a_statement(engine, statement):
    assert "variables cannot be set" in engine.execute(statement).error
    assert engine.execute("SELECT @v").rows == ["(None,)"]
    assert engine.execute("SELECT 'Into the sea', '@', ':='").error is None


def test_what_stands_in_comments_is_no_statement(engine):
    for statement in ("/* all */ SELECT 1", "-- all\nSELECT 1", "# all\n(SELECT 1)"):
        assert engine.execute(statement).rows == ["(1,)"]


def test_an_interrupted_statement_leaves_no_rows_to_the_next_one(engine, monkeypatch):
    def interrupt(self, cursor):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MariaDbEngine, "_read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.execute("SELECT name FROM ship")
    assert engine.execute("SELECT 1").rows == ["(1,)"]


def test_an_episode_is_played_and_is_another_task_than_in_sqlite(monkeypatch):
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    env = InterCodeSql("train", 2, mariadb=True)
    assert env.task == {"split": "train", "number": 2, "mariadb": True}
    env.reset()
    assert env.step("SHOW TABLES").observation == "[('crossing',), ('harbour',), ('ship',)]"
    assert env.step("SELECT name FROM boat").observation == (
        "Error executing query: Table 'ferries.boat' doesn't exist"
    )
    assert env.step(env.chosen.gold).reward == 1
    assert env.again().task == env.task
    env.close()


@pytest.mark.parametrize("split", ["dev", "train"])
def test_gold_queries_of_our_own_earn_the_reward(split):
    for task in tasks(split):
        engine = MariaDbEngine(split, task.database)
        rows, again = (engine.execute(task.gold).rows for _ in range(2))
        engine.close()
        assert rows, task
        assert compute_reward(again, rows) == 1


def play_gold_queries():
    engines, outputs = {}, {}
    questions = tasks("test")
    asked = {*take_sample(range(len(questions)), 4), *RESERVED}
    for task in (questions[number] for number in sorted(asked)):
        engine = engines.setdefault(task.database, MariaDbEngine("test", task.database))
        outputs[task.number] = engine.execute(task.gold)
    for engine in engines.values():
        engine.close()
    return outputs


def test_the_gold_query_earns_the_reward_but_where_a_name_is_reserved(monkeypatch):
    """On 1,028 of all 1,034 questions."""
    use_own_files(monkeypatch)
    first, again = play_gold_queries(), play_gold_queries()
    for number, output in first.items():
        if number in RESERVED:
            assert "You have an error in your SQL syntax" in output.error
        else:
            assert again[number].rows == output.rows is not None, number
            assert compute_reward(again[number].rows, output.rows) == 1, number
    start_server("test").close()
    mariadb._start_server.cache_clear()


def test_threads_that_ask_at_once_share_a_server(monkeypatch):
    made = []

    def make(split):
        time.sleep(0.05)
        made.append(split)
        return split

    monkeypatch.setattr(mariadb, "MariaDbServer", make)
    mariadb._start_server.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(start_server, ["dev"] * 8)} == {"dev"}
    mariadb._start_server.cache_clear()
    assert made == ["dev"]


def test_a_server_by_url_is_refused_for_a_user_that_may_write(monkeypatch):
    """Its rights are read from the server; our own server has no network, so it is asked here."""
    server = start_server("train")
    reached = {"unix_socket": server.address["unix_socket"]}
    connect = __import__("pymysql").connect

    def by_socket(**address):
        address = {name: value for name, value in address.items() if name not in ("host", "port")}
        return connect(**address, **reached)

    monkeypatch.setattr("pymysql.connect", by_socket)
    with pytest.raises(ValueError, match=r"may do more than read \(.*GRANT SELECT ON"):
        check_server("mysql://root@localhost/")
    assert check_server("mysql://reader:@localhost/")["user"] == "reader"


def test_what_is_no_url_is_refused():
    with pytest.raises(ValueError, match=f"{URL_VARIABLE} is no mysql://"):
        check_server("postgres://localhost/")


def test_a_server_that_does_not_answer_is_named():
    with pytest.raises(RuntimeError, match=f"{URL_VARIABLE}: the server does not answer"):
        check_server("mysql://reader@127.0.0.1:1/")


def test_where_mariadb_is_missing_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(RuntimeError, match=re.escape(MISSING)):
        mariadb.MariaDbServer("train")


def test_a_folder_that_cannot_be_made_is_an_error_of_its_own(monkeypatch, tmp_path):
    for name in NEEDED:
        (tmp_path / name).write_text("#!/bin/sh\necho no room >&2; exit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RuntimeError, match="makes no folder of databases:\nno room"):
        mariadb.MariaDbServer("train")


def test_only_this_user_may_open_the_socket(engine):
    folder = os.path.dirname(start_server("train").address["unix_socket"])
    assert os.stat(folder).st_mode & 0o077 == 0


@pytest.fixture
def own_folder(monkeypatch, tmp_path):
    """A folder of the user's own, whose server ends with the test."""
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    servers = []

    class Server(mariadb.MariaDbServer):
        def __init__(self, split: str) -> None:
            super().__init__(split)
            servers.append(self)

    monkeypatch.setattr(mariadb, "MariaDbServer", Server)
    yield tmp_path
    for server in servers:
        server.close()


def test_another_folders_dump_with_line_ends_of_windows_has_a_server_of_its_own(own_folder):
    question = {"query": "Which?", "gold": "SELECT n FROM `my-own`.a", "db": "my-own"}
    lines = ("CREATE DATABASE `my-own`;", "USE `my-own`;", "CREATE TABLE `a` (", "  `n` int", ");")
    dump = "\r\n".join([*lines, "INSERT INTO `a` VALUES (7);", ""])
    (own_folder / "ic_spider_dbs.sql").write_bytes(dump.encode())
    rows = [{**question, "hardness": "easy"}, {**question, "hardness": "easy", "db": "nope"}]
    (own_folder / "ic_spider_dev.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(ValueError, match="question 1 is about the database 'nope', which "):
        InterCodeSql("test", 1, mariadb=True)
    env = InterCodeSql("test", 0, mariadb=True)
    step = env.step("SELECT n FROM a")
    assert (step.observation, step.reward) == ("[(7,)]", 1)
    env.close()
