"""JSON lines: one value a line, on disk once it is written, and read even if the last line is torn.

Strict JSON: NaN and Infinity are neither written nor read; their names ("nan", "inf") stand there.
A last line without a line break counts if it is whole; a torn one is left out, or cut off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from thread_kit.replace_file import replace_text

T = TypeVar("T")

MALFORMED = (
    *(ValueError, TypeError, KeyError, AttributeError, IndexError),
    *(OverflowError, RecursionError),
)
"""What reading a line can raise that is JSON but not what is wanted there, or not even JSON."""


def to_line(data: Any) -> str:
    """A value as a line, less its line break.

    Of what JSON does not know, numpy's numbers are numbers, and another object is its repr.
    """
    # ASCII, so that a half character or a lone surrogate in model text cannot break a file.
    try:
        return json.dumps(data, default=_to_json, allow_nan=False)
    except (ValueError, TypeError):
        return json.dumps(_name_non_finite(data), default=_to_json, allow_nan=False)


def _to_json(value: Any) -> Any:
    is_number = getattr(value, "shape", None) == () and hasattr(value, "item")
    plain = value.item() if is_number else None
    if isinstance(plain, bool | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    return repr(value)


def parse_line(line: str | bytes) -> Any:
    """The value of a line; raises one of `MALFORMED`."""
    return _DECODER.decode(line if isinstance(line, str) else line.decode("utf-8"))


def _parse_float(text: str) -> float | str:
    """A number; what is none, or has no room in a float, as its name ("nan", "inf", "-inf")."""
    number = float(text)
    return number if math.isfinite(number) else repr(number)


_DECODER = json.JSONDecoder(parse_float=_parse_float, parse_constant=_parse_float)


def _name_non_finite(data: Any) -> Any:
    match data:
        case float():
            return data if math.isfinite(data) else repr(data)
        case dict():
            return {_name_key(key): _name_non_finite(value) for key, value in data.items()}
        case list() | tuple():
            return [_name_non_finite(value) for value in data]
    return data


def _name_key(key: Any) -> Any:
    plain = key if isinstance(key, str | int | float | None) else _to_json(key)
    return _name_non_finite(plain)


def write_line(file: Path | int, data: Any, mode: str = "ab") -> None:
    """Write one line; it is in the file when this returns. Raises OSError (a full disk, say).

    file: a path, or a descriptor that stays open. mode: "ab" puts the line behind what there is,
    "wb" begins the file anew.
    """
    line = (to_line(data) + "\n").encode()
    with open(file, mode, buffering=0, closefd=isinstance(file, Path)) as raw:
        while line:  # unbuffered, so that nothing waits in memory
            line = line[raw.write(line) :]


def read_lines(
    path: Path, take: Callable[[Any], T], *, what: str, error: type[Exception] = ValueError
) -> list[T]:
    """What `take` makes of each line of a file. Raises OSError, or what `take_lines` raises."""
    if path.exists() and not path.is_file():
        raise error(f"{path} is no file")
    *lines, last = path.read_bytes().split(b"\n")
    if is_whole(last := last.strip(BLANK)):
        lines.append(last)
    return take_lines(lines, take, name=str(path), what=what, error=error)


def take_lines(
    lines: Iterable[str | bytes],
    take: Callable[[Any], T],
    *,
    name: str,
    what: str,
    error: type[Exception],
) -> list[T]:
    """What `take` makes of the value of each line.

    Raises `error` with the name, the line's number, `what`, and why, for whatever is `MALFORMED`.
    """
    values = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(take(parse_line(line)))
        except MALFORMED as why:
            raise error(f"{name}, line {number}: {what} ({why})") from why
    return values


OBJECT = b'{"'
"""How a line of ours begins."""

BLANK = b" \t\r\0"
"""What may stand beside a last line: zeros are what a crash of the system leaves."""


def is_whole(last_line: str | bytes) -> bool:
    """Whether a line that has no line break lacks nothing else: no torn object is JSON."""
    try:
        return isinstance(parse_line(last_line), dict)
    except MALFORMED:
        return False


def mend_last_line(path: Path, *, error: type[Exception] = ValueError) -> None:
    """Make room for the next line: the last one gets its line break, or is cut off if torn.

    Raises `error` for one that never was a line of ours: of another's file nothing is cut off.
    """
    with path.open("rb+") as file:
        data = file.read()
        end = data.rfind(b"\n") + 1
        last = data[end:].strip(BLANK)
        if is_whole(last):
            file.seek(end)
            file.write(last + b"\n")
            file.truncate()
        elif last.startswith(OBJECT) or OBJECT.startswith(last):
            file.truncate(end)
        else:
            raise error(f"{path} is another's file: its last line is no JSON; give another path")


def replace_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a whole file, one value a line, as `replace_file` does. Raises OSError."""
    replace_text(path, "".join(to_line(value) + "\n" for value in values))
