"""AutoGuide (Fu et al. 2024, section 3): guidelines from pairs of trajectories, chosen by context.

Before (`extract_guideline`), for each task of which one trajectory earned more than another:
    t = the first step in which they differ
    c = LLM(the steps before t), or the known context that it matches   # context identification
    guidelines[c] += LLM(both trajectories, c)                          # guideline extraction

Then, in an episode:
    repeat
      c = the known context that LLM(T, Y) matches                      # context identification
      G = guidelines[c]; the k that LLM selects where there are more    # guideline selection
      Y = Y + c + LLM(q + T + Y + c + G), and what the environment says to it   # ReAct

A step costs a call for the context, one to match it unless it is known to the word, one to select
where a context has more than k guidelines, and one for the action.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from collections.abc import Sequence as Items
from typing import Any

from thread_kit.methods.common import as_instruction, ask_prose, begin, with_break, with_list
from thread_kit.methods.memory import GuidelineMemory
from thread_kit.methods.steps import ask_step, write_steps
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, NewThread, Request, Status, Steps
from thread_kit.sequence import Sequence

HEADING = "Guidelines:"
NUMBER = re.compile(r"\d{1,3}")
Trajectory = Items[tuple[str, str]]
"""Of actions, each with what was observed."""


def autoguide(
    thread: NewThread,
    *,
    memory: GuidelineMemory,
    identify: Prompt,
    match: Prompt,
    select: Prompt,
    k: int = 2,
    iterations: int = 50,
    start: tuple[str, ...] = (),
    judges: bool = True,
) -> Steps:
    """ReAct with the thread's own prompt, and before each action its context and its guidelines.

    identify, match, select: prompts that say in which context a trajectory is, which known one that
    is, and which guidelines matter. k: guidelines at most (appendix B, Tables 7 and 8). iterations:
    steps, each with an action, or with a thought in the place of one. start, judges: as in `react`.
    """
    Y = Sequence()
    begun, _ = yield from begin(thread, start)
    for _ in range(iterations):
        # c = the known context that LLM(T, Y) matches
        text = f"{thread.context}\n{begun.text}".rstrip()
        Y, context = yield from find_context(
            thread, Y, text, tuple(memory.by_context), identify, match
        )
        # G = guidelines[c]; the k that LLM selects where there are more
        guidelines = memory.by_context.get(context, [])
        if len(guidelines) > k:
            listed = _number(guidelines)
            selected = ask_prose(thread, Y, "select", f"{text}\n{listed}", prompt=select)
            Y, reply, _ = yield from selected
            guidelines = choose(guidelines, reply, k)
        # Y = Y + c + LLM(q + T + Y + c + G), and what the environment says to it
        goes_on = begun.last_line in thread.dialect.actions  # behind `reopen`
        if context and not goes_on:
            begun += thread.instruction(with_break(begun, f"Context: {context}\n"))
        guided = begun
        if guidelines and not goes_on:
            guided += thread.instruction(with_list(HEADING, guidelines, ""))
        asked = ask_step(thread, Y, thread.context, guided, judges=judges)
        Y, child, end = yield from asked
        if end:
            return end
        before = len(as_instruction(guided).spans)
        begun = Sequence((*begun.spans, *child.sequence.spans[before:]))
    return Finished(Y, Status.OUT_OF_CALLS, {})


def extract_guideline(
    thread: NewThread,
    *,
    won: Trajectory,
    lost: Trajectory,
    known: tuple[str, ...],
    identify: Prompt,
    match: Prompt,
    extract: Prompt,
) -> Steps:
    """What the difference between two trajectories of one task teaches.

    known: contexts. extract: the prompt that writes a guideline. The variables of what it returns:
    `context` and `guideline`, "" where a budget has cut it.
    """
    # t = the first step in which they differ
    before = write_steps(thread.dialect, won[: deviate(won, lost)])
    # c = LLM(the steps before t), or the known context that it matches
    text = f"{thread.context}\n{before}".rstrip()
    Y, context = yield from find_context(thread, Sequence(), text, known, identify, match)
    # guidelines[c] += LLM(both trajectories, c)
    failed, successful = (write_steps(thread.dialect, steps) for steps in (lost, won))
    pair = f"{thread.context}\nFailed:\n{failed}Successful:\n{successful}Context: {context}"
    Y, guideline, child = yield from ask_prose(thread, Y, "guideline", pair, prompt=extract)
    whole = child.status.is_end  # one that was cut is none
    facts = {"context": context, "guideline": " ".join(guideline.split()) if whole else ""}
    return Finished(Y, Status.ENDED, facts, facts["guideline"])


def deviate(won: Trajectory, lost: Trajectory) -> int:
    """The number of the first step in which two trajectories differ in what is done."""
    pairs = zip(won, lost, strict=False)
    same = (action == other for (action, _), (other, _) in pairs)
    return next(
        (number for number, equal in enumerate(same) if not equal), min(len(won), len(lost))
    )


def find_context(
    thread: NewThread,
    Y: Sequence,
    text: str,
    known: tuple[str, ...],
    identify: Prompt,
    match: Prompt,
) -> Generator[Request, Any, tuple[Sequence, str]]:
    """In which context a trajectory is: a known one where the model says that it is the same.

    "" where a budget has cut what the model says.
    """
    Y, reply, child = yield from ask_prose(thread, Y, "context", text, prompt=identify)
    context = " ".join(reply.split()) if child.status.is_end else ""
    if context in known or not known or not context:
        return Y, context
    listed = f"{_number(known)}\nContext: {context}"
    Y, reply, _ = yield from ask_prose(thread, Y, "match", listed, prompt=match)
    return Y, next(iter(choose(known, reply, 1)), context)


def choose(items: Items[str], reply: str, k: int) -> list[str]:
    """Those that a reply names by their numbers, in its order, k at most; "none" names none."""
    if reply.lstrip().casefold().startswith("none"):
        return []
    numbers = dict.fromkeys(int(number) for number in NUMBER.findall(reply))
    return [items[number - 1] for number in numbers if 1 <= number <= len(items)][:k]


def _number(items: Items[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
