"""The questions of DataCommons QA: their kinds and the generator (THREAD paper, appendix F).

The twenty kinds of the released benchmark, and the median, which the paper names. The wording is
ours.
"""

from __future__ import annotations

import random

import pandas as pd

from thread_kit.envs.datacommons.statistics import COUNTRY, ListedStatistics
from thread_kit.envs.env import check_split
from thread_kit.envs.qa.env import Question
from thread_kit.envs.qa.kinds import (
    ABOVE_BELOW,
    HIGHER_LOWER,
    MIN_VALUES,
    SPLITS,
    Kind,
    compute_measure,
    correlation,
    make_higher_lower,
)

MIDDLE = 1988
"""Questions for training are about the years before, those of the test about these and later."""

TRIES = 2_000
"""Draws for a question; of the first 500 of either split none takes more than eight."""

_FROM = "From {first} to {last}, "
_DATA = "Going by the data from {first} to {last}, "
_IN_EITHER = "in {subject} or in {other}?"
_FORECAST = "value expected for {later}"
_MEASURES = ("minimum", "maximum", "average")

KINDS: tuple[Kind, ...] = (
    *(
        kind
        for name in _MEASURES
        for kind in make_higher_lower(
            name,
            name,
            f"{_FROM}was the {name} of {{variable}} {{more}} {_IN_EITHER}",
            f"the {name} of {{variable}} was {{more}} in {{answer}}",
        )
    ),
    Kind(
        "median higher",
        "median",
        _FROM + "was the median of {variable} higher " + _IN_EITHER,
        "the median of {variable} was higher in {answer}",
    ),
    *(
        Kind(
            f"{measure} compared",
            measure,
            f"Compared to {{other}}, was the {measure} of {{variable}} from {{first}} to {{last}} "
            "higher or lower in {subject}?",
            f"the {measure} of {{variable}} was {{answer}} in {{subject}} than in {{other}}",
            HIGHER_LOWER,
        )
        for measure in _MEASURES
    ),
    *make_higher_lower(
        "year",
        "value",
        "In {first}, was {variable} {more} " + _IN_EITHER,
        "{variable} was {more} in {answer}",
    ),
    Kind(
        "year compared",
        "value",
        "Compared to {other}, was {variable} in {subject} higher or lower in {first}?",
        "{variable} in {subject} was {answer} than in {other}",
        HIGHER_LOWER,
    ),
    Kind(
        "national",
        "value",
        "In {first}, was {variable} in {subject} higher or lower than the national average?",
        "{variable} in {subject} was {answer} than the national average",
        HIGHER_LOWER,
        group=COUNTRY,
    ),
    Kind(
        "trend",
        "slope",
        _FROM + "was {variable} in {subject} increasing or decreasing?",
        "{variable} in {subject} was {answer}",
        ("increasing", "decreasing"),
    ),
    Kind(
        "faster",
        "slope",
        _FROM + "was {variable} increasing faster " + _IN_EITHER,
        "{variable} was increasing faster in {answer}",
    ),
    *make_higher_lower(
        "forecast",
        _FORECAST,
        _DATA + "is {variable} in {later} expected to be {more} " + _IN_EITHER,
        "{variable} in {later} is expected to be {more} in {answer}",
    ),
    Kind(
        "forecast trend",
        "slope",
        _DATA + "is {variable} in {subject} expected to increase or decrease until {later}?",
        "{variable} in {subject} is expected to {answer} until {later}",
        ("increase", "decrease"),
    ),
    Kind(
        "forecast compared",
        _FORECAST,
        _DATA + "is {variable} in {subject} expected to be above or below that of {other} in "
        "{later}?",
        "{variable} in {subject} is expected to be {answer} that of {other}",
        ABOVE_BELOW,
    ),
    Kind(
        "correlation",
        "correlation",
        "Was the correlation of {variable} in {subject} and in {other} from {first} to {last} "
        "positive or negative?",
        "the correlation of {variable} in {subject} and in {other} was {answer}",
        ("positive", "negative"),
    ),
)


def generate(source: ListedStatistics, number: int, split: str = "test") -> Question:
    """The generated question of this number: the same number, the same question.

    The two splits have no place, variable or year in common: every other place and variable, the
    earlier years for training and the later ones for the test. Raises ValueError for another split,
    and for a source that has too little to ask about.
    """
    check_split(split, SPLITS)
    draw = random.Random(f"{split} {number}")
    kind = KINDS[number % len(KINDS)]
    half = SPLITS.index(split)
    variables = sorted(source.variables)[half::2]
    states = [place for place in sorted(source.places) if place != COUNTRY][half::2]
    for _ in range(TRIES):
        variable = draw.choice(variables)
        places = draw.sample(states, kind.subjects)
        places += [kind.group] if kind.group else []
        series = [_load_series(source, place, variable) for place in places]
        shared = set.intersection(*(set(values.index) for values in series))
        years = sorted(year for year in shared if (year < MIDDLE) is (split == "train"))
        if len(years) < MIN_VALUES:
            continue
        names = [source.places[place] for place in places]
        asked = _ask(kind, draw, source.variables[variable], names, series, years)
        if asked:
            text, answer, figures = asked
            needs = tuple((place, variable) for place in places)
            return Question(text, answer, kind.name, needs, figures)
    raise ValueError(f"{source!r} is too small for a question of the kind {kind.name!r}")


def _load_series(source: ListedStatistics, place: str, variable: str) -> pd.Series:
    try:
        rows = source.observations(place, variable)
    except LookupError:
        return pd.Series(dtype=float)
    return pd.Series({int(row["date"]): row["value"] for row in rows})


def _ask(
    kind: Kind,
    draw: random.Random,
    variable: str,
    names: list[str],
    series: list[pd.Series],
    years: list[int],
) -> tuple[str, str, tuple[float, ...]] | None:
    """A question's text, answer and figures.

    None where the figures are too near to tell apart, or what is asked is not so.
    """
    # 1. The window.
    start = end = draw.randrange(len(years) - MIN_VALUES + 1)
    if kind.has("last"):
        end = draw.randrange(start + MIN_VALUES - 1, min(len(years), start + 9))
    first, last = years[start], years[end]
    later = last + draw.randint(3, 15)
    windows = [values[(values.index >= first) & (values.index <= last)] for values in series]
    if kind.has("last") and any(values.nunique() < 2 for values in windows):
        return None
    # 2. The figures.
    if kind.measure == "correlation":
        figures: tuple[float, ...] = (correlation(*windows),)
    else:
        measure = kind.measure.format(later=later)
        figures = tuple(compute_measure(measure, values) for values in windows)
    reference = figures[1] if len(figures) > 1 else 0.0
    if abs(figures[0] - reference) < 0.02 * max(abs(figures[0]), abs(reference), 1e-9):
        return None
    if not kind.holds(figures):
        return None
    # 3. The wording.
    fields = dict(zip(("subject", "other"), names, strict=False))
    text = kind.text.format(variable=variable, first=first, last=last, later=later, **fields)
    return text, kind.answer(figures, names), figures
