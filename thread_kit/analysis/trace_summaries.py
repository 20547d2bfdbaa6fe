"""What figures about failures need of traces, kept beside a suite's rows when traces are not.

    python -m thread_kit.analysis.trace_summaries FILE...

writes, for each file of a suite, FILE-errors.jsonl with the first error of each failed episode (by
the rules) and FILE-action-runs.jsonl with each episode's actions in a row, and how many of them
misread feedback. Where both are there, Figures 4, 5 and 6 of THREAD paper need no traces.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Container
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from thread_kit.analysis.records import list_records
from thread_kit.analysis.stored_rows import ACTION_RUNS, ERRORS
from thread_kit.errors.figures import action_runs
from thread_kit.errors.review import RULES, Review, read_reviews, review_by_rules, reviews_to_frame
from thread_kit.experiments.results import Results
from thread_kit.paths import resource
from thread_kit.trace.episode import Episode
from thread_kit.trace.jsonl import read_lines, replace_lines

TRACE = ("path", "trace")
"""The columns that tell where an episode's trace lies."""


def find_trace(row: dict[str, Any]) -> Path | None:
    """The trace of an episode: beside its file of results, or among the kit's saved episodes."""
    trace = row.get("trace")
    if not isinstance(trace, str):
        return None
    kept = Path(str(row["path"])).parent / trace, resource("data/episodes") / Path(trace).name
    return next((path for path in kept if path.is_file()), None)


def have_traces(rows: pd.DataFrame) -> pd.Series:
    """Which rows' traces are kept."""
    return pd.Series(
        [find_trace(row) is not None for row in list_records(rows, *TRACE)], rows.index
    )


def are_reviewed(rows: pd.DataFrame) -> pd.Series:
    """Of which rows the rules' reviews are known, or can be made of traces that are kept.

    Of a method's in a file all or none: with the solved alone there would seem to be no failures.
    """
    reviews = {path: _find_reviews(path) for path in rows["path"].unique()}
    suites = {path: set(map(os.path.dirname, known)) for path, known in reviews.items()}

    def is_known(row: dict[Any, Any]) -> bool:
        trace, path = row.get("trace"), row["path"]
        if not isinstance(trace, str):
            return False
        return os.path.dirname(trace) in suites[path] if row["solved"] else trace in reviews[path]

    known = [is_known(row) for row in list_records(rows, "solved", *TRACE)]
    reviewed = pd.Series(known, rows.index, dtype=bool) | have_traces(rows)
    return reviewed.groupby([rows["path"], rows["method"]]).transform("all")


def _find_reviews(path: str) -> dict[str, Review]:
    """The rules' reviews by trace: those beside a file, and the kit's, whose rows it may have."""
    return _read_reviews_of_kit() | _read_by_trace(_beside(path, ERRORS))


@cache
def _read_reviews_of_kit() -> dict[str, Review]:
    files = resource("data/results").glob(f"*{ERRORS}.jsonl")
    return {trace: one for file in files for trace, one in _read_by_trace(file).items()}


def _read_by_trace(path: Path) -> dict[str, Review]:
    return {one.episode: one for one in read_reviews(path) if one.reviewer == RULES}


def have_action_runs(rows: pd.DataFrame) -> pd.Series:
    """Of which rows it is known, or can be, how actions followed each other."""
    counted = {path: set(_read_action_runs(path)) for path in rows["path"].unique()}
    known = [row.get("trace") in counted[row["path"]] for row in list_records(rows, *TRACE)]
    return pd.Series(known, rows.index) | have_traces(rows)


def load_reviews(rows: pd.DataFrame) -> pd.DataFrame:
    """The rules' reviews of the failures of one file: those that there are, else of its traces."""
    (path,) = rows["path"].unique()
    known = _find_reviews(path)
    failed = rows[~rows["solved"].astype(bool)]
    current = _are_current(failed, known, _beside(path, ERRORS))
    made = review_by_rules(_load_traces(failed[~current]))
    known |= {one.episode: one for one in made}
    return reviews_to_frame([known[t] for t in failed["trace"] if t in known])


def load_action_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Of one file's episodes: `trace`, and for each length `in a row` its `actions` and `misread`.

    Those counted beside the file, else in the traces that are kept.
    """
    (path,) = rows["path"].unique()
    counted = _read_action_runs(path)
    others = rows[~_are_current(rows, counted, _beside(path, ACTION_RUNS))]
    counted |= _count_action_runs(_load_traces(others))
    lengths = [
        {"trace": trace, "in a row": length, "actions": actions, "misread": misread}
        for trace in rows["trace"]
        for length, (actions, misread) in enumerate(counted.get(trace, ()), start=1)
    ]
    return pd.DataFrame(lengths, columns=["trace", "in a row", "actions", "misread"])


def _are_current(rows: pd.DataFrame, known: Container[str], summary: Path) -> pd.Series:
    """Which rows are known, by a summary that is no older than their traces if it is there."""
    written = summary.stat().st_mtime_ns if summary.exists() else math.inf

    def is_current(row: dict[Any, Any]) -> bool:
        if row.get("trace") not in known:
            return False
        trace = find_trace(row)
        return trace is None or trace.stat().st_mtime_ns <= written

    current = [is_current(row) for row in list_records(rows, *TRACE)]
    return pd.Series(current, rows.index, dtype=bool)


def write_summaries(path: Path) -> None:
    """Write both files beside a suite's file; lines of traces that are no longer there stay.

    Raises ValueError where no trace is there, what reading the suite raises, OSError.
    """
    rows = Results.load(path).frame.assign(path=str(path))
    traces = _load_traces(rows)
    if not traces:
        raise ValueError(f"{path}: no trace of its episodes is there; play them with --traces")
    earlier = read_reviews(_beside(path, ERRORS))
    reviews = [one for one in earlier if one.reviewer != RULES or one.episode not in traces]
    reviews += review_by_rules(traces)
    place = {trace: number for number, trace in enumerate(rows["trace"])}
    known = [one for one in reviews if one.episode in place]
    known.sort(key=lambda one: place[one.episode])
    replace_lines(_beside(path, ERRORS), map(asdict, known))
    counted = _read_action_runs(path) | _count_action_runs(traces)
    runs = ({"trace": trace, "runs": counted[trace]} for trace in place if trace in counted)
    replace_lines(_beside(path, ACTION_RUNS), runs)


def _beside(path: str | Path, suffix: str) -> Path:
    path = Path(path)
    return path.with_name(f"{path.stem}{suffix}.jsonl")


def _load_traces(rows: pd.DataFrame) -> dict[str, Episode]:
    """Of each row whose trace is kept, by the trace's name."""
    found = {str(row.get("trace")): find_trace(row) for row in list_records(rows, *TRACE)}
    return {name: Episode.load(path) for name, path in found.items() if path}


def _count_action_runs(traces: dict[str, Episode]) -> dict[str, list[list[int]]]:
    """By trace, for each length of a row of actions: how many actions, how many misread."""
    table = action_runs({trace: [episode] for trace, episode in traces.items()})
    counted = {
        trace: lengths[["actions", "misread"]].to_numpy().tolist()
        for trace, lengths in table.groupby("method")
    }
    return {trace: counted.get(trace, []) for trace in traces}  # one without actions is known, too


def _read_action_runs(path: str | Path) -> dict[str, list[list[int]]]:
    """What `_count_action_runs` found in the traces of a file; {} if that was not kept."""
    beside = _beside(path, ACTION_RUNS)
    if not beside.exists():
        return {}
    return dict(read_lines(beside, lambda row: (row["trace"], row["runs"]), what="no action runs"))


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m thread_kit.analysis.trace_summaries", description=__doc__
    )
    parser.add_argument("results", nargs="+", type=Path, help="files of rows, their traces beside")
    options = parser.parse_args(arguments)
    try:
        for path in options.results:
            write_summaries(path)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"trace_summaries: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
