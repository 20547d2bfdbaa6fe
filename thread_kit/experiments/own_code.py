"""The source code of a suite that is not the kit's: rows know it by names alone."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any


def hash_own_code(*parts: Any) -> str:
    """The hash of the functions and classes that these are, or are made of; "" where all are the
    kit's, or none has its source at hand.
    """
    sources = [source for part in parts for own in _list_own(part) for source in _read(own)]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16] if sources else ""


def _list_own(part: Any) -> Iterator[Any]:
    match part:
        case partial():
            for one in (part.func, *part.args, *part.keywords.values()):
                yield from _list_own(one)
        case Mapping():
            for one in part.values():
                yield from _list_own(one)
        case _ if hasattr(part, "fixed"):  # a SessionMethod
            yield from _list_own(part.fixed)
        case _:
            is_named = inspect.isfunction(part) or inspect.isclass(part)
            yield part if is_named else type(part)


def _read(own: Any) -> list[str]:
    if own.__module__ == "builtins" or own.__module__.partition(".")[0] == "thread_kit":
        return []
    try:
        return [inspect.getsource(own)]
    except (OSError, TypeError):  # written at a prompt
        return []
