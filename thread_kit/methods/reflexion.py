"""Reflexion (Shinn et al. 2023, section 3, Algorithm 1): trials with a memory of what went wrong.

    memory = []
    for trial = 1 ... n do
      Y = actor(T + memory), from the start of the environment
      if the evaluator finds T solved then return True
      memory = memory + [reflect(T + memory, Y)]
    return whether the actor says that T is completed

The actor is any program: ReAct, as in the ADaPT paper (section 4.2, d_max trials), StateFlow, as in
its paper (section 4.2), or THREAD. The evaluator is the environment's reward; for a question it is
the gold answer, as in Reflexion's own experiments with questions (section 4.2 there). A question
with two answers is solved by whoever hears that one of them is wrong, so the method says so in its
name: "reflexion, gold answer".
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.methods.common import (
    FAILED,
    ask,
    ask_prose,
    completed,
    until_verdict,
    verdict,
    with_list,
)
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, NewThread, Program, Request, Restart, Status, Steps
from thread_kit.sequence import Sequence

_CLAIM = re.compile(r"\btask (?:completed|failed)\W*$", re.IGNORECASE)
"""What an actor says of itself at the end of a text, as models spell it."""

HEADING = "What earlier trials of this task have taught:"


def reflexion(
    thread: NewThread, *, actor: Program, reflect: Prompt, trials: int = 4, memory: int = 3
) -> Steps:
    """Give the task to an actor again and again, with the lessons of its failures.

    actor: its prompt is the thread's own. reflect: the prompt of the model that looks back: it
    reads the lessons until then and a trial, and writes what to do differently. trials: at most.
    memory: so many lessons, the last ones, are kept (Reflexion's limit of 3).
    """
    Y = Sequence()
    lessons: list[str] = []
    # for trial = 1 ... n do
    for trial in range(1, trials + 1):
        # Y = actor(T + memory), from the start of the environment
        context = with_lessons(thread.context, lessons, memory)
        Y, answer, child = yield from ask(thread, Y, f"trial {trial}", context, program=actor)
        if trial == trials:
            break
        # if the evaluator finds T solved then return True
        restarted = yield Restart(answer)
        if restarted is None:
            words = answer if thread.dialect.code else verdict(True)
            return Finished(Y, Status.ENDED, {}, words, is_program=thread.dialect.code)
        if restarted is False:  # it was handed in for good
            break
        # memory = memory + [reflect(T + memory, Y)]
        trial_text = f"{context}\n{_tell_failure(child.sequence.text, thread.dialect)}".rstrip()
        Y, lesson = yield from look_back(thread, Y, trial_text, reflect)
        if lesson.strip():
            lessons.append(lesson)
    # return whether the actor says that T is completed
    words = answer if thread.dialect.code else verdict(completed(answer))
    return Finished(Y, Status.ENDED, {}, words, is_program=thread.dialect.code)


def look_back(
    thread: NewThread, Y: Sequence, trial: str, reflect: Prompt
) -> Generator[Request, Any, tuple[Sequence, str]]:
    """Y, and the lesson of a trial."""
    Y, lesson, _ = yield from ask_prose(thread, Y, "lesson", trial, prompt=reflect)
    return Y, lesson


def _tell_failure(trial: str, dialect: Dialect) -> str:
    """A trial that the evaluator found wanting, whatever its actor says of itself at its end."""
    words = dialect.bare(trial.rstrip().removesuffix(dialect.end).rstrip())
    head, seen, last = words.rpartition(dialect.close)
    judged = until_verdict(last)  # what stands behind a verdict was never done
    last = last[: last.index(judged) + len(judged)] if judged else last
    claim = _CLAIM.search(last)
    ending = trial[len(words) :] if trial.rstrip().endswith(dialect.end) else ""
    return f"{head}{seen}{last[: claim.start()]}{FAILED}{ending}" if claim else trial


def with_lessons(context: str, lessons: list[str], memory: int = 3) -> str:
    """T + memory: the lessons stand before the task, whose last line goes on asking for it.

    memory: so many lessons, the latest ones.
    """
    return with_list(HEADING, lessons[-memory:] if memory else [], context)
