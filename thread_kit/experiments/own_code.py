"""The code of a suite that is not the kit's: rows know its functions and classes by name alone."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType
from typing import Any


def hash_own_code(*parts: Any) -> str:
    """The hash of the code of one's own functions and classes that these are, or are made of.

    Of what runs, not of the file, so a comment changes nothing. What they call in turn is not seen.
    "" where all are the kit's. It begins with Python's version, of which the code depends.
    """
    codes = [describe_code(code) for part in parts for code in _list_codes(part)]
    if not codes:
        return ""
    digest = hashlib.sha256("\0".join(codes).encode(errors="replace")).hexdigest()[:16]
    return f"{'.'.join(platform.python_version_tuple()[:2])}:{digest}"


def is_other_code(one: str, other: str) -> bool:
    """Whether two hashes say that the code differs; of another version of Python nobody knows."""
    versions = {text.partition(":")[0] for text in (one, other)}
    return one != other and len(versions) == 1


def describe_code(code: CodeType) -> str:
    """What a function does, as text: without its place in a file."""
    constants = [
        describe_code(one)
        if isinstance(one, CodeType)
        else repr(sorted(map(repr, one)) if isinstance(one, frozenset) else one)
        for one in code.co_consts
    ]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, constants))


def _list_codes(part: Any) -> Iterator[CodeType]:
    """The code of a method, an environment, or a function or class among what they are made of."""
    match part:
        case partial():
            for one in (part.func, *part.args, *_values(part.keywords)):
                yield from _list_codes(one)
        case Mapping():
            for one in _values(part):
                yield from _list_codes(one)
        case type():
            if _is_own(part):
                for one in _values(vars(part)):
                    yield from _list_codes(getattr(one, "__func__", getattr(one, "fget", one)))
        case _ if hasattr(part, "__func__"):  # a method that is bound
            yield from _list_codes(part.__func__)
        case _ if isinstance(getattr(part, "__code__", None), CodeType):
            if _is_own(part):
                yield part.__code__
        case _ if callable(part):  # a method of a suite, and what it is made of
            yield from _list_codes(type(part))
            for name in ("fixed", "make"):
                yield from _list_codes(getattr(part, name, None))


def _values(parts: Mapping[str, Any]) -> list[Any]:
    return [parts[name] for name in sorted(parts)]


def _is_own(part: Any) -> bool:
    """It is neither the kit's, nor Python's, nor of a package that is installed."""
    root = (getattr(part, "__module__", None) or "").partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    installed = root in sys.stdlib_module_names or "site-packages" in file
    return root != "thread_kit" and not installed
