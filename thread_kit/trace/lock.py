"""A file that one writer at a time has open; any number may read it.

The lock is on the file itself, so a link to it is the same file. It goes when the writer closes the
file, is garbage or is killed. Not covered: two machines on one network drive whose file system
knows no locks; Windows, where nobody else can read the file meanwhile.
"""

from __future__ import annotations

import gc
import os
import stat
import time
import weakref
from pathlib import Path
from typing import Any, final

from filelock import lock_descriptor, unlock_descriptor

from thread_kit.trace.jsonl import write_line

PATIENCE = 1.0
"""Seconds to wait for a lock: what a killed process was about to start can hold it for a moment."""


class LockError(OSError):
    """Somebody else has the file open for writing."""


@final
class LockedFile:
    """A file, made if need be, that is open to append to and locked.

    Raises LockError if somebody else holds it, or OSError. What is no regular file (a terminal, a
    pipe) is not locked.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, _open_locked(path)
        self._file = os.fstat(self._descriptor)
        self._close = weakref.finalize(self, _close, self._descriptor, os.getpid())

    def append(self, data: Any) -> None:
        """Write a line; it is in the file when this returns. Raises OSError (a full disk, say)."""
        if self._close.alive:
            write_line(self._descriptor, data)
        # A session that is garbage writes its end; by then the collector may have closed the file.
        elif self._path.exists() and os.path.samestat(self._path.stat(), self._file):
            write_line(self._path, data)

    def close(self) -> None:
        """Let others write; closing twice does nothing."""
        self._close()


def _open_locked(path: Path) -> int:
    deadline, collected = time.monotonic() + PATIENCE, False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            if lock_descriptor(descriptor, blocking=False) and _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise LockError(f"somebody else is writing to {path}")
        if not collected:
            gc.collect()  # a session that nobody holds any more holds its file until then
            collected = True
        time.sleep(PATIENCE / 20)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the file still has this name: it may have been replaced before it was locked."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _close(descriptor: int, process: int) -> None:
    # A forked process has the same lock, which is not its own to give back.
    if os.getpid() == process and stat.S_ISREG(os.fstat(descriptor).st_mode):
        unlock_descriptor(descriptor)
    os.close(descriptor)
