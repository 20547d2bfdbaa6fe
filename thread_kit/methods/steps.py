"""Steps by children: one thought or action behind those before it (RAP, AutoGuide).

A thread that wants another context for each step lets a child take it. The child is given all steps
before as it would have them had it taken them itself, and ends behind its own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.methods.common import (
    ON_A_THOUGHT,
    act,
    answer,
    as_instruction,
    ask,
    completed,
    count_lines,
    find_asked,
    is_thought,
    own_text,
    reopen,
    say_no_action,
    until_verdict,
    verdict,
    without_end,
)
from thread_kit.requests import (
    Finished,
    Generate,
    Generated,
    NewThread,
    Request,
    Status,
    Steps,
)
from thread_kit.sequence import Sequence


def ask_step(
    thread: NewThread,
    Y: Sequence,
    context: str,
    begun: Sequence,
    *,
    judges: bool = True,
    keeps_stop: bool = True,
) -> Generator[Request, Any, tuple[Sequence, Finished, Finished | None]]:
    """One more step: Y, the child that took it, and how the thread ends where it was the last one.

    begun: all steps before. judges, keeps_stop: as in `take_step`.
    """
    program = partial(take_step, begun=begun, judges=judges, keeps_stop=keeps_stop)
    Y, _, child = yield from ask(thread, Y, "step", context, program=program)
    end = None
    if not child.status.is_end:
        end = Finished(Y, child.status, {})
    elif child.variables.get("over", True):
        end = Finished(Y, Status.ENDED, {}, child.printed)
    return Y, child, end


def take_step(
    thread: NewThread, *, begun: Sequence, judges: bool = True, keeps_stop: bool = True
) -> Steps:
    """One thought or action behind what there is already.

    judges: as in `react`. keeps_stop: whether a full stop at its end is part of an action.

    The variables of what it returns: `thought`, also one above the action; `seen` of an action;
    `lines`, as `count_lines` counts; `over`: whether the environment, or the model, is done.
    """
    dialect = thread.dialect
    Y = as_instruction(begun)
    generated: Generated = yield Generate(Y)
    Y += generated.span
    written = dialect.bare(generated.span.text.removesuffix(dialect.end))
    judged = until_verdict(written) if judges else ""
    status = generated.ended
    action = find_asked(Y, dialect)
    if judged or (status and (not status.is_end or (judges and action is None))):
        words = judged or own_text(Sequence((generated.span,)), dialect)
        status = Status.ENDED if judged or not status else status
        return Finished(Y, status, {"over": True}, verdict(completed(words)))
    facts: dict[str, Any] = {"over": False, "lines": count_lines(written, dialect)}
    line = action or _unmarked(without_end(Y, dialect).last_line, dialect)
    if is_any_thought(line):
        Y = answer(thread, Y, ON_A_THOUGHT)
        return Finished(Y, Status.ENDED, {**facts, "thought": line}, line)
    if action is not None and not keeps_stop:
        action = action.removesuffix(".")
    if action is None:
        told = say_no_action(dialect)
        Y = Y + reopen(thread) if status else answer(thread, Y, told)
        return Finished(Y, Status.ENDED, facts, told)
    Y, observation = yield from act(thread, Y, action)
    if observation.is_over:
        # What only ends (WebShop, InterCode) does not say whether the task is solved.
        words = verdict(observation.won is not False)
        return Finished(Y, Status.ENDED, {"over": True}, words)
    lines = (_unmarked(line, dialect) for line in written.split("\n"))
    thoughts = [line for line in lines if is_thought(line)]
    facts |= {"thought": thoughts[-1]} if thoughts else {}
    return Finished(Y, Status.ENDED, {**facts, "seen": observation.strip()}, action)


def is_any_thought(line: str) -> bool:
    """Whether a step is a thought; so is WebShop's `think[...]`, to which the shop says "OK."."""
    return is_thought(line) or line.startswith("think[")


def _unmarked(line: str, dialect: Dialect) -> str:
    """A line without the marks at its head and at its end."""
    line = dialect.bare(line).strip()
    mark = next((mark for mark in dialect.actions if line.startswith(mark)), "")
    return line.removeprefix(mark).strip()


def write_steps(dialect: Dialect, steps: Iterable[tuple[str, str]]) -> str:
    """Steps, each with what was observed, as they stand in a sequence."""
    return "".join(f"{action} {dialect.listen}{dialect.observed(seen)}" for action, seen in steps)
