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

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

from thread_kit.methods.common import (
    START,
    Handover,
    ask,
    completed,
    subtask,
    until_verdict,
    verdict,
    with_break,
    write_reply,
)
from thread_kit.methods.plans import combine, parse_plan
from thread_kit.methods.react import react
from thread_kit.prompts import Prompt
from thread_kit.requests import Act, Finished, NewThread, Request, Restore, Status, Steps
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode


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
    progress: Handover = START,
    task: str = "",
    k: int = 1,
) -> Steps:
    """ADAPT(T, k), where T is the thread's context and its prompt is the executor's.

    planner: the planner's prompt. max_depth: d_max; the paper's is 4 on TextCraft, 3 elsewhere.
    iterations, start, in_on: as in `react`, for each executor.
    look: an action that shows the planner where the last success has left the environment, with
        the sub-tasks that executors have failed at (appendix A and G, WebShop: the current page,
        and "information from previous run").
    carry: each executor begins where the last one that succeeded has left the environment, and the
        last action of that one is the first thing that it reads (appendix A, ALFWorld); what failed
        is undone, as in the released code. progress: of those before, from above.
    task, k: the sub-task and the level of this thread.
    """
    # completed = executor(T)
    if carry:
        yield Restore(progress.actions)
    known = progress.known if carry else ""
    executed = yield from react(
        thread, iterations=iterations, start=start, known=known, in_on=in_on
    )
    success = executed.status.is_end and completed(executed.printed or "")
    progress = progress.after(executed, success, thread.dialect, task)
    Y = executed.sequence
    # if k > d_max then return False: each sub-task would, so none has to be planned.
    if success or progress.won is not None or k >= max_depth:
        return replace(executed, variables={"progress": progress}, printed=verdict(success))

    # P, logic = planner(T)
    context = thread.context
    if look:
        if carry:
            yield Restore(progress.actions)
        Y += thread.instruction(with_break(Y, f"> {look} {thread.dialect.listen}"))
        seen = (yield Act(look)).strip()
        Y += thread.observed(seen)
        context = f"{seen}\nFailed so far: {', '.join(progress.failed) or 'nothing'}\n{context}"
    Y, text, child = yield from ask(thread, Y, "plan", context, program=write_reply, prompt=planner)
    plan = parse_plan(text, is_cut=child.sequence.text.endswith(thread.dialect.listen))
    if plan is None:
        return Finished(Y, Status.ENDED, {"progress": progress}, verdict(False))

    deeper = partial(adapt, planner=planner, max_depth=max_depth, look=look, carry=carry, k=k + 1)
    deeper = partial(deeper, iterations=iterations, start=start, in_on=in_on)

    def attempt(step: int) -> Generator[Request, Any, bool]:
        nonlocal Y, progress
        if progress.won is not None:
            return progress.won
        part = plan.steps[step]
        context = subtask(thread.context, part)
        program = partial(deeper, progress=progress, task=part)
        Y, text, finished = yield from ask(thread, Y, part, context, program=program)
        progress = finished.variables.get("progress", progress)  # none of one that was cut
        return completed(text)

    # O = {ADAPT(T_sub, k + 1) | T_sub in P}; completed = logic(O)
    success = yield from combine(plan.logic, attempt)
    return Finished(Y, Status.ENDED, {"progress": progress}, verdict(success))


# What a trace tells of these methods


def k_max(episode: Episode) -> int | None:
    """The deepest level of ADAPT that an episode has used (section 6.3, Table 3); 1 of ReAct.

    None for other methods.
    """
    program = episode.header.get("program")
    facts = program if isinstance(program, dict) else {"name": program}
    if facts.get("name") not in ("adapt", "react"):
        return None
    prompts = episode.header.get("prompts", {})
    planners = {sha for sha, prompt in prompts.items() if prompt["name"] == facts.get("planner")}
    own = (thread for thread in episode.threads.values() if thread.prompt not in planners)
    return 1 + max((thread.depth for thread in own), default=0)


JUDGING = ("react", "adapt", "plan_and_execute", "try_again")
"""The programs whose executors judge themselves; of Reflexion it is its actor's."""


def claims_success(episode: Episode) -> bool | None:
    """What a method with executors finds of its own success (section 3.1, appendix F).

    The last verdict in the main thread: AND and OR stop at the step that decides them. Where the
    environment has announced that it is won, nobody asks, and the thread ends with what it said.
    The reward is not looked at otherwise. None for methods without executors, and for executors
    that judge nothing (`judges` of `react`).
    """
    program = episode.header.get("program")
    while isinstance(program, dict):
        if program.get("judges") is False:
            return None
        program = program.get("actor") or program.get("name")
    if program not in JUDGING or episode.dialect.code:
        return None
    spans = episode.threads[0].sequence.spans if episode.threads else ()
    text = spans[-1].text.removesuffix(episode.dialect.end) if spans else ""
    if spans and spans[-1].provenance is Provenance.OBSERVED:
        return episode.threads[0].status.is_end and episode.reward == 1
    return completed(until_verdict(text) or text)
