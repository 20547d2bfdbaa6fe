"""Synthetic data to ask about: places, quantities and patients that exist nowhere.

The templates of the questions are the generators'; what stands in them is new for each question, so
that a model has to read it. No place, quantity, year or patient of the tests occurs: the names are
other ones, and training questions are about the years before `MIDDLE`.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import final

import pandas as pd

from thread_kit.distill.words import draw_word
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.questions import MIDDLE
from thread_kit.envs.datacommons.statistics import COUNTRY, ListedStatistics, OpenStatistics
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.stays import HOURS, VARIABLES, Stays
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.envs.qa.kinds import SPLITS

_NOUNS = re.split(
    ", ",
    "bakeries, bicycle thefts, bridges, broken windows, bus drivers, car accidents, carpenters, "
    "cinemas, coal exports, court cases, dairy farms, dentists, divorces, electric cars, "
    "empty houses, engineers, fishing licences, floods, food prices, forest fires, frost days, "
    "goats, heating costs, herring, hospital beds, house fires, hunting permits, imported cheese, "
    "insects, juvenile offences, kidney stones, lawyers, lead poisoning, libraries, "
    "lost children, marriages, milk consumption, minimum wages, mining accidents, night flights, "
    "nurses, organ donors, overtime, paper mills, parking fines, pears, poor households, "
    "power cuts, public debt, rainfall, road tolls, school meals, sheep, sick leave, "
    "silver coins, snakebites, snowfall, sugar, swimming pools, tax returns, teachers, tourists, "
    "train delays, unpaid bills, vineyards, visitors, waste, water use, wheat, wind farms, wool",
)
_PLACES = re.split(
    ", ",
    "Canada, Kenya, Norway, Chile, Peru, Japan, Lisbon, Vienna, Cairo, Brazil, Poland, Greece, "
    "Denmark, Ireland, Scotland, Toronto, Sydney, Dublin, Madrid, Bavaria, Burgundy, Tuscany, "
    "Quebec, Ontario, Manitoba, Queensland, Bristol, Leeds, Oxford, Hamburg, Munich, Prague, "
    "Warsaw, Kiev, Moscow, Delhi, Bengal, Punjab, Lima, Havana, Jamaica, Iceland, Finland, Cyprus, "
    "Malta, Morocco, Ghana, Angola, Zambia, Uganda, Nepal, Tibet, Vietnam, Korea, Hawke Bay, "
    "South Island, Costa Rica, Sri Lanka, Cape Town, Buenos Aires, Hong Kong",
)
_PHRASES = (
    "the rate of {}",
    "the rate of {} cases",
    "the number of {}",
    "the share of {}",
    "the amount of {}",
    "the {} rate",
    "the {} index",
    "the {} per person",
    "the average of {}",
)
_PARTS = ("", "", "", "New ", "North ", "West ", "Lower ", "Saint ", "Port ")
_MEASURES = ("mean", "average", "lowest", "highest", "total", "median", "maximum", "minimum")
_MEASURED = ("pressure", "rate", "level", "count", "volume", "temperature", "index", "response")
_CONDITIONS = ("failure", "disease", "infection", "disorders", "injury", "syndrome")

FIRST_YEAR = 1921


def _new_place(draw: random.Random) -> str:
    """A name of one word or two, some with a hyphen: "Lower Wenchesel", "Barkel-Isith"."""
    word = draw_word(draw).capitalize()
    if draw.random() < 0.25:
        word += draw.choice((" ", "-")) + draw_word(draw).capitalize()
    return draw.choice(_PARTS) + word


def _new_quantity(draw: random.Random) -> str:
    """What is counted: one word or two, or with a digit: "spatula type 2"."""
    words = [draw_word(draw) for _ in range(draw.choice((1, 1, 2)))]
    return " ".join(words) + (f" type {draw.randint(1, 9)}" if draw.random() < 0.15 else "")


def _new_variable(draw: random.Random) -> str:
    """What is measured; its name may begin with a word for a measure: "mean spatula pressure"."""
    words = [draw_word(draw) for _ in range(draw.choice((0, 1, 1, 2)))]
    if not words or draw.random() < 0.4:
        words = [draw.choice(_MEASURES), *words]
    return " ".join([*words, draw.choice(_MEASURED)])


@cache
def _training_states() -> list[str]:
    source = OpenStatistics()
    ids = sorted(ID for ID in source.places if ID != COUNTRY)[SPLITS.index("train") :: 2]
    return [source.places[ID] for ID in ids]


def _walk(draw: random.Random, length: int, digits: int) -> list[float]:
    """A series that drifts and wavers."""
    scale = 10 ** draw.uniform(-1, 4)
    drift, value, values = draw.gauss(0, 0.05), 1 + draw.random(), []
    for _ in range(length):
        value = max(0.05, value + drift * value + draw.gauss(0, 0.1))
        values.append(round(value * scale, digits))
    return values


@final
class SyntheticStatistics(ListedStatistics):
    """Some ten places and four variables, the same for the same seed.

    Half of them have new names, the others are called like places of the world and like the states
    of the training half: a model has to copy both names that it knows and names that it does not.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(f"statistics {seed}")
        known = [*_PLACES, *_training_states()]
        names = {*(_new_place(draw) for _ in range(5)), *draw.sample(known, 5)}
        self.places = {f"place/{n}": name for n, name in enumerate(sorted(names))}
        self.places[COUNTRY] = "United States"
        about = [*draw.sample(_NOUNS, 2), *(_new_quantity(draw) for _ in range(2))]
        self.variables = {f"Q{n}": draw.choice(_PHRASES).format(w) for n, w in enumerate(about)}
        self._seed = seed

    def series(self, place_ID: str, variable_ID: str) -> Sequence[tuple[int, float]]:
        draw = random.Random(f"{self._seed} {place_ID} {variable_ID}")
        first = FIRST_YEAR + draw.randrange(20)
        return list(enumerate(_walk(draw, MIDDLE - first, 4), first))


@final
class SyntheticStays(Stays):
    """Eight patients, three conditions and fourteen variables, the same for the same seed."""

    source = "synthetic"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @property
    def name(self) -> str:
        return f"{self.source} {self._seed}"

    @cached_property
    def variables(self) -> dict[str, str]:
        draw = random.Random(f"variables {self._seed}")
        taught = sorted(VARIABLES)[1::2]  # those that ICU QA's own training questions are about
        names = {*draw.sample(taught, 4), *(_new_variable(draw) for _ in range(10))}
        return {name: name for name in sorted(names)}

    @cached_property
    def expired(self) -> dict[str, int]:
        draw = random.Random(f"stays {self._seed}")
        digits = draw.choice((3, 4, 5, 5, 6, 6))
        numbers = draw.sample(range(10 ** (digits - 1), 10**digits), 8)
        return {str(number): n % 2 for n, number in enumerate(numbers)}

    def table(self, patient: str) -> pd.DataFrame:
        if patient not in self.expired:
            raise self._unknown(patient)
        draw = random.Random(f"{self._seed} {patient}")
        hours = sorted({round(draw.uniform(0, HOURS), 4) for _ in range(30)})
        columns = {column: _walk(draw, len(hours), 2) for column in self.variables}
        return pd.DataFrame({"Hours": hours, **columns})

    @cached_property
    def phenotypes(self) -> dict[str, frozenset[str]]:
        draw = random.Random(f"phenotypes {self._seed}")
        patients = list(self.expired)
        names = {f"{draw_word(draw).capitalize()} {draw.choice(_CONDITIONS)}" for _ in range(3)}
        return {name: frozenset(draw.sample(patients, 4)) for name in sorted(names)}


def training_questions(seed: int) -> Iterator[QuestionEnv]:
    """Training questions without end: one of DataCommons QA and one of ICU QA in turn."""
    for number in itertools.count(seed * 1_000_000):
        yield DataCommonsQA("train", number, source=SyntheticStatistics(number))
        yield IcuQA(SyntheticStays(number), number, split="train")
