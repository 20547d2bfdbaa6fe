"""What a line of a thread is: Python that can bind or print something, or prose.

Lines are only parsed here and never run; `namespace.py` runs them in a sandbox.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Collection, Iterator

from thread_kit.exchange import REFERENCE

__all__ = ["LINE_CHARACTERS", "bound", "executable", "parsed", "prints", "uses"]

# Python's own parser recurses: 10,000 minus signs overflow the stack of a thread with 512 KiB.
LINE_CHARACTERS = 4_000

_warnings_lock = threading.Lock()  # the filters of `warnings` belong to the whole process


def executable(line: str) -> bool:
    """Whether a line is Python that can bind or print something, and not prose.

    Assignments, imports, and expressions with a call or a walrus; not `Done`, `yes or no`,
    `Answer: 42`, blocks. Spaces around the line do not count: an indented line stands alone.
    """
    return parsed(line) is not None


def parsed(line: str) -> ast.Module | None:
    """The syntax tree of an `executable` line, None for prose."""
    source = line.strip()
    if len(source) > LINE_CHARACTERS or "\n" in source or "\r" in source:
        return None
    try:
        with _warnings_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model's '\d' is not the user's problem
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    kinds = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.Expr
    all_known = all(isinstance(statement, kinds) for statement in tree.body)
    return tree if all_known and any(map(_acts, tree.body)) else None


def _acts(statement: ast.stmt) -> bool:
    match statement:
        case ast.AnnAssign(value=None):  # "Answer: 42"
            return False
        case ast.Expr(value):  # without a call it can neither print nor bind: "yes or no"
            return any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(value))
    return True


def prints(tree: ast.Module) -> bool:
    """Whether a line calls `print`."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id == "print" for called in calls)


def bound(tree: ast.Module) -> Iterator[str]:
    """The names that a line binds, if it runs to its end."""
    loops = [n.target for n in ast.walk(tree) if isinstance(n, ast.comprehension)]
    local = {id(n) for target in loops for n in ast.walk(target)}  # gone when the loop is over
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in local:
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def uses(line: str, names: Collection[str]) -> list[str]:
    """Those of the names that a line of Python uses: as a variable, or as `{name}` in a string.

    A line of prose uses nothing, whatever it speaks of.
    """
    tree = parsed(line) if any(name in line for name in names) else None
    if tree is None:
        return []
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name):
                found.add(name)
            case ast.Constant(str(text)):
                found.update(REFERENCE.findall(text))
    return [name for name in names if name in found]
