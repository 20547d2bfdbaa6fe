"""MariaDB or MySQL for InterCode SQL, which is MySQL's in the papers (docs/howto/mariadb.md).

A server of our own is started from the installed programs, without rights of an administrator, in a
temporary folder that ends with this process; or THREAD_KIT_MARIADB names one that has the databases
(mysql://user:password@host:port/). Covered (tests/envs/test_intercode_mariadb.py):
- model-written SQL runs as a user that may only SELECT from the databases: no files (FILE), no
  other users, no settings of all; of a server by URL such a user is demanded
- what this user may do to itself, such as another password or time limit: only statements that
  read are passed on (`READS`)
- statements without end: stopped by the server after `SECONDS`; by us, when it does not
  answer `PATIENCE` seconds longer, and then the connection is ended
- outputs without bound: `ROWS` and `CHARACTERS`, read row by row
- variables, which outlive a statement, and which no limit of the server counts in time: none is set

Not covered: what a server by URL shares with others; locks of one episode's
SELECT ... FOR UPDATE, for which another's waits until that statement ends; temporary files of one
statement, which grow for as long as it may run and are gone with it; without `setpriv` (util-linux)
a server of our own stays when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from functools import cache
from pathlib import Path
from typing import Any, final
from urllib.parse import unquote, urlsplit

from thread_kit.envs.intercode.files import find_folder
from thread_kit.envs.intercode_sql.engine import (
    CHARACTERS,
    ROWS,
    SECONDS,
    TOO_LONG,
    TOO_MUCH,
    Output,
    SqlEngine,
)
from thread_kit.envs.intercode_sql.questions import load_databases, read_databases
from thread_kit.sandbox.jail_server import launch

URL_VARIABLE = "THREAD_KIT_MARIADB"
PATIENCE = 20  # seconds beyond those of a statement
START = 120.0  # seconds, on a machine that is busy
NEEDED = ("mariadbd", "mariadb-install-db", "my_print_defaults")
MISSING = (
    "MariaDB is not installed: apt install mariadb-server-core mariadb-client-core (nothing has to "
    f"be started), or set {URL_VARIABLE} to mysql://user:password@host:port/ of a server that has "
    "the databases"
)
NO_CLIENT = 'the client of MariaDB is not installed: pip install -c constraints.txt ".[mariadb]"'
SKIPPED = re.compile(r"\s*(?:/\*!|(?:CREATE USER|GRANT|FLUSH|LOCK|UNLOCK)\b)", re.I)
FIRST_WORD = re.compile(
    r"(?: [\s(] | /\*(?!M?!).*?\*/ | (?:--\s|\#)[^\n]*\n )* (?P<word>\w*)", re.DOTALL | re.VERBOSE
)
"""Behind comments, but for those that the server executes."""

READS = {"SELECT", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "WITH", "USE"}
"""First words of what is passed on: every user may change its own password and settings."""

SETS_VARIABLE = re.compile(r":=|\bINTO\b.*@", re.IGNORECASE | re.DOTALL)

HARMLESS = {"SELECT", "USAGE", "SHOW VIEW", "SHOW DATABASES"}


@final
class MariaDbEngine(SqlEngine):
    """One database on the server, to read. Raises RuntimeError where there is no server.

    split: the databases of its questions are on our own server.
    """

    def __init__(self, split: str, database: str, *, seconds: float = SECONDS) -> None:
        self.database = database
        self.seconds = seconds
        self._address = find_server(split)
        self._connection: Any = None

    def execute(self, statement: str) -> Output:
        import pymysql

        word = FIRST_WORD.match(statement)
        if not word or word[1].upper() not in READS:
            return Output(
                None, f"{word[1] if word else ''} command denied; this user may only read"
            )
        if sets_variable(statement):
            return Output(None, "variables cannot be set here; this user may only read")
        try:
            if self._connection is None:
                self._connection = self._connect()
            with contextlib.closing(self._connection.cursor()) as cursor:
                cursor.execute(statement)
                if cursor.description is None:
                    return Output(None)
                return self._read(cursor)
        except pymysql.err.MySQLError as error:
            number, text = (*error.args, "", "")[:2]
            if number in (0, 2006, 2013):  # it is gone, or did not answer
                self._drop()
                return Output(None, TOO_LONG)
            late = number in (1317, 1969, 3024)
            return Output(None, TOO_LONG if late else str(text or number or error))
        except (UnicodeError, ValueError, OverflowError) as error:  # what the client cannot say
            self._drop()
            return Output(None, str(error))
        except BaseException:  # what it would still send is not the answer to the next statement
            self._drop()
            raise

    def _read(self, cursor: Any) -> Output:
        """The rows, one by one: as many as there may be."""
        rows: list[str] = []
        left = CHARACTERS
        for row in cursor:
            rows.append(str(row))
            left -= len(rows[-1])
            if len(rows) > ROWS or left < 0:
                self._drop()  # else the client reads all the others
                return Output(None, TOO_MUCH)
        return Output(rows)

    def _connect(self) -> Any:
        import pymysql

        connection = pymysql.connect(
            **self._address,
            database=self.database,
            charset="utf8mb4",
            autocommit=True,
            local_infile=False,
            cursorclass=pymysql.cursors.SSCursor,
            read_timeout=self.seconds + PATIENCE,
        )
        with connection.cursor() as cursor:
            if "MariaDB" in connection.get_server_info():
                cursor.execute(f"SET max_statement_time = {self.seconds}")
            else:
                cursor.execute(f"SET max_execution_time = {int(1000 * self.seconds)}")
        return connection

    def _drop(self) -> None:
        """End the connection and what the server still does for it."""
        import pymysql

        connection, self._connection = self._connection, None
        if connection is None:
            return
        number = connection.thread_id()
        if connection._result is not None:  # else the client reads all that is left of it
            connection._result.unbuffered_active = False
            connection._result = None
        connection._force_close()
        with (
            contextlib.suppress(pymysql.err.MySQLError),
            pymysql.connect(**self._address) as other,
            other.cursor() as cursor,
        ):
            cursor.execute(f"KILL {number}")

    def close(self) -> None:
        self._drop()


def sets_variable(statement: str) -> bool:
    """Whether a statement may set a variable; of what stands in quotes nothing is.

    Where a quote can be something else (behind a backslash, in a comment or a name), all counts.
    """
    is_plain = not re.search(r"\\|#|--|/\*|`", statement)
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "''", statement) if is_plain else statement
    return SETS_VARIABLE.search(text) is not None


def find_server(split: str) -> dict[str, Any]:
    """How to reach a server with a split's databases, as a user that may only read.

    Raises RuntimeError where there is none, ValueError for a user that may do more.
    """
    try:
        import pymysql  # noqa: F401
    except ImportError as error:
        raise RuntimeError(NO_CLIENT) from error
    url = os.environ.get(URL_VARIABLE)
    return check_server(url) if url else start_server(split).address


@cache
def check_server(url: str) -> dict[str, Any]:
    """The address that a URL says; raises ValueError for one that is none or may be written to."""
    import pymysql

    parts = urlsplit(url)
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname:
        raise ValueError(f"{URL_VARIABLE} is no mysql://user:password@host:port/: {parts.hostname}")
    address = {
        "host": parts.hostname,
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }
    try:
        with pymysql.connect(**address, connect_timeout=20) as connection:
            cursor = connection.cursor()
            cursor.execute("SHOW GRANTS")
            grants = [str(row[0]) for row in cursor.fetchall()]
    except pymysql.err.MySQLError as error:
        raise RuntimeError(f"{URL_VARIABLE}: the server does not answer: {error}") from error
    for grant in grants:
        rights = re.match(r"GRANT (.*?) ON ", grant)
        more = {right.strip() for right in rights[1].split(",")} - HARMLESS if rights else set()
        if more or "GRANT OPTION" in grant or not rights:
            raise ValueError(
                f"the user of {URL_VARIABLE} may do more than read ({', '.join(sorted(more))}); "
                "make one for this: CREATE USER reader IDENTIFIED BY '...'; GRANT SELECT ON "
                "`database`.* TO reader; for each database"
            )
    return address


_starting = threading.Lock()


def start_server(split: str) -> MariaDbServer:
    """The server of this process with a split's databases; threads that ask at once share it."""
    with _starting:
        return _start_server(split, find_folder())


@cache
def _start_server(split: str, folder: Path) -> MariaDbServer:
    return MariaDbServer(split)


class MariaDbServer:
    """A server of our own, reached by a socket in a folder that only this user may open.

    Raises RuntimeError where MariaDB is missing, or does not start.
    """

    def __init__(self, split: str) -> None:
        places = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/libexec"])
        programs = [shutil.which(name, path=places) for name in NEEDED]
        if None in programs:
            raise RuntimeError(MISSING)
        daemon, install = map(str, programs[:2])
        # Short, since the path of a socket has 107 characters at most.
        self._folder = tempfile.TemporaryDirectory(prefix="tk-maria-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        for name in ("data", "files", "tmp"):
            (folder / name).mkdir()
        user = ["--user=root"] if os.geteuid() == 0 else []
        base = Path(daemon).parent.parent  # else both look in /usr, wherever they lie
        common = ["--no-defaults", *user, f"--basedir={base}", f"--datadir={folder / 'data'}"]
        self._log = (folder / "log").open("wb")
        options = ["--skip-test-db", "--auth-root-authentication-method=normal"]
        made = subprocess.run(
            [install, *common, *options], stdout=self._log, stderr=self._log, check=False
        )
        if made.returncode:
            log = self._end_of_log()
            self._log.close()
            self._folder.cleanup()
            raise RuntimeError(f"{install} makes no folder of databases:\n{log}")
        tie = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        server = [
            *(*tie, daemon, *common, "--skip-networking", f"--socket={folder / 'socket'}"),
            *(f"--pid-file={folder / 'pid'}", f"--tmpdir={folder / 'tmp'}"),
            *(f"--secure-file-priv={folder / 'files'}", "--local-infile=0"),
            *("--lower-case-table-names=1", "--max-allowed-packet=1M", "--skip-log-bin"),
            *(f"--max-statement-time={SECONDS}", "--performance-schema=0"),
            *("--innodb-buffer-pool-size=32M", "--character-set-server=utf8mb4"),
            "--collation-server=utf8mb4_general_ci",
            # Rows that ORDER BY does not tell apart come in the order of their places: in memory
            # these are addresses, another at each time, and so is the row that LIMIT 1 takes.
            "--tmp-memory-table-size=0",
            "--innodb-stats-auto-recalc=0",  # else plans change behind one's back
        ]
        self._process = launch(server, os.environ, self._log)
        self.close = weakref.finalize(self, _end, self._process, self._folder, self._log)
        self._socket = str(folder / "socket")
        self.address = {"unix_socket": self._socket, "user": "reader", "password": ""}
        try:
            self._load(split)
        except BaseException:
            self.close()
            raise

    def _load(self, split: str) -> None:
        """Make the databases, and the user that may read them."""
        with self._wait() as connection:
            cursor = connection.cursor()
            cursor.execute("SET max_statement_time = 0, foreign_key_checks = 0")
            dump = read_databases(split).replace("utf8mb4_0900_ai_ci", "utf8mb4_general_ci")
            for statement in re.split(r";[ \t\r]*\n", re.sub(r"^--.*\n", "", dump, flags=re.M)):
                # Comments that only some versions execute set and restore what we do not need.
                if statement.strip() and not SKIPPED.match(statement):
                    cursor.execute(statement)
            cursor.execute("CREATE USER reader@localhost")
            for name, database in load_databases(split).items():
                tables = ", ".join(f"`{name}`.`{table}`" for table in database.tables)
                cursor.execute(f"ANALYZE TABLE {tables}")
                cursor.execute(f"GRANT SELECT ON `{name}`.* TO reader@localhost")

    def _wait(self) -> Any:
        """The administrator's connection, once the server answers."""
        import pymysql

        deadline = time.monotonic() + START
        while not os.path.exists(self._socket) and self._process.poll() is None:
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        while True:
            try:
                return pymysql.connect(
                    unix_socket=self._socket, user="root", charset="utf8mb4", autocommit=True
                )
            except pymysql.err.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = self._end_of_log()
                    raise RuntimeError(f"MariaDB does not start: {error}\n{log}") from error
                time.sleep(0.1)

    def _end_of_log(self) -> str:
        return Path(self._log.name).read_text(errors="replace")[-1_000:]


def _end(
    process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], log: Any
) -> None:
    process.kill()  # nothing on it would have to be saved
    process.wait()
    for pipe in (process.stdin, process.stdout, log):
        if pipe:
            pipe.close()
    folder.cleanup()
