"""The file of a suite: one line of JSON an episode, on disk as soon as the episode is over.

A process that is killed can leave a torn last line: readers skip it, and the next writer cuts it
off. One writer at a time; any number of readers (`trace/lock.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from thread_kit.replace_file import replace_file
from thread_kit.trace.jsonl import mend_last_line, read_lines, to_line
from thread_kit.trace.lock import LockedFile, LockError
from thread_kit.trace.printable import sanitize


class ResultsFileError(RuntimeError):
    """A file does not hold the results of a suite, or another suite is writing to it."""


class EpisodeKey(NamedTuple):
    """What tells one episode of a suite from another; two rows with the same key never exist.

    prompt, settings: hashes, of the few-shot prompts, and of the budgets, the sampling and the
    model's file; "" of what could not be started. task: as JSON. environment: its name; "" of one
    that could not be made.
    """

    method: str
    model: str
    prompt: str
    settings: str
    task: str
    seed: int
    environment: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> EpisodeKey:
        """The key of a row."""
        task, settings = canonical(row["task"]), row["settings"]
        names = row["method"], row["model"], row["prompt"], settings, task, row["seed"]
        return cls(*names, row.get("environment") or "")

    @property
    def job(self) -> tuple[str, str, str, int]:
        """Method, model, task and seed: what is played, whatever its prompt and settings."""
        return self.method, self.model, self.task, self.seed

    @property
    def without_settings(self) -> EpisodeKey:
        """The key of the same episode if it could not be started."""
        return self._replace(prompt="", settings="")


def broke_down(row: Mapping[str, Any]) -> bool:
    """Whether the episode of a row ended with an error before it was solved."""
    return bool(row["error"]) and not row["solved"]


def canonical(value: Any) -> str:
    """A value as JSON text that does not depend on the order in which its parts were given."""
    return json.dumps(value, sort_keys=True)


def is_scalar(value: Any) -> bool:
    """Whether a value can stand in a column: null, a number, a text."""
    if type(value) is int:
        return abs(value) < MOST
    return value is None or isinstance(value, bool | float | str)


_COLUMNS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("method", "model", "prompt", "settings", "error"), str),
    "task": dict,
    "seed": int,
    "solved": bool,
    **dict.fromkeys(("limits", "engine"), (dict, type(None))),
}
"""What every row has, whichever version wrote it."""

_NUMBERS = """
reward threads depth mean_depth actions calls prompt_tokens reused evaluated generated seconds
at_once temperature trials k_max failures
"""
_COUNTED = frozenset(_NUMBERS.split())
_OTHERS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("environment", "status", "detail", "state", "trace", "was", "extends", "code"), (str,)
    ),
    **dict.fromkeys(_COUNTED, (int, float)),
    **dict.fromkeys(("solvable", "claimed", "out_of_actions"), (bool,)),
    **dict.fromkeys(("budget", "loop", "others"), (dict,)),
    "states": (list,),
}
"""What a row of some version has: it is this, or null."""

COLUMNS = {*_COLUMNS, *_OTHERS}
"""All that a suite's row may have, beside what its environment measures."""

MOST = 2**53
"""What is counted is less, and a number that a frame holds exactly."""


RENAMED = {
    "stateflow": "sf_chat",
    "stateflow, 10 states": "sf_chat, 10 states",
    "stateflow+reflexion": "sf_chat+reflexion",
}
"""What methods were called before: what was StateFlow had its instructions in the history, which is
SF_Chat (StateFlow paper, appendix A.3)."""


def read_results(path: str | Path, *more: str | Path) -> list[dict[str, Any]]:
    """The rows of a results file, or of several, each once; of an episode being written, none.

    A row of before, whose method has another name now, says the old one, too (`was`).
    Raises FileNotFoundError, or ResultsFileError naming the line that is no row, or that has the
    same episode as an earlier one with another outcome.
    """
    rows: dict[EpisodeKey, dict[str, Any]] = {}
    files: dict[EpisodeKey, Path] = {}

    def take(row: Any) -> None:
        check_row(row)
        row = _rename(row)
        key = EpisodeKey.of(row)
        earlier = files.setdefault(key, file)
        if rows.setdefault(key, row) != row:
            raise ValueError(
                "an earlier line has this episode with another outcome; delete one of the two"
                if earlier == file
                else f"{earlier} has this episode with another outcome; read one of the two, or on "
                "the command line tell them apart: results --by-file"
            )

    for file in map(Path, (path, *more)):
        if file.exists() and not file.is_file():
            raise ResultsFileError(f"{file} is no file; give the path of a suite's results")
        read_lines(file, take, what="no episode of a suite", error=ResultsFileError)
    return list(rows.values())


def _rename(row: dict[str, Any]) -> dict[str, Any]:
    """A row under the name that its method has now; such rows have no column `state` yet."""
    if row["method"] not in RENAMED or "state" in row:
        return row
    return {**row, "method": RENAMED[row["method"]], "was": row["method"]}


ACTS = set("<>$[]`\\|")
"""What acts on a page or in a figure instead of being read; no name of a method or model has it."""

_TRACE = re.compile(r"(?!\.)[^/\\]{1,250}/(?!\.)[^/\\]{1,250}")
"""A trace: a file in a folder beside the results, and no other place of the disk."""


def is_name(value: Any) -> bool:
    """Whether this can be the name of a method, model or environment in tables and figures."""
    return isinstance(value, str) and not ACTS & set(value) and is_plain(value)


def is_plain(text: str) -> bool:
    """Whether a text is one line that every page and file can hold."""
    return sanitize(text) == text and "\n" not in text


def check_row(row: Any) -> dict[str, Any]:
    """A row as it is. Raises TypeError for what is no row, KeyError for a column that it lacks."""
    if "thread_kit" in row:  # the header of a trace
        raise TypeError("it is the trace of an episode; open it with tk.Episode.load")
    for name in ("method", "model", "environment"):
        if not is_name(row.get(name) or ""):
            raise TypeError(f"{name} is {row[name]!r:.60}, which acts on a page")
    if (trace := row.get("trace")) and not (_TRACE.fullmatch(trace) and is_plain(trace)):
        raise TypeError(f"trace is {trace!r:.60}, and no file in a folder beside the results")
    for name, kind in _COLUMNS.items():
        if not isinstance(row[name], kind) or (kind is int and isinstance(row[name], bool)):
            raise TypeError(f"{name} is {row[name]!r:.60}")
    for name in find_misfits(row):
        raise TypeError(f"{name} is {row[name]!r:.60}")
    EpisodeKey.of(row)
    return dict(row)


def find_misfits(row: Mapping[str, Any]) -> list[str]:
    """The columns, of those that may be empty, that hold what no table can be made of."""
    return [
        name
        for name, value in row.items()
        if (
            (value is not None and type(value) not in _OTHERS.get(name, (type(value),)))
            or (type(value) is int and abs(value) >= 2**63)
            or (name in _COUNTED and value is not None and abs(value) >= MOST)
            or (name == "reward" and value is not None and not 0 <= value <= 1)
        )
    ]


class ResultsFile:
    """A results file that is open for writing; nobody else can open it until it is closed.

    Raises ResultsFileError if another suite has it open, or it holds something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not self.path.is_file():
            raise ResultsFileError(f"{self.path} is no file; give another path")
        self._is_new = not self.path.exists()
        try:
            self._file = LockedFile(self.path)
        except LockError:
            raise ResultsFileError(
                f"another suite is writing to {self.path}; wait until it has ended, or write to "
                "another file"
            ) from None
        try:
            self.rows = read_results(self.path)
            mend_last_line(self.path, error=ResultsFileError)
        except BaseException:
            self._file.close()
            raise

    def append(self, row: dict[str, Any]) -> None:
        """Add an episode; it is in the file when this returns.

        Raises OSError (a full disk), which names the file; what was written before stays.
        """
        with self._named():
            self._file.append(row)
        self.rows.append(row)

    def drop(self, unwanted: Callable[[dict[str, Any]], bool]) -> None:
        """Take rows out; the file is replaced at once or not at all."""
        self._write([row for row in self.rows if not unwanted(row)])

    def replace(self, row: dict[str, Any]) -> None:
        """Add a row and take out the one of its key; the file is replaced at once or not at all."""
        key = EpisodeKey.of(row)
        self._write([*(old for old in self.rows if EpisodeKey.of(old) != key), row])

    def _write(self, rows: list[dict[str, Any]]) -> None:
        with self._named(), replace_file(self.path) as part:
            part.write_text("".join(to_line(row) + "\n" for row in rows), encoding="utf-8")
            file = LockedFile(part)  # the file that takes its place is locked before it does
        self._file.close()
        self._file, self.rows = file, rows

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Of what goes wrong in a write, the system does not say in which file."""
        try:
            yield
        except OSError as error:
            if error.errno is not None:  # others have a text of their own
                error.filename = str(self.path)
            raise

    def close(self) -> None:
        """Let others write."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if kind and self._is_new and not self.rows:  # what failed before it began leaves no file
            with suppress(OSError):  # of some systems an open file cannot be removed
                self.path.unlink()
        self.close()
