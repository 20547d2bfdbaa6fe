"""ICU stays: the folder layout of mimic3-benchmarks, open stays in it, and synthetic ones.

A folder has `in-hospital-mortality/{train,test}/` with a `listfile.csv` (stay, y_true) and one
`<patient>_episode<n>_timeseries.csv` a stay: the first 48 hours, a row a time, an empty field where
nothing was measured. Where there are `all_stays.csv` and `phenotype_labels.csv`, they say which
conditions the patients had. Everything is read from where it lies; nothing is copied or written.

MIMIC-III is for those who have access to it. PhysioNet/CinC Challenge 2012 set A (4,000 stays, Open
Data Commons Attribution Licence) is open to all: `PhysioNet2012`. `write_synthetic_stays` makes
stays for tests and notebooks.
"""

from __future__ import annotations

import atexit
import io
import os
import random
import re
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd

COLUMNS = (
    *("Hours", "Capillary refill rate", "Diastolic blood pressure", "Fraction inspired oxygen"),
    *("Glascow coma scale eye opening", "Glascow coma scale motor response"),
    *("Glascow coma scale total", "Glascow coma scale verbal response", "Glucose", "Heart Rate"),
    *("Height", "Mean blood pressure", "Oxygen saturation", "Respiratory rate"),
    *("Systolic blood pressure", "Temperature", "Weight", "pH"),
)
"""The header of a stay's file, to the letter."""

RARE = {"capillary refill rate": "Capillary refill rate"}
"""What the released program asks about, too, and questions made here do not: few have a value."""

VARIABLES = {
    column.lower() if column != "pH" else "pH": column
    for column in COLUMNS
    if column not in ("Hours", "Height", *RARE.values()) and "Glascow" not in column
}
"""What questions made here are about, by the words that they use."""

MIMIC = "mimic3-benchmarks"
GROUPS = {"survived": 0, "expired": 1}
HOURS = 48.0
_FILE = re.compile(r"(\d+)_episode1_timeseries\.csv")


class Stays(ABC):
    """The stays of a data set, by the patient's number. source: what the data set is called."""

    source: str

    @property
    def name(self) -> str:
        """Which stays these are: with others a question of the same number is another one."""
        return f"{self.source} ({len(self.expired)} stays)"

    @property
    def variables(self) -> Mapping[str, str]:
        """The column of each variable, by the words that questions use."""
        return VARIABLES

    @property
    @abstractmethod
    def expired(self) -> dict[str, int]:
        """1 for a patient who died in the hospital, else 0."""

    @abstractmethod
    def table(self, patient: str) -> pd.DataFrame:
        """The first 48 hours of a stay, with `COLUMNS`; raises LookupError for no such patient."""

    def values(self, patient: str, variable: str) -> pd.Series:
        """What was measured, by hour; raises LookupError for an unknown patient or variable."""
        self._check_variable(variable)
        return self._select(self.table(patient), variable)

    @cached_property
    def means(self) -> pd.DataFrame:
        """The mean of each variable (a column) of each patient (a row); reads every stay, once."""
        rows = {}
        for patient in self.expired:
            table = self.table(patient)
            rows[patient] = {name: self._select(table, name).mean() for name in self.variables}
        columns = list(self.variables)
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns, dtype=float)

    @property
    def phenotypes(self) -> dict[str, frozenset[str]]:
        """The patients who had a condition, by its name; {} where the data set does not say."""
        return {}

    @property
    def groups(self) -> tuple[str, ...]:
        """Whom a patient can be compared to: those who survived, expired, or had a condition."""
        return (*GROUPS, *self.phenotypes)

    def group_means(self, group: str, variable: str) -> pd.Series:
        """The mean of a variable of each patient of a group that has one."""
        if group not in self.groups:
            raise LookupError(f"There is no group {group!r}. There are: {', '.join(self.groups)}.")
        self._check_variable(variable)
        if group in GROUPS:
            members = [who for who, died in self.expired.items() if died == GROUPS[group]]
        else:
            members = [who for who in self.expired if who in self.phenotypes[group]]
        return self.means.loc[members, variable].dropna()

    def _unknown(self, patient: str) -> LookupError:
        return LookupError(f"There is no patient {patient!r} among the {len(self.expired)} stays.")

    def _check_variable(self, variable: str) -> None:
        if variable not in self.variables:
            known = ", ".join(self.variables)
            raise LookupError(f"There is no variable {variable!r}. There are: {known}.")

    def _select(self, table: pd.DataFrame, variable: str) -> pd.Series:
        measured = table.set_index("Hours")[self.variables[variable]].dropna()
        return measured[~measured.index.duplicated()].sort_index()


@final
class Mimic3Stays(Stays):
    """A folder of mimic3-benchmarks; of each patient the first stay, as in the ICU QA benchmark.

    source: what the stays are called, if they are others in the same layout. Raises
    FileNotFoundError if the folder has no list of stays.
    """

    def __init__(self, folder: str | Path, source: str = MIMIC) -> None:
        self.source = source
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

    @property
    def variables(self) -> Mapping[str, str]:
        """See Stays; of MIMIC-III all that the released program asks about."""
        return {**VARIABLES, **RARE} if self.source == MIMIC else VARIABLES

    @cached_property
    def _stays(self) -> dict[str, tuple[Path, int]]:
        stays = {}
        for path in self._lists:
            for name, died in pd.read_csv(path)[["stay", "y_true"]].itertuples(index=False):
                if match := _FILE.fullmatch(name):
                    stays[match[1]] = path.parent / name, int(died)
        return dict(sorted(stays.items()))

    @property
    def expired(self) -> dict[str, int]:
        return {patient: died for patient, (_, died) in self._stays.items()}

    def table(self, patient: str) -> pd.DataFrame:
        if patient not in self._stays:
            raise self._unknown(patient)
        return pd.read_csv(self._stays[patient][0])

    @cached_property
    def phenotypes(self) -> dict[str, frozenset[str]]:
        """See Stays; of a patient's stays the first counts. Raises ValueError if the files differ.

        The labels have no numbers: their rows are those of all stays in the order of ICUSTAY_ID.
        """
        files = [self.folder.parent / name for name in ("all_stays.csv", "phenotype_labels.csv")]
        if not all(file.is_file() for file in files):
            return {}
        stays, labels = map(pd.read_csv, files)
        if len(stays) != len(labels):
            raise ValueError(
                f"{files[0]} has {len(stays)} stays and {files[1].name} has {len(labels)}; take "
                "both from the same run of mimic3-benchmarks"
            )
        stays = stays.sort_values("ICUSTAY_ID", ignore_index=True)
        first = stays.sort_values("INTIME").drop_duplicates("SUBJECT_ID")
        had = labels.loc[first.index].eq(1).set_axis(first["SUBJECT_ID"].astype(str))
        return {name.lower(): frozenset(had.index[had[name]]) for name in labels}


_COLUMN_OF = {
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

    source = "PhysioNet 2012"

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
            return {file.stem: file.read_text("utf-8") for file in sorted(self.path.rglob("*.txt"))}
        with tarfile.open(self.path) as tar:
            texts = {}
            for member in tar.getmembers():
                if member.name.endswith(".txt") and (file := tar.extractfile(member)):
                    texts[Path(member.name).stem] = file.read().decode()
        return dict(sorted(texts.items()))

    @cached_property
    def expired(self) -> dict[str, int]:
        table = pd.read_csv(self.outcomes, dtype={"RecordID": str})
        died = dict(zip(table["RecordID"], table["In-hospital_death"], strict=True))
        return {who: int(died[who]) for who in self._texts if who in died}

    def table(self, patient: str) -> pd.DataFrame:
        wide = self._rows(patient).pivot(index="Hours", columns="column", values="Value")
        return wide.reset_index().rename_axis(columns=None).reindex(columns=list(COLUMNS))

    def values(self, patient: str, variable: str) -> pd.Series:
        self._check_variable(variable)
        rows = self._rows(patient)
        rows = rows[rows["column"] == VARIABLES[variable]]
        return rows.set_index("Hours")["Value"].sort_index()

    @cached_property
    def means(self) -> pd.DataFrame:
        means = self._long.groupby(["patient", "column"])["Value"].mean().unstack()
        return means.reindex(list(self.expired), columns=list(VARIABLES.values())).set_axis(
            list(VARIABLES), axis="columns"
        )

    def _rows(self, patient: str) -> pd.DataFrame:
        if patient not in self._texts:
            raise self._unknown(patient)
        return self._long.iloc[self._row_numbers.get(patient, [])]

    @cached_property
    def _long(self) -> pd.DataFrame:
        """patient, Hours, column, Value: what was measured, all stays in one table."""
        lines = [
            f"{patient},{line}"
            for patient, text in self._texts.items()
            for line in text.splitlines()[1:]
        ]
        names = ["patient", "Time", "Parameter", "Value"]
        file = io.StringIO("\n".join(lines))
        rows = pd.read_csv(file, names=names, dtype={"patient": str})
        rows = rows[rows["Parameter"].isin(_COLUMN_OF) & (rows["Value"] >= 0)]
        hours = {time: int(time[:-3]) + int(time[-2:]) / 60 for time in rows["Time"].unique()}
        rows = rows.assign(Hours=rows["Time"].map(hours), column=rows["Parameter"].map(_COLUMN_OF))
        rows = rows.drop_duplicates(["patient", "Hours", "column"], ignore_index=True)
        return rows[["patient", "Hours", "column", "Value"]]

    @cached_property
    def _row_numbers(self) -> dict[str, np.ndarray]:
        """By patient."""
        return {str(who): rows for who, rows in self._long.groupby("patient").indices.items()}


_SYNTHETIC: dict[str, tuple[float, float, float, int]] = {
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


CONDITIONS = ("Acute and unspecified renal failure", "Septicemia (except in labor)", "Shock")
"""Three of the 25 columns of phenotype_labels.csv, for synthetic stays."""


def write_synthetic_stays(
    folder: str | Path, patients: int = 20, seed: int = 0, *, phenotypes: bool = False
) -> Mimic3Stays:
    """Write stays of no patient in the exact layout, for tests and notebooks.

    phenotypes: write the tables of conditions, too.
    """
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
    if phenotypes:
        _write_phenotypes(Path(folder), draw, [10_000 + number for number in range(patients)])
    return Mimic3Stays(folder, source="made up")  # the name that saved tasks have


def _write_phenotypes(folder: Path, draw: random.Random, patients: list[int]) -> None:
    stays = pd.DataFrame({"SUBJECT_ID": patients, "INTIME": "2101-01-01 00:00:00"})
    stays["ICUSTAY_ID"] = draw.sample(range(200_000, 300_000), len(patients))
    stays.to_csv(folder / "all_stays.csv", index=False)
    labels = [[int(draw.random() < 0.4) for _ in CONDITIONS] for _ in patients]
    pd.DataFrame(labels, columns=list(CONDITIONS)).to_csv(
        folder / "phenotype_labels.csv", index=False
    )


def _stay(draw: random.Random, died: int) -> str:
    own = {c: draw.gauss(m + died * b, b) for c, (m, b, _, _) in _SYNTHETIC.items()}
    off = dict.fromkeys(own, 0.0)
    hours = sorted({round(draw.uniform(0, HOURS), 4) for _ in range(draw.randint(40, 90))})
    lines = [",".join(COLUMNS)]
    for hour in hours:
        fields = [str(hour)]
        for column in COLUMNS[1:]:
            if column not in _SYNTHETIC or draw.random() < _missing(column, len(lines)):
                fields.append("")
                continue
            _, _, within, digits = _SYNTHETIC[column]
            off[column] = 0.8 * off[column] + draw.gauss(0, within)
            fields.append(str(round(own[column] + off[column], digits or None)))
        lines.append(",".join(fields))
    return "\n".join(lines) + "\n"


def _missing(column: str, row: int) -> float:
    if column == "Weight":
        return float(row != 1)
    return 0.9 if column in ("Glucose", "pH", "Fraction inspired oxygen") else 0.3


STAYS_VARIABLE = "THREAD_KIT_ICU"
"""The environment variable that says where real stays are."""

PATIENTS, SEED = 60, 1
"""Of the synthetic ones; those of the prompts' examples have seed 0."""


def load_stays() -> Stays:
    """The stays at THREAD_KIT_ICU, else synthetic ones.

    A folder of mimic3-benchmarks, or set A of PhysioNet/CinC Challenge 2012 (a folder, or a tar
    file of it, with Outcomes-a.txt beside it). Read once in a process. Raises FileNotFoundError.
    """
    return _stays(os.environ.get(STAYS_VARIABLE, ""))


@cache
def _stays(where: str) -> Stays:
    if not where:
        folder = tempfile.TemporaryDirectory(prefix="thread-kit-stays-")
        atexit.register(folder.cleanup)
        return write_synthetic_stays(folder.name, PATIENTS, SEED)
    path = Path(where).expanduser()
    if (path / "in-hospital-mortality").is_dir():
        return Mimic3Stays(path)
    return PhysioNet2012(path)
