"""Writes a trace while it happens."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from thread_kit.trace.events import Closed, Event, to_json
from thread_kit.trace.lock import LockedFile, LockError


class TraceWriter:
    """Writes a trace while it happens; every event is on disk before the next one is made.

    An older file of the same name is kept beside it, as NAME.1.jsonl and so on. Nobody else can
    write to the file until the episode is over or the writer is garbage. Raises LockError if
    somebody else does so now, or OSError.
    """

    def __init__(self, path: str | Path, header: dict[str, Any]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = lock_trace(self.path)
        if self.path.is_file() and self.path.stat().st_size:
            old = self._file  # locked until the new file is, so that no third one comes between
            _rename_old(self.path)
            self._file = lock_trace(self.path)
            old.close()
        self._file.append(header)

    def add(self, event: Event) -> None:
        """Append an event; raises OSError (a full disk, say) and leaves what is written."""
        if event.passing:
            return
        try:
            self._file.append(to_json(event))
        except OSError:
            self._file.close()
            raise
        if isinstance(event, Closed):
            self._file.close()


def lock_trace(path: Path) -> LockedFile:
    """The file of a trace, locked and made if need be; raises LockError, with the remedy."""
    try:
        return LockedFile(path)
    except LockError:
        raise LockError(
            f"another session is writing its trace to {path}; close that one (session.close()), or "
            "give another path"
        ) from None


def _rename_old(path: Path) -> None:
    """Make room for a new file without losing an old one: it becomes NAME.1.jsonl, or .2 ..."""
    names = (path.with_name(f"{path.stem}.{n}{path.suffix}") for n in itertools.count(1))
    path.rename(next(name for name in names if not name.exists()))
