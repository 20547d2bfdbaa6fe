"""Plays the threads of a data question by rule, in the place of a model: for teaching and tests.

`Script` says for each context what a thread with it writes, in the segments that the listen marks
cut. What comes back is the real environment's, so an answer at the end is the sandbox's, too.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

from thread_kit.dialect import Dialect

Segments = list[str]
"""What a thread writes, up to each mark and behind the last one; without the marks."""


_EXPECTED = re.compile(r"value expected (?:for|at hour) (\d+)")


def figure_of(measure: str, measures: Mapping[str, str], times: str) -> tuple[str, str]:
    """The code that a measure of `values` needs before it, lines or none, and its expression.

    times: the expression of when the values were, which a straight line is drawn through.
    Raises KeyError for a measure that is not one of these.
    """
    if found := _EXPECTED.fullmatch(measure):
        line = f"line = stats.linregress({times}, values)\n"
        return line, f"line.intercept + line.slope * {found[1]}"
    return "", measures[measure]


class Script(ABC):
    """A function for `ScriptedEngine`: from all that a thread sees to what it writes next.

    dialect: `QA`, or `QA_ASYNC`: then the threads do not wait for children that are independent.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @property
    def is_async(self) -> bool:
        return self.dialect.spawn is not None

    def __call__(self, seen: str) -> str:
        head, start, written = seen[seen.rindex("Prompt:\n") :].partition(f"{self.dialect.start}\n")
        context = self.dialect.asked(head + start).strip().removesuffix(self.dialect.listen)
        segments = self.threads(context.strip(), written)
        place = sum(written.count(mark) for mark in self.dialect.listens)
        return segments[place] + (self.dialect.end if place + 1 == len(segments) else "")

    @abstractmethod
    def threads(self, context: str, written: str) -> Segments:
        """What a thread with this context writes. Each segment but the last ends in a mark.

        written: its sequence so far, with what came back.
        """

    @property
    def mark(self) -> str:
        """The mark behind which an independent child is asked."""
        return self.dialect.spawn or self.dialect.listen

    def seen(self, code: str) -> str:
        """An action that shows what a line of code prints."""
        return f"# > print({code}) {self.dialect.listen}"

    def figures(self, written: str) -> tuple[float, ...]:
        """The numbers that have come back, or that an action has shown."""
        found = re.findall(
            rf"{re.escape(self.dialect.listen)}([-\d. e]+?){self.dialect.close}", written
        )
        return tuple(float(one) for some in found for one in some.split())
