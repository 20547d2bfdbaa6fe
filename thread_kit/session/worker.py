"""A session in a worker thread, so that a notebook stays alive while the model works."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable

from thread_kit.interrupt import stop_on_interrupt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Event

_workers: weakref.WeakValueDictionary[int, Worker] = weakref.WeakValueDictionary()
"""Who drains a session, by its id. Of two, the second would go on where the first is paused."""
_taking = threading.Lock()


class Worker:
    """Drains a session beside the caller.

    on_event: called in the worker thread with every event, in order; None with the last call.
    error: what failed, in the session or in the listener; RuntimeError where another worker
        drains the session, which goes on.
    """

    def __init__(
        self, session: Session, on_event: Callable[[Event | None], None] | None = None
    ) -> None:
        self.session = session
        self.error: BaseException | None = None
        self._on_event = on_event or (lambda event: None)
        self._going = threading.Event()
        self._going.set()
        self._thread = threading.Thread(target=self._drain, name="thread-kit worker", daemon=True)

    def start(self) -> Worker:
        """Begin; starting twice is fine."""
        with _taking:
            if self._thread.ident is None:
                other = _workers.get(id(self.session))
                if other and other.is_running and self.session.episode.status.is_live:
                    self.error = RuntimeError(
                        "this session is running in another worker: look at the player that shows "
                        "it already, or show a fork of it"
                    )
                else:
                    _workers[id(self.session)] = self
                self._thread.start()
        return self

    def _drain(self) -> None:
        if self.error:
            with contextlib.suppress(Exception):  # the episode does not stand still meanwhile
                self._on_event(None)
            return
        try:
            for event in self.session:
                self._on_event(event)
                self._going.wait()
            self.error = self.session.error
            self._on_event(None)
        except BaseException as error:
            self.error = error
            with contextlib.suppress(Exception):  # it may be another worker's
                self.session.close()
            with contextlib.suppress(Exception):  # it may be the listener that has failed
                self._on_event(None)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_paused(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        """Hold the session after the event that it is at."""
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def stop(self) -> None:
        """End the episode as soon as the model has finished its step."""
        self.session.stop()
        self._going.set()

    def wait(self, seconds: float | None = None) -> Episode:
        """The episode, when the worker is done with it, or as it is after `seconds`.

        Starts the worker if need be; without `seconds` also resumes it, since a paused one would be
        waited for in vain. An interrupt ends the episode as stopped. Raises what the listener
        raised; what failed in the episode is its status.
        """
        if seconds is None:
            self.resume()
        self.start()
        with stop_on_interrupt(self.stop):
            self._thread.join(seconds)
        if self.error is not None and self.error is not self.session.error:
            raise self.error
        return self.session.episode

    def __repr__(self) -> str:
        doing = "running" if self.is_running else "done"
        return f"Worker({doing}, {self.session.episode!r})"
