"""Reads a dump of MySQL (mysqldump's form) as scripts for SQLite, one a database.

Covered: what InterCode's dump of Spider and the kit's own databases hold: tables, primary keys,
rows, and what other versions of mysqldump write for these. A statement that makes something in
another form is an error: a table that stays empty would make empty answers right. Texts compare as
in MySQL's collation (`sqlite_worker.py`). Keys that only speed queries up or refer to other tables
are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
ESCAPED = re.compile(r"\\(.)|''", re.DOTALL)
CONTROL = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "Z": "\x1a", "b": "\b"}
STATEMENT = re.compile(
    r"^(?:(?:CREATE DATABASE [^`\n]*|USE )`(?P<database>[^`\n]+)`"
    r"|CREATE TABLE (?:IF NOT EXISTS )?`(?P<table>[^`]+)` \(\n(?P<body>.*?)\n\)"
    r"|INSERT INTO (?P<into>`[^`]+`(?: ?\((?:`[^`]+`,? ?)+\))? VALUES)(?P<rows>\s.*?);[ \t]*$)",
    re.MULTILINE | re.DOTALL,
)
MAKES = re.compile(
    r"(?:^|;)[ \t]*(?P<made>(?:INSERT|REPLACE|USE|CREATE\s+(?:TABLE|VIEW|DATABASE|SCHEMA))\b)",
    re.MULTILINE | re.IGNORECASE,
)
"""The beginning of a statement that makes something, or says where, in whatever form."""

COLUMN = re.compile(r"`(?P<name>[^`]+)` (?P<type>\w+(?:\([\d,]+\))?)(?P<rest>.*)")
DEFAULT = re.compile(r"DEFAULT (?:'([^']*)'|(\S+))")
KEY = re.compile(r"(PRIMARY |UNIQUE |)KEY (?:`[^`]+` )?\(`([^`]+)`([^)]*)\)")
NUMBERS = {"int": "INTEGER", "double": "REAL", "float": "REAL", "decimal": "REAL"}

Description = tuple[str, str, str, str, str | None, str]
"""A column as DESC shows it: field, type, null, key, default, extra."""


@dataclass(slots=True)
class Database:
    """script: makes its tables in SQLite, where one of its name is attached.
    tables: what DESC shows of each, by its name.
    """

    script: str = ""
    tables: dict[str, list[Description]] = field(default_factory=dict)


def read_dump(text: str) -> dict[str, Database]:
    """The databases of a dump by their names.

    Raises ValueError for a dump without any, and for a statement that would be left out.
    """
    text = text.replace("\r\n", "\n")  # within texts mysqldump writes \r
    databases: dict[str, Database] = {}
    current, end = "", 0
    for statement in STATEMENT.finditer(text):
        _must_be_all(text, end, statement.start())
        if statement["table"]:  # another statement in it is of a table that has another end
            _must_be_all(text, *statement.span("body"))
        end = statement.end()
        if statement["database"]:
            current = statement["database"]
        elif not current:
            raise ValueError(_say_line(text, statement.start(), "is in no database"))
        database = databases.setdefault(current, Database())
        if statement["table"]:
            name = statement["table"].lower()  # as MySQL keeps it with lower_case_table_names=1
            columns, script = _read_table(statement["body"])
            database.tables[name] = columns
            database.script += f"CREATE TABLE `{current}`.`{name}` ({script});\n"
        elif statement["into"]:
            rows = TEXT.sub(_quote, statement["rows"])
            database.script += f"INSERT INTO `{current}`.{statement['into']}{rows};\n"
    _must_be_all(text, end, len(text))
    if not databases:
        raise ValueError("this is no dump of MySQL: it creates no database")
    return databases


def _must_be_all(text: str, start: int, end: int) -> None:
    """Raises ValueError for a statement between what was read that makes something."""
    if left := MAKES.search(text, start, end):
        raise ValueError(_say_line(text, left.start("made"), "is not in the form of mysqldump"))


def _say_line(text: str, place: int, problem: str) -> str:
    line = text[place:].partition("\n")[0]
    return (
        f"line {text.count(chr(10), 0, place) + 1} of the dump {problem}: {line[:60]!r}; write it "
        "by `mysqldump --databases`, without --insert-ignore or --replace"
    )


def _read_table(body: str) -> tuple[list[Description], str]:
    """What DESC shows of the columns, and their definitions in SQLite."""
    lines = [line.strip().rstrip(",") for line in body.split("\n")]
    keys: dict[str, str] = {}
    parts = []
    for kind, first, others in (match.groups() for match in map(KEY.match, lines) if match):
        names = [first, *re.findall("`([^`]+)`", others)]
        if kind == "PRIMARY ":
            keys |= dict.fromkeys(names, "PRI")
            parts.append(f"PRIMARY KEY ({', '.join(f'`{name}`' for name in names)})")
        else:
            keys.setdefault(first, "UNI" if kind and not others else "MUL")
    columns = [column for column in map(COLUMN.match, lines) if column]
    types = [
        f"`{column['name']}` {NUMBERS.get(column['type'].partition('(')[0], 'TEXT COLLATE NOCASE')}"
        for column in columns
    ]
    return [_describe(column, keys) for column in columns], ", ".join([*types, *parts])


def _describe(column: re.Match[str], keys: dict[str, str]) -> Description:
    default = DEFAULT.search(column["rest"])
    value = (default[1] if default[1] is not None else default[2]) if default else None
    return (
        column["name"],
        column["type"],
        "NO" if "NOT NULL" in column["rest"] else "YES",
        keys.get(column["name"], ""),
        None if value == "NULL" else value,
        "auto_increment" if "AUTO_INCREMENT" in column["rest"] else "",
    )


def _quote(text: re.Match[str]) -> str:
    """A text of MySQL as one of SQLite."""
    plain = ESCAPED.sub(_unescape, text[0][1:-1])
    return "'" + plain.replace("'", "''") + "'"


def _unescape(mark: re.Match[str]) -> str:
    return CONTROL.get(mark[1], mark[1]) if mark[1] else "'"
