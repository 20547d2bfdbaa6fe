"""Engines of one machine share its cores: each counts the others that compute just now.

llama.cpp waits for its own threads by spinning, so two engines with a thread for every core take
four times as long as two that share the cores. An engine that computes holds a locked file in the
cache folder. The lock goes with its process, however that ends; the file's time says until when
the engine is taken to be computing, so that an idle notebook takes nobody's cores. Where files
cannot be locked or written, an engine is alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thread_kit.paths import cache_folder

AGAIN = 0.25  # seconds between two looks at the others
BUSY = 60.0  # that an engine is taken to be computing from a pass on: longer than any pass
PAUSE = 2.0  # the same from the end of its last call on: what its thread does may bring the next


def own_cores() -> list[int]:
    """The numbers of the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


_driven: dict[Path, int] = {}
"""The engines of this process by their files: the thread that takes their passes. Engines of one
thread take turns, and never compute at once (`by_prompt.py`)."""


class CoreShare:
    """One engine's place among those that compute on this machine.

    fixed: CPU threads that the engine was given; None takes what the others leave. Of what they
    leave, engines on the same cores take equal parts, rounded down, at least one thread.
    """

    def __init__(self, fixed: int | None, folder: Path | None = None) -> None:
        self._fixed = fixed
        folder = folder or cache_folder() / "computing" / platform.node()
        self._folder = Path(os.path.abspath(folder))  # as `mkstemp` names what it makes in it
        self._path: Path | None = None
        self._file: int | None = None  # its descriptor, which holds the lock
        self._next = 0.0
        self.threads = fixed or len(own_cores())

    def take(self) -> int:
        """How many threads the next pass takes; files are looked at a few times a second."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + AGAIN
            with contextlib.suppress(OSError):
                self._show_busy(BUSY)
                self.threads = self._fixed or self._count()
        return self.threads

    def rest(self) -> None:
        """No call is running: soon the cores are the others'."""
        self._next = 0.0
        with contextlib.suppress(OSError):
            if self._file is not None:
                self._show_busy(PAUSE)

    def close(self) -> None:
        """Give the place back. Closing twice is fine."""
        path, file, self._path, self._file = self._path, self._file, None, None
        if path:  # else nothing is touched: when Python ends, modules are gone already
            _driven.pop(path, None)
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        if file is not None:
            os.close(file)

    def _show_busy(self, seconds: float) -> None:
        if self._path is None or not self._path.exists():  # somebody may have emptied the folder
            self.close()
            self._enter()
        assert self._path is not None
        _driven[self._path] = threading.get_ident()
        until = time.time() + seconds
        os.utime(self._path, (until, until))

    def _enter(self) -> None:
        """Make this engine's file; others see it when it is locked already."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file, part = tempfile.mkstemp(dir=self._folder, suffix=".part")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(file, json.dumps({"cores": own_cores(), "threads": self._fixed}).encode())
            path = Path(part).with_suffix(".engine")
            os.replace(part, path)
        except BaseException:
            os.close(file)
            Path(part).unlink(missing_ok=True)
            raise
        self._file, self._path = file, path

    def _count(self) -> int:
        """This engine's part of its own cores, in threads."""
        mine = own_cores()
        left = dict.fromkeys(mine, 1.0)
        sharing = dict.fromkeys(mine, 1)
        for other in self._others():
            for core in set(other["cores"]) & set(mine):
                if other["threads"] is None:
                    sharing[core] += 1
                else:
                    left[core] -= other["threads"] / len(other["cores"])
        whole = sum(max(left[core], 0.0) / sharing[core] for core in mine)
        return max(int(whole + 1e-6), 1)

    def _others(self) -> Iterator[dict[str, Any]]:
        """What the files of other engines say that compute just now."""
        for path in self._folder.glob("*.engine"):
            if _driven.get(path) == threading.get_ident():
                continue
            with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
                if not _is_locked(file.fileno()):
                    path.unlink(missing_ok=True)  # its process is gone
                elif os.fstat(file.fileno()).st_mtime > time.time():
                    yield json.loads(file.read())


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
