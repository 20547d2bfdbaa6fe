"""Rounds of InterCode: each reply of the model is one, also where it holds no command."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from thread_kit.methods.common import (
    act,
    answer,
    find_asked,
    reopen,
    say_no_action,
    without_fence,
)
from thread_kit.requests import (
    Act,
    Generated,
    NewThread,
    Observation,
    Request,
    Status,
)
from thread_kit.sequence import Sequence

Round = Generator[Request, Any, tuple[Sequence, Status | None, Observation | None]]


def end_round(
    thread: NewThread, Y: Sequence, generated: Generated, *, goes_on: bool = False
) -> Round:
    """What comes of a reply, the last of Y: Y, the status of one that a budget cut, what was seen.

    The environment counts a reply without a command, too, of which nothing is observed. goes_on: an
    end mark ends nothing, and the next round begins behind the mark of a command.
    """
    status = generated.ended or Status.ENDED
    if not status.is_end:
        return Y, status, None
    action = find_asked(Y, thread.dialect)
    if action is not None:
        Y, observation = yield from act(thread, Y, without_fence(action))
        return Y, None, observation
    yield Act("")
    is_open = goes_on and generated.ended
    Y = Y + reopen(thread) if is_open else answer(thread, Y, say_no_action(thread.dialect))
    return Y, None, None
