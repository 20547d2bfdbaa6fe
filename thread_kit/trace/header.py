"""What the first line of a trace says: what an episode was made with."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.program import UNNAMED
from thread_kit.prompts import Prompt
from thread_kit.trace.events import plain

VERSION = 1
"""Of the form of a trace."""

EXCHANGE = ("phi", "psi", "xi", "abstract")
"""The functions between threads, as a header and `Session` name them."""

LIMITS = ("calls", "new_tokens", "tokens", "seconds", "depth")
"""The budgets of an episode, as a header, `Session` and `session.limits.Limits` name them."""

PACKAGES = ("thread-kit", "llama-cpp-python", "numpy", "pydantic-monty")
"""Those whose version can change what any episode comes to."""


def make_header(
    *,
    model: Mapping[str, Any],
    environment: str | None,
    task: Any,
    prompts: Iterable[tuple[Prompt, Sequence[int]]],
    dialect: Dialect,
    exchange: Mapping[str, Callable[..., Any]],
    scope: str,
    limits: Mapping[str, float | None],
    sampling: Mapping[str, float],
    program: Any = None,
    fork: Mapping[str, Any] | None = None,
    logprobs: bool = False,
    packages: Iterable[str] = (),
    others: Callable[[str], Mapping[str, Any] | None] = lambda sha256: None,
) -> dict[str, Any]:
    """The header of a new trace, as it reads back from the file.

    model: what the engine says of itself. environment, task: None without an environment.
    prompts: each few-shot prompt with its tokens, the main thread's first.
    exchange: phi, psi, xi and abstract. scope: "exported", "shared",
        "own" or "none".
    limits: calls, tokens, levels, seconds; None is no limit. sampling: temperature and seed.
    program: what the main thread runs; None is THREAD. fork: where the past comes from.
    packages: whose versions matter to the environment. others: of a prompt's hash the model that
        reads it, where that is another one.
    """
    # 1. What every episode has.
    marks = {name: getattr(dialect, name) for name in Dialect.__slots__}
    header: dict[str, Any] = {
        "thread_kit": VERSION,
        "model": model,
        "environment": environment,
        "task": task,
        "prompts": {
            prompt.sha256: {
                "name": prompt.name,
                "text": prompt.text,
                "tokens": tokens,
                **({"model": other} if (other := others(prompt.sha256)) else {}),
            }
            for prompt, tokens in prompts
        },
        "dialect": {name: mark for name, mark in marks.items() if mark not in (None, False)},
        "exchange": {name: name_object(function) for name, function in exchange.items()},
        "scope": scope,
        "limits": limits,
        "sampling": sampling,
        "versions": versions(packages),
    }
    # 2. What some have.
    if program:
        header["program"] = describe_program(program)
    if fork:
        header["fork"] = fork
    if logprobs:
        header["logprobs"] = True
    return plain(header)


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """The versions of Python and of what an episode depends on; packages: its environment's."""
    installed = {"python": platform.python_version()}
    return installed | {name: _version_of(name) for name in (*PACKAGES, *packages)}


@cache  # it reads files: half of the time that it takes to make a session
def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def describe_program(program: Any) -> Any:
    """A program, and what it was made with, as JSON can write it.

    A field of a dataclass that is `UNNAMED` is left out where it has its default.
    """
    match program:
        case partial():
            parts = {name: describe_program(part) for name, part in program.keywords.items()}
            name = {"name": name_object(program.func)}
            return {**name, **parts, **name}  # first, and no keyword's
        case Prompt():
            return program.name
        case None | bool() | int() | float() | str():
            return program
        case Mapping():
            return {str(name): describe_program(part) for name, part in program.items()}
        case list() | tuple():
            return [describe_program(part) for part in program]
    if is_dataclass(program) and not isinstance(program, type):
        values = ((part, getattr(program, part.name)) for part in fields(program))
        parts = {
            part.name: describe_program(value)
            for part, value in values
            if value != part.default or part.metadata != UNNAMED
        }
        return {"name": type(program).__name__, **parts}
    return name_object(program)


def name_object(value: Any) -> str:
    """The name of a function, or what an object says of itself, alike in every process."""
    return getattr(value, "__name__", None) or re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def read_header(data: Any) -> dict[str, Any]:
    """The header that the first line of a trace holds.

    Raises ValueError for what is no header, or that of a newer version, and for fields that are not
    what a session writes.
    """
    version = data.get("thread_kit") if isinstance(data, dict) else None
    if type(version) is not int or version < 1:
        raise ValueError(
            'no thread-kit trace: the first line has no "thread_kit" version (a suite\'s results '
            "open with tk.Results.load; it keeps traces with --traces)"
        )
    if version > VERSION:
        raise ValueError(
            f"written by a newer thread-kit (trace version {version}; this one reads up to "
            f"{VERSION}); update thread-kit"
        )
    header = dict(data)
    if "lens" in header:  # the name that it had before
        header["logprobs"] = header.pop("lens")
    for name, fits in _FITS.items():
        if name in header and not fits(header[name]):
            raise ValueError(f"its {name} cannot be what a session wrote: {header[name]!r:.80}")
    return header


Check = Callable[[Any], bool]


def _is_a(*kinds: type) -> Check:
    return lambda value: type(value) in kinds


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 2**63


def _is_token(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_list_of(fits: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _is_dict_of(fits: Check, names: Collection[str] | None = None) -> Check:
    """A dict of these; names: the only ones that it may have."""
    return lambda value: (
        isinstance(value, dict)
        and all(map(fits, value.values()))
        and (names is None or value.keys() <= set(names))
    )


def _is_dict_with(**checks: Check) -> Check:
    """A dict that has all these."""
    return lambda value: (
        isinstance(value, dict)
        and all(name in value and fits(value[name]) for name, fits in checks.items())
    )


_is_text = _is_a(str)


def _is_program(value: Any) -> bool:
    """The name of a program, or what it was made with (`describe_program`)."""
    while isinstance(value, dict) and _is_text(value.get("name", "")):
        value = value.get("actor", "")
        if value is None or _is_number(value):  # a program of somebody's own may call it so
            return True
    return _is_text(value)


def _is_switch(value: Any) -> bool:
    """Of a function that a fork has changed: before which event it was another one, and which."""
    return (
        isinstance(value, list) and len(value) == 2 and _is_token(value[0]) and _is_text(value[1])
    )


_MARKS: dict[str, Check] = {
    "actions": _is_list_of(_is_text),
    "code": _is_a(bool),
    "several_lines": _is_a(bool),
    "as_observed": _is_a(bool),
    "spawn": _is_a(str, type(None)),
}
_FITS: dict[str, Check] = {
    "model": _is_a(dict),
    "environment": _is_a(str, type(None)),
    "prompts": _is_dict_of(
        _is_dict_with(name=_is_text, text=_is_text, tokens=_is_list_of(_is_token))
    ),
    "dialect": lambda marks: (
        isinstance(marks, dict)
        and marks.keys() <= {*Dialect.__slots__}
        and all(_MARKS.get(name, _is_text)(mark) for name, mark in marks.items())
    ),
    # What a fork gives its session by these names, and no other parameters.
    "exchange": _is_dict_of(_is_text, EXCHANGE),
    "scope": _is_text,
    "program": _is_program,
    "limits": _is_dict_of(
        lambda limit: limit is None or _is_number(limit),
        LIMITS,
    ),
    "sampling": _is_dict_of(_is_number, ("temperature", "seed")),
    "versions": _is_dict_of(_is_text),
    "fork": lambda fork: (
        _is_dict_with(event=_is_token)(fork)
        and _is_dict_of(_is_list_of(_is_switch), EXCHANGE)(fork.get("exchange", {}))
    ),
    "logprobs": _is_a(bool),
}
"""What the fields of a header are checked for: whatever shows or forks an episode relies on it."""
