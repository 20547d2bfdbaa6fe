"""Python's own parser for what a model wrote: without warnings, and by several threads at once."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

__all__ = ["expression", "literal", "quiet", "statements"]

TRIES = 100
_lock = threading.RLock()  # the filters of `warnings` belong to the whole process


@contextmanager
def quiet() -> Iterator[None]:
    """Without Python's warnings about a source: a model's '\\d' is not the user's problem."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def statements(source: str) -> ast.Module:
    """The syntax tree of lines of code; raises what `ast.parse` raises."""
    tree: ast.Module = _parse(source, "exec")
    return tree


def expression(source: str) -> ast.Expression:
    """The syntax tree of one expression; raises what `ast.parse` raises."""
    tree: ast.Expression = _parse(source, "eval")
    return tree


def literal(text: str) -> Any:
    """The value of a literal; raises what `ast.literal_eval` raises."""
    return ast.literal_eval(expression(text.lstrip(" \t")))


def _parse(source: str, mode: Literal["exec", "eval"]) -> Any:
    # Python 3.11 counts the depth of a syntax tree in one place for all threads, and raises a
    # SystemError where two build one at a time (CPython issue 106905). The lock keeps ours apart,
    # not those of others: `inspect` parses, too, to read the signature of a built-in function.
    with quiet():
        for _ in range(TRIES - 1):
            with suppress(SystemError):
                return ast.parse(source, mode=mode)
        return ast.parse(source, mode=mode)
