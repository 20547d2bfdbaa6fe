"""TDAG (Wang et al. 2024, section 3): dynamic decomposition, an agent for each sub-task.

    t_1 ... t_n = decompose(T)
    for i = 1 ... n do
      t_i = update(t_i, r_1 ... r_(i-1))      # and with it those that follow
      agent = generate_agent(t_i)
      r_i = agent(t_i)

The main thread is the decomposer. It writes the sub-tasks that remain, one a line; the first is
done, its result comes back, and it writes what remains now, in the light of that; so decomposing
and updating are one. The agent's generator writes what an agent has to know for its sub-task, and
the agent, a ReAct executor, reads that before the sub-task itself. Both read the whole task and
what was done before with its results.

Not covered: the skill library, which carries what agents have learnt from one task to the next.
"""

from __future__ import annotations

import re
from functools import partial

from thread_kit.methods.common import answer, ask, ask_prose, own_text, split_question, subtask
from thread_kit.methods.react import react
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, Generate, Generated, NewThread, Status, Steps
from thread_kit.sequence import Sequence

REMAINING = re.compile(
    r"^[^\S\n]*(?:\**(?:step )?\d+[.):]\**|[-*](?!\*))[^\S\n]*(\S.*)", re.MULTILINE | re.IGNORECASE
)
"""A sub-task in a list: "1. ...", "2) ...", "Step 3: ...", "**4.** ...", "- ..."."""

NO_SUBTASK = "There is no sub-task here; list what remains, as '1. ...'."


def tdag(
    thread: NewThread,
    *,
    generator: Prompt,
    executor: Prompt,
    subtasks: int = 20,
    iterations: int = 20,
    start: tuple[str, ...] = (),
    in_on: bool = False,
    ends: bool = True,
) -> Steps:
    """Decompose step by step; the thread's own prompt is the decomposer's.

    generator, executor: the prompts of the agent generator and of all agents. subtasks: at most.
    iterations, start, in_on, ends: as in `react`, for each agent.
    """
    agent = partial(react, iterations=iterations, start=start, in_on=in_on, ends=ends)
    Y = Sequence()
    done: list[str] = []
    reminded = False
    # for i = 1 ... n do
    for _ in range(subtasks):
        # t_1 ... t_n = decompose(T); t_i = update(t_i, r_1 ... r_(i-1))
        generated: Generated = yield Generate(Y)
        Y += generated.span
        written = own_text(Sequence((generated.span,)), thread.dialect)
        remaining = REMAINING.findall(written)
        status = generated.ended
        # A list above other words tells of what was done; the reply is the end.
        is_list = bool(REMAINING.match(written.rpartition("\n")[2]))
        if status and not (status.is_end and is_list):
            words = own_text(Y, thread.dialect).rpartition("\n")[2]
            return Finished(Y, status, {}, words)
        if not remaining:
            Y = answer(thread, Y, NO_SUBTASK)
            if reminded:  # as its code ends, after one reminder
                return Finished(Y, Status.ENDED, {}, NO_SUBTASK)
            reminded = True
            continue
        reminded = False
        task = remaining[0].rstrip()
        context = _subtask(thread.context, done, task)
        # agent = generate_agent(t_i)
        Y = answer(thread, Y, task)
        Y, about, generated_by = yield from ask_prose(thread, Y, "agent", context, prompt=generator)
        # r_i = agent(t_i)
        asked = f"{about}\n{context}" if generated_by.status.is_end else context
        Y, text, child = yield from ask(thread, Y, "result", asked, program=agent, prompt=executor)
        if "won" in child.variables:  # the environment is over
            return Finished(Y, Status.ENDED, {}, text)
        done.append(f"{task}: {' '.join(text.split())}")
    return Finished(Y, Status.OUT_OF_CALLS, {})


def _subtask(context: str, done: list[str], task: str) -> str:
    """What generator and agent read: T, the sub-tasks that are done with their results, and t_i."""
    whole = split_question(context)[2]
    before = [f"Done: {one}" for one in done]
    return "\n".join([f"Whole task: {whole}", *before, subtask(context, task)])
