"""A lock that is handed on in the order in which it was asked for."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable


class _Here(threading.local):
    """Of one OS thread: how many locks it has, or is just taking, and what waits for it."""

    def __init__(self) -> None:
        self.held = 0
        self.waiting: deque[Callable[[], object]] = deque()


_here = _Here()

log = logging.getLogger(__name__)


def when_free(task: Callable[[], object]) -> None:
    """Do this now, or where this OS thread has a `FairLock`, as soon as it has given back the last.

    For what Python's garbage collector may begin anywhere, also in the midst of a step.
    """
    if _here.held:
        _here.waiting.append(task)
    else:
        task()


def _let_go() -> None:
    """One hold less; what waited for the last to end is nobody's error but its own."""
    _here.held -= 1
    while _here.waiting and not _here.held:
        task = _here.waiting.popleft()
        try:
            task()
        except Exception as error:
            log.error("what waited for a lock failed", exc_info=error)


class FairLock:
    """A reentrant lock, first come first served.

    Python's own locks may be taken again by the thread that has just let go, and in the loop of an
    engine's steps they always are: the other drivers would never get to begin their calls.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[tuple[int, threading.Lock]] = deque()
        self._owner: int | None = None
        self._count = 0

    def acquire(self) -> bool:
        _here.held += 1
        try:
            return self._acquire()
        except BaseException:
            _let_go()
            raise

    def _acquire(self) -> bool:
        me = threading.get_ident()
        with self._guard:
            if self._owner in (None, me):
                self._owner = me
                self._count += 1
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append((me, turn))
        try:
            turn.acquire()  # whoever lets go has written us down as the owner
        except BaseException:
            self._give_up(me, turn)
            raise
        return True

    def release(self) -> None:
        if self._owner != threading.get_ident():
            raise RuntimeError("the lock belongs to another thread")
        try:
            with self._guard:
                self._count -= 1
                if self._count == 0:
                    self._hand_on()
        finally:  # also where an interrupt comes between the two
            _let_go()

    def _hand_on(self) -> None:
        self._owner = None
        if self._waiting:
            self._owner, turn = self._waiting.popleft()
            self._count = 1
            turn.release()

    def _give_up(self, me: int, turn: threading.Lock) -> None:
        """An interrupt came while we waited: out of the queue, or hand on what we just got."""
        with self._guard:
            if (me, turn) in self._waiting:
                self._waiting.remove((me, turn))
            else:
                self._count = 0
                self._hand_on()

    def __enter__(self) -> FairLock:
        self.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()
