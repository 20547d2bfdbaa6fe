"""The dialect: the strings by which a thread listens, acts and ends, and how its text is laid out.

THREAD paper, section 3, names two stop tokens, the listen token (`=>`) and the end token (`END`),
and marks the end of what comes back with `<=`. They are strings here and never token ids:
tokenizers differ, and a stop string can be split over tokens or be the head of a longer one
(`find_stop`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Variables = Mapping[str, Any]


REFERENCE = re.compile(r"\{([^\s{}]+)\}")
"""A name in a text that stands for a variable's value: `{name}`.

What is in the braces may be no name (`code_lines.is_variable_name`).
"""


FUTURE = re.compile(r"\bt[1-9]\d*\b")
"""The name of a child that nobody has waited for yet: `t1`."""


class Stop(StrEnum):
    """Why one call of the model stopped."""

    LISTEN = "listen"
    SPAWN = "spawn"
    END = "end"
    END_OF_STREAM = "end of stream"
    LENGTH = "length"
    CONTEXT = "context"
    CANCELLED = "cancelled"


ACTIONS = (">", "# >")
"""Heads of a line that is an action (THREAD paper, appendix G)."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One set of marks.

    listen: the thread waits for what comes back (omega_listen).
    close: ends what came back; `after_close` is put behind it (a new line in the agent dialect).
    end: the thread is over (omega_end).
    start: opens a response.
    actions: heads of a line that is an action in the environment.
    spawn: the thread spawns a child and goes on without waiting; None where every parent waits.
    code: the text is a program with prose in it (appendix G.1, G.2). Blocks run as wholes, code may
        stand behind what came back in the same line, an action is a line of code, and a child's
        context is the whole line (`exchange.py`).
    several_lines: an action goes on from its mark to the listen mark, over as many lines as it has.
    as_observed: observations are read as they are, without names for values (`exchange.py`).
    """

    listen: str = "=>"
    close: str = "<="
    end: str = "#END#"
    start: str = "#START#"
    actions: tuple[str, ...] = ACTIONS
    after_close: str = "\n"
    spawn: str | None = None
    code: bool = False
    several_lines: bool = False
    as_observed: bool = False

    @classmethod
    def of(cls, marks: Mapping[str, Any]) -> Dialect:
        """The dialect whose marks the header of a trace has; what it leaves out is the default."""
        return cls(**{**marks, "actions": tuple(marks.get("actions", ACTIONS))})

    def __post_init__(self) -> None:
        marks = {name: getattr(self, name) for name in ("listen", "close", "end", "start")}
        if self.spawn is not None:
            marks["spawn"] = self.spawn
        for name, mark in marks.items():
            if not mark.strip():
                raise ValueError(f"the dialect's {name} mark is empty; give it a character")
        if not all(mark.strip() for mark in self.actions):
            raise ValueError(
                f"one of the action marks {self.actions!r} is empty; take it out, or give it a "
                "character"
            )
        for inner, outer in itertools.permutations(marks, 2):
            if marks[inner] in marks[outer]:
                raise ValueError(
                    f"the {outer} mark {marks[outer]!r} contains the {inner} mark "
                    f"{marks[inner]!r}; choose marks that differ"
                )

    @property
    def stops(self) -> dict[str, Stop]:
        """The stop strings of a call, each with what it means."""
        stops = {self.listen: Stop.LISTEN, self.end: Stop.END}
        return stops if self.spawn is None else {**stops, self.spawn: Stop.SPAWN}

    @property
    def listens(self) -> tuple[str, ...]:
        """The marks behind which something comes into the thread that it did not write."""
        return (self.listen,) if self.spawn is None else (self.listen, self.spawn)

    def bare(self, line: str) -> str:
        """A line without the mark at its end."""
        mark = next((mark for mark in self.listens if line.endswith(mark)), "")
        return line.removesuffix(mark)

    def closed(self, text: str) -> str:
        """What comes back to a listening thread, as it stands in the thread's sequence."""
        return text + self.close + self.after_close

    def observed(self, text: str) -> str:
        """An observation in a thread's sequence; several lines stand on lines of their own.

        As THREAD paper, G.4, prints a page of WebShop. In a program they are comments already
        (`as_comment`).
        """
        return self.closed(f"\n{text}\n" if "\n" in text and not self.code else text)

    def context(self, c: str) -> str:
        """A context as the model reads it: everything between the few-shot prompt and Y."""
        return f"Prompt:\n{c}\n\nResponse:\n{self.start}\n"

    def asked(self, context: str) -> str:
        """c again, from a context as `context` laid it out."""
        return context.removeprefix("Prompt:\n").removesuffix(f"\n\nResponse:\n{self.start}\n")

    def title(self, context: str) -> str:
        """The last line of a context as `context` laid it out: what a thread was asked to do."""
        c = context.removeprefix("Prompt:\n").rpartition("\n\nResponse:\n")[0] or context
        lines = [line.strip().removesuffix(self.listen).rstrip() for line in c.split("\n")]
        lines = [line.removesuffix(self.close).rstrip() for line in lines]
        return next((line for line in reversed(lines) if line), "")

    def example(self, c: str, response: str) -> str:
        """One few-shot example: a context and a whole response (Y, with its end mark)."""
        return f"{self.context(c)}{response}\n\n\n"

    def write_action(self, action: str) -> str:
        """An action behind its mark, the first of `actions`, as a method itself writes it."""
        return " ".join([*(mark.rstrip() for mark in self.actions[:1]), action])

    def is_action(self, line: str) -> bool:
        return line.lstrip().startswith(self.actions)

    def action_lines(self, lines: list[str]) -> list[str]:
        """The lines of the action with which a text ends, the one with the mark first; or none.

        Of several lines only a mark at the beginning, with a space behind it, begins another one:
        ">= 5" goes on. Where there is none, a mark on a line of its own does, for those below it.
        """
        first = len(lines) - 1
        if self.several_lines:
            heads = tuple(f"{mark.rstrip()} " for mark in self.actions)
            marked = [n for n, line in enumerate(lines) if line.startswith(heads)]
            alone = [n for n, line in enumerate(lines) if line.strip() in self.actions]
            first = max(marked or alone, default=first)
        return lines[first:] if lines and self.is_action(lines[first]) else []


AGENT = Dialect()
"""Agent tasks (THREAD paper, appendix G.3 to G.5): what comes back ends the line."""

COMMANDS = Dialect(several_lines=True, as_observed=True)
"""Commands of a shell, or of SQL: what InterCode's agents write may have several lines.

What they read are tables and files, whose words are data: no example shows a name in their place.
"""

PAGES = Dialect(as_observed=True)
"""Pages of a shop (appendix G.4), which THREAD reads as they are."""

QA = Dialect(after_close="", code=True)
"""Question answering (appendix G.1, G.2): the line goes on after what came back."""


ASYNC = Dialect(spawn="~>")
"""A parent may go on while its child runs (THREAD paper, section 2.2): `~>` does not wait."""


QA_ASYNC = Dialect(after_close="", code=True, spawn="~>")
"""Question answering in which `~>` does not wait."""


def find_stop(text: bytes, new: int, stops: Iterable[str]) -> tuple[int, str] | None:
    """The first stop string that the last `new` bytes of `text` complete: (end in bytes, stop).

    Called after every token, so only the tail that the new bytes can have completed is searched.
    Works on bytes because a token may end in the middle of a character.
    """
    first: tuple[int, str] | None = None
    for stop in stops:
        mark = stop.encode()
        at = text.find(mark, max(0, len(text) - new - len(mark) + 1))
        if at >= 0 and (first is None or at + len(mark) < first[0]):
            first = at + len(mark), stop
    return first


def as_comment(observation: str, variables: Variables) -> str:
    """An observation of several lines as comments, so that a program stays one (THREAD paper, G.1).

    No abstraction: in a table a value is the name of a column.
    """
    if "\n" not in observation:
        return observation
    return "\n".join(["", *(f"# {line}" for line in observation.split("\n")), "# "])
