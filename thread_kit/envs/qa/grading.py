"""When an answer to a question about data counts as right."""

from __future__ import annotations

import math
import re

_WORD = re.compile(r"[^\W_]+")


def is_right(answer: str, expected: str) -> bool:
    """Whether an answer is right, as the benchmarks grade it (THREAD's released code).

    For a number (an hour, a patient's number) the answer must be one, too, with the same whole
    part; of two texts one must hold the other, in lower case. Stricter than there: nothing, a piece
    of a word ("o" for Ohio) and a number that is not finite are wrong.
    """
    answer, expected = answer.strip().lower(), expected.strip().lower()
    number, given = _read_number(expected), _read_number(answer)
    if number is not None:
        if given is None or not (math.isfinite(given) and math.isfinite(number)):
            return False
        return int(given) == int(number)
    is_part = answer in expected and _words(answer) in _words(expected)
    return expected in answer or is_part


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text))} "
