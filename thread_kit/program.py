"""Programs: what a thread runs. `thread` is one (THREAD paper, Algorithm 2); a method is another.

A program is a generator function: it yields requests (`requests.py`) and is sent the replies, and
what it returns is a `Finished`. So the same session drives it, and whatever a session gives to
threads it gives to every method: budgets, trace, tree, costs, batches, rewind and fork.
"""

from __future__ import annotations

from thread_kit import exchange
from thread_kit.requests import NewThread, Steps
from thread_kit.thread import thread

UNNAMED = {"unnamed": True}
"""`metadata` of a field that came later: with its default a program is what it was before."""


def thread_program(
    new: NewThread,
    *,
    phi: exchange.Phi = exchange.phi_last_line,
    psi: exchange.Psi = exchange.psi_print,
    xi: exchange.Xi = exchange.xi_after_mark,
    abstract: exchange.Abstract | None = None,
) -> Steps:
    """THREAD as a program. abstract: None is the dialect's."""
    return thread(
        phi=phi,
        psi=exchange.unless_replaced(psi),
        xi=xi,
        abstract=abstract or exchange.exchange_of(new.dialect)["abstract"],
        dialect=new.dialect,
        tokenize=new.tokenize,
        futures=new.futures,
    )
