"""Frames on their way to the page: collected, numbered, and sent a few times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

INTERVAL = 0.125
"""Seconds between two messages at least."""


def _call_later(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


class Throttle:
    """Collects messages and hands them to `send` at most every `INTERVAL` seconds.

    Safe to use from several threads. Messages are {"n": number, "tracks": {track: {"frames": [...],
    "now": {...}}}}, numbered from 1 without gaps, so that a reader knows when it has missed one.

    clock, later: the time, and a way to call something after some seconds.
    """

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] = _call_later,
    ) -> None:
        self.lock = threading.RLock()
        self.sent = 0
        self._send, self._clock, self._later = send, clock, later
        self._pending: dict[str, dict[str, Any]] = {}
        self._scheduled = False  # a flush is on its way
        self._last = float("-inf")

    def add(self, track: int, frames: list[dict[str, Any]], **more: Any) -> None:
        """Send frames of a track, and what else is new of it, now or when enough time has passed.

        Frames are added to those that wait; of anything else only the latest is sent.
        """
        with self.lock:
            pending = self._pending.setdefault(str(track), {"frames": []})
            pending["frames"] += frames
            pending.update(more)
            wait = self._last + INTERVAL - self._clock()
            if wait <= 0:
                self.flush()
            elif not self._scheduled:
                self._scheduled = True
                self._later(wait, self.flush)

    def flush(self) -> None:
        """Send what is waiting."""
        with self.lock:
            self._scheduled = False
            if self._pending:
                tracks, self._pending = self._pending, {}
                self.sent += 1
                self._last = self._clock()
                self._send({"n": self.sent, "tracks": tracks})
