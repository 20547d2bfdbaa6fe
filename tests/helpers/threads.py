"""A thread of Algorithm 2 by itself, and hand-made replies to it."""

import pytest

from thread_kit.dialect import AGENT, Dialect, Stop
from thread_kit.exchange import abstract_values, phi_last_line, psi_print, xi_after_mark
from thread_kit.requests import Executed, Finished, Generate, Generated, Status
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.thread import thread


def tokenize(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def start(dialect: Dialect = AGENT, **exchange):
    """A thread that waits at its first request."""
    parts = {"phi": phi_last_line, "psi": psi_print, "xi": xi_after_mark} | exchange
    parts.setdefault("abstract", abstract_values)
    one = thread(dialect=dialect, tokenize=tokenize, **parts)
    assert next(one) == Generate(Sequence())
    return one


def generated(text: str, stop: Stop = Stop.LISTEN) -> Generated:
    return Generated(Span(Provenance.GENERATED, text, tokenize(text)), stop)


def child(printed: str | None = None, status: Status = Status.ENDED, **variables) -> Finished:
    return Finished(Sequence(), status, variables, printed)


def finish(one, reply) -> Finished:
    """Send a reply that ends the thread; what it returns."""
    with pytest.raises(StopIteration) as over:
        one.send(reply)
    return over.value.value


def nothing(**variables) -> Executed:
    return Executed(variables, None)
