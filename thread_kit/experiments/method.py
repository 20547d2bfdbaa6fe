"""What a suite needs of a method: a name, and a way to start one episode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

from thread_kit.engines.engine import Engine
from thread_kit.envs.env import Env
from thread_kit.envs.intercode.interaction import REACT, Script
from thread_kit.prompts import EMPTY, Prompt
from thread_kit.session.scheduler import KeepCells
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Event

GIVEN = ("engine", "env", "context", "prompt", "seed", "path", "replay")
"""Parameters of `Session` that a suite gives, or the method itself."""


class Run(Protocol):
    """One episode, as a session is: its events one by one, what came of them, a way to give up.

    error: what ended it by failing; None otherwise.
    """

    episode: Episode

    @property
    def error(self) -> Exception | None: ...

    def __iter__(self) -> Iterator[Event]: ...

    def close(self) -> None: ...


class Method(Protocol):
    """A way to play a task. Called before each episode; plays nothing before it is iterated.

    name: tells the methods of a suite apart; it stands in tables and figures.
    seed: for what is drawn at random. path: where the trace is written, or None.
    options: sampling, and budgets: the method's own (`experiments/budgets.py`), or what a suite
        says for all of its methods; and `replay`, what a session repeats of an episode that was
        interrupted (a method that does not hand it on begins anew).
    """

    @property
    def name(self) -> str: ...

    def __call__(
        self, engine: Engine, env: Env, *, seed: int, path: Path | None, **options: Any
    ) -> Run: ...


@dataclass(frozen=True)
class SessionMethod:
    """A method that is one `Session`: THREAD, and its ablations by what is fixed of a session.

    fixed: parameters of `Session` that belong to the method (phi, scope, dialect ...); they come
        before the options of a suite. Raises ValueError for what is none, and for a function
        without a name.
    keep_cells: "episode" where threads begin with the tokens of ones that are over (`Session`).
    """

    name: str
    prompt: Prompt = EMPTY
    fixed: Mapping[str, Any] = field(default_factory=dict)
    keep_cells: KeepCells = False

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, Prompt):
            raise ValueError(
                f"prompt={self.prompt!r:.80} of {self.name!r} is no prompt; load one: "
                "tk.load_prompt(...)"
            )
        for name, value in self.fixed.items():
            if name in GIVEN or name not in signature(Session).parameters:
                raise ValueError(
                    f"{self.name!r} fixes {name!r}, and a session has no such parameter"
                )
            if getattr(getattr(value, "func", value), "__name__", "") == "<lambda>":
                raise ValueError(
                    f"{name} of {self.name!r} is a lambda; results tell functions by their names, "
                    "so give it one: def ..."
                )

    def __call__(
        self, engine: Engine, env: Env, *, seed: int, path: Path | None, **options: Any
    ) -> Session:
        parameters = {**options, **self.fixed}
        session = Session(engine, env, prompt=self.prompt, seed=seed, path=path, **parameters)
        session.keep_cells = self.keep_cells
        return session


@dataclass(frozen=True)
class ScriptedMethod(SessionMethod):
    """A method with a script of its own in InterCode; raises ValueError on other tasks."""

    script: Script = REACT

    def __call__(
        self, engine: Engine, env: Env, *, seed: int, path: Path | None, **options: Any
    ) -> Session:
        if not hasattr(env, "script"):
            raise ValueError(f"{self.name} is a method of InterCode's tasks, not of {env.name}'s")
        env.script = self.script
        return super().__call__(engine, env, seed=seed, path=path, **options)


@dataclass(frozen=True)
class PerTaskMethod:
    """A method that is made anew for each task, with the examples that fit it.

    make: the method by the name of the examples (`Env.examples`).
    """

    name: str
    make: Callable[[str], Method]

    def __call__(
        self, engine: Engine, env: Env, *, seed: int, path: Path | None, **options: Any
    ) -> Run:
        return self.make(env.examples)(engine, env, seed=seed, path=path, **options)
