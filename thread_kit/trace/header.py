"""What the first line of a trace says: what an episode was made with."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.prompts import Prompt

PACKAGES = ("thread-kit", "llama-cpp-python", "numpy", "pydantic-monty")
"""Those whose version can change what any episode comes to."""


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """The versions of Python and of what an episode depends on; packages: its environment's."""
    found = {"python": platform.python_version()}
    for name in (*PACKAGES, *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def describe_program(program: Any) -> Any:
    """A program, and what it was made with, as JSON can write it: for the header of a trace."""
    match program:
        case partial():
            parts = {name: describe_program(part) for name, part in program.keywords.items()}
            return {"name": program.func.__name__, **parts}
        case Prompt():
            return program.name
        case None | bool() | int() | float() | str():
            return program
        case Mapping():
            return {str(name): describe_program(part) for name, part in program.items()}
        case list() | tuple():
            return [describe_program(part) for part in program]
    if is_dataclass(program) and not isinstance(program, type):
        parts = {one.name: describe_program(getattr(program, one.name)) for one in fields(program)}
        return {"name": type(program).__name__, **parts}
    return getattr(program, "__name__", None) or repr(program)


def make_header(
    engine: Any,
    env: Any,
    prompts: Iterable[Prompt],
    dialect: Dialect,
    exchange: Mapping[str, Any],
    *,
    program: Any = None,
    fork: Mapping[str, Any] | None = None,
    logprobs: bool = False,
    **facts: Any,
) -> dict[str, Any]:
    """The header of a session's trace; `facts` are scope, limits and sampling.

    engine, env: what they say of themselves (an `Engine`; an `Env` or None).
    """

    def tokens(prompt: Prompt) -> tuple[int, ...]:
        return engine.tokenize(prompt.text, first=True) if prompt.examples else ()

    marks = {name: getattr(dialect, name) for name in Dialect.__slots__}
    header = {
        "model": engine.describe(),
        "environment": env.name if env else None,
        "task": env.task if env else None,
        "prompts": {
            p.sha256: {"name": p.name, "text": p.text, "tokens": tokens(p)} for p in prompts
        },
        "dialect": {name: mark for name, mark in marks.items() if mark not in (None, False)},
        "exchange": {name: getattr(f, "__name__", repr(f)) for name, f in exchange.items()},
        **facts,
        "versions": versions(env.packages if env else ()),
    }
    more = {
        "program": describe_program(program) if program else None,
        "fork": fork,
        "logprobs": logprobs,
    }
    return header | {name: value for name, value in more.items() if value}
