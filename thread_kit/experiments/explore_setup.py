"""What `explore` was told to play: as a session, and as the Python code that makes the same one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import thread_kit
from thread_kit import exchange
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import Engine
from thread_kit.envs.env import Env
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_builders import load_planners
from thread_kit.experiments.method_registry import load_method
from thread_kit.session.session import Session

WIDTH = 88
"""Characters of a line of code, at most, where it can be broken."""


class Setup(NamedTuple):
    """One episode that can be played.

    task: the arguments of the benchmark's environment.
    adapter: what taught the model the method; None where it is shown examples.
    prompt: THREAD's few-shot prompt, by name or path; None for the method's own.
    functions: phi and psi, by their names in `thread_kit.exchange`; what is left out is the
        method's own.
    options: those of a session: budgets, temperature, seed.
    actions: at most so many, where the environment counts them; None is no limit.
    planner: the model of the method's planner; None for the same one.
    counts_actions: whether the environment does.
    """

    benchmark: str
    task: Mapping[str, Any]
    model: str
    adapter: str | None
    method: str
    prompt: str | None
    functions: Mapping[str, str]
    options: Mapping[str, Any]
    actions: int | None = None
    planner: str | None = None
    counts_actions: bool = False

    def make_env(self) -> Env:
        """The task; raises what the benchmark does."""
        env = BENCHMARKS[self.benchmark].environment(**self.task)
        if self.counts_actions:
            env.max_actions = self.actions  # type: ignore[attr-defined]
        return env

    def make_method(self, examples: str) -> SessionMethod:
        """The method. examples: the name of the prompts that fit the task (`Env.examples`).

        Raises what `load_method` and `load_prompt` raise.
        """
        if self.prompt is not None:
            return SessionMethod("thread", BENCHMARKS[self.benchmark].load_prompt(self.prompt))
        return load_method(self.method, examples, taught=self.adapter is not None)

    def make_engine(self, load: Callable[[str, str | None], Engine]) -> Engine:
        """The model, or two. load: a model by its name or path and its adapter; what it raises."""
        engine = load(self.model, self.adapter)
        if self.planner is None:
            return engine
        prompts = load_planners(BENCHMARKS[self.benchmark])
        return EngineByPrompt(engine, dict.fromkeys(prompts, load(self.planner, None)))

    def make_session(self, engine: Engine, env: Env, path: str | Path) -> Session:
        """The session, not begun. Raises what `make_method` and `Session` raise."""
        functions = {kind: getattr(exchange, name) for kind, name in self.functions.items()}
        method = self.make_method(env.examples)
        return method(engine, env, path=Path(path), **self.options, **functions)

    def write_code(self, path: str | Path) -> str:
        """Python code that plays the same. path: where its trace is written."""
        # What is imported, and the model.
        imports, adapter = ["import thread_kit as tk"], {"adapter": self.adapter}
        lines = [f"model = {_call('tk.load_model', self.model, **adapter)}"]
        record = f"BENCHMARKS[{self.benchmark!r}]"
        if self.planner is not None:
            imports.append("from thread_kit.experiments.method_builders import load_planners")
            planner = _call("tk.load_model", self.planner, adapter=None)
            lines.append(f"planners = dict.fromkeys(load_planners({record}), {planner})")
            lines.append("model = tk.EngineByPrompt(model, planners)")

        # The task: by its public name, if it has one.
        environment = BENCHMARKS[self.benchmark].environment
        name = f"tk.{environment.__name__}"
        is_public = getattr(thread_kit, environment.__name__, None) is environment
        made = _call(name if is_public else f"{record}.environment", **self.task)
        lines.append(f"task = {made}")
        own = BENCHMARKS[self.benchmark].max_actions
        if self.counts_actions and not (self.actions is own is None):
            lines.append(f"task.max_actions = {self.actions!r}")
        if not is_public or self.prompt is not None or self.planner is not None:
            imports.append("from thread_kit.envs.registry import BENCHMARKS")

        # The method, and the session that it makes.
        if self.prompt is not None:
            imports.append("from thread_kit.experiments.method import SessionMethod")
            prompt = f"{record}.load_prompt({self.prompt!r})"
            lines.append(f"method = SessionMethod('thread', {prompt})")
        else:
            imports.append("from thread_kit.experiments.method_registry import load_method")
            taught = ", taught=True" if self.adapter is not None else ""
            lines.append(f"method = load_method({self.method!r}, task.examples{taught})")
        if self.functions:
            imports.append("from thread_kit import exchange")
        functions = {kind: Name(f"exchange.{name}") for kind, name in self.functions.items()}
        parts = Name("model"), Name("task")
        options = {"path": str(path)} | _without_defaults(self.options) | functions
        lines.append(f"session = {_call('method', *parts, **options)}")
        return "\n".join([*sorted(imports, key=_order), "", *lines, "tk.watch(session)"])


class Name(str):
    """What stands in code as it is, and is no text."""

    def __repr__(self) -> str:
        return str(self)


def _order(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _without_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something; of calls and new tokens always, since people ask for them."""
    always = ("calls", "new_tokens", "seed")
    return {k: v for k, v in options.items() if k in always or default_of(k) != v}


def default_of(option: str) -> Any:
    """What a session has where nothing is said."""
    return inspect.signature(Session).parameters[option].default


def _call(function: str, *values: Any, **options: Any) -> str:
    """A call as code, a line a part where it does not fit into one."""
    parts = [*map(repr, values), *(f"{name}={value!r}" for name, value in options.items())]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    return f"{function}(\n" + "".join(f"    {part},\n" for part in parts) + ")"
