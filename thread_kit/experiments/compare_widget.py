"""Choose two ways to play one task, and watch both trees grow side by side.

CompareWidget(engine, tk.TextCraft("dev", 47), {"thread": ..., "thread, no variables": ...})
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from thread_kit.engines.engine import Engine
from thread_kit.envs.env import Env
from thread_kit.experiments.method import SessionMethod
from thread_kit.views.close_widget import close_widget
from thread_kit.views.columns import SideBySide
from thread_kit.views.player.keys import BOX, KeyGuard, show_error
from thread_kit.views.player.widget import Player, watch


class CompareWidget(widgets.VBox):
    """Two methods on one task, in the batches of one engine.

    methods: by name, in the order of the switches. about: what a method is, shown below its switch.
    options: those of a session that all share (calls, new_tokens ...).
    Raises ValueError for fewer than two methods.
    """

    def __init__(
        self,
        engine: Engine,
        env: Env,
        methods: Mapping[str, SessionMethod],
        *,
        about: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if len(methods) < 2:
            raise ValueError("two methods are compared here; give at least two")
        self._engine, self._env, self._options = engine, env, options
        self._methods, self._about = dict(methods), dict(about or {})
        self._shown: dict[str, Player] = {}
        first, second = list(methods)[:2]
        self.left = widgets.Dropdown(options=list(methods), value=first)
        self.right = widgets.Dropdown(options=list(methods), value=second)
        self.button = widgets.Button(description="play both", button_style="primary")
        self._note = widgets.HTML()
        self._trees = widgets.HBox()
        for switch in (self.left, self.right):
            switch.observe(lambda change: self._describe(), "value")
        self.button.on_click(lambda button: self._try_to_start())
        choice = widgets.HBox([self.left, self.right, self.button, KeyGuard()])
        super().__init__([choice, self._note, self._trees])
        self.add_class(BOX)
        self._describe()

    def _try_to_start(self) -> None:
        """Of the button: what goes wrong is said below it, where a person looks."""
        try:
            self._describe()
            self.start()
        except Exception as error:  # else nobody hears of it
            self._note.value = show_error(error)

    def start(self) -> None:
        """Begin both episodes, each from the start of the task; they run beside the notebook."""
        self.stop()
        sessions = {  # all of them before one begins: another may be refused
            name: self._methods[name](
                self._engine, self._env.again(), seed=0, path=None, **self._options
            )
            for name in dict.fromkeys([self.left.value, self.right.value])
        }
        self._shown = {name: watch(session).start() for name, session in sessions.items()}
        half = widgets.Layout(width="50%")
        players = self._shown.values()
        self._trees.children = [widgets.VBox([player], layout=half) for player in players]

    def wait(self) -> SideBySide:
        """Both episodes when they are over; begins them if nothing has."""
        if not self._shown:
            self.start()
        return SideBySide({name: live.wait() for name, live in self._shown.items()})

    def stop(self) -> None:
        """End what runs, and take it off the page."""
        for player in self._shown.values():
            player.stop()
            with contextlib.suppress(Exception):  # what went wrong there stands in the player
                player.wait()
        before, self._shown, self._trees.children = self._trees.children, {}, ()
        for column in before:
            close_widget(column)

    def _describe(self) -> None:
        chosen = dict.fromkeys([self.left.value, self.right.value])
        about = {name: self._about[name] for name in chosen if name in self._about}
        lines = [f"<b>{escape(name)}</b>: {escape(text)}" for name, text in about.items()]
        self._note.value = "<br>".join(lines)

    def __repr__(self) -> str:
        return f"CompareWidget({self.left.value!r} beside {self.right.value!r} on {self._env!r})"
