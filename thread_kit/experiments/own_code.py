"""The code of a suite that is not the kit's: rows know its functions and classes by name alone."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import CodeType
from typing import Any


def hash_own_code(*parts: Any) -> str:
    """The hash of the code of one's own functions and classes that these are, or are made of.

    Of what runs, not of the file, so a comment changes nothing. What they call in turn is not seen.
    "" where all are the kit's. It begins with Python's version, of which the code depends.
    """
    codes = [text for part in parts for text in _describe(part)]
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


def _describe(part: Any, above: tuple[type, ...] = ()) -> Iterator[str]:
    """What a method, an environment, or a function or class among what they are made of does.

    above: classes that are being described, which may hold one another.
    """
    match part:
        case partial():
            for one in (part.func, *part.args, *_values(part.keywords)):
                yield from _describe(one, above)
        case Mapping():
            for one in _values(part):
                yield from _describe(one, above)
        case type():
            for own in filter(_is_own, part.__mro__):
                if own not in above:
                    yield from _describe_class(own, (*above, own))
        case _ if hasattr(part, "__func__"):  # a method that is bound
            yield from _describe(part.__func__, above)
        case _ if isinstance(getattr(part, "__code__", None), CodeType):
            if _is_own(part):
                yield describe_code(part.__code__)
                for cell in part.__closure__ or ():
                    with suppress(ValueError):  # one that is empty yet
                        yield from _describe_value(cell.cell_contents)
                for default in (*(part.__defaults__ or ()), *_values(part.__kwdefaults__ or {})):
                    yield from _describe_value(default)
        case _ if callable(part):  # a method of a suite, and what it is made of
            yield from _describe(type(part), above)
            for name in ("fixed", "make"):
                yield from _describe(getattr(part, name, None), above)


def _describe_class(own: type, above: tuple[type, ...]) -> Iterator[str]:
    """Its methods, and constants by their capitals: other values may change while it plays."""
    for name, one in sorted(vars(own).items()):
        yield from _describe(getattr(one, "__func__", getattr(one, "fget", one)), above)
        if name.isupper():
            yield from _describe_value(one)


def _describe_value(value: Any) -> Iterator[str]:
    """Plain data as text; of other values, whose text may differ from run to run, nothing."""
    with suppress(TypeError, ValueError, RecursionError):
        yield json.dumps(value, sort_keys=True)


def _values(parts: Mapping[str, Any]) -> list[Any]:
    return [parts[name] for name in sorted(parts, key=str)]


def _is_own(part: Any) -> bool:
    """It is neither the kit's, nor Python's, nor of a package that is installed."""
    root = (getattr(part, "__module__", None) or "").partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    installed = root in sys.stdlib_module_names or "site-packages" in file
    return root != "thread_kit" and not installed
