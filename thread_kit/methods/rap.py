"""RAP, Retrieval-Augmented Planning (Kagaya et al. 2024, section 3): a memory of won episodes.

    p = LLM(the plans of the tasks most like T, T)                       # reasoner: overall plan
    logs = those most like T and p
    repeat
      Y = Y + LLM(logs, T, p, Y)                                         # executor
      if it was a thought then
        key = LLM(thought): what to search for, or what to do            # reasoner: retrieval key
        logs = those most like T, p and key, around the step that is most like it   # retriever
        # where there is none, the logs stay
      else Y = Y + E(action)

A log's score is the sum of how like its task, its plan and its best step are. A key that searches
is compared with what was observed, one that acts with what was done (section 3.3). Where a
benchmark has no plans (WebShop) the key is the thought itself, or after an action what was seen.

The logs stand before the task as few-shot examples would; there are no others. An episode costs a
call for the plan, one for each step and one for the key of each thought.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from thread_kit.dialect import Dialect
from thread_kit.methods.common import ask_prose, begin
from thread_kit.methods.memory import Log, LogMemory
from thread_kit.methods.steps import ask_step, write_steps
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, NewThread, Status, Steps
from thread_kit.sequence import Sequence

LOGS = 4
SEARCH_LOGS = 8
WINDOW = 10
SEARCH_WINDOW = 5
"""Logs, and steps before and behind the one that is most like the key (released code)."""


@dataclass(frozen=True, slots=True)
class RetrievalKey:
    """What is retrieved: an action to compare with, or what is to be seen; "" for neither."""

    action: str = ""
    seen: str = ""


def rap(
    thread: NewThread,
    *,
    memory: LogMemory,
    key: Prompt | None = None,
    kind: str = "",
    iterations: int = 50,
    start: tuple[str, ...] = (),
) -> Steps:
    """Act with the parts of earlier episodes that are most like the situation.

    memory: of won episodes. key: the prompt that makes a key of a thought; None where there are no
    plans (WebShop). kind: of the task, as its logs have it. iterations: thoughts and actions.
    start: actions before the first call, as in `react`.
    """
    Y = Sequence()
    world, _, task = thread.context.rpartition("\n")
    # p = LLM(the plans of the tasks most like T, T)
    plan = ""
    if key:
        like = memory.find(task, kind, k=3)
        plans = [(log.task, f"{log.plan}{thread.dialect.end}") for log, _ in like]
        context = with_examples(thread.dialect, plans, task)
        Y, plan, _ = yield from ask_prose(thread, Y, "plan", context)
        plan = plan.strip().partition("\n")[0]
    asked = "\n".join(filter(None, [world, task, f"Plan: {plan}" if plan else ""]))

    begun, _ = yield from begin(thread, start)
    # logs = those most like T and p
    retrieved, window = memory.find(task, kind, plan, k=LOGS), WINDOW
    used = 0
    while used < iterations:
        # Y = Y + LLM(logs, T, p, Y)
        examples = [
            (_task(log), cut(log, place, window, thread.dialect)) for log, place in retrieved
        ]
        context = with_examples(thread.dialect, examples, asked)
        # In the released code nothing that it says ends it; a full stop is taken away.
        Y, child, end = yield from ask_step(
            thread, Y, context, begun, judges=False, keeps_stop=False
        )
        if end:
            return end
        begun = child.sequence
        used += child.variables.get("lines", 1)
        # key = LLM(thought)
        thought, seen = child.variables.get("thought", ""), child.variables.get("seen")
        wanted = RetrievalKey(thought) if seen is None else RetrievalKey(seen=seen)
        if key:
            if not thought:
                continue
            Y, reply, _ = yield from ask_prose(thread, Y, "key", thought, prompt=key)
            wanted = parse_key(reply)
        if wanted == RetrievalKey():
            continue
        # logs = those most like T, p and key
        searches = bool(key and wanted.seen)
        window = SEARCH_WINDOW if searches or not key else WINDOW
        k = SEARCH_LOGS if searches else LOGS
        retrieved = memory.find(task, kind, plan, action=wanted.action, seen=wanted.seen, k=k)
    return Finished(Y, Status.OUT_OF_CALLS, {})


def parse_key(text: str) -> RetrievalKey:
    """A key from "search: mug" or "action: take" in the first line; none where there is neither."""
    line = text.strip().partition("\n")[0]
    for word in ("search", "action"):  # in this order in the released code
        if found := re.search(rf"(?i)\b{word}:(.*)", line):
            what = found[1].strip()
            return RetrievalKey(seen=what) if word == "search" else RetrievalKey(action=what)
    return RetrievalKey()


def _task(log: Log) -> str:
    return "\n".join(filter(None, [log.task, f"Plan: {log.plan}" if log.plan else ""]))


def cut(log: Log, place: int, window: int, dialect: Dialect) -> str:
    """The steps of a log around one of them, as they stand in a sequence.

    Without an end mark: the game ends an episode, and most windows stop before it is won.
    """
    steps = log.steps[max(0, place - window) : place + window]
    return write_steps(dialect, steps)


def with_examples(dialect: Dialect, examples: list[tuple[str, str]], context: str) -> str:
    """A context that reads as if these examples (context, response) stood before it."""
    texts = [dialect.example(asked, text) for asked, text in examples]
    head = dialect.context("").partition("\n")[0] + "\n"
    return "".join([*texts, head, context]).removeprefix(head)
