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
3.1). Where the environment itself is over, everything is, and no planner is asked any more: an
executor that the environment calls the winner has succeeded; where it says nothing of success
(WebShop, InterCode), the executor is asked once more what it finds of itself.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from thread_kit.methods.common import (
    START,
    Handover,
    ask,
    ask_prose,
    completed,
    is_cut,
    subtask,
    verdict,
    with_break,
)
from thread_kit.methods.plans import combine, parse_plan
from thread_kit.methods.react import react
from thread_kit.prompts import Prompt
from thread_kit.requests import Act, Finished, NewThread, Request, Restore, Status, Steps


def adapt(
    thread: NewThread,
    *,
    planner: Prompt,
    max_depth: int = 4,
    iterations: int = 20,
    start: tuple[str, ...] = (),
    look: str = "",
    carry: bool = False,
    in_on: bool = False,
    ends: bool = True,
    placeholders: Mapping[str, str] | None = None,
    progress: Handover = START,
    task: str = "",
    k: int = 1,
) -> Steps:
    """ADAPT(T, k), where T is the thread's context and its prompt is the executor's.

    planner: the planner's prompt. max_depth: d_max; the paper's is 4 on TextCraft, 3 elsewhere.
    iterations, start, in_on, ends: as in `react`, for each executor.
    look: an action that shows the planner where the last success has left the environment, with
        the sub-tasks that executors have failed at (appendix A and G, WebShop: the current page,
        and "information from previous run").
    carry: each executor begins where the last one that succeeded has left the environment, and the
        last action of that one is the first thing that it reads (appendix A, ALFWorld); what failed
        is undone, as in the released code.
    placeholders: as in `Benchmark`; what an earlier executor has found, a step is told (appendix A,
        WebShop: the product's id).
    progress: of the executors before, from above.
    task, k: the sub-task and the level of this thread.
    """
    # completed = executor(T)
    if carry:
        yield Restore(progress.actions)
    known = progress.known if carry else ""
    executed = yield from react(
        thread, iterations=iterations, start=start, known=known, in_on=in_on, ends=ends
    )
    success = executed.status.is_end and completed(executed.printed or "")
    progress = progress.after(executed, success, thread.dialect, task, placeholders)
    Y = executed.sequence
    # if k > d_max then return False: each sub-task would, so none has to be planned.
    if success or progress.won is not None or k >= max_depth:
        return replace(executed, variables={"progress": progress}, printed=verdict(success))

    # P, logic = planner(T)
    context = thread.context
    if look:
        if carry:
            yield Restore(progress.actions)
        line = f"{thread.dialect.write_action(look)} {thread.dialect.listen}"
        Y += thread.instruction(with_break(Y, line))
        seen = (yield Act(look)).strip()
        Y += thread.observed(seen)
        context = f"{seen}\nFailed so far: {', '.join(progress.failed) or 'nothing'}\n{context}"
    Y, text, child = yield from ask_prose(thread, Y, "plan", context, prompt=planner)
    plan = parse_plan(text, is_cut=is_cut(child, thread.dialect))
    if plan is None:
        return Finished(Y, Status.ENDED, {"progress": progress}, verdict(False))

    deeper = partial(
        adapt,
        planner=planner,
        max_depth=max_depth,
        look=look,
        carry=carry,
        k=k + 1,
        iterations=iterations,
        start=start,
        in_on=in_on,
        ends=ends,
        placeholders=placeholders,
    )

    def attempt(step: int) -> Generator[Request, Any, bool]:
        nonlocal Y, progress
        if progress.won is not None:
            return progress.won
        part = progress.fill_in(plan.steps[step])
        context = subtask(thread.context, part)
        program = partial(deeper, progress=progress, task=part)
        Y, text, finished = yield from ask(thread, Y, part, context, program=program)
        progress = finished.variables.get("progress", progress)  # none of one that was cut
        return completed(text)

    # O = {ADAPT(T_sub, k + 1) | T_sub in P}; completed = logic(O)
    success = yield from combine(plan.logic, attempt)
    return Finished(Y, Status.ENDED, {"progress": progress}, verdict(success))
