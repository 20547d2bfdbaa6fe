"""Ctrl-C, and the notebook's stop button, end an episode in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Within, an interrupt (Ctrl-C) calls `stop`; a second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], bool]]:
    """Within, an interrupt waits until all is done: what is written is whole, on disk as in memory.

    Whether one has come can be asked. Elsewhere than in the main thread Python brings no interrupt.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: False
        return
    held: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append(frame))
    try:
        yield lambda: bool(held)
    finally:
        signal.signal(signal.SIGINT, before)
        for frame in held:  # each, since the second can mean something else than the first
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                handler(signal.SIGINT, frame)
