"""Rounds of InterCode: each reply of the model is one, also where it holds no command."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from thread_kit.methods.common import act, find_asked, refuse, reopen
from thread_kit.requests import (
    Act,
    Generate,
    Generated,
    NewThread,
    Observation,
    Request,
    Status,
)
from thread_kit.sequence import Sequence


def play_round(
    thread: NewThread, Y: Sequence, *, goes_on: bool = False
) -> Generator[Request, Any, tuple[Sequence, Status | None, Observation | None]]:
    """A reply, and what came of it: Y, the status of one that a budget cut, what was observed.

    The environment counts a reply without a command, too, of which nothing is observed. goes_on: an
    end mark ends nothing, and the next round begins behind the mark of a command.
    """
    generated: Generated = yield Generate(Y)
    Y += generated.span
    status = generated.ended or Status.ENDED
    if not status.is_end:
        return Y, status, None
    action = None if generated.ended else find_asked(Y, thread.dialect)
    if action is not None:
        Y, observation = yield from act(thread, Y, action)
        return Y, None, observation
    yield Act("")
    more = reopen(thread) if goes_on and generated.ended else refuse(thread, generated)
    return Y + more, None, None
