"""ICU stays: the folder layout of mimic3-benchmarks, open stays in it, and made-up ones.

A folder has `in-hospital-mortality/{train,test}/` with a `listfile.csv` (stay, y_true) and one
`<patient>_episode<n>_timeseries.csv` a stay: the first 48 hours, a row a time, an empty field where
nothing was measured. Everything is read from where it lies; nothing is copied or written.

MIMIC-III is for those who have access to it. PhysioNet/CinC Challenge 2012 set A (4,000 stays, Open
Data Commons Attribution Licence) is open to all: `PhysioNet2012`. `made_up` writes stays for tests.
"""

from __future__ import annotations

import io
import random
import re
import tarfile
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, final

import pandas as pd

COLUMNS = (
    *("Hours", "Capillary refill rate", "Diastolic blood pressure", "Fraction inspired oxygen"),
    *("Glascow coma scale eye opening", "Glascow coma scale motor response"),
    *("Glascow coma scale total", "Glascow coma scale verbal response", "Glucose", "Heart Rate"),
    *("Height", "Mean blood pressure", "Oxygen saturation", "Respiratory rate"),
    *("Systolic blood pressure", "Temperature", "Weight", "pH"),
)
"""The header of a stay's file, to the letter."""

VARIABLES = {
    column.lower() if column != "pH" else "pH": column
    for column in COLUMNS
    if column not in ("Hours", "Height", "Capillary refill rate") and "Glascow" not in column
}
"""What questions are about, by the words that they use."""

GROUPS = {"survived": 0, "expired": 1}
HOURS = 48.0
_FILE = re.compile(r"(\d+)_episode1_timeseries\.csv")


class Stays(ABC):
    """The stays of a data set, by the patient's number."""

    @property
    @abstractmethod
    def expired(self) -> dict[str, int]:
        """1 for a patient who died in the hospital, else 0."""

    @abstractmethod
    def table(self, patient: str) -> pd.DataFrame:
        """The first 48 hours of a stay, with `COLUMNS`; raises LookupError for no such patient."""

    def values(self, patient: str, variable: str) -> pd.Series:
        """What was measured, by hour; raises LookupError for an unknown patient or variable."""
        if variable not in VARIABLES:
            known = ", ".join(VARIABLES)
            raise LookupError(f"There is no variable {variable!r}. There are: {known}.")
        table = self.table(patient)
        measured = table.set_index("Hours")[VARIABLES[variable]].dropna()
        return measured[~measured.index.duplicated()].sort_index()

    def group_means(self, group: str, variable: str) -> pd.Series:
        """The mean of a variable of each patient of a group that has one."""
        if group not in GROUPS:
            raise LookupError(f"There is no group {group!r}. There are: {', '.join(GROUPS)}.")
        members = [one for one, died in self.expired.items() if died == GROUPS[group]]
        means = {one: self.values(one, variable).mean() for one in members}
        return pd.Series(means, dtype=float).dropna()

    def _unknown(self, patient: str) -> LookupError:
        return LookupError(f"There is no patient {patient!r} among the {len(self.expired)} stays.")


@final
class Mimic3Stays(Stays):
    """A folder of mimic3-benchmarks; of each patient the first stay, as in the ICU QA benchmark.

    Raises FileNotFoundError if the folder has no list of stays.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / "in-hospital-mortality"
        self._lists = sorted(self.folder.glob("*/listfile.csv"))
        if not self._lists:
            raise FileNotFoundError(
                f"no in-hospital-mortality/*/listfile.csv in {folder}. Make the folder with "
                "mimic3-benchmarks from MIMIC-III (physionet.org/content/mimiciii/1.4), or take "
                "open stays: PhysioNet2012(path of set-a)"
            )

    def __repr__(self) -> str:
        return f"Mimic3Stays({str(self.folder.parent)!r}, {len(self.expired)} patients)"

    @cached_property
    def _stays(self) -> dict[str, tuple[Path, int]]:
        found = {}
        for path in self._lists:
            for name, died in pd.read_csv(path)[["stay", "y_true"]].itertuples(index=False):
                if match := _FILE.fullmatch(name):
                    found[match[1]] = path.parent / name, int(died)
        return dict(sorted(found.items()))

    @property
    def expired(self) -> dict[str, int]:
        return {patient: died for patient, (_, died) in self._stays.items()}

    def table(self, patient: str) -> pd.DataFrame:
        if patient not in self._stays:
            raise self._unknown(patient)
        return pd.read_csv(self._stays[patient][0])


_OF_2012 = {
    "DiasABP": "Diastolic blood pressure",
    "NIDiasABP": "Diastolic blood pressure",
    "FiO2": "Fraction inspired oxygen",
    "GCS": "Glascow coma scale total",
    "Glucose": "Glucose",
    "HR": "Heart Rate",
    "Height": "Height",
    "MAP": "Mean blood pressure",
    "NIMAP": "Mean blood pressure",
    "SaO2": "Oxygen saturation",
    "RespRate": "Respiratory rate",
    "SysABP": "Systolic blood pressure",
    "NISysABP": "Systolic blood pressure",
    "Temp": "Temperature",
    "Weight": "Weight",
    "pH": "pH",
}


@final
class PhysioNet2012(Stays):
    """Set A of the PhysioNet/CinC Challenge 2012: a folder, or a tar file of it.

    path: with the stays' .txt files, as PhysioNet offers them (set-a.zip unpacked, or any tar of
    it). outcomes: Outcomes-a.txt; None looks beside `path`. Invasive and cuff pressures are one
    variable, as in mimic3-benchmarks; -1 is "not known". Raises FileNotFoundError.
    """

    def __init__(self, path: str | Path, outcomes: str | Path | None = None) -> None:
        self.path = Path(path)
        self.outcomes = Path(outcomes) if outcomes else self.path.parent / "Outcomes-a.txt"
        for needed in (self.path, self.outcomes):
            if not needed.exists():
                raise FileNotFoundError(
                    f"there is no {needed}. Get set-a and Outcomes-a.txt from "
                    "https://physionet.org/content/challenge-2012/1.0.0/"
                )

    def __repr__(self) -> str:
        return f"PhysioNet2012({str(self.path)!r})"

    @cached_property
    def _texts(self) -> dict[str, str]:
        if self.path.is_dir():
            return {one.stem: one.read_text("utf-8") for one in sorted(self.path.rglob("*.txt"))}
        with tarfile.open(self.path) as tar:
            members = [one for one in tar.getmembers() if one.name.endswith(".txt")]
            texts = {}
            for one in members:
                file = tar.extractfile(one)
                if file:
                    texts[Path(one.name).stem] = file.read().decode()
        return dict(sorted(texts.items()))

    @cached_property
    def expired(self) -> dict[str, int]:
        table = pd.read_csv(self.outcomes, dtype={"RecordID": str})
        died = dict(zip(table["RecordID"], table["In-hospital_death"], strict=True))
        return {one: int(died[one]) for one in self._texts if one in died}

    def table(self, patient: str) -> pd.DataFrame:
        if patient not in self._texts:
            raise self._unknown(patient)
        rows = pd.read_csv(io.StringIO(self._texts[patient]))
        rows = rows[rows["Parameter"].isin(_OF_2012) & (rows["Value"] >= 0)]
        clock = rows["Time"].str.split(":", expand=True).astype(int)
        rows = rows.assign(Hours=clock[0] + clock[1] / 60, column=rows["Parameter"].map(_OF_2012))
        wide = rows.pivot_table(index="Hours", columns="column", values="Value", aggfunc="first")
        return wide.reset_index().reindex(columns=list(COLUMNS))


_MADE_UP: dict[str, tuple[float, float, float, int]] = {
    # mean, spread between patients, spread within one, digits
    "Diastolic blood pressure": (59, 8, 5, 0),
    "Fraction inspired oxygen": (0.45, 0.08, 0.05, 2),
    "Glucose": (140, 25, 15, 0),
    "Heart Rate": (86, 12, 6, 0),
    "Mean blood pressure": (78, 9, 5, 0),
    "Oxygen saturation": (97, 1, 1, 0),
    "Respiratory rate": (19, 3, 2, 0),
    "Systolic blood pressure": (119, 14, 7, 0),
    "Temperature": (37.0, 0.4, 0.3, 1),
    "Weight": (80, 14, 0, 1),
    "pH": (7.39, 0.04, 0.02, 2),
}


def made_up(folder: str | Path, patients: int = 20, seed: int = 0) -> Mimic3Stays:
    """Write stays of no patient in the exact layout, for tests and notebooks."""
    draw = random.Random(seed)
    for split, numbers in (("train", range(0, patients, 2)), ("test", range(1, patients, 2))):
        path = Path(folder) / "in-hospital-mortality" / split
        path.mkdir(parents=True, exist_ok=True)
        lines = ["stay,y_true"]
        for number in numbers:
            name = f"{10_000 + number}_episode1_timeseries.csv"
            died = int(draw.random() < 0.3)
            (path / name).write_text(_stay(draw, died), encoding="utf-8")
            lines.append(f"{name},{died}")
        (path / "listfile.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Mimic3Stays(folder)


def _stay(draw: random.Random, died: int) -> str:
    own = {c: draw.gauss(m + died * b, b) for c, (m, b, _, _) in _MADE_UP.items()}
    off = dict.fromkeys(own, 0.0)
    hours = sorted({round(draw.uniform(0, HOURS), 4) for _ in range(draw.randint(40, 90))})
    lines = [",".join(COLUMNS)]
    for hour in hours:
        fields = [str(hour)]
        for column in COLUMNS[1:]:
            if column not in _MADE_UP or draw.random() < _missing(column, len(lines)):
                fields.append("")
                continue
            _, _, within, digits = _MADE_UP[column]
            off[column] = 0.8 * off[column] + draw.gauss(0, within)
            fields.append(str(round(own[column] + off[column], digits or None)))
        lines.append(",".join(fields))
    return "\n".join(lines) + "\n"


def _missing(column: str, row: int) -> float:
    if column == "Weight":
        return float(row != 1)
    return 0.9 if column in ("Glucose", "pH", "Fraction inspired oxygen") else 0.3


def rows(values: pd.Series) -> list[dict[str, Any]]:
    """A series as data for a thread: [{"hour": 1.2, "value": 88.0}]."""
    return [{"hour": round(float(h), 4), "value": float(v)} for h, v in values.items()]


__all__ = [
    "COLUMNS",
    "GROUPS",
    "VARIABLES",
    "Mimic3Stays",
    "PhysioNet2012",
    "Stays",
    "made_up",
    "rows",
]
