"""Kinds of generated questions: the wording, the data, the computation and the answer of each.

DataCommons QA and ICU QA have a table of kinds each (`KINDS` of their `questions.py`). The question
generators, the rules and the teacher all read these tables (THREAD paper, appendix F).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pandas as pd
from scipy import stats

SPLITS = ("train", "test")
MIN_VALUES = 4  # in a window
HIGHER_LOWER = ("higher", "lower")
ABOVE_BELOW = ("above", "below")

_FORECAST = re.compile(r"value expected (?:for|at hour) (\d+)")


class Measure(NamedTuple):
    """What is computed of `values` by time (years, hours): the ground truth, and a thread's code.

    compute: the number; of an "hour of" a score for each time, whose highest is looked for.
    code: an expression; {times} stands for the expression of the times.
    """

    compute: Callable[[pd.Series], Any]
    code: str


def slope(values: pd.Series) -> float:
    """The slope of the least-squares line, per year or hour."""
    return float(stats.linregress(values.index, values).slope)


def forecast(values: pd.Series, time: int) -> float:
    """The least-squares line's value at a later time."""
    line = stats.linregress(values.index, values)
    return float(line.intercept + line.slope * time)


def correlation(first: pd.Series, second: pd.Series) -> float:
    """Pearson's r over the times that both have."""
    both = pd.concat([first, second], axis=1).dropna()
    return float(stats.pearsonr(both.iloc[:, 0], both.iloc[:, 1]).statistic)


MEASURES = {
    "minimum": Measure(lambda values: values.min(), "values.min()"),
    "maximum": Measure(lambda values: values.max(), "values.max()"),
    "average": Measure(lambda values: values.mean(), "values.mean()"),
    "median": Measure(lambda values: values.median(), "values.median()"),
    "value": Measure(lambda values: values.iloc[0], "values.iloc[0]"),
    "slope": Measure(slope, "stats.linregress({times}, values).slope"),
    "hour of the highest": Measure(lambda values: values, "{times}[values.idxmax()]"),
    "hour of the lowest": Measure(lambda values: -values, "{times}[values.idxmin()]"),
    "hour of the largest increase": Measure(
        lambda values: values.diff().dropna(), "{times}[values.diff().idxmax()]"
    ),
    "hour of the largest decrease": Measure(
        lambda values: -values.diff().dropna(), "{times}[values.diff().idxmin()]"
    ),
}
"""By the words with which a thread is asked for them; beside them there are forecasts."""


def compute_measure(measure: str, values: pd.Series) -> float:
    """The measure of values by time; raises KeyError for words that name none."""
    if match := _FORECAST.fullmatch(measure):
        return forecast(values, int(match[1]))
    return float(MEASURES[measure].compute(values))


def measure_code(measure: str, times: str) -> tuple[str, str]:
    """The code for a measure of `values`: a line before it, or "", and its expression.

    times: the expression of when the values were. Raises KeyError for words that name no measure.
    """
    if match := _FORECAST.fullmatch(measure):
        line = f"line = stats.linregress({times}, values)\n"
        return line, f"line.intercept + line.slope * {match[1]}"
    return "", MEASURES[measure].code.format(times=times)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question.

    measure: of what is compared: one of `MEASURES`, "correlation", or a forecast for {later}.
    text: the wording. {subject} and {other} are places or patients; {first} and {last} are the
        years or hours of the window (without {first} from the start, without {last} one year).
    conclusion: the answer in a sentence, for the line before it (THREAD paper, G.1); {answer}.
    answers: if the first number is to the second, or to zero, as `sign` says; and if not. None: the
        subject and the other one.
    group: whom the subject is compared to, if not to {other}: a name, or how the group is found.
    """

    name: str
    measure: str
    text: str
    conclusion: str
    answers: tuple[str, str] | None = None
    sign: str = ">"
    group: str | None = None

    def has(self, field: str) -> bool:
        """Whether the wording has this field."""
        return f"{{{field}}}" in self.text

    @property
    def subjects(self) -> int:
        return 1 + self.has("other")

    @property
    def asks_when(self) -> bool:
        """Whether an hour is asked for."""
        return self.measure.startswith("hour")

    def holds(self, figures: Sequence[float]) -> bool:
        """Whether what the wording takes for granted is so.

        Who increases faster is asked where one of the two increases, as by the released generators;
        when something had its largest increase, where it had any.
        """
        if self.measure.startswith("hour of the largest"):
            return figures[0] > 0
        if self.measure != "slope" or self.answers:
            return True
        return max(figures) > 0 if self.sign == ">" else min(figures) < 0

    def answer(self, figures: Sequence[float], names: Sequence[str]) -> str:
        """The answer to one or two measured figures of the subjects of these names."""
        if self.asks_when:  # in hundredths; not up to the next hour, since whole hours are compared
            hour = round(figures[0], 2)
            return str(hour if int(hour) == int(figures[0]) else math.floor(figures[0] * 100) / 100)
        reference = figures[1] if len(figures) > 1 else 0.0
        is_first = figures[0] > reference if self.sign == ">" else figures[0] < reference
        return (self.answers or names)[0 if is_first else 1]

    def conclude(
        self,
        figures: Sequence[float],
        answer: str,
        fields: Mapping[str, str],
        places: Sequence[str] = (),
    ) -> str:
        """The sentence before the answer: what the figures say, and so what is asked.

        fields: those of the question. places: whose the figures are, where the sentence says so.
        """
        end = self.conclusion.format(answer=answer, **fields)
        if self.asks_when:
            return f"So {end}."
        first, reference = figures[0], figures[1] if len(figures) > 1 else 0
        one, other = [f" in {place}" for place in places if len(figures) > 1] or ("", "")
        order = "above" if first > reference else "below"
        return f"{first}{one} is {order} {reference}{other}, so {end}."


def make_higher_lower(name: str, measure: str, text: str, conclusion: str) -> Iterator[Kind]:
    """Two kinds that ask who has the higher figure and who the lower; the texts have {more}."""
    for more, sign in zip(HIGHER_LOWER, "><", strict=True):
        question, end = (words.replace("{more}", more) for words in (text, conclusion))
        yield Kind(f"{name} {more}", measure, question, end, sign=sign)


def read_question(text: str, kinds: Iterable[Kind]) -> tuple[Kind, dict[str, str]]:
    """Which kind of question a text is, and its fields; raises ValueError for none of these."""
    for kind in kinds:
        if match := re.fullmatch(_pattern(kind.text), text):
            return kind, match.groupdict()
    raise ValueError(f"not a question of these kinds: {text!r}")


@cache
def _pattern(template: str) -> str:
    """A regular expression of a template: each of its fields is a group of that name."""
    parts = re.split(r"\{(\w+)\}", template)
    texts = [re.escape(part) for part in parts[::2]]
    values = dict.fromkeys(("first", "last", "later"), r"\d+")
    fields = [f"(?P<{name}>{values.get(name, '.+?')})" for name in parts[1::2]]
    return "".join(text + field for text, field in zip(texts, [*fields, ""], strict=True))
