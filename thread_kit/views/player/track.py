"""One episode in the player: the original, or a fork; recorded, or run by a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thread_kit.engines.engine import ThreadKey
from thread_kit.engines.human import HumanEngine
from thread_kit.session.session import Session
from thread_kit.session.worker import Worker
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Ended, Event, Idle, Prefilling, Spawned, Token
from thread_kit.views.formatting import sanitize
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.player.throttle import Throttle

STEPS: dict[str, Callable[[Event], bool]] = {
    # One without text is no step: another one has brought its text (engines/human.py), or will.
    "token": lambda event: bool(event.text) if isinstance(event, Token) else not event.passing,
    "event": lambda event: not event.passing,
    "thread": lambda event: isinstance(event, Spawned | Ended),
    "spawn": lambda event: isinstance(event, Spawned),
}
"""Where a step of each unit ends. The page goes through the past in the same units."""


class Track:
    """An episode's frames, more of them while its session runs, and what is true of it just now.

    number: its place among the player's tracks. parent: the track that it is a fork of, or None.
    over: called when its session is over. engine: the name of what a fork of it goes on with.
    now: "phase" ("not started", "running", "paused" or "over"), "error", "notice" (why something
    that a person asked for was not done), "reading" (the context that is being evaluated) and
        "asks" (the threads whose calls wait for a person to write them).
    """

    def __init__(
        self,
        number: int,
        source: Session | Episode,
        throttle: Throttle,
        *,
        over: Callable[[], None],
        parent: int | None = None,
        engine: str = "",
    ) -> None:
        self.number, self.parent, self.engine = number, parent, engine
        self.session = source if isinstance(source, Session) else None
        self.episode = source.episode if isinstance(source, Session) else source
        self.recorder = FrameRecorder(
            self.episode, self.session.functions if self.session else None
        )
        runs = self.session is not None and self.episode.status.is_live
        self.worker = Worker(self.session, self._on_event) if self.session and runs else None
        phase = "not started" if runs else "over"
        self.now: dict[str, Any] = {"phase": phase, "error": "", "notice": "", "reading": None}
        self.now["asks"] = []
        self._throttle = throttle
        self._over = over
        self._until: Callable[[Event], bool] | None = None

    def snapshot(self) -> dict[str, Any]:
        """All that a page needs to show it."""
        recorder = self.recorder
        about, frames = {**recorder.about, "engine": self.engine}, list(recorder.frames)
        return {"parent": self.parent, "about": about, "now": self.now, "frames": frames}

    def start(self) -> None:
        """Begin the session, if there is one that has not begun."""
        with self._throttle.lock:
            if self.worker and self.now["phase"] == "not started":
                self.update(phase="paused" if self.worker.is_paused else "running")
                self.worker.start()

    def resume(self, until: str = "") -> None:
        """Go on; with `until`, a unit of `STEPS`, as far as one step; ValueError for another."""
        if until and until not in STEPS:
            raise ValueError(f"there is no step {until!r}; choose one of {', '.join(STEPS)}")
        with self._throttle.lock:  # the worker waits for it with its next event
            if self.worker and self.now["phase"] != "over":
                self._until = STEPS.get(until)
                self.update(phase="running", after="paused")
                self.worker.resume()

    def pause(self) -> None:
        """Hold the session where it is."""
        with self._throttle.lock:  # the page and a cell may ask at once
            if self.worker:
                self.worker.pause()
                self.update(phase="paused", after="running")

    def stop(self) -> None:
        """End the episode as soon as the model has finished its step."""
        with self._throttle.lock:
            if self.worker:
                self._until = None
                self.worker.stop()
                self.update(phase="running", after="paused")

    def waiting_calls(self) -> dict[int, ThreadKey]:
        """The threads whose calls wait for a person, each with the key that its engine has."""
        if not self.session or not isinstance(self.session.engine, HumanEngine):
            return {}
        keys = self.session.engine.waiting
        threads = ((self.session.thread_of(key), key) for key in keys)
        return {thread: key for thread, key in threads if thread is not None}

    def update(self, after: str | None = None, **changes: Any) -> None:
        """Set what is true now; a phase only `after` another one."""
        with self._throttle.lock:
            if after is None or self.now["phase"] == after:
                self.now = {**self.now, **changes}
                self._throttle.add(self.number, [], now=self.now)

    def _on_event(self, event: Event | None) -> None:
        """What the worker has done; it waits, so the episode stands still."""
        if isinstance(event, Idle):
            return
        with self._throttle.lock:
            if isinstance(event, Prefilling):
                done, total = event.done, event.total
                reading = {"thread": event.thread, "done": done, "total": total}
                self.update(reading=reading if done < total else None)
                return
            self._throttle.add(self.number, self.recorder.add(event))
            if event is None:
                error = self.worker.error if self.worker else None
                text = sanitize(f"{type(error).__name__}: {error}") if error else ""
                self.update(phase="over", error=text, reading=None)
                self._throttle.flush()
                self._over()
            elif self._until and self._until(event):
                self._until = None
                self.pause()
