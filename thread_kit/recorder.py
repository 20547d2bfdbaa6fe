"""Writes a trace while it happens."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from thread_kit.events import Event, to_json


def to_line(data: dict[str, Any]) -> str:
    """A line of a trace."""
    # ASCII, so that a half character or a lone surrogate in model text cannot break a file.
    return json.dumps(data, default=repr)


def write_line(path: Path, data: dict[str, Any], mode: str = "ab") -> None:
    """Write one line; it is in the file when this returns. Raises OSError (a full disk, say).

    mode: "ab" puts it behind what there is, "wb" begins the file anew.
    """
    # Opened for each line and unbuffered: nothing waits in memory, and no file is left open,
    # whatever becomes of the session.
    line = (to_line(data) + "\n").encode()
    with path.open(mode, buffering=0) as file:
        while line:
            line = line[file.write(line) :]


class Recorder:
    """Writes a trace while it happens; every event is on disk before the next one is made.

    An older file of the same name is kept beside it, as NAME.1.jsonl and so on.
    """

    def __init__(self, path: str | Path, header: dict[str, Any]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _keep_old(self.path)
        write_line(self.path, header, "wb")

    def add(self, event: Event) -> None:
        """Append an event; raises OSError (a full disk, say) and leaves what is written."""
        if not event.passing:
            write_line(self.path, to_json(event))


def _keep_old(path: Path) -> None:
    """Make room for a new file without losing an old one: it becomes NAME.1.jsonl, or .2 ..."""
    if path.is_file() and path.stat().st_size:
        names = (path.with_name(f"{path.stem}.{n}{path.suffix}") for n in itertools.count(1))
        path.rename(next(name for name in names if not name.exists()))


__all__ = ["Recorder", "to_line", "write_line"]
