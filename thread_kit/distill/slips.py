"""Slips: what a small model does wrong, put into a teacher's episodes so that a way back is taught.

A slip is one name, one number or one figure that is written otherwise than the teacher has it. The
teacher then goes on from what came of it, as it would after a model's. What was written wrongly is
left out of the loss (`examples.py`): nobody is taught to slip. In texts of the shop there is no
such place.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

RATE = 0.05
"""Of the texts in which a slip is possible."""

_NAMES = (
    r"made\[' ([a-z ]+)'\]",
    r"(?:obj|target) = ' (\w+)'",
    r"find_places\(' ([^']+)'\)",
    r"measurements\('\d+', ' ([^']+)'\)",
)
_FIGURES = (
    r"^n = \d+ \* (\d+)$",
    r"item = f'\{obj\} (\d+)'",
    r"measurements\('(\d+)'",
    r"^one, other = '(\d+)'",
)


class Slips:
    """A teacher that slips now and then. texts: what it wrote with a slip in it."""

    def __init__(self, teacher: Callable[[str], str], draw: random.Random) -> None:
        self.texts: set[str] = set()
        self._teacher = teacher
        self._draw = draw

    def __call__(self, seen: str) -> str:
        text = self._teacher(seen)
        wrong = slip(text, self._draw) if self._draw.random() < RATE else text
        if wrong != text:
            self.texts.add(wrong)
        return wrong


def slip(text: str, draw: random.Random) -> str:
    """The text with one slip; as it is where nothing of the kind stands in it."""
    places = [
        (match.span(1), change)
        for patterns, change in ((_NAMES, _misspell), (_FIGURES, _miscount))
        for pattern in patterns
        for match in re.finditer(pattern, text, re.MULTILINE)
    ]
    if not places:
        return text
    (start, end), change = draw.choice(places)
    return text[:start] + change(text[start:end], draw) + text[end:]


def _misspell(name: str, draw: random.Random) -> str:
    """A name with a letter too few or too many, or without its first or last word."""
    words = name.split()
    if len(words) > 1 and draw.random() < 0.4:
        return " ".join(draw.choice((words[1:], words[:-1])))
    place = draw.randrange(1, len(name)) if len(name) > 1 else 0
    return name[:place] + draw.choice(("", name[place] * 2, "el")) + name[place + 1 :]


def _miscount(figure: str, draw: random.Random) -> str:
    """Another number, of as many digits."""
    return str(draw.randrange(10 ** (len(figure) - 1), 10 ** len(figure)))
