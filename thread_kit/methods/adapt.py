"""ADaPT (Prasad et al. 2023, section 3, Algorithm 1): decompose only what the executor fails at.

    function ADAPT(T, k)
      if k > d_max then return False
      completed = executor(T)
      if completed is False then
        P, logic = planner(T)
        O = {ADAPT(T_sub, k + 1) | T_sub in P}
        completed = logic(O)
      return completed

A thread is one call of ADAPT: its own text is the executor's, its children are the planner and the
sub-tasks. Success is what the executor says of itself, never the environment's reward (section
3.1).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

from thread_kit.methods.common import ask, completed, last_step, subtask, verdict, write_reply
from thread_kit.methods.plans import combine, parse_plan
from thread_kit.methods.react import react
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, NewThread, Request, Status, Steps


def adapt(
    thread: NewThread,
    *,
    planner: Prompt,
    max_depth: int = 4,
    iterations: int = 20,
    start: tuple[str, ...] = (),
    carry: bool = False,
    known: str = "",
    k: int = 1,
) -> Steps:
    """ADAPT(T, k), where T is the thread's context and its prompt is the executor's.

    planner: the planner's prompt. max_depth: d_max; the paper's is 4 on TextCraft, 3 elsewhere.
    iterations, start: as in `react`, for each executor.
    carry: the last action of a sub-task that succeeded is the first thing that the next executors
        read (appendix A, ALFWorld); known: that action, from above.
    k: the level of this thread.
    """
    # completed = executor(T)
    executed = yield from react(thread, iterations=iterations, start=start, known=known)
    success = executed.status.is_end and completed(executed.printed or "")
    Y = executed.sequence
    # if k > d_max then return False: each sub-task would, so none has to be planned.
    if success or k >= max_depth:
        known = last_step(Y) if success and carry else known
        return replace(executed, variables={"known": known}, printed=verdict(success))

    # P, logic = planner(T)
    Y, text, _ = yield from ask(
        thread, Y, "plan", thread.context, program=write_reply, prompt=planner
    )
    plan = parse_plan(text)
    if plan is None:
        return Finished(Y, Status.ENDED, {"known": known}, verdict(False))

    child = partial(adapt, planner=planner, max_depth=max_depth, carry=carry, k=k + 1)

    def attempt(step: int) -> Generator[Request, Any, bool]:
        nonlocal Y, known
        task = plan.steps[step]
        context = subtask(thread.context, task)
        program = partial(child, iterations=iterations, start=start, known=known)
        Y, text, finished = yield from ask(thread, Y, task, context, program=program)
        if completed(text):
            known = finished.variables.get("known", known)
        return completed(text)

    # O = {ADAPT(T_sub, k + 1) | T_sub in P}; completed = logic(O)
    success = yield from combine(plan.logic, attempt)
    return Finished(Y, Status.ENDED, {"known": known}, verdict(success))
