"""Programs: what a thread runs. `thread` is one (THREAD paper, Algorithm 2); a method is another.

A program is a generator function: it yields requests (`thread.py`) and is sent the replies, and
what it returns is a `Finished`. So the same session drives it, and whatever a session gives to
threads it gives to every method: budgets, trace, tree, costs, batches, rewind and fork.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
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
        return self._closed(Provenance.OBSERVED, text)

    def returned(self, text: str) -> Span:
        """What a child gave, behind a line that listens."""
        return self._closed(Provenance.RETURNED, text)

    def _closed(self, provenance: Provenance, text: str) -> Span:
        text = self.dialect.closed(text)
        return Span(provenance, text, self.tokenize(text))


Program = Callable[[Given], Steps]


def threads(
    *,
    phi: exchange.Phi = exchange.phi_last_line,
    psi: exchange.Psi = exchange.psi_print,
    xi: exchange.Xi = exchange.xi_after_mark,
    abstract: exchange.Abstract = exchange.abstract_values,
) -> Program:
    """THREAD as a program: all threads run `thread` with these functions."""
    psi = exchange.unless_replaced(psi)

    def program(given: Given) -> Steps:
        return thread(
            phi=phi,
            psi=psi,
            xi=xi,
            abstract=abstract,
            dialect=given.dialect,
            tokenize=given.tokenize,
            futures=given.futures,
        )

    return program


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
        case dict():
            return {str(name): described(part) for name, part in program.items()}
        case list() | tuple():
            return [described(part) for part in program]
    return getattr(program, "__name__", None) or repr(program)


__all__ = ["Given", "Program", "Steps", "described", "threads"]
