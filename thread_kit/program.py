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
    phi: exchange.Phi | None = None,
    psi: exchange.Psi | None = None,
    xi: exchange.Xi | None = None,
    abstract: exchange.Abstract | None = None,
) -> Steps:
    """THREAD as a program. phi, psi, xi, abstract: None is the dialect's."""
    own = exchange.exchange_of(new.dialect, phi=phi, psi=psi, xi=xi, abstract=abstract)
    own["psi"] = exchange.unless_replaced(own["psi"])
    return thread(
        **own,
        dialect=new.dialect,
        tokenize=new.tokenize,
        futures=new.futures,
    )
