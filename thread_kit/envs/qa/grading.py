"""When an answer to a question about data counts as right."""

from __future__ import annotations

import math
import re

_WORD = re.compile(r"[^\W_]+")


def is_right(answer: str, expected: str) -> bool:
    """Whether an answer is right, as the benchmarks grade it (THREAD's released code).

    Two numbers must agree in their whole part (hours, patients' numbers); of two texts one must
    hold the other, in lower case. Stricter than there: nothing, a piece of a word ("o" for Ohio)
    and a number that is not finite are wrong.
    """
    answer, expected = answer.strip().lower(), expected.strip().lower()
    try:
        numbers = float(answer), float(expected)
    except ValueError:
        is_part = answer in expected and _words(answer) in _words(expected)
        return expected in answer or is_part
    return all(map(math.isfinite, numbers)) and int(numbers[0]) == int(numbers[1])


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text))} "
