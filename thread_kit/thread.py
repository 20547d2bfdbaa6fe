"""Algorithms 1 and 2 of the THREAD paper, as a generator on one page.

    function THREAD(c, Y)
      while True do
        Y = Y + G(q + c + Y)
        if Y performs an action then       Y = Y + E(xi(Y))
        else if Y spawns a child then      Y = Y + psi(THREAD(phi(Y), []))
        else if Y ends the thread then     return Y

`thread` holds no model, no environment, no child and no clock: it yields what it wants (a request)
and is sent what came of it (a reply). Whoever drives it decides how: one after the other, many at
once, from a recording, or by a person. The same replies always lead to the same requests, which is
what makes replay, rewind and fork possible.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from thread_kit.dialect import Dialect, Stop
from thread_kit.exchange import Abstract, Phi, Psi, Xi, mentioned
from thread_kit.sequence import Provenance, Sequence, Span


class Status(StrEnum):
    """What a thread is doing, or how it ended; never guessed from its text afterwards."""

    GENERATING = "generating"
    LISTENING = "listening"
    ACTING = "acting"
    ENDED = "ended"
    END_OF_STREAM = "end of stream"
    TRUNCATED = "truncated"
    OUT_OF_CONTEXT = "out of context"
    OUT_OF_CALLS = "out of calls"
    OUT_OF_TOKENS = "out of tokens"
    OUT_OF_TIME = "out of time"
    OUT_OF_DEPTH = "out of depth"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_live(self) -> bool:
        return self in (Status.GENERATING, Status.LISTENING, Status.ACTING)

    @property
    def is_end(self) -> bool:
        """The thread ended by itself, so that its last print is its answer."""
        return self in (Status.ENDED, Status.END_OF_STREAM)


@dataclass(frozen=True, slots=True)
class Generate:
    """Request: Y + G(q + c + Y). The reply is a `Generated`."""

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Generated:
    """Reply: the new span, and why the model stopped."""

    span: Span
    stop: Stop


@dataclass(frozen=True, slots=True)
class Execute:
    """Request: run these lines of the thread's own text, each once. The reply is an `Executed`."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Executed:
    """Reply: the thread's variables now, and what the last print among the lines printed."""

    variables: Mapping[str, Any]
    printed: str | None


@dataclass(frozen=True, slots=True)
class Act:
    """Request: E(a). The reply is the observation, a text."""

    action: str


@dataclass(frozen=True, slots=True)
class Spawn:
    """Request: THREAD(phi(Y), []). The reply is the child's `Finished`."""

    context: str


@dataclass(frozen=True, slots=True)
class Define:
    """Request: variables that came up with what a child returned become this thread's own."""

    variables: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finished:
    """A thread that is over: all that psi may look at."""

    sequence: Sequence
    status: Status
    variables: Mapping[str, Any]
    printed: str | None = None


Request = Generate | Execute | Act | Spawn | Define

ENDS = {
    Stop.END: Status.ENDED,
    Stop.END_OF_STREAM: Status.END_OF_STREAM,
    Stop.LENGTH: Status.TRUNCATED,
    Stop.CONTEXT: Status.OUT_OF_CONTEXT,
    Stop.CANCELLED: Status.STOPPED,
}


def thread(
    *,
    phi: Phi,
    psi: Psi,
    xi: Xi,
    abstract: Abstract,
    dialect: Dialect,
    tokenize: Callable[[str], tuple[int, ...]],
) -> Generator[Request, Any, Finished]:
    """One thread, from Y = [] to its end (THREAD paper, Algorithm 2; c is kept by the driver).

    A call that stops for any other reason than the listen mark ends the thread: a cut in the middle
    of a line is a truncation and never read as a spawn.
    """

    def span(provenance: Provenance, text: str) -> Span:
        return Span(provenance, text, tokenize(text))

    Y = Sequence()
    executed = 0
    printed: str | None = None
    while True:
        # Y = Y + G(q + c + Y)
        generated: Generated = yield Generate(Y)
        Y += generated.span

        # The lines that this call completed are run, each once: they define the variables.
        lines = _code(Y, generated.stop, dialect)[executed:]
        reply: Executed = yield Execute(tuple(lines))
        executed += len(lines)
        variables = reply.variables
        printed = printed if reply.printed is None else reply.printed

        if generated.stop is not Stop.LISTEN:
            return Finished(Y, ENDS[generated.stop], variables, printed)

        if Y.last_line_is_own and dialect.is_action(Y.last_line):
            # Y = Y + E(xi(Y))
            observation: str = yield Act(xi(Y, variables, dialect))
            text = abstract(observation.strip(), variables)
            Y += span(Provenance.OBSERVED, dialect.closed(text))
        else:
            # Y = Y + psi(THREAD(phi(Y), []))
            child: Finished = yield Spawn(phi(Y, variables, dialect))
            text = psi(child)
            yield Define(mentioned(text, child.variables))
            Y += span(Provenance.RETURNED, dialect.closed(text))


def _code(Y: Sequence, stop: Stop, dialect: Dialect) -> list[str]:
    """The thread's own complete lines, without the end mark and without actions."""
    over = stop in (Stop.END, Stop.END_OF_STREAM)
    lines = [line.removesuffix(dialect.end) for line in Y.own_lines(complete=over)]
    return [line for line in lines if line.strip() and not dialect.is_action(line)]


__all__ = [
    "Act",
    "Define",
    "Execute",
    "Executed",
    "Finished",
    "Generate",
    "Generated",
    "Request",
    "Spawn",
    "Status",
    "thread",
]
