"""The methods that a command line names: the kit's, by name or slug, and one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from thread_kit.cli.arguments import import_object
from thread_kit.engines.models import list_adapters
from thread_kit.envs.benchmark import Benchmark
from thread_kit.experiments.method import Method, PerTaskMethod, SessionMethod
from thread_kit.experiments.method_builders import has_planner
from thread_kit.experiments.method_registry import (
    find_method,
    has_trials,
    list_methods,
    load_method,
    method_slug,
)
from thread_kit.prompts import Prompt


def describe_methods() -> str:
    """Help: all methods by their slugs."""
    slugs = " ".join(map(method_slug, list_methods()))
    return f"{slugs}; or module:name of your own, a method or a program"


def build_methods(
    names: Sequence[str],
    benchmark: Benchmark,
    examples: str,
    *,
    adapter: str | None = None,
    is_chosen: bool = False,
    prompt: Prompt | None = None,
    trials: int | None = None,
    planner_model: str | None = None,
) -> list[Method]:
    """The methods that were asked for, few-shot; or the one that the adapter teaches the model.

    examples: the name of the prompts of one of the tasks. is_chosen: whether a person named the
    adapter. prompt: THREAD's; None for the examples that fit each task. trials: of those that try
    again. planner_model: another one, of those that have a planner. Raises ValueError where an
    adapter would play what it does not teach, or an option is for none of the methods, and what
    `find_method`, `load_method` and `import_object` raise.
    """
    names = [name if ":" in name else find_method(name) for name in names]
    if trials is not None and not any(map(has_trials, names)):
        raise ValueError("--trials is for Reflexion and Try Again; none of these methods is one")
    others = [name for name in names if ":" not in name and not name.startswith("thread")]
    if adapter and (not is_chosen or len(names) > 1) and others:
        start = f"{others[0]}-{benchmark.name}-"
        fitting = [known for known in list_adapters() if known.startswith(start)]
        teachers = f", or play it by itself with --adapter {' or '.join(fitting)}"
        raise ValueError(
            f"the adapter {adapter} does not teach the model {others[0]!r} as well; give --adapter "
            f"none for few-shot prompts{teachers if fitting else ''}"
        )
    reads_prompt = any(name == "thread" or ":" in name for name in names)
    chosen = prompt is not None and (bool(prompt.text) or not adapter)  # a taught model reads none
    if chosen and not reads_prompt:
        raise ValueError(f"--prompt is THREAD's own; {', '.join(names)} have theirs")
    variants = [n for n in names if n.startswith("thread") and n != "thread" and ":" not in n]
    if chosen and variants:
        raise ValueError(f"--prompt is read by the method thread; {', '.join(variants)} would not")
    methods: list[Method] = []
    has_use = planner_model is None
    for name in names:
        if ":" in name:
            methods.append(_load_own(name, benchmark, prompt))
            has_use = True  # whose prompts are whose is its own affair
        elif name == "thread" and prompt is not None:
            methods.append(SessionMethod("thread", prompt))
        else:
            own = trials if has_trials(name) else None
            make = partial(load_method, name, taught=adapter is not None, trials=own)
            made = make(examples)  # what is missing is said before anything is played
            has_use = has_use or has_planner(made, benchmark)
            methods.append(PerTaskMethod(name, make))
    if not has_use:
        raise ValueError(
            f"--planner-model {planner_model} is for adapt and plan-and-execute; none of "
            "these methods has a planner"
        )
    return methods


def may_plan(name: str, method: Method, benchmark: Benchmark, examples: str) -> bool:
    """Whether a method has a planner; one of one's own may, by the name that it was asked for."""
    made = method.make(examples) if isinstance(method, PerTaskMethod) else method
    return ":" in name or (isinstance(made, SessionMethod) and has_planner(made, benchmark))


def _load_own(path: str, benchmark: Benchmark, prompt: Prompt | None) -> Method:
    """A method of one's own: an object with a name, or a program, which reads THREAD's prompt."""
    own: Any = import_object(path)
    if isinstance(getattr(own, "name", None), str) and callable(own):
        return own
    if not inspect.isgeneratorfunction(own):  # also of a partial of one
        raise ValueError(
            f"{path} is {own!r}; give a method, SessionMethod(name, ...), or a program, which "
            "yields requests (docs/howto/own-method.md)"
        )
    name = path.rpartition(":")[2]

    def make(examples: str) -> SessionMethod:
        shown = benchmark.load_prompt(examples) if prompt is None else prompt
        return SessionMethod(name, shown, {"program": own})

    build: Callable[[str], Method] = make
    return PerTaskMethod(name, build)
