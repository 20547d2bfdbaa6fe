"""A widget that shows a session while it runs: the tree grows, the open thread is written.

The session runs in a worker thread. The page keeps its own state (`live.js`) and gets only what
changed, a few times a second, so that opening and folding threads works while the kernel is busy;
a page that is opened later gets the whole state first. Pause and stop are Python's: the kernel
hears of them when no cell is running. A saved notebook holds a static form of the widget; the
episode that `wait` returns shows itself in full.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from thread_kit.events import Event
from thread_kit.session import Session
from thread_kit.trace import Episode
from thread_kit.views import palette
from thread_kit.views.deltas import changes, state_of
from thread_kit.views.html import episode_html
from thread_kit.views.outbox import Outbox
from thread_kit.views.wording import legible
from thread_kit.worker import Worker

HERE = Path(__file__).parent
MODULE = "\n".join(
    (HERE / name).read_text(encoding="utf-8")
    for name in ("live.js", "live_tree.js", "live_pane.js")
)
"""The page's module; one file, since a widget's module has no address to import others from."""


class LiveEpisode(anywidget.AnyWidget):
    """The widget of one session.

    The session begins when the widget is shown, so that its first token is seen; or with `start`,
    or with `wait`.
    """

    _esm = MODULE
    _css = palette.css() + (HERE / "live.css").read_text(encoding="utf-8")

    # Written from the state whenever somebody asks, and so never out of date.
    snapshot = traitlets.Unicode().tag(
        sync=True, to_json=lambda value, widget: widget._outbox.snapshot()
    )

    def __init__(self, session: Session) -> None:
        state = {**state_of(session.episode), "phase": "not started", "error": ""}
        self._outbox = Outbox(state, lambda message: self.send(message))
        self._worker = Worker(session, self._take)
        self._started = False
        super().__init__()
        self.on_msg(self._asked)

    @property
    def episode(self) -> Episode:
        """The episode as it is now."""
        return self._worker.session.episode

    def start(self) -> LiveEpisode:
        """Begin the session, if it has not begun."""
        with self._outbox.lock:
            if not self._started:
                self._started = True
                self._phase("paused" if self._worker.is_paused else "running")
                self._worker.start()
        return self

    def pause(self) -> None:
        """Hold the session where it is."""
        self._worker.pause()
        self._phase("paused", after="running")

    def resume(self) -> None:
        """Go on after a pause."""
        self._worker.resume()
        self._phase("running", after="paused")

    def stop(self) -> None:
        """End the episode as soon as the model has finished its step."""
        self._worker.stop()
        self._phase("running", after="paused")

    def wait(self, seconds: float | None = None) -> Episode:
        """The episode when it is over, or as it is after `seconds`; begins it if nothing else has.

        Raises what went wrong in the session.
        """
        if seconds is None:
            self.resume()
        self.start()
        return self._worker.wait(seconds)

    def _phase(self, phase: str, after: str | None = None) -> None:
        with self._outbox.lock:
            if after is None or self._outbox.state["phase"] == after:
                self._outbox.add([["set", ["phase"], phase]])

    def _take(self, event: Event | None) -> None:
        """What the worker has done; it waits, so the episode stands still."""
        with self._outbox.lock:
            self._outbox.add(changes(self._outbox.state, self.episode, event))
            if event is None:
                if self._worker.error is not None:
                    error = self._worker.error
                    text = legible(f"{type(error).__name__}: {error}")
                    self._outbox.add([["set", ["error"], text]])
                self._phase("over")
                self._outbox.flush()

    def _asked(self, widget: Any, content: Any, buffers: Any) -> None:
        """A message from the page."""
        match content:
            case {"shown": n}:  # a view was opened, or has missed a message
                self.start()
                if n != self._outbox.sent:
                    self.send_state("snapshot")
            case {"do": "pause"}:
                self.pause()
            case {"do": "resume"}:
                self.resume()
            case {"do": "stop"}:
                self.stop()

    def __repr__(self) -> str:
        with self._outbox.lock:
            state = self._outbox.state
            threads = state["threads"].values()
            count = len(threads)
            depth = max((one["depth"] for one in threads), default=0)
            generated = sum(one["usage"]["generated"] for one in threads)
            doing = state["status"] if state["phase"] == "over" else state["phase"]
        return (
            f"LiveEpisode({count} thread{'' if count == 1 else 's'}, depth {depth}, "
            f"{generated} tokens generated, {doing})"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The widget, and for pages without a kernel a static form of what there is by now."""
        with self._outbox.lock:
            over = self._outbox.state["phase"] == "over"
            bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None:
            note = (
                f"<p><code>{escape(repr(self))}</code>: the live view needs a running kernel.</p>"
            )
            bundle[0]["text/html"] = episode_html(self.episode) if over else note
        self.start()
        return bundle


def watch(session: Session) -> LiveEpisode:
    """Run a session in a worker thread and see it: as the last line of a cell, or `display` it."""
    return LiveEpisode(session)


__all__ = ["LiveEpisode", "watch"]
