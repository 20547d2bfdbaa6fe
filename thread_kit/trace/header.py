"""What the first line of a trace says: what an episode was made with."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

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


def described(program: Any) -> Any:
    """A program, and what it was made with, as JSON can write it: for the header of a trace."""
    match program:
        case partial():
            parts = {name: described(part) for name, part in program.keywords.items()}
            return {"name": program.func.__name__, **parts}
        case Prompt():
            return program.name
        case None | bool() | int() | float() | str():
            return program
        case Mapping():
            return {str(name): described(part) for name, part in program.items()}
        case list() | tuple():
            return [described(part) for part in program]
    if is_dataclass(program) and not isinstance(program, type):
        parts = {one.name: described(getattr(program, one.name)) for one in fields(program)}
        return {"name": type(program).__name__, **parts}
    return getattr(program, "__name__", None) or repr(program)
