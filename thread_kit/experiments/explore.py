"""A panel to play with, without a line of code: choose, run, watch, fork, compare, open, save.

    tk.explore()

Whatever goes wrong is said in the panel, in one sentence.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from thread_kit.engines.engine import Engine
from thread_kit.engines.models import load_model
from thread_kit.envs.env import Env
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.explore_controls import (
    FILE,
    make_choice,
    make_path,
    make_row,
    on_change,
    quiet,
    read_path,
    set_options,
    show_path,
)
from thread_kit.experiments.explore_form import SetupForm
from thread_kit.experiments.explore_setup import Setup
from thread_kit.experiments.explore_traces import clip_name, list_shipped, list_traces
from thread_kit.experiments.method import ScriptedMethod
from thread_kit.experiments.method_registry import method_slug
from thread_kit.experiments.recorded_method import find_recorded_method
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, TraceError, name_of
from thread_kit.views.close_widget import close_widget
from thread_kit.views.export_html import save_page
from thread_kit.views.formatting import sanitize
from thread_kit.views.player.keys import BOX, KeyGuard
from thread_kit.views.player.widget import Player, hide_lost_view
from thread_kit.views.tree_image import save_picture

KINDS = {"page": "html", "trace": "jsonl", "picture": "svg"}
NOTHING = ()
"""Beside it; as an episode is (name, number of its fork)."""
KNOWN_ERRORS = (ValueError, OSError, RuntimeError, ImportError)
"""Their messages are sentences with a remedy."""

CSS = Path(__file__).with_name("explore.css").read_text(encoding="utf-8")
STATIC = "The panel needs a running kernel: click into this cell and press Shift and Enter."


def explore(folder: str | Path = "runs/explore") -> Explorer:
    """The panel, as the last line of a cell. folder: for traces, pages and pictures."""
    return Explorer(folder)


class Explorer(widgets.VBox):
    """A form above, one or two players below; `Explorer.wait` is for those who do write code."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._engines: dict[tuple[str, str | None], Engine] = {}
        self._loading = threading.Lock()  # a run and a fork may ask for one model at once
        self._shown: dict[str, ExploredPlayer] = {}
        self._worker: threading.Thread | None = None
        self.note = widgets.HTML()
        self.form = SetupForm(self._try)
        self.run_button = widgets.Button(
            description="Run", button_style="primary", tooltip="play what is chosen"
        )
        self.saved, self.saved_file = make_choice("saved episode"), make_path("JSONL file")
        self.saved.layout.max_width = "calc(100% - 12em)"
        self.open_button = widgets.Button(description="Open", tooltip="show the saved episode")
        self.left, self.right = make_choice("shown"), make_choice("beside it")
        self.save_buttons = {
            kind: widgets.Button(
                description=f"Save {kind}",
                tooltip=f"write into {self.folder}",
                layout=widgets.Layout(width="auto"),
            )
            for kind in KINDS
        }
        self.stage = widgets.HBox().add_class("tk-explore-stage")
        rows = (
            [self.run_button, self.form.code_button, _Guard(), self.note],
            [self.form.code],
            [self.saved, self.saved_file, self.open_button],
            [self.left, self.right, *self.save_buttons.values()],
        )
        super().__init__([self.form, *(make_row(*row) for row in rows), self.stage])
        self.add_class(BOX).add_class("tk-explore")
        self._connect()
        self._try(self.list_saved)
        self._list_shown()

    def _connect(self) -> None:
        """What each control does."""
        actions: dict[Any, Callable[[], None]] = {
            self.run_button: self.run,
            self.open_button: self.open_saved,
            **{button: partial(self.save, kind) for kind, button in self.save_buttons.items()},
        }
        for button, action in actions.items():
            button.on_click(lambda button, action=action: self._try(action))
        for choice in (self.left, self.right):
            on_change(choice, partial(self._try, self._arrange))
        on_change(self.saved, partial(show_path, self.saved, self.saved_file))

    def _try(self, action: Callable[[], object]) -> None:
        """Whatever goes wrong is said in the panel, where a person looks."""
        self._say("")
        try:
            action()
        except Exception as error:
            kind = "" if isinstance(error, KNOWN_ERRORS) else f"{type(error).__name__}: "
            self._say(f"{kind}{error}", "alert")

    def _say(self, text: str, role: str = "status") -> None:
        text = escape(sanitize(text))
        self.note.value = (
            f'<span class="tk-explore-note" role="{role}">{text}</span>' if text else ""
        )

    # What the buttons do

    def run(self) -> None:
        """Play what is chosen; the model is loaded beside the notebook, which stays alive."""
        setup = self.form.read()
        env = setup.make_env()
        task = "-".join(str(k if v is True else v) for k, v in setup.task.items())
        name = f"{method_slug(setup.method)}-{setup.benchmark}-{task}-{time.strftime('%H%M%S')}"
        path = (
            self.folder / f"{''.join(c if c.isalnum() or c in '+-_.' else '-' for c in name)}.jsonl"
        )
        self.run_button.disabled = True
        begin = partial(self._try, partial(self._begin, setup, env, path))
        # In the context of the click: a kernel's messages say what they are an answer to.
        self._worker = threading.Thread(target=copy_context().run, args=(begin,), daemon=True)
        self._worker.start()

    def _begin(self, setup: Setup, env: Env, path: Path) -> None:
        try:
            engine = setup.make_engine(self.load)
            self._say("")
            session = setup.make_session(engine, env, path)
            self._show(path.stem, ExploredPlayer(session, self, path))
        finally:
            self.run_button.disabled = False
        self.list_saved()

    def wait(self) -> list[Episode]:
        """The episodes that are shown, when they are over; raises what went wrong in one."""
        if self._worker:
            self._worker.join()
        return [player.wait() for player in self._shown.values()]

    def load(self, model: str, adapter: str | None) -> Engine:
        """A model, once; while it is loaded, the panel says so."""
        key = model, adapter
        with self._loading:
            if key not in self._engines:
                self._say(f"loading {model} ...")
                self._engines[key] = load_model(model, adapter=adapter)
            return self._engines[key]

    def load_chosen(self) -> Engine:
        """The model that a saved episode is forked with."""
        try:
            return self.form.read().make_engine(self.load)
        finally:
            self._say("")

    def open_saved(self) -> None:
        """Show a saved episode, which can be forked where its task can be made here."""
        path = Path(read_path(self.saved, self.saved_file))
        name = first = name_of(path)
        old = None
        for shown, player in self._shown.items():
            if player.trace.resolve() == path.resolve():
                name, old = shown, player
        if old and (old.is_live or old.forks or not path.exists()):
            self._choose(name)
            return
        episode = Episode.load(path)
        if old and old.episode.events == episode.events:
            self._choose(name)
            return
        number = 2
        while name in self._shown and not old:  # suites call equal episodes alike
            name, number = f"{first}-{number}", number + 1
        self._show(name, ExploredPlayer(episode, self, path))
        if old:
            close_widget(old)

    def save(self, kind: str) -> None:
        """Write what is shown (at the left) as a "page", a "trace" or a "picture"."""
        if self.left.value is None:
            raise ValueError("nothing is shown yet: press Run, or Open a saved episode")
        name, number = self.left.value
        player = self._shown[name]
        episode = [player.episode, *player.forks][number]
        path = self.folder / f"{name}{f'-fork-{number}' if number else ''}.{KINDS[kind]}"
        if kind == "page":
            save_page(episode if number else player, path)
        elif kind == "picture":
            save_picture(episode, path)
        elif number or player.trace.resolve() != path.resolve():  # else it is written already
            path = find_free(path, episode)
            episode.save(path)
        self.list_saved()
        self._say(f"the {kind} is in {path.resolve()}")

    # What is shown

    def _show(self, name: str, player: ExploredPlayer) -> None:
        self._shown[name] = player
        self._list_shown()
        self._choose(name)
        if player.is_live:
            player.start()

    def _choose(self, name: str) -> None:
        with quiet(self.left):
            self.left.value = name, 0
        self._arrange()

    def list_saved(self) -> None:
        """One's own traces, and those of the kit."""
        traces = [*list_traces([self.folder]), *list_shipped()]
        set_options(self.saved, [*((label, str(path)) for label, path in traces), (FILE, FILE)])

    def _list_shown(self) -> None:
        options = []
        for name, player in self._shown.items():
            forks = range(1, len(player.forks) + 1)
            options += [(name_shown(name, n), (name, n)) for n in (0, *forks)]
        set_options(self.left, options)
        set_options(self.right, [("nothing", NOTHING), *options])

    def _arrange(self) -> None:
        """One player, or two beside each other; of a fork a player of its own, as it is now."""
        columns, before = [], self.stage.children
        for key in dict.fromkeys([self.left.value, self.right.value]):
            if not key:
                continue
            name, number = key
            player: Player = self._shown[name]
            if number:
                player = Player(player.forks[number - 1])
            title = widgets.HTML(f"<b>{escape(name_shown(name, number))}</b>")
            columns.append(widgets.VBox([title, player]))
        self.stage.children = columns
        for column in before:
            # These players stay; of a fork one is made each time.
            column.children = [c for c in column.children if not isinstance(c, ExploredPlayer)]
            close_widget(column)

    def __repr__(self) -> str:
        return repr(self.form).replace("SetupForm", "Explorer")

    def _ipython_display_(self) -> None:
        """The panel, and beside it a sentence for where no kernel runs, which the panel hides."""
        display(self._repr_mimebundle_(), raw=True)
        hidden = hide_lost_view("tk-explore-static")
        text = f'{hidden}<p class="tk-explore-static">{STATIC}</p>'
        display({"text/html": text, "text/plain": STATIC}, raw=True)


class ExploredPlayer(Player):
    """A player of the panel, which tells it of forks. trace: the file of its episode."""

    def __init__(self, source: Session | Episode, panel: Explorer, trace: Path) -> None:
        self.panel, self.trace, self.is_live = panel, trace, isinstance(source, Session)
        super().__init__(source)

    def fork(self, at: int | None = None, *, of: int = 0, **changes: Any) -> Session:
        """See `Player`; a saved episode goes on with the model that is chosen in the panel."""
        if not self.is_live and of == 0:
            changes = recorded_settings(self.episode) | changes
            changes.setdefault("engine", self.panel.load_chosen())
        session = super().fork(at, of=of, **changes)
        self.panel._list_shown()
        return session


def recorded_settings(episode: Episode) -> dict[str, Any]:
    """What a fork of a saved episode cannot read in it: the task from its start, the program.

    Raises ValueError where one of them cannot be made here.
    """
    # The task; a question has none.
    name, env = episode.header.get("environment"), None
    if name:
        if name not in BENCHMARKS:
            raise ValueError(f"the episode acts in {name!r}, which this kit does not know")
        try:
            env = BENCHMARKS[name].environment(**episode.header["task"])
        except Exception as error:
            raise ValueError(f"its task cannot be made here, so no fork: {error}") from error

    # The same number can be another task, where data was installed or not.
    if env and 0 in episode.threads and env.reset() not in episode.threads[0].context.text:
        raise ValueError("its task asks for something else here than it did when it was played")

    # The program, where it is another method than THREAD.
    if "program" not in episode.header:
        return {"env": env}
    method = find_recorded_method(episode.header, env.examples if env else "")
    if isinstance(method, ScriptedMethod):
        env.script = method.script  # type: ignore[union-attr]
    return {"env": env, "recorded": {"program": method.fixed["program"]}}


class _Guard(KeyGuard):
    _css = CSS


def find_free(path: Path, episode: Episode) -> Path:
    """A name under which no other episode is saved: this one, or with -2, -3 and so on."""

    def is_free(name: Path) -> bool:
        with contextlib.suppress(TraceError):  # then it is something else, and no less somebody's
            return not name.exists() or Episode.load(name).events == episode.events
        return False

    others = (path.with_stem(f"{path.stem}-{n}") for n in itertools.count(2))
    return next(filter(is_free, itertools.chain([path], others)))


def name_shown(name: str, fork: int) -> str:
    """What an episode or its fork is called; fork: 0 is the original."""
    return clip_name(name) + (f", fork {fork}" if fork else "")
