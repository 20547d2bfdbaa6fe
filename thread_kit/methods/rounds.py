"""Rounds of InterCode: each reply of the model is one, also where it holds no command."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from thread_kit.exchange import find_action
from thread_kit.methods.react import NO_ACTION
from thread_kit.requests import (
    ENDS,
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
    thread: NewThread, Y: Sequence
) -> Generator[Request, Any, tuple[Sequence, Status | None, Observation | None]]:
    """A reply, and what came of it: Y, the status of one that a budget cut, what was observed.

    The environment counts a reply without a command, too, of which nothing is observed.
    """
    dialect = thread.dialect
    generated: Generated = yield Generate(Y)
    Y += generated.span
    status = ENDS.get(generated.stop, Status.ENDED)
    if not status.is_end:
        return Y, status, None
    listens = generated.stop not in ENDS
    action = find_action(Y, dialect) if listens else None
    if action is not None:
        observation: Observation = yield Act(action)
        Y += thread.observed(observation.strip())
        return Y, None, observation
    yield Act("")
    mark = "" if listens else f" {dialect.listen}"
    Y += thread.instruction(mark + dialect.closed(NO_ACTION))
    return Y, None, None
