"""The variables of a thread (THREAD paper, section 3, 'Defining phi and psi').

The lines of a thread that are Python are executed, each once, when it is complete; all others are
prose. A child inherits the variables, and those that its printed text mentions come back to the
parent by `define`. Nothing is executed in our process: lines are only parsed, the sandbox runs
them, and the values that it sends back as text are read as literals.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import textwrap
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

from thread_kit.code_lines import bound, literal, parsed, prints
from thread_kit.sandbox.monty import Outcome, Sandbox

# What `repr` writes for plain data. Other text, such as that of a hostile `__repr__`, is not even
# parsed: without operators only brackets nest, and Python's tokenizer stops those at 200.
_PLAIN = re.compile(
    r"""(?: [\[\](){},:\ ] | b?'(?:[^'\\\n]|\\[\\'"nrtxuU])*' | b?"(?:[^"\\\n]|\\[\\'"nrtxuU])*"
          | -?\d[\d.]*(?:e[-+]?\d+)? | True | False | None | set\(\) )*+""",
    re.VERBOSE,
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>$)")  # differs from run to run, tells a reader nothing


@dataclass(frozen=True)
class Ran:
    """What running one line did; a line of prose did nothing.

    `printed` is without its last newline, None if nothing was printed. `error` reads like
    "NameError: name 'x' is not defined". `changed` has the variables that were bound or altered,
    in a form that JSON can write. `executed` is False for prose. `answer` is what psi takes of the
    line: what it printed, or the error of a print that failed, so that the parent can react to it.
    `pictures` are PNG files that the line saved, by path.
    """

    line: str
    printed: str | None = None
    error: str | None = None
    changed: dict[str, Any] = field(default_factory=dict)
    executed: bool = field(default=False, compare=False)
    pictures: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    answer: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Snapshot:
    """The variables at one moment: the sandbox's state (bytes) and each value's text by name."""

    state: bytes | None = field(default=None, repr=False)
    texts: Mapping[str, str] = field(default_factory=dict)


class Namespace(ABC):
    """The variables of one thread; safe to share between Python threads."""

    @property
    @abstractmethod
    def variables(self) -> Mapping[str, Any]:
        """Fresh copies of the variables by name, the latest bound last.

        Plain data keeps its type; anything else, such as a function, is its `repr`. Modules and
        names that start with an underscore are left out.
        """

    @abstractmethod
    def run(self, line: str) -> Ran:
        """Execute one complete line if it is `executable`; never raises for what the line does."""

    @abstractmethod
    def define(self, variables: Mapping[str, Any]) -> Ran:
        """Bind variables, as psi does; what exceeds the limits is an error of the result.

        Raises ValueError for what cannot name a variable, TypeError for what is not plain data.
        """

    @abstractmethod
    def child(self) -> Namespace:
        """The namespace of a thread that is spawned now; costs nothing."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The present state, immutable, for rewind and fork."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""


@final
class PythonNamespace(Namespace):
    """Executes Python lines in a sandbox.

    `scope` is what a child gets: "exported", a copy, of which only what psi names comes back, or
    "shared", this namespace itself, as in the papers' reference, where a child can overwrite its
    parent's variables. `variables`: plain data to start with. `blocks`: statements of several lines
    are run, too (`Dialect.code`). Raises ValueError for another scope.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        scope: Literal["exported", "shared"] = "exported",
        variables: Mapping[str, Any] | None = None,
        blocks: bool = False,
    ) -> None:
        if scope not in ("exported", "shared"):
            raise ValueError(f"scope is 'exported' or 'shared', not {scope!r}")
        self.sandbox = sandbox
        self.scope = scope
        self.blocks = blocks
        self._now = Snapshot()
        self._lock = threading.Lock()  # with scope="shared", children may run at the same time
        if variables:
            self._keep("", sandbox.execute(None, "", dict(variables)), set(variables))

    def __repr__(self) -> str:
        return f"PythonNamespace({self.variables}, scope={self.scope!r})"

    @property
    def variables(self) -> Mapping[str, Any]:
        return {name: _value(text) for name, text in self._now.texts.items()}

    def run(self, line: str) -> Ran:
        tree = parsed(line, block=self.blocks)
        if tree is None:
            return Ran(line)
        with self._lock:
            outcome = self.sandbox.execute(self._now.state, textwrap.dedent(line).strip())
            # A line that failed half-way bound only what is seen to differ.
            ran = self._keep(line, outcome, set() if outcome.error else set(bound(tree)))
        failed_print = ran.error if prints(tree) else None
        return replace(ran, executed=True, answer=failed_print or ran.printed)

    def define(self, variables: Mapping[str, Any]) -> Ran:
        for name in variables:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise ValueError(f"not the name of a variable: {name!r}")
        # What is no plain data comes as its text: a function that is the same would lose its body.
        texts = self._now.texts
        news = {n: value for n, value in variables.items() if n not in texts or texts[n] != value}
        if self.scope == "shared" or not news:
            return Ran("")
        with self._lock:
            outcome = self.sandbox.execute(self._now.state, "", news)
            return self._keep("", outcome, set(news))

    def child(self) -> PythonNamespace:
        if self.scope == "shared":
            return self
        child = PythonNamespace(self.sandbox, scope=self.scope, blocks=self.blocks)
        child.restore(self.snapshot())
        return child

    def snapshot(self) -> Snapshot:
        return self._now

    def restore(self, snapshot: Snapshot) -> None:
        with self._lock:
            self._now = snapshot

    def _keep(self, line: str, outcome: Outcome, bound: set[str]) -> Ran:
        changed: dict[str, str] = {}
        if outcome.variables is not None:
            before, after = self._now.texts, _public(outcome.variables)
            changed = {n: t for n, t in after.items() if n in bound or before.get(n) != t}
            same = {n: t for n, t in before.items() if n in after and n not in changed}
            self._now = Snapshot(outcome.state, same | changed)
        printed = outcome.printed.removesuffix("\n") if outcome.printed else None
        news = {name: _jsonable(text) for name, text in changed.items()}
        return Ran(line, printed, outcome.error, news, pictures=outcome.pictures)


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

    def run(self, line: str) -> Ran:
        match parsed(line):
            case ast.Module([ast.Expr(ast.Call(ast.Name("print"), arguments, []))]):
                literals = [a.value for a in arguments if isinstance(a, ast.Constant)]
                texts = [value for value in literals if isinstance(value, str)]
                if len(texts) == len(arguments):
                    text = " ".join(texts)
                    return Ran(line, text, executed=True, answer=text)
        return Ran(line)

    def define(self, variables: Mapping[str, Any]) -> Ran:
        return Ran("")

    def child(self) -> LiteralNamespace:
        return self

    def snapshot(self) -> Snapshot:
        return Snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        pass


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
