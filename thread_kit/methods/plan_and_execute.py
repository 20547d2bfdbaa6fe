"""Plan-and-Execute, a baseline of the ADaPT paper (section 4.2): one plan, which never changes.

    P, logic = planner(T)
    O = {executor(T_sub) | T_sub in P}
    return logic(O)

The main thread is the planner. Its plans are more detailed than ADaPT's, so that every step can be
executed as it is (appendix B).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

from thread_kit.methods.common import START, ask, completed, is_cut, subtask, verdict, write_prose
from thread_kit.methods.plans import combine, parse_plan
from thread_kit.methods.react import react
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, NewThread, Request, Restore, Status, Steps


def plan_and_execute(
    thread: NewThread,
    *,
    executor: Prompt,
    iterations: int = 20,
    start: tuple[str, ...] = (),
    carry: bool = False,
    in_on: bool = False,
    ends: bool = True,
    placeholders: Mapping[str, str] | None = None,
) -> Steps:
    """Plan with the thread's own prompt, then give each step to an executor.

    executor: its prompt. iterations, start, in_on, ends: as in `react`, for each step. carry,
    placeholders: as in `adapt`, so that the executors of both know the same.
    """
    progress = START
    # P, logic = planner(T)
    written: Finished = yield from write_prose(thread)
    Y = written.sequence
    plan = parse_plan(written.printed or "", is_cut=is_cut(written, thread.dialect))
    if plan is None:
        return Finished(Y, written.status, {}, verdict(False))

    def attempt(step: int) -> Generator[Request, Any, bool]:
        nonlocal Y, progress
        if progress.won is not None:
            return progress.won
        if carry:
            yield Restore(progress.actions)
        task = progress.fill_in(plan.steps[step])
        context = subtask(thread.context, task)
        known = progress.known if carry else ""
        program = partial(
            react, iterations=iterations, start=start, known=known, in_on=in_on, ends=ends
        )
        Y, text, child = yield from ask(thread, Y, task, context, program=program, prompt=executor)
        progress = progress.after(child, completed(text), thread.dialect, placeholders=placeholders)
        return completed(text)

    # O = {executor(T_sub) | T_sub in P}; return logic(O)
    success = yield from combine(plan.logic, attempt)
    return Finished(Y, Status.ENDED, {}, verdict(success))
