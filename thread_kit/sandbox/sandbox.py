"""What every sandbox is: state and code in, state and text out.

Untrusted code may have written all that comes back. So the limits on it are held here, outside the
process that they limit: text is cut and can be written as UTF-8, a name is a variable's name or is
left out, and a line that leaves too much behind is undone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from thread_kit.code_lines import is_variable_name
from thread_kit.sandbox.jail.limits import describe_excess, shorten_error
from thread_kit.trace.printable import mend_surrogates


@dataclass(frozen=True)
class SandboxResult:
    """What running some code did.

    `state` is the state to go on with. `variables` has the `repr` of each value by name, or is None
    if the code was undone (`state` is then the state from before). `error` reads like
    "NameError: name 'x' is not defined". `pictures` are PNG files that the code saved, by path.
    """

    state: bytes | None = field(repr=False)
    printed: str
    error: str | None
    variables: dict[str, str] | None
    pictures: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class Sandbox(ABC):
    """Runs untrusted code in another process; safe to share between threads.

    print_characters: where printed text is cut. variables_characters (names and texts together),
    state_bytes: what a namespace may grow to.
    """

    print_characters: int
    variables_characters: int
    state_bytes: int

    @abstractmethod
    def execute(
        self, state: bytes | None, code: str, inputs: Mapping[str, Any] | None = None
    ) -> SandboxResult:
        """Run code in the namespace of `state` (None: an empty one), after binding `inputs`.

        Whatever the code does becomes part of the result. Raises TypeError if an input is not
        plain data, ValueError if `state` was not written by this kind of sandbox, RuntimeError
        after `close` or if no worker starts, KeyboardInterrupt if a signal ended the worker.
        """

    @abstractmethod
    def close(self) -> None:
        """End all worker processes; closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check(self, before: bytes | None, result: SandboxResult, *, cut: int = 0) -> SandboxResult:
        """The result as it may be kept; `cut` characters of what was printed are gone already."""
        cut += max(0, len(result.printed) - self.print_characters)
        printed = mend_surrogates(result.printed[: self.print_characters])
        if cut:
            printed += f"... [{cut:,} more characters were printed and cut]"
        error = None if result.error is None else shorten_error(mend_surrogates(result.error))
        if result.variables is None:
            return SandboxResult(before, printed, error, None)
        variables = {
            name: mend_surrogates(text)
            for name, text in result.variables.items()
            if is_variable_name(name)
        }
        excess = describe_excess(
            result.variables,
            result.state or b"",
            variables_characters=self.variables_characters,
            state_bytes=self.state_bytes,
        )
        if excess:
            return SandboxResult(before, printed, excess, None)
        return SandboxResult(result.state, printed, error, variables, result.pictures)


def check_plain(inputs: Mapping[str, Any]) -> None:
    """Raise TypeError for inputs that are no plain data, or more deeply nested than data is."""
    values: list[tuple[int, Any]] = [(0, value) for value in inputs.values()]
    while values:
        depth, value = values.pop()
        if depth > 200:
            raise TypeError("cannot hand over a value that is nested more than 200 deep")
        if type(value) in (dict, list, tuple, set):
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            values += [(depth + 1, part) for part in parts]
        elif value is not None and type(value) not in (str, bytes, bool, int, float):
            raise TypeError(f"cannot hand over {type(value).__name__}: it is no plain data")
