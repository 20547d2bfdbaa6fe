"""Where an episode first left its oracle's way, and what kind of mistake that was.

The oracle is asked, at every call, what it would have said there. A difference need do no harm: it
explains an episode only if that failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from thread_kit.distill.alfworld_teacher import speak_alfworld
from thread_kit.distill.examples import Method
from thread_kit.distill.questions_teacher import QuestionsTeacher
from thread_kit.distill.textcraft_teacher import OracleError, react_script, speak_thread
from thread_kit.envs.alfworld import env as alfworld
from thread_kit.envs.benchmark import NumberedTask
from thread_kit.envs.textcraft import env as textcraft
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, Observed, Returned, Spawned

Task = textcraft.Task | alfworld.Task | NumberedTask


Speak = Callable[[str], str]
"""An oracle: of a thread's context and sequence so far, what comes next."""


def oracle_of(method: Method, task: Task) -> Speak:
    """The oracle that plays `task` in the form of `method`, from its start.

    Raises ValueError where nobody has written one.
    """
    match method, task:
        case "thread", textcraft.Task():
            return speak_thread
        case "react", textcraft.Task():
            script = iter(react_script(task.goal, task.commands))
            return lambda text: next(script, "")
        case "thread", alfworld.Task():
            return speak_alfworld
        case "thread", NumberedTask():
            return QuestionsTeacher()
    raise ValueError(f"nobody has written an oracle that plays {task} as {method!r}")


def first_deviation(episode: Episode, speak: Speak) -> tuple[str, str]:
    """The first line that differs from the oracle's: said and expected; ("", "") if none does."""
    return next(_deviations(episode, speak), ("", ""))


def cause_of(said: str, expected: str) -> str:
    """The kind of mistake, in words, of a failed episode with this first deviation."""

    def without(pattern: str, text: str) -> str:
        return re.sub(pattern, "#", text)

    if not said and not expected:
        return "no mistake in the form; the budget was used up"
    if without(r"\d+", said) == without(r"\d+", expected):
        return "a wrong number"
    ours, theirs = without(r"\d+", said).split(), without(r"\d+", expected).split()
    return "a wrong name" if ours[:2] == theirs[:2] else "another step"


def _deviations(episode: Episode, speak: Speak) -> Iterator[tuple[str, str]]:
    """Pairs of lines, said and expected, in the order of time."""
    seen: dict[int, str] = {}
    for event in episode.events:
        match event:
            case Spawned(thread=thread, context=span):
                seen[thread] = span.text
            case GeneratedSpan(thread=thread, span=span):
                try:
                    reply = speak(seen[thread])
                except OracleError as error:
                    reply = f"({error})"
                yield from _different(span.text, reply)
                seen[thread] += span.text
            case Observed(thread=thread, span=span) | Returned(thread=thread, span=span):
                seen[thread] += span.text


def _different(said: str, expected: str) -> Iterator[tuple[str, str]]:
    if said != expected:
        ours, theirs = said.split("\n"), expected.split("\n")
        length = max(len(ours), len(theirs))
        ours += [""] * (length - len(ours))
        theirs += [""] * (length - len(theirs))
        yield next(pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1])
