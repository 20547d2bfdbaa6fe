"""What breaks off a request that another thread is reading."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx


class CancelToken:
    """One request under way; `cancel` breaks it off, from any thread."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()
        self._is_late = threading.Event()  # in `expires`
        self._socket: Any = None

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def watch(self, name: str, info: dict[str, Any]) -> None:
        """Called by httpx at each step of the request: one that opens a connection returns it."""
        opened: Any = info.get("return_value")
        if hasattr(opened, "get_extra_info"):
            self._socket = opened.get_extra_info("socket")
            if self.is_cancelled or self._is_late.is_set():
                self._break_off()

    def cancel(self) -> None:
        self._cancelled.set()
        self._break_off()

    @contextmanager
    def expires(self, seconds: float) -> Iterator[None]:
        """What has not come to its end after so many seconds is broken off; raises ReadTimeout."""
        self._is_late.clear()

        def expire() -> None:
            self._is_late.set()
            self._break_off()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        except httpx.HTTPError as error:
            if self._is_late.is_set():
                raise httpx.ReadTimeout("no answer") from error
            raise
        finally:
            timer.cancel()

    def _break_off(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def sleep(self, seconds: float) -> bool:
        """Wait, but not beyond the end of the request; whether that came."""
        return self._cancelled.wait(seconds)
