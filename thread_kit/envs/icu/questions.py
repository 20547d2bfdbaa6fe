"""The questions of ICU QA: their kinds and the generator (THREAD paper, appendix F).

After the released benchmark's fifteen templates, with what their wording says (the released program
computes the mean for the minimum, begins at an hour where it should end there, and is off by one
row at jumps); docs/fidelity/questions.md has what each kind changes. Four of them need phenotypes,
which only MIMIC-III's own tables have (`OF_PHENOTYPES`); for all stays there is the forecast
against those who survived or expired. The wording is ours.
"""

from __future__ import annotations

import random

import pandas as pd

from thread_kit.envs.env import check_split
from thread_kit.envs.icu.stays import GROUPS, RARE, Stays
from thread_kit.envs.qa.env import Question
from thread_kit.envs.qa.kinds import (
    ABOVE_BELOW,
    HIGHER_LOWER,
    MEASURES,
    MIN_VALUES,
    SPLITS,
    Kind,
    compute_measure,
    make_higher_lower,
)

TRIES = 2_000
_WINDOW = "from hour {first} to hour {last} of the ICU stay"
_FORECAST = "value expected at hour {later}"

ANY, HIGHEST, LOWEST = ("a phenotype", "the highest of a phenotype", "the lowest of a phenotype")
"""Groups that are drawn; of the averages of its patients, their mean counts or the outermost."""

REFERENCE_CODE = {"mean": "np.mean", "highest mean": "max", "lowest mean": "min"}
"""What of a group's averages a patient is compared to, in a request's words and in code."""


def _make_average(group: str, name: str, reference: str) -> Kind:
    text = f"Was the average {{variable}} of patient {{subject}} {_WINDOW} higher or lower than "
    end = f"the average {{variable}} of patient {{subject}} was {{answer}} than {reference}"
    name = f"average against {name}"
    return Kind(name, "average", f"{text}{reference}?", end, HIGHER_LOWER, group=group)


def _make_forecast(group: str, name: str, reference: str) -> Kind:
    text = (
        f"Going by the data {_WINDOW}, is the {{variable}} of patient {{subject}} expected to be "
        f"above or below {reference} at hour {{later}}?"
    )
    end = f"the {{variable}} of patient {{subject}} is expected to be {{answer}} {reference}"
    return Kind(f"expected against {name}", _FORECAST, text, end, ABOVE_BELOW, group=group)


_OF_ALL = "the average of all patients "

KINDS: tuple[Kind, ...] = (
    *(
        kind
        for name in ("maximum", "minimum", "average")
        for kind in make_higher_lower(
            name,
            name,
            f"Was the {name} of the {{variable}} {{more}} for patient {{subject}} or for patient "
            "{other}?",
            f"the {name} of the {{variable}} was {{more}} for patient {{answer}}",
        )
    ),
    *(
        Kind(
            f"{way} faster",
            "slope",
            f"In the first {{last}} hours of the ICU stay, was the {{variable}} {way} faster for "
            "patient {subject} or for patient {other}?",
            f"the {{variable}} was {way} faster for patient {{answer}}",
            sign=sign,
        )
        for way, sign in (("increasing", ">"), ("decreasing", "<"))
    ),
    *(_make_average(group, f"those who {group}", f"{_OF_ALL}who {group}") for group in GROUPS),
    *(
        Kind(
            f"hour of the {extreme}",
            f"hour of the {extreme}",
            f"At which hour {_WINDOW} was the {{variable}} of patient {{subject}} {extreme}?",
            f"the {{variable}} of patient {{subject}} was {extreme} at hour {{answer}}",
        )
        for extreme in ("highest", "lowest")
    ),
    *(
        Kind(
            f"hour of the largest {change}",
            f"hour of the largest {change}",
            f"At which hour {_WINDOW} had the {{variable}} of patient {{subject}} made its largest "
            f"{change} since the measurement before?",
            f"the {{variable}} of patient {{subject}} made its largest {change} at hour {{answer}}",
        )
        for change in ("increase", "decrease")
    ),
    *(_make_forecast(group, f"those who {group}", f"{_OF_ALL}who {group}") for group in GROUPS),
)

OF_PHENOTYPES: tuple[Kind, ...] = (
    _make_average(ANY, ANY, _OF_ALL + "with {group}"),
    _make_forecast(ANY, ANY, _OF_ALL + "with {group}"),
    _make_forecast(HIGHEST, HIGHEST, "the highest average among all patients with {group}"),
    _make_forecast(LOWEST, LOWEST, "the lowest average among all patients with {group}"),
)


def kinds_of(stays: Stays) -> tuple[Kind, ...]:
    """The kinds that can be asked about these stays, in the order of the questions' numbers."""
    return KINDS + OF_PHENOTYPES if stays.phenotypes else KINDS


def describe_members(group: str) -> str:
    """A group in the words of questions: "who survived", "with shock"."""
    return f"{'who' if group in GROUPS else 'with'} {group}"


def name_reference(kind: Kind) -> str:
    """What of a group's averages the patient is compared to: a name of `REFERENCE_CODE`."""
    return {HIGHEST: "highest mean", LOWEST: "lowest mean"}.get(kind.group or "", "mean")


def _compute_reference(kind: Kind, means: pd.Series) -> float:
    compute = {"mean": means.mean, "highest mean": means.max, "lowest mean": means.min}
    return float(compute[name_reference(kind)]())


def generate(stays: Stays, number: int, split: str | None = None) -> Question:
    """The question of this number; the same number, stays and split, the same question.

    split: every other patient and variable are for the test, the others for training; None asks
    about all. The groups are all patients of the stays, whatever the split. Raises ValueError for
    another split, and where the stays are too few to ask about.
    """
    if split is not None:
        check_split(split, SPLITS)
    draw = random.Random(number if split is None else f"{split} {number}")
    kinds = kinds_of(stays)
    kind = kinds[number % len(kinds)]
    half = slice(None) if split is None else slice(split == "train", None, 2)
    patients = sorted(stays.expired)[half]
    variables = sorted(set(stays.variables) - set(RARE))[half]
    for _ in range(TRIES if len(patients) > 1 else 0):
        variable = draw.choice(variables)
        question = _ask(kind, draw, stays, variable, draw.sample(patients, kind.subjects))
        if question:
            return question
    raise ValueError(f"{stays!r} has too few values to ask question {number} about")


def _ask(
    kind: Kind, draw: random.Random, stays: Stays, variable: str, patients: list[str]
) -> Question | None:
    """A question of this kind.

    None where values are missing, figures too near to tell apart, or what is asked is not so.
    """
    # 1. The window, and the values in it.
    first = draw.randint(0, 24)
    last = draw.randint(first + 8, 44)
    is_drawn = kind.group in (ANY, HIGHEST, LOWEST)
    group = draw.choice(sorted(stays.phenotypes)) if is_drawn else kind.group
    means = stays.group_means(group, variable) if group else pd.Series(dtype=float)
    series = [stays.values(patient, variable) for patient in patients]
    later = draw.randint(last + 1, 72)
    parts = [values.loc[start:last] for start in (first, None) for values in series]
    if any(len(values) < MIN_VALUES or values.nunique() < 2 for values in parts):
        return None
    if kind.group and means.empty:
        return None
    # 2. The figures.
    asked = slice(first if kind.has("first") else None, last if kind.has("last") else None)
    windows = [values.loc[asked] for values in series]
    near: tuple[float, ...]  # what must not be too near
    figures: tuple[float, ...]
    if kind.asks_when:
        best = MEASURES[kind.measure].compute(windows[0]).nlargest(2)
        near, hour = tuple(map(float, best)), float(best.index[0])
        figures, answer = (hour,), kind.answer([hour], patients)
    else:
        measure = kind.measure.format(later=later)
        figures = tuple(compute_measure(measure, values) for values in windows)
        figures += (_compute_reference(kind, means),) if kind.group else ()
        near, answer = figures, kind.answer(figures, patients)
    if abs(near[0] - near[1]) < 0.01 * max(map(abs, near)):
        return None
    if not kind.holds(near):
        return None
    # 3. The wording.
    fields = dict(zip(("subject", "other"), patients, strict=False), group=group)
    text = kind.text.format(variable=variable, first=first, last=last, later=later, **fields)
    needs = tuple((name, variable) for name in (*patients, *filter(None, [group])))
    return Question(text, answer, kind.name, needs, figures)
