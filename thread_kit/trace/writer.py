"""Writes a trace while it happens."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from thread_kit.trace.events import Event, to_json
from thread_kit.trace.jsonl import write_line


class TraceWriter:
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
