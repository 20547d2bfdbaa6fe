"""The player: a widget to watch an episode, step through it, rewind it and fork it.

A session runs in a worker thread. The page has its own frames of the episode
(`views/player/frames.py`, `player.js`) and gets only new ones, a few times a second, so that
looking, stepping back and folding work while the kernel is busy. Whatever makes the model write
(run, step, fork) is asked of the kernel, which answers beside a cell that runs, where it has
subshells (ipykernel 7 in JupyterLab), or else behind it. A page that is opened later gets all of
them first.

Beside the widget stands a static form of the episode, which the widget hides: a saved notebook
shows it where there is no kernel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display, update_display

from thread_kit.code_lines import literal
from thread_kit.engines.engine import Engine
from thread_kit.engines.human import HumanEngine
from thread_kit.envs.env import Env
from thread_kit.exchange import FUNCTIONS
from thread_kit.experiments.ablations import adapt_to_prompts
from thread_kit.session.session import Session, fork
from thread_kit.trace.episode import Episode, must_be_episode
from thread_kit.views import palette
from thread_kit.views.formatting import pluralize, sanitize
from thread_kit.views.html import episode_html
from thread_kit.views.player.throttle import Throttle
from thread_kit.views.player.track import Track

HERE = Path(__file__).parent
PARTS: tuple[str, ...] = (
    "keys",
    "recording",
    "dom",
    "probs",
    "edge",
    "tree",
    "pane",
    "form",
    "fork",
    "ask",
    "help",
    "layout",
    "stage",
    "drawing",
    "work",
    "figure",
    "switches",
    "bar",
    "view",
)
MODULE = "\n".join(
    [
        *((HERE / f"player_{part}.js").read_text(encoding="utf-8") for part in PARTS),
        (HERE / "player.js").read_text(encoding="utf-8"),
    ]
)
"""The page's module; one file, since a widget's module has no address to import others from."""

CSS = palette.css() + "\n".join(
    (HERE / name).read_text(encoding="utf-8") for name in ("player.css", "player_figure.css")
)

EXCHANGED = ("phi", "psi", "abstract")
"""What a fork can exchange from the widget; from Python, any function."""


class Player(anywidget.AnyWidget):
    """The widget of one session or saved episode, and of its forks.

    source: a session, which begins when the widget is shown (or with `start`, or with `wait`); or
        an episode.
    engines: models that a fork may go on with, by name. A session's own is always among them.
    env: the task of a saved episode from its start, so that it can be forked.
    functions: further phi, psi and abstract that a fork can take, by kind: {"phi": [mine]}.
    """

    _esm = MODULE
    _css = CSS

    # Written from the frames whenever somebody asks, and so never out of date.
    snapshot = traitlets.Unicode().tag(
        sync=True, to_json=lambda value, widget: widget.snapshot_json()
    )

    def __init__(
        self,
        source: Session | Episode,
        *,
        engines: Mapping[str, Engine] | None = None,
        env: Env | None = None,
        functions: Mapping[str, list[Callable[..., Any]]] | None = None,
    ) -> None:
        self._throttle = Throttle(lambda message: self.send(message))
        self._engines = dict(engines or {})
        if isinstance(source, Session):
            source.keep_cells = True  # for the forks
            self._engines = {source.engine.name: source.engine, **self._engines}
        else:
            must_be_episode(source)
        self._env = env
        self._functions = {
            kind: {
                function.__name__: function
                for function in (*FUNCTIONS[kind], *(functions or {}).get(kind, []))
            }
            for kind in EXCHANGED
        }
        self._tracks = [self._make_track(0, source)]
        self._static = f"tk-{uuid4()}"
        self._is_shown = False
        for engine in self._engines.values():
            self._listen_to(engine)
        super().__init__()
        self.on_msg(self._on_message)
        answer_beside_cells(self)

    def _listen_to(self, engine: Engine) -> None:
        if isinstance(engine, HumanEngine):
            engine.listeners.add(self._on_waiting)

    def _make_track(
        self, number: int, source: Session | Episode, parent: int | None = None
    ) -> Track:
        """A track; a fork of it goes on with its own engine, or else with the first there is."""
        engine = source.engine if isinstance(source, Session) else None
        names = [name for name, own in self._engines.items() if engine in (None, own)]
        name = names[0] if names else engine.name if engine else ""
        return Track(
            *(number, source, self._throttle),
            over=self._write_static,
            parent=parent,
            engine=name,
        )

    # From Python

    @property
    def episode(self) -> Episode:
        """The episode as it is now."""
        return self._tracks[0].episode

    @property
    def forks(self) -> list[Episode]:
        """The forks that were made here, as they are now."""
        return [track.episode for track in self._tracks[1:]]

    def start(self) -> Player:
        """Begin the session, if it has not begun."""
        self._tracks[0].start()
        return self

    def pause(self) -> None:
        """Hold the session where it is."""
        self._tracks[0].pause()

    def resume(self) -> None:
        """Go on after a pause."""
        self._tracks[0].resume()

    def stop(self) -> None:
        """End the episode as soon as the model has finished its step."""
        self._tracks[0].stop()

    def step(self, unit: str = "token") -> None:
        """Go on for a "token", an "event", a "thread" (until one starts or ends) or a "spawn"."""
        track = self._tracks[0]
        track.pause()
        track.resume(until=unit)  # before it starts: its first event may be the step's end
        track.start()

    def fork(self, at: int | None = None, *, of: int = 0, **changes: Any) -> Session:
        """Fork the episode and show the fork, which begins at once; its session.

        of: 0 is the original, 1 its first fork, and so on.
        at, changes: as `session.fork` takes them.
        """
        with self._throttle.lock:
            parent = self._tracks[of]
            if parent.session:
                session = parent.session.fork(at, **changes)
            else:
                if self._engines:
                    changes.setdefault("engine", next(iter(self._engines.values())))
                elif "engine" not in changes:
                    raise ValueError(
                        "a saved episode has no model to go on with; give one, and where it acts "
                        "in an environment its task: "
                        "tk.watch(episode, engines={'name': tk.load_model()}, env=...)"
                    )
                env = self._env.again() if self._env else None
                session = fork(parent.episode, at, **{"env": env, **changes})
            session.keep_cells = True
            track = self._make_track(len(self._tracks), session, of)
            self._tracks.append(track)
            self._listen_to(session.engine)
            self._throttle.add(track.number, **track.snapshot())
            track.start()
        return session

    def ablate(self, *, of: int = 0, **changes: Any) -> Session:
        """Play the episode once more from its start, beside it, with a part of it changed.

        changes: as `fork` takes them, and scope="none" for threads without variables. Where there
        is a few-shot prompt without that part (`experiments/ablations.py`), it is read instead.
        """
        parent = self._tracks[of].episode
        return self.fork(0, of=of, **adapt_to_prompts(parent, changes))

    def wait(self, seconds: float | None = None, *, of: int = 0) -> Episode:
        """The episode when it is over, or as it is after `seconds`; begins it if nothing else has.

        of: as in `fork`. Raises what went wrong in the session.
        """
        track = self._tracks[of]
        if seconds is None:
            track.resume()
        track.start()
        return track.worker.wait(seconds) if track.worker else track.episode

    # From the page

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        """A message from the page."""
        match content:
            case {"shown": n}:  # a view was opened, or has missed a message
                self.start()
                with self._throttle.lock:  # a message that overtook it would be one too early
                    if n != self._throttle.sent:
                        self.send_state("snapshot")
            case {"do": verb, "track": int(number)} if 0 <= number < len(self._tracks):
                track = self._tracks[number]
                try:
                    self._execute(verb, track, content)
                except (ValueError, SyntaxError, RuntimeError, OSError) as error:
                    track.update(notice=sanitize(str(error)))
                except Exception as error:  # a package that is missing, say
                    track.update(notice=sanitize(f"{type(error).__name__}: {error}"))

    def _execute(self, verb: str, track: Track, content: Mapping[str, Any]) -> None:
        match verb:
            case "pause":
                track.pause()
                self._write_static()  # it may be the last that a saved notebook gets
            case "resume":
                track.resume()
            case "step":
                track.resume(until=content["unit"])
            case "stop":
                track.stop()
            case "write" | "pass":
                self._write(verb, track, content)
            case "fork":
                track.update(notice="")
                self.fork(content["at"], of=track.number, **self._changes(content["changes"]))
            case "ablate":
                track.update(notice="")
                self.ablate(of=track.number, **self._changes(content["changes"]))

    def _write(self, verb: str, track: Track, content: Mapping[str, Any]) -> None:
        """A person writes a call, or lets the model write it."""
        engine = track.session.engine if track.session else None
        key = track.waiting_calls().get(content["thread"])
        if not isinstance(engine, HumanEngine) or key is None:
            raise ValueError(f"thread {content['thread']} does not wait for a person")
        if verb == "write":
            engine.say(content["text"], key)
        else:
            engine.pass_on(key, always=bool(content.get("always")))

    def _on_waiting(self) -> None:
        """A call waits for a person, or does not any more."""
        # Asked under the lock: an answer that is older than another must not be shown after it.
        with self._throttle.lock:
            for track in self._tracks:
                track.update(asks=list(track.waiting_calls()))

    def _changes(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the page asks of a fork, as `session.fork` takes it."""
        changes = dict(request)
        if "variables" in changes:
            values = changes["variables"].items()
            changes["variables"] = {name: _parse_value(value) for name, value in values}
        if "engine" in changes:
            changes["engine"] = self._engines[changes["engine"]]
        for kind, functions in self._functions.items():
            if kind in changes:
                changes[kind] = functions[changes[kind]]
        return changes

    def snapshot_json(self, *, offline: bool = False) -> str:
        """All tracks as JSON, with the number of the last message that is in them.

        offline: for a page that has nobody to ask.
        """
        with self._throttle.lock:
            self._throttle.flush()
            choices = {kind: list(functions) for kind, functions in self._functions.items()}
            return json.dumps(
                {
                    "n": self._throttle.sent,
                    "tracks": [track.snapshot() for track in self._tracks],
                    "choices": {**choices, "engine": list(self._engines)},
                    **({"offline": True} if offline else {"static": self._static}),
                }
            )

    def page_data(self) -> dict[str, str]:
        """What the module asks its model for, by name, for a page that has no kernel."""
        return {"snapshot": self.snapshot_json(offline=True)}

    # Shown

    def __repr__(self) -> str:
        with self._throttle.lock:
            track, episode = self._tracks[0], self.episode
            doing = episode.status if track.now["phase"] == "over" else track.now["phase"]
            text = (
                f"Player({pluralize(len(episode.threads), 'thread')}, depth {episode.depth}, "
                f"{episode.usage.generated} tokens generated, {doing})"
            )
        forks = len(self._tracks) - 1
        return text.removesuffix(")") + f", {pluralize(forks, 'fork')})" if forks else text

    @property
    def static(self) -> str:
        """The original and its forks as HTML that needs no kernel and no script."""
        with self._throttle.lock:
            body = ""
            if self._tracks[0].now["phase"] != "over":
                body = f"<p><code>{escape(repr(self))}</code>: it needs a running kernel.</p>"
            if self.episode.threads and self._tracks[0].now["phase"] in ("over", "paused"):
                body += episode_html(self.episode)
                for number, fork in enumerate(self.forks, 1):
                    at = fork.header["fork"]["event"]
                    body += f"<p><b>Fork {number}, from event {at} on</b></p>{episode_html(fork)}"
        return f'<div class="{self._static}">{hide_lost_view(self._static)}{body}</div>'

    def _ipython_display_(self) -> None:
        """The widget, and beside it the static form, which is written again when it is over."""
        bundle = self._repr_mimebundle_()
        if bundle is not None:  # without its text: the static form says more
            view = {kind: data for kind, data in bundle[0].items() if kind != "text/plain"}
            display(view, metadata=bundle[1], raw=True)
        display(self._static_bundle(), raw=True, display_id=self._static)
        self._is_shown = True
        self.start()

    def _static_bundle(self) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.static}

    def _write_static(self) -> None:
        if self._is_shown:
            update_display(self._static_bundle(), raw=True, display_id=self._static)


def hide_lost_view(static: str) -> str:
    """A style that hides an output without elements before the element of class `static`.

    Such is what JupyterLab shows of a widget whose kernel is gone: a sentence, as text.
    """
    lost = ".jp-OutputArea-output.lm-Panel:not(:has(*))"
    return f"<style>.jp-OutputArea-child:has(+ * .{static})>{lost}{{display:none}}</style>"


def answer_beside_cells(widget: anywidget.AnyWidget) -> None:
    """Hear a page's messages in the shell that it names, and so while a cell runs.

    ipykernel (7.4) hears them where the widget has spoken last: in the main shell, behind
    the cell. It has no public name for that.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = lambda data, default: default


def _parse_value(text: str) -> Any:
    """A variable's value, as Python writes it; raises ValueError."""
    try:
        return literal(text.strip())
    except (ValueError, SyntaxError):
        raise ValueError(
            f"{text!r} is no value as Python writes it; for example 3, 'a text' or [1, 2]"
        ) from None


def watch(source: Session | Episode, *, paused: bool = False, **options: Any) -> Player:
    """See a session run, or a saved episode: as the last line of a cell, or `display` it.

    paused: wait for the first step. options: as `Player` takes them.
    """
    player = Player(source, **options)
    if paused:
        player.pause()
    return player
