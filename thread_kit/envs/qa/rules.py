"""Plays the threads of a data question by rule, in the place of a model: for teaching and tests.

`Script` says for each context what a thread with it writes, in the segments that the listen marks
cut. What comes back is the real environment's, so an answer at the end is the sandbox's, too.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from thread_kit.dialect import Dialect

Segments = list[str]
"""What a thread writes, up to each mark and behind the last one; without the marks."""


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
        segments = self.write(context.strip(), written)
        place = sum(written.count(mark) for mark in self.dialect.listens)
        return segments[place] + (self.dialect.end if place + 1 == len(segments) else "")

    @abstractmethod
    def write(self, context: str, written: str) -> Segments:
        """What a thread with this context writes. Each segment but the last ends in a mark.

        written: its sequence so far, with what came back.
        """

    @property
    def mark(self) -> str:
        """The mark behind which an independent child is asked."""
        return self.dialect.spawn or self.dialect.listen

    def show(self, code: str) -> str:
        """An action that shows what a line of code prints."""
        return f"# > print({code}) {self.dialect.listen}"

    def ask(self, *requests: str) -> Segments:
        """The segments that ask independent children; an async thread then looks at the answers."""
        segments = [f"{request} {self.mark}" for request in requests]
        if self.is_async:
            names = ", ".join(f"t{n}" for n, _ in enumerate(requests, 1))
            segments.append(f".\n{self.show(names)}")
        return segments

    def read_figures(self, written: str) -> tuple[float, ...]:
        """The numbers that have come back, or that an action has shown."""
        listen, close = re.escape(self.dialect.listen), self.dialect.close
        returned = re.findall(rf"{listen}([-\d. e]+?){close}", written)
        return tuple(float(number) for numbers in returned for number in numbers.split())
