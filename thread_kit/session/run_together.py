"""Many episodes at once over one engine, in one thread of the operating system.

Each round takes one event from each session. Where a session needs the model, its engine takes a
step for all sessions that generate, so they share batches. (One operating system thread a session
would do the same, but llama.cpp then keeps a team of workers for each of them: three times slower
on two cores.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from thread_kit.trace.events import Event


class Steppable(Protocol):
    """What runs side by side: a session, or what stands for one."""

    def __next__(self) -> Event: ...

    def close(self) -> None: ...


Stepping = TypeVar("Stepping", bound=Steppable)


def run_together(sessions: Iterable[Stepping], at_once: int = 4) -> Iterator[Stepping]:
    """Run sessions to their ends, `at_once` of them side by side; yields each when it is over.

    Nothing runs before somebody asks for the next one: `for session in run_together(sessions)`.

    sessions: started in this order; may be a generator that makes each when its turn comes.
    In what order they end depends on nothing but what they do. Raises ValueError if `at_once` is
    below 1; what a session raises closes all others that are running.
    """
    if at_once < 1:
        raise ValueError(f"at_once is {at_once}; run at least one session at a time")
    waiting = iter(sessions)
    running: list[Stepping] = []
    try:
        while True:
            while len(running) < at_once and (session := next(waiting, None)):
                running.append(session)
            if not running:
                return
            for session in list(running):
                if next(session, None) is None:
                    running.remove(session)
                    yield session
    finally:
        for session in running:
            session.close()
