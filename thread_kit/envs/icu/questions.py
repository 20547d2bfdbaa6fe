"""The question templates of ICU QA and their ground-truth programs (THREAD paper, F).

The released benchmark's fifteen kinds, with what their wording says (the released program computes
the mean for the minimum, begins at an hour where it should end there, and is off by one row at
jumps). Four of them need phenotypes, which only MIMIC-III's own tables have (`OF_PHENOTYPES`); for
all stays there is the forecast against those who survived or expired. The wording is ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from thread_kit.envs.icu.stays import VARIABLES, Stays
from thread_kit.envs.qa.env import Question

Answered = tuple[str, tuple[float, ...]]
"""An answer, and the numbers that decide."""

SPLITS = ("train", "test")
LEAST = 4  # values in a window
TRIES = 2_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a template is filled with: one or two patients' values, and hours."""

    patients: tuple[str, ...]
    series: tuple[pd.Series, ...]
    means: pd.Series
    first: int
    last: int
    later: int

    def window(self, n: int = 0) -> pd.Series:
        return self.series[n].loc[self.first : self.last]

    def early(self, n: int) -> pd.Series:
        return self.series[n].loc[: self.last]


@dataclass(frozen=True, slots=True)
class Kind:
    """A template and its program.

    group: of whom the patient is compared to, if to any: its name, or one of `BY_PHENOTYPE`.
    """

    name: str
    text: str
    program: Callable[[Drawn], Answered]
    group: str | None = None

    @property
    def patients(self) -> int:
        return 2 if "{patient2}" in self.text else 1


def _slope(series: pd.Series) -> float:
    return float(stats.linregress(series.index, series).slope)


def _which(measure: Callable[[Drawn, int], float], more: bool) -> Callable[[Drawn], Answered]:
    def program(drawn: Drawn) -> Answered:
        one, other = measure(drawn, 0), measure(drawn, 1)
        return drawn.patients[0 if (one > other) is more else 1], (one, other)

    return program


def _against_group(measure: Callable[[Drawn], float], more: str, less: str) -> Callable:
    def program(drawn: Drawn) -> Answered:
        own, others = measure(drawn), float(drawn.means.mean())
        return more if own > others else less, (own, others)

    return program


def _expected(drawn: Drawn) -> float:
    line = stats.linregress(drawn.window().index, drawn.window())
    return float(line.intercept + line.slope * drawn.later)


def _hour(of: Callable[[pd.Series], pd.Series], largest: bool) -> Callable[[Drawn], Answered]:
    def program(drawn: Drawn) -> Answered:
        values = of(drawn.window()) * (1 if largest else -1)
        best = values.nlargest(2)
        return str(round(float(values.idxmax()), 2)), (float(best.iloc[0]), float(best.iloc[1]))

    return program


_OF = {
    "maximum": lambda d, n: float(d.series[n].max()),
    "minimum": lambda d, n: float(d.series[n].min()),
    "average": lambda d, n: float(d.series[n].mean()),
}
_WINDOW = "from hour {first} to hour {last} of the ICU stay"

KINDS: tuple[Kind, ...] = (
    *(
        Kind(
            f"{measure} {more}",
            f"Was the {measure} of the {{variable}} {more} for patient {{patient1}} or for patient "
            "{patient2}?",
            _which(function, more == "higher"),
        )
        for measure, function in _OF.items()
        for more in ("higher", "lower")
    ),
    *(
        Kind(
            f"{way} faster",
            f"In the first {{last}} hours of the ICU stay, was the {{variable}} {way} faster for "
            "patient {patient1} or for patient {patient2}?",
            _which(lambda d, n: _slope(d.early(n)), way == "increasing"),
        )
        for way in ("increasing", "decreasing")
    ),
    *(
        Kind(
            f"average against those who {group}",
            f"Was the average {{variable}} of patient {{patient1}} {_WINDOW} higher or lower than "
            f"the average of all patients who {group}?",
            _against_group(lambda d: float(d.window().mean()), "higher", "lower"),
            group,
        )
        for group in ("survived", "expired")
    ),
    *(
        Kind(
            f"hour of the {word}",
            f"At which hour {_WINDOW.removeprefix('from ')} was the {{variable}} of patient "
            f"{{patient1}} {word}?".replace("hour hour", "hour from hour"),
            _hour(lambda series: series, word == "highest"),
        )
        for word in ("highest", "lowest")
    ),
    *(
        Kind(
            f"hour of the largest {word}",
            f"At which hour from hour {{first}} to hour {{last}} of the ICU stay had the "
            f"{{variable}} of patient {{patient1}} made its largest {word} since the measurement "
            "before?",
            _hour(lambda series: series.diff().dropna(), word == "increase"),
        )
        for word in ("increase", "decrease")
    ),
    *(
        Kind(
            f"expected against those who {group}",
            f"Going by the data {_WINDOW}, is the {{variable}} of patient {{patient1}} expected to "
            f"be above or below the average of all patients who {group} at hour {{later}}?",
            _against_group(_expected, "above", "below"),
            group,
        )
        for group in ("survived", "expired")
    ),
)


ANY, HIGHEST, LOWEST = BY_PHENOTYPE = ("a phenotype", "the highest", "the lowest")
"""Groups that are found in the data: one that is drawn, or the one with the outermost average."""

OF_PHENOTYPES: tuple[Kind, ...] = (
    Kind(
        "average against a phenotype",
        f"Was the average {{variable}} of patient {{patient1}} {_WINDOW} higher or lower than the "
        "average of all patients with {group}?",
        _against_group(lambda d: float(d.window().mean()), "higher", "lower"),
        ANY,
    ),
    Kind(
        "expected against a phenotype",
        f"Going by the data {_WINDOW}, is the {{variable}} of patient {{patient1}} expected to be "
        "above or below the average of all patients with {group} at hour {later}?",
        _against_group(_expected, "above", "below"),
        ANY,
    ),
    *(
        Kind(
            f"expected against {group}",
            f"Going by the data {_WINDOW}, is the {{variable}} of patient {{patient1}} expected to "
            f"be above or below {group} of the averages of all phenotypes at hour {{later}}?",
            _against_group(_expected, "above", "below"),
            group,
        )
        for group in (HIGHEST, LOWEST)
    ),
)


def kinds_of(stays: Stays) -> tuple[Kind, ...]:
    """The kinds that can be asked about these stays, in the order of the questions' numbers."""
    return KINDS + OF_PHENOTYPES if stays.phenotypes else KINDS


def _group(kind: Kind, stays: Stays, variable: str, draw: random.Random) -> str | None:
    """Of whom the patient is compared to, by name."""
    if kind.group == ANY:
        return draw.choice(sorted(stays.phenotypes))
    if kind.group in (HIGHEST, LOWEST):
        averages = {one: stays.group_means(one, variable).mean() for one in stays.phenotypes}
        averages = {one: mean for one, mean in averages.items() if mean == mean}  # not of nobody
        outermost = max if kind.group == HIGHEST else min
        return outermost(averages, key=averages.__getitem__, default=min(stays.phenotypes))
    return kind.group


def generate(stays: Stays, number: int, split: str | None = None) -> Question:
    """The question of this number; the same number, stays and split, the same question.

    split: every other patient and variable are for the test, the others for training; None asks
    about all. The groups are all patients of the stays, whatever the split. Raises ValueError for
    another split, and where the stays are too few to ask about.
    """
    if split not in (None, *SPLITS):
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = random.Random(number if split is None else f"{split} {number}")
    kinds = kinds_of(stays)
    kind = kinds[number % len(kinds)]
    half = slice(None) if split is None else slice(split == "train", None, 2)
    patients = sorted(stays.expired)[half]
    variables = sorted(VARIABLES)[half]
    for _ in range(TRIES):
        if len(patients) < 2:
            break
        variable = draw.choice(variables)
        chosen = tuple(draw.sample(patients, kind.patients))
        first = draw.randint(0, 24)
        last = draw.randint(first + 8, 44)
        group = _group(kind, stays, variable, draw)
        means = stays.group_means(group, variable) if group else pd.Series(dtype=float)
        series = tuple(stays.values(one, variable) for one in chosen)
        drawn = Drawn(chosen, series, means, first, last, draw.randint(last + 1, 72))
        parts = [drawn.window(n) for n, _ in enumerate(chosen)]
        parts += [drawn.early(n) for n, _ in enumerate(chosen)]
        if any(len(one) < LEAST or one.nunique() < 2 for one in parts) or (
            kind.group and means.empty
        ):
            continue
        answer, figures = kind.program(drawn)
        if abs(figures[0] - figures[1]) < 0.01 * max(map(abs, figures)):
            continue
        text = kind.text.format(
            variable=variable,
            first=first,
            last=last,
            later=drawn.later,
            group=group,
            **{f"patient{n}": one for n, one in enumerate(chosen, 1)},
        )
        needs = tuple((one, variable) for one in chosen)
        outermost = kind.group in (HIGHEST, LOWEST)
        groups = stays.phenotypes if outermost else [group] if group else []
        needs += tuple((one, variable) for one in groups)
        return Question(text, answer, kind.name, needs, figures)
    raise ValueError(f"{stays!r} has too few values to ask question {number} about")
