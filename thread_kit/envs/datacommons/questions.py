"""The question templates of DataCommons QA and their ground-truth programs (THREAD paper, F).

The twenty kinds of the released benchmark, and the median, which the paper names. The wording is
ours. A program takes series (values by year) and says the answer and the numbers that decide.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from thread_kit.envs.datacommons.statistics import COUNTRY, ListedStatistics
from thread_kit.envs.qa.env import Question

Program = Callable[[list[pd.Series], int], tuple[float, ...]]

SPLITS = ("train", "test")
LEAST = 4  # years in a window


def slope(series: pd.Series) -> float:
    """The slope of the least-squares line, a year."""
    return float(stats.linregress(series.index, series).slope)


def forecast(series: pd.Series, year: int) -> float:
    """The least-squares line's value in a later year."""
    line = stats.linregress(series.index, series)
    return float(line.intercept + line.slope * year)


def correlation(one: pd.Series, other: pd.Series) -> float:
    """Pearson's r over the years that both have."""
    both = pd.concat([one, other], axis=1).dropna()
    return float(stats.pearsonr(both.iloc[:, 0], both.iloc[:, 1]).statistic)


def each(measure: Callable[[pd.Series], float]) -> Program:
    """The same measure of each place."""
    return lambda series, year: tuple(measure(one) for one in series)


def place(more: bool) -> Callable[[Sequence[float], Sequence[str]], str]:
    """The place with the larger number, or with the smaller one."""

    def choose(figures: Sequence[float], names: Sequence[str]) -> str:
        return names[0] if (figures[0] > figures[1]) is more else names[1]

    return choose


def word(more: str, less: str) -> Callable[[Sequence[float], Sequence[str]], str]:
    """One word if the first number is larger than the second, or than zero; else the other."""

    def choose(figures: Sequence[float], names: Sequence[str]) -> str:
        other = figures[1] if len(figures) > 1 else 0.0
        return more if figures[0] > other else less

    return choose


@dataclass(frozen=True, slots=True)
class Kind:
    """A template, its program, and how the numbers become an answer."""

    name: str
    text: str
    program: Program
    choose: Callable[[Sequence[float], Sequence[str]], str]
    window: bool = True
    national: bool = False

    @property
    def places(self) -> int:
        return 2 if "{place2}" in self.text else 1


_MEASURES: dict[str, Callable[[pd.Series], float]] = {
    "minimum": lambda series: float(series.min()),
    "maximum": lambda series: float(series.max()),
    "average": lambda series: float(series.mean()),
}
_IN_YEAR: Program = lambda series, year: tuple(float(one.iloc[0]) for one in series)  # noqa: E731
_LATER: Program = lambda series, year: tuple(forecast(one, year) for one in series)  # noqa: E731
_FROM = "From {time1} to {time2}, "
_DATA = "Going by the data from {time1} to {time2}, "

KINDS: tuple[Kind, ...] = (
    *(
        Kind(
            f"{measure} {more}",
            _FROM + f"was the {measure} of {{variable}} {more} in {{place1}} or in {{place2}}?",
            each(function),
            place(more == "higher"),
        )
        for measure, function in _MEASURES.items()
        for more in ("higher", "lower")
    ),
    Kind(
        "median higher",
        _FROM + "was the median of {variable} higher in {place1} or in {place2}?",
        each(lambda series: float(series.median())),
        place(True),
    ),
    *(
        Kind(
            f"{measure} compared",
            f"Compared to {{place2}}, was the {measure} of {{variable}} from {{time1}} to {{time2}}"
            " higher or lower in {place1}?",
            each(function),
            word("higher", "lower"),
        )
        for measure, function in _MEASURES.items()
    ),
    *(
        Kind(
            f"year {more}",
            f"In {{time1}}, was {{variable}} {more} in {{place1}} or in {{place2}}?",
            _IN_YEAR,
            place(more == "higher"),
            window=False,
        )
        for more in ("higher", "lower")
    ),
    Kind(
        "year compared",
        "Compared to {place2}, was {variable} in {place1} higher or lower in {time1}?",
        _IN_YEAR,
        word("higher", "lower"),
        window=False,
    ),
    Kind(
        "national",
        "In {time1}, was {variable} in {place1} higher or lower than the national average?",
        _IN_YEAR,
        word("higher", "lower"),
        window=False,
        national=True,
    ),
    Kind(
        "trend",
        _FROM + "was {variable} in {place1} increasing or decreasing?",
        each(slope),
        word("increasing", "decreasing"),
    ),
    Kind(
        "faster",
        _FROM + "was {variable} increasing faster in {place1} or in {place2}?",
        each(slope),
        place(True),
    ),
    *(
        Kind(
            f"forecast {more}",
            _DATA + f"is {{variable}} in {{time3}} expected to be {more} in {{place1}} or in "
            "{place2}?",
            _LATER,
            place(more == "higher"),
        )
        for more in ("higher", "lower")
    ),
    Kind(
        "forecast trend",
        _DATA + "is {variable} in {place1} expected to increase or decrease until {time3}?",
        each(slope),
        word("increase", "decrease"),
    ),
    Kind(
        "forecast compared",
        _DATA + "is {variable} in {place1} expected to be above or below that of {place2} in "
        "{time3}?",
        _LATER,
        word("above", "below"),
    ),
    Kind(
        "correlation",
        "Was the correlation of {variable} in {place1} and in {place2} from {time1} to {time2} "
        "positive or negative?",
        lambda series, year: (correlation(*series),),
        word("positive", "negative"),
    ),
)


def generate(source: ListedStatistics, number: int, split: str = "test") -> Question:
    """The generated question of this number: the same number, the same question.

    The two splits have no place, variable or year in common: every other place and variable, the
    earlier years for training and the later ones for the test. Raises ValueError for another split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = random.Random(f"{split} {number}")
    kind = KINDS[number % len(KINDS)]
    half = SPLITS.index(split)
    variables = sorted(source.variables)[half::2]
    states = [one for one in sorted(source.places) if one != COUNTRY][half::2]
    while True:
        variable = draw.choice(variables)
        chosen = draw.sample(states, kind.places)
        ids = [*chosen, COUNTRY] if kind.national else chosen
        series = [_series(source, one, variable) for one in ids]
        years = _years(series, split)
        if len(years) < LEAST:
            continue
        question = _question(kind, draw, source, variable, ids, series, years)
        if question:
            return question


def _series(source: ListedStatistics, where: str, variable: str) -> pd.Series:
    try:
        found = source.observations(where, variable)
    except LookupError:
        return pd.Series(dtype=float)
    return pd.Series({int(one["date"]): one["value"] for one in found})


MIDDLE = 1988
"""Questions for training are about the years before, those of the test about these and later."""


def _years(series: list[pd.Series], split: str) -> list[int]:
    common = set.intersection(*(set(one.index) for one in series))
    return sorted(year for year in common if (year < MIDDLE) is (split == "train"))


def _question(
    kind: Kind,
    draw: random.Random,
    source: ListedStatistics,
    variable: str,
    ids: list[str],
    series: list[pd.Series],
    years: list[int],
) -> Question | None:
    """A question of this kind, or None where the numbers are too near to each other to tell."""
    first = draw.randrange(len(years) - LEAST + 1)
    last = draw.randrange(first + LEAST - 1, min(len(years), first + 9)) if kind.window else first
    span = years[first], years[last]
    cut = [one[(one.index >= span[0]) & (one.index <= span[1])] for one in series]
    later = span[1] + draw.randint(3, 15)
    if kind.window and any(one.nunique() < 2 for one in cut):
        return None
    figures = kind.program(cut, later)
    other = figures[1] if len(figures) > 1 else 0.0
    if abs(figures[0] - other) < 0.02 * max(abs(figures[0]), abs(other), 1e-9):
        return None
    names = [source.places[one] for one in ids]
    text = kind.text.format(
        variable=source.variables[variable],
        time1=span[0],
        time2=span[1],
        time3=later,
        **{f"place{n}": name for n, name in enumerate(names, 1)},
    )
    needs = tuple((one, variable) for one in ids)
    return Question(text, kind.choose(figures, names), kind.name, needs, figures)
