"""Ctrl-C, and the notebook's stop button, end an episode in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class _Stop:
    """What SIGINT does within `stop_on_interrupt`: it waits where interrupts are held.

    `innermost` is the one that is in place: to ask Python for its handler takes a tenth of the
    time that a session has for a token.
    """

    innermost: _Stop | None = None

    def __init__(self, stop: Callable[[], None]) -> None:
        self.stop = stop
        self.held: list[FrameType | None] | None = None
        self.before, self.outer = signal.getsignal(signal.SIGINT), _Stop.innermost

    def begin(self) -> None:
        _Stop.innermost = self
        signal.signal(signal.SIGINT, self)  # which an interrupt that waits can end

    def end(self) -> None:
        """Put the handler from before in its place; twice is fine."""
        _Stop.innermost = self.outer
        signal.signal(signal.SIGINT, self.before)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.held is None:
            self.end()
            self.stop()
        else:
            self.held.append(frame)


@contextmanager
def stop_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Within, an interrupt (Ctrl-C) calls `stop`; a second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _Stop(stop)
    try:
        handler.begin()
        yield
    finally:
        handler.end()


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], bool]]:
    """Within, an interrupt waits until all is done: what is written is whole, on disk as in memory.

    Whether one has come can be asked. Elsewhere than in the main thread Python brings no interrupt,
    and a handler that is set within `stop_on_interrupt`, such as a debugger's, waits for nothing.
    """
    in_main = threading.current_thread() is threading.main_thread()
    held: list[FrameType | None] = []
    stop = _Stop.innermost if in_main else None
    if stop:  # which spares two changes of the handler at each token
        outer, stop.held = stop.held, held
        if _Stop.innermost is not stop:  # an interrupt came just before
            stop.held, stop = outer, None
    before = signal.getsignal(signal.SIGINT) if in_main and not stop else None
    if not stop and not callable(before):
        yield lambda: False
        return
    if not stop:
        signal.signal(signal.SIGINT, lambda number, frame: held.append(frame))
    try:
        yield lambda: bool(held)
    finally:
        if stop:
            stop.held = outer
        else:
            signal.signal(signal.SIGINT, before)
        for frame in held:  # each, since the second can mean something else than the first
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                handler(signal.SIGINT, frame)
