"""Programs: what a thread runs. `thread` is one (THREAD paper, Algorithm 2); a method is another.

A program is a generator function: it yields requests (`thread.py`) and is sent the replies, and
what it returns is a `Finished`. So the same session drives it, and whatever a session gives to
threads it gives to every method: budgets, trace, tree, costs, batches, rewind and fork.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

from thread_kit import exchange
from thread_kit.dialect import Dialect
from thread_kit.prompts import Prompt
from thread_kit.sequence import Provenance, Span
from thread_kit.thread import Finished, Request, thread

Steps = Generator[Request, Any, Finished]


@dataclass(frozen=True, slots=True)
class Given:
    """What a thread has at its start.

    context: c, as it was asked for. tokenize: spells what the program itself writes. futures: the
    names of those that the thread inherits (`thread.py`).
    """

    context: str
    dialect: Dialect
    tokenize: Callable[[str], tuple[int, ...]]
    futures: tuple[str, ...] = ()

    def instruction(self, text: str) -> Span:
        """A text of the program's own, as it stands."""
        return Span(Provenance.INSTRUCTION, text, self.tokenize(text))

    def observed(self, text: str) -> Span:
        """An observation, behind an action that listens."""
        text = exchange.as_comment(text, {}) if self.dialect.code else text
        return self._closed(Provenance.OBSERVED, text)

    def returned(self, text: str) -> Span:
        """What a child gave, behind a line that listens."""
        return self._closed(Provenance.RETURNED, text)

    def _closed(self, provenance: Provenance, text: str) -> Span:
        text = self.dialect.closed(text)
        return Span(provenance, text, self.tokenize(text))


Program = Callable[[Given], Steps]


def threads(
    given: Given,
    *,
    phi: exchange.Phi = exchange.phi_last_line,
    psi: exchange.Psi = exchange.psi_print,
    xi: exchange.Xi = exchange.xi_after_mark,
    abstract: exchange.Abstract = exchange.abstract_values,
) -> Steps:
    """THREAD as a program."""
    return thread(
        phi=phi,
        psi=exchange.unless_replaced(psi),
        xi=xi,
        abstract=abstract,
        dialect=given.dialect,
        tokenize=given.tokenize,
        futures=given.futures,
    )


def described(program: Any) -> Any:
    """A program, and what it was made with, as JSON can write it: for the header of a trace."""
    match program:
        case partial():
            parts = {name: described(part) for name, part in program.keywords.items()}
            return {"name": program.func.__name__, **parts}
        case Prompt():
            return program.name
        case None | bool() | int() | float() | str():
            return program
        case Mapping():
            return {str(name): described(part) for name, part in program.items()}
        case list() | tuple():
            return [described(part) for part in program]
    if is_dataclass(program) and not isinstance(program, type):
        parts = {one.name: described(getattr(program, one.name)) for one in fields(program)}
        return {"name": type(program).__name__, **parts}
    return getattr(program, "__name__", None) or repr(program)


__all__ = ["Given", "Program", "Steps", "described", "threads"]
