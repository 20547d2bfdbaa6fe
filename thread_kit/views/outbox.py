"""Changes on their way to the page: collected, joined, numbered, and sent a few times a second."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from thread_kit.views.deltas import Change, State, fold, joined

INTERVAL = 0.125
"""Seconds between two messages at least."""


def _later(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


class Outbox:
    """Keeps a state, and whoever listens to `send` up to date with it.

    Safe to use from several threads. Messages are {"n": number, "changes": [...]}, numbered from 1
    without gaps, so that a reader knows when it has missed one and needs a `snapshot`.

    clock, later: the time, and a way to call something after some seconds.
    """

    def __init__(
        self,
        state: State,
        send: Callable[[dict[str, Any]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] = _later,
    ) -> None:
        self.state = state
        self.lock = threading.RLock()
        self.sent = 0
        self._send, self._clock, self._later = send, clock, later
        self._waiting: list[Change] = []
        self._called = False  # a flush is on its way
        self._last = float("-inf")

    def add(self, found: list[Change]) -> None:
        """Fold changes in at once; send them now, or when enough time has passed."""
        with self.lock:
            for change in found:
                fold(self.state, change)
            # The page gets them as JSON, so what is folded later must not reach into them.
            self._waiting += json.loads(json.dumps(found))
            wait = self._last + INTERVAL - self._clock()
            if wait <= 0:
                self.flush()
            elif self._waiting and not self._called:
                self._called = True
                self._later(wait, self.flush)

    def flush(self) -> None:
        """Send what is waiting."""
        with self.lock:
            self._called = False
            if self._waiting:
                found, self._waiting = joined(self._waiting), []
                self.sent += 1
                self._last = self._clock()
                self._send({"n": self.sent, "changes": found})

    def snapshot(self) -> str:
        """The whole state as JSON, with the number of the last message that is in it."""
        with self.lock:
            self.flush()
            return json.dumps({"n": self.sent, **self.state})


__all__ = ["Outbox"]
