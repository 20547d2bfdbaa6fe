"""The episodes that have been played, found in files of results; nothing is run.

data/results has those of few-shot prompts, data/adapters those of models that an adapter has
taught; a folder of one's own, as `thread_kit reproduce` writes it, is read beside them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from thread_kit.analysis.statistics import EPISODE
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import canonical
from thread_kit.paths import resource

OWN = Path("runs/reproduce")
"""Where `thread_kit reproduce` writes what it plays, from the current folder."""

TAUGHT = "smollm2-135m, taught"
"""The embedded model with an adapter: distilled, and shown no examples."""

ERRORS = "-errors"
"""Of the file that has the first errors of a file of results beside it."""


def load_stored_rows(folders: Iterable[str | Path] = ()) -> pd.DataFrame:
    """One row an episode of the kit's files and of `folders`, with its file and date.

    Columns are those of `Results.frame`, and `path`, `file`, `date` (ISO), `command`. Where a file
    has an episode twice, played with other prompts or budgets, the later row counts. Raises what
    reading the files raises.
    """
    frames = [_load_taught(path) for path in _list(resource("data/adapters"), "results-*.jsonl")]
    for folder in (resource("data/results"), *map(Path, folders)):
        frames += [_load_suite(path) for path in _list(folder, "*.jsonl")]
    frame = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    # One model's runs in different files are different runs: never added up.
    by = ["environment", "method", "model"]
    several = frame.groupby(by)["path"].transform("nunique") > 1
    frame.loc[several, "model"] += " (" + frame.loc[several, "file"] + ")"
    return frame


def load_commands() -> dict[str, dict[str, str]]:
    """By path in data/: the date of a file of results, and the command that made it."""
    with resource("data/results/runs.csv").open(encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def _list(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if not path.stem.endswith(ERRORS))


def _load_suite(path: Path) -> pd.DataFrame:
    results = Results.load(path)
    if not len(results):
        return pd.DataFrame()
    frame = results.frame.drop_duplicates([*EPISODE, "environment"], keep="last")
    names = [(row["engine"] or {}).get("file") for row in results]
    return _describe(frame.assign(weights=pd.Series(names)), path)


def _load_taught(path: Path) -> pd.DataFrame:
    """Rows of `distill evaluate`, in the columns of a suite's."""
    method = "react" if "react" in path.stem else "thread"
    rows = []
    for line in path.read_text("utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        if "depth" in row:  # as it was written while TextCraft's test was all there was
            task = {"split": "test", "number": row["number"]}
            row = {**row, "environment": "textcraft", "task": task}
            del row["depth"]  # the recipe's; in a suite's rows the thread's
        row |= {**row["task"], "task": canonical(row["task"]), "reward": float(row["solved"])}
        rows.append({**row, "method": method, "model": TAUGHT, "seed": 0, "error": ""})
    return _describe(pd.DataFrame(rows), path)


def _describe(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    known = load_commands().get(f"{path.parent.name}/{path.name}", {})
    if known and path.parent.parent != resource("data"):  # a folder of one's own by that name
        known = {}
    day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    return frame.assign(
        task=frame["environment"] + " " + frame["task"],  # those of two benchmarks never are one
        path=str(path),
        file=path.stem,
        date=known.get("date", day),
        command=known.get("command", ""),
    )
