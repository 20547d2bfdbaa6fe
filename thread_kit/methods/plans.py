"""Plans: numbered steps and how they combine (ADaPT paper, section 3.2 and appendix B).

Step 1: find a mug on the desk
Step 2: find a mug in the cabinet
Step 3: put the mug on the shelf
Execution order: ((Step 1 OR Step 2) AND Step 3)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from thread_kit.code_lines import LINE_CHARACTERS
from thread_kit.requests import Request

# Nine digits at most: Python turns no text of thousands of digits into a number. Neither pattern
# looks at a character twice: ten thousand spaces or empty lines would take minutes.
STEP = re.compile(r"^[^\w\n]*Step (\d{1,9}): *(\S.*)", re.MULTILINE | re.IGNORECASE)
ORDER = re.compile(r"^[^\w\n]*Execution order: *(\S.*)", re.MULTILINE | re.IGNORECASE)
EMPHASIS = re.compile(
    r"^([^\w\n]*?)([*_]{1,3})((?:Step \d|Execution order).*?)\2", re.MULTILINE | re.IGNORECASE
)
"""Markdown's marks around the beginning of a line of a plan, or all of it."""
TOKEN = re.compile(r"\bSTEP \d{1,9}|\b(?:AND|OR)\b|[()]")
NESTED = 100
"""Parentheses within each other at most: to go through them is a call of Python's for each."""

Logic = int | tuple[str, tuple["Logic", ...]]
"""The number of a step; or "AND" or "OR", and what it combines."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps by their numbers, and the logic that combines what comes of them."""

    steps: dict[int, str]
    logic: Logic


def parse_plan(text: str, *, is_cut: bool = False) -> Plan | None:
    """The first plan in a text of a model; None if there is no step in it.

    is_cut: the text stops where more could follow, so that it is a plan with its order alone.
    A plan is over with its execution order, and where a step's number comes again. Marks of
    Markdown in which a line begins do not count.
    AND binds before OR, parentheses before both, at any depth; words between do not count, as in
    the released code. Where the order is missing, names no step or one that there is not, or closes
    a parenthesis that it has not opened, all steps are needed, one after the other.
    """
    text = EMPHASIS.sub(r"\1\3", text)
    steps: dict[int, str] = {}
    order = ORDER.search(text)
    for step in STEP.finditer(text):
        number = int(step[1])
        if number in steps or (order and steps and step.start() > order.start()):
            break
        steps[number] = step[2].rstrip()
    if not steps or (is_cut and not order):
        return None
    logic = _parse_logic(order[1].rstrip(), steps) if order else None
    return Plan(steps, ("AND", tuple(steps)) if logic is None else logic)


def _parse_logic(text: str, steps: dict[int, str]) -> Logic | None:
    if len(text) > LINE_CHARACTERS:
        return None
    if not re.search(r"\b(?:AND|OR)\b", text):  # else small letters are words like any other
        text = text.upper()
    groups: list[list[Logic | str]] = [[]]  # that are open: the outermost first
    for token in TOKEN.findall(re.sub(r"(?i)\bstep (?=\d)", "STEP ", text)):
        if token.startswith("STEP"):
            number = int(token.removeprefix("STEP "))
            if number not in steps:
                return None
            groups[-1].append(number)
        elif token == "(":
            groups.append([])
            if len(groups) > NESTED:
                return None
        elif token == ")":
            if len(groups) == 1:
                return None
            _close(groups)
        else:
            groups[-1].append(token)
    while len(groups) > 1:
        _close(groups)
    return _combined(groups[0])


def _close(groups: list[list[Logic | str]]) -> None:
    logic = _combined(groups.pop())
    if logic is not None:
        groups[-1].append(logic)


def _combined(parts: list[Logic | str]) -> Logic | None:
    """What stands in one pair of parentheses; where no word is between two parts, its only word."""
    words = {part for part in parts if isinstance(part, str)}
    if len(words) > 1:
        found = groupby(parts, lambda part: part == "OR")
        each = [_combined(list(group)) for is_or, group in found if not is_or]
        return _join("OR", [logic for logic in each if logic is not None])
    members = [part for part in parts if not isinstance(part, str)]
    return _join(words.pop() if words else "AND", members)


def _join(word: str, parts: list[Logic]) -> Logic | None:
    return (word, tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def combine(
    logic: Logic, attempt: Callable[[int], Generator[Request, Any, bool]]
) -> Generator[Request, Any, bool]:
    """logic(O): attempt the steps in order, and none whose outcome cannot matter any more.

    An expression within another is a task of its own, made of sub-tasks (appendix B); it costs no
    level of depth, since nobody has to plan it.
    """
    if isinstance(logic, int):
        return (yield from attempt(logic))
    operator, parts = logic
    for part in parts:
        success = yield from combine(part, attempt)
        if success is (operator == "OR"):
            return success
    return operator == "AND"
