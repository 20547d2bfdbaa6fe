"""The variables of a thread (THREAD paper, section 3, 'Defining phi and psi').

The lines of a thread that are Python are executed, each once, when it is complete; all others are
prose. A child inherits the variables, and those that its printed text mentions come back to the
parent by `define`. Nothing is executed in our process: lines are only parsed, the sandbox runs
them, and the values that it sends back as text are read as literals.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

from thread_kit.code_lines import bound, is_variable_name, literal, parsed, prints
from thread_kit.sandbox.sandbox import Sandbox, SandboxResult

# What `repr` writes for plain data. Other text, such as that of a hostile `__repr__`, is not even
# parsed: without operators only brackets nest, and Python's tokenizer stops those at 200. Halves of
# surrogates stay as they are written: no file, no model and no other sandbox could take them.
_ESCAPE = r"""\\(?:[\\'"nrtx]|u(?![dD][89a-fA-F])|U(?!0000[dD][89a-fA-F]))"""
_PLAIN = re.compile(
    rf"""(?: [\[\](){{}},:\ ] | b?'(?:[^'\\\n]|{_ESCAPE})*' | b?"(?:[^"\\\n]|{_ESCAPE})*"
          | -?\d[\d.]*(?:e[-+]?\d+)? | True | False | None | set\(\) )*+""",
    re.VERBOSE,
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>$)")  # differs from run to run, tells a reader nothing


@dataclass(frozen=True)
class LineResult:
    """What running one line did; a line of prose did nothing.

    `printed` is without its last newline, None if nothing was printed. `error` reads like
    "NameError: name 'x' is not defined". `changed` has the variables that were bound or altered,
    in a form that JSON can write; `gone` are those that are none any more. `executed` is False for
    prose. `answer` is what psi takes of the line: what it printed, or the error of a print that
    failed, so that the parent can react to it. `pictures` are PNG files that the line saved, by
    path.
    """

    line: str
    printed: str | None = None
    error: str | None = None
    changed: dict[str, Any] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    executed: bool = field(default=False, compare=False)
    pictures: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    answer: str | None = field(default=None, compare=False)


class Namespace(ABC):
    """The variables of one thread; safe to share between Python threads."""

    @property
    def at_first(self) -> dict[str, Any]:
        """Those that the main thread was given, in a form that JSON can write."""
        return {}

    @property
    def state(self) -> bytes:
        """What it keeps, as its sandbox writes it; a child has its parent's until it binds."""
        return b""

    @property
    @abstractmethod
    def variables(self) -> Mapping[str, Any]:
        """The variables by name, the latest bound last; a fresh copy of each that is asked for.

        Plain data keeps its type; anything else, such as a function, is its `repr`. Modules and
        names that start with an underscore are left out.
        """

    @abstractmethod
    def run(self, line: str, *, refusal: str = "") -> LineResult:
        """Execute one complete line if it is `executable`; never raises for what the line does.

        refusal: the error that a line of code gets instead of being executed; "": none.
        """

    @abstractmethod
    def define(self, variables: Mapping[str, Any]) -> LineResult:
        """Bind variables, as psi does; what exceeds the limits is an error of the result.

        Whatever a sandbox let through as variables can be defined in another. Raises ValueError for
        what cannot name a variable (`is_variable_name`), TypeError for what is not plain data.
        """

    @abstractmethod
    def edit(self, variables: Mapping[str, Any]) -> LineResult:
        """Bind variables that a person sets, whatever the scope; raises as `define`."""

    @abstractmethod
    def child(self) -> Namespace:
        """The namespace of a thread that is spawned now; costs nothing."""


class _Values(Mapping[str, Any]):
    """Values by name, each made of its text when it is asked for: they may be of megabytes."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> Any:
        return _value(self._texts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __repr__(self) -> str:
        return repr(dict(self))


@final
class PythonNamespace(Namespace):
    """Executes Python lines in a sandbox.

    `scope` is what a child gets: "exported", a copy, of which only what psi names comes back, or
    "shared", this namespace itself, where a child can overwrite its parent's variables; or "own",
    one like this was at first, of which nothing comes back. `variables`: plain data to start with.
    `blocks`: statements of several lines are run, too (`Dialect.code`). Raises ValueError for
    another scope.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        scope: Literal["exported", "shared", "own"] = "exported",
        variables: Mapping[str, Any] | None = None,
        blocks: bool = False,
    ) -> None:
        if scope not in ("exported", "shared", "own"):
            raise ValueError(f"scope is 'exported', 'shared', 'own' or 'none', not {scope!r}")
        self.sandbox = sandbox
        self.scope = scope
        self.blocks = blocks
        # The sandbox's state, and each value's text by name; always replaced together.
        self._now: tuple[bytes | None, Mapping[str, str]] = None, {}
        self._lock = threading.Lock()  # with scope="shared", children may run at the same time
        self.edit(variables or {})
        self._start = self._now

    def __repr__(self) -> str:
        return f"PythonNamespace({self.variables}, scope={self.scope!r})"

    @property
    def at_first(self) -> dict[str, Any]:
        return {name: _jsonable(text) for name, text in self._start[1].items()}

    @property
    def state(self) -> bytes:
        return self._now[0] or b""

    @property
    def variables(self) -> Mapping[str, Any]:
        return _Values(self._now[1])

    def run(self, line: str, *, refusal: str = "") -> LineResult:
        tree = parsed(line, block=self.blocks)
        if tree is None:
            return LineResult(line)
        if refusal:
            answer = refusal if prints(tree) else None
            return LineResult(line, error=refusal, executed=True, answer=answer)
        with self._lock:
            result = self.sandbox.execute(self._now[0], textwrap.dedent(line).strip())
            # A line that failed half-way bound only what is seen to differ.
            ran = self._keep(line, result, set() if result.error else set(bound(tree)))
        failed_print = ran.error if prints(tree) else None
        return replace(ran, executed=True, answer=failed_print or ran.printed)

    def define(self, variables: Mapping[str, Any]) -> LineResult:
        return self.edit(variables) if self.scope == "exported" else LineResult("")

    def edit(self, variables: Mapping[str, Any]) -> LineResult:
        for name in variables:
            if not is_variable_name(name):
                raise ValueError(f"not the name of a variable: {name!r}")
        with self._lock:
            # What is no plain data comes as its text: a function that is the same would lose its
            # body. (The text of plain data is a value of its own: "5" is not 5.)
            state, texts = self._now
            new = {
                n: v
                for n, v in variables.items()
                if n not in texts or texts[n] != v or _value(texts[n]) != v
            }
            if not new:
                return LineResult("")
            return self._keep("", self.sandbox.execute(state, "", new), set(new))

    def child(self) -> PythonNamespace:
        if self.scope == "shared":
            return self
        child = PythonNamespace(self.sandbox, scope=self.scope, blocks=self.blocks)
        child._start = self._start
        child._now = self._start if self.scope == "own" else self._now
        return child

    def _keep(self, line: str, result: SandboxResult, bound: set[str]) -> LineResult:
        changed: dict[str, str] = {}
        gone: tuple[str, ...] = ()
        if result.variables is not None:
            before, after = self._now[1], _public(result.variables)
            changed = {n: t for n, t in after.items() if n in bound or before.get(n) != t}
            same = {n: t for n, t in before.items() if n in after and n not in changed}
            gone = tuple(name for name in before if name not in after)
            self._now = result.state, same | changed
        printed = result.printed.removesuffix("\n") if result.printed else None
        new = {name: _jsonable(text) for name, text in changed.items()}
        return LineResult(line, printed, result.error, new, gone, pictures=result.pictures)


@final
class LiteralNamespace(Namespace):
    """Executes and keeps nothing: the ablation 'without variables' (THREAD paper, E.2).

    Only `print` of string literals is obeyed, so that psi has something to return.
    """

    def __repr__(self) -> str:
        return "LiteralNamespace()"

    @property
    def variables(self) -> Mapping[str, Any]:
        return {}

    def run(self, line: str, *, refusal: str = "") -> LineResult:
        # Nothing is refused: what is printed stands in the line itself.
        match parsed(line):
            case ast.Module([ast.Expr(ast.Call(ast.Name("print"), arguments, []))]):
                literals = [a.value for a in arguments if isinstance(a, ast.Constant)]
                texts = [value for value in literals if isinstance(value, str)]
                if len(texts) == len(arguments):
                    text = " ".join(texts)
                    return LineResult(line, text, executed=True, answer=text)
        return LineResult(line)

    def define(self, variables: Mapping[str, Any]) -> LineResult:
        return LineResult("")

    def edit(self, variables: Mapping[str, Any]) -> LineResult:
        return LineResult("")

    def child(self) -> LiteralNamespace:
        return self


def _public(texts: Mapping[str, str]) -> dict[str, str]:
    return {
        name: _ADDRESS.sub("", text)
        for name, text in texts.items()
        if not name.startswith("_") and not text.startswith("<module ")
    }


def _value(text: str) -> Any:
    if text in ("inf", "-inf", "nan"):  # as `repr` writes these floats, which are not literals
        return float(text)
    try:
        return literal(text) if _PLAIN.fullmatch(text) else text
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return text


def _jsonable(text: str) -> Any:
    value = _value(text)
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return text
    return value
