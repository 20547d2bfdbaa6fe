"""Where an episode first left its teacher's way, and what kind of mistake that was.

The teacher is asked, at every call, what it would have written there. A difference need do no
harm: it explains an episode only if that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, zip_longest

from thread_kit.distill.examples import Teacher
from thread_kit.distill.textcraft_teacher import TeacherError
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, Observed, Returned, Spawned


def first_deviation(episode: Episode, teacher: Teacher) -> tuple[str, str]:
    """The first line that differs from the teacher's: written, expected; ("", "") if none does."""
    return next(_deviations(episode, teacher), ("", ""))


def cause_of(written: str, expected: str) -> str:
    """The kind of mistake, in words, of a failed episode with this first deviation."""
    if not written and not expected:
        return "no mistake in the form"
    ours, theirs = (re.sub(r"\d+", "#", line) for line in (written, expected))
    if ours == theirs:
        return "a wrong number"
    return "a wrong name" if ours.split()[:2] == theirs.split()[:2] else "another step"


def _deviations(episode: Episode, teacher: Teacher) -> Iterator[tuple[str, str]]:
    """Pairs of lines, written and expected, in the order of time."""
    seen: dict[int, str] = {}
    for event in episode.events:
        match event:
            case Spawned(thread=thread, context=span):
                seen[thread] = span.text
            case GeneratedSpan(thread=thread, span=span):
                try:
                    reply = teacher(seen[thread])
                except TeacherError as error:
                    reply = f"({error})"
                lines = zip_longest(span.text.split("\n"), reply.split("\n"), fillvalue="")
                yield from islice((pair for pair in lines if pair[0] != pair[1]), 1)
                seen[thread] += span.text
            case Observed(thread=thread, span=span) | Returned(thread=thread, span=span):
                seen[thread] += span.text
