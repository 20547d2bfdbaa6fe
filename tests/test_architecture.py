"""What imports what: one circle, a core that knows nobody, and models that load no environment."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "thread_kit"

CORE = ("thread", "requests", "exchange", "dialect", "sequence", "program")
NEVER = {
    # folder or module: what it never reaches, not even through others
    **dict.fromkeys(CORE, ("session", "engines", "envs", "sandbox", "trace", "methods")),
    "engines": ("session", "envs", "experiments", "views", "methods", "cli"),
    "sandbox": ("session", "engines", "envs", "methods", "views"),
    "methods": ("session", "engines", "envs", "sandbox", "experiments", "views", "trace.episode"),
    "trace": ("session", "engines", "envs", "methods", "experiments"),
    "session": ("experiments", "analysis", "views", "cli", "methods"),
    "envs": ("session", "engines", "experiments", "views", "cli"),
    "views.text": ("session", "engines", "envs"),
    "views.html": ("session", "engines", "envs"),
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from runtime_nodes(node)


def imported(path: Path) -> set[str]:
    """The kit's modules that a module imports, at its top or in a function."""
    found = set()
    for node in runtime_nodes(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("thread_kit"):
            assert node.level == 0
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in inside if name in MODULES} or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("thread_kit")}
    return found


@cache
def imports() -> dict[str, set[str]]:
    """By module what it imports; not at the top, where each process would parse them all."""
    return {name: imported(path) for name, path in MODULES.items()}


EPISODE = "thread_kit.trace.episode"
"""An episode shows itself (`__str__`, `_repr_html_`): the one import that runs up."""


def reached(start: str, *, shows: bool = True) -> set[str]:
    """All modules that a module imports, itself or through others.

    shows: also those by which an episode shows itself.
    """
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        new = imports().get(name, set()) - found
        if name == EPISODE and not shows:
            new = {one for one in new if not one.startswith("thread_kit.views.")}
        found |= new
        waiting += new
    return found


def circles() -> set[frozenset[str]]:
    """Sets of modules that reach one another."""
    reach = {name: reached(name) for name in MODULES}
    return {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in MODULES
        if name in reach[name]
    }


def test_the_only_circle_is_an_episode_that_shows_itself():
    (circle,) = circles()
    assert EPISODE in circle
    others = circle - {EPISODE}
    assert all(name.startswith(("thread_kit.views.", "thread_kit.trace.")) for name in others)


def test_of_the_circle_nothing_runs_back_when_it_is_imported():
    code = "import sys, thread_kit.trace.episode; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("thread_kit.views")]


@pytest.mark.parametrize("name", NEVER)
def test_what_never_reaches_what(name):
    own = f"thread_kit.{name}"
    modules = [module for module in MODULES if module == own or module.startswith(own + ".")]
    assert modules
    walls = tuple(f"thread_kit.{other}" for other in NEVER[name])
    for module in modules:
        over = [
            other
            for other in reached(module, shows=False)
            if other in walls or other.startswith(tuple(wall + "." for wall in walls))
        ]
        assert not over, f"{module} reaches {sorted(over)}"


def test_every_module_is_found_by_its_name_in_the_import_graph():
    """The test reads what is there: a renamed folder must not make it pass on nothing."""
    for name in (*CORE, *NEVER):
        assert f"thread_kit.{name}" in MODULES
