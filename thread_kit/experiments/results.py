"""The episodes of a suite, as rows, as a pandas frame, as a Hugging Face dataset.

What makes frames is imported where one is made: a process that plays episodes does without.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from thread_kit.experiments.results_file import (
    COLUMNS,
    broke_down,
    canonical,
    is_scalar,
    read_results,
)
from thread_kit.experiments.spent_budget import find_budget
from thread_kit.trace.printable import sanitize

if TYPE_CHECKING:
    import pandas as pd
    from datasets import Dataset


@final
class Results:
    """Episodes of a suite that are over. rows: one an episode, as in the file."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = list(rows)

    @classmethod
    def load(cls, path: str | Path, *more: str | Path) -> Results:
        """The results in a file, or in several; needs no model, and works while a suite runs.

        Raises FileNotFoundError, or ResultsFileError for what is no file of a suite.
        """
        return cls(read_results(path, *more))

    @property
    def frame(self) -> pd.DataFrame:
        """One row an episode. `task` is JSON text; its parts (split, number ...) are columns too.

        limits, budget, loop and engine are JSON text, and of a task what is a list or more, or a
        number from 2**53 on. What a suite's row may have, or some row here has, is never a part of
        the task. An episode that was not started has the others' environment, where they have one.
        """
        import pandas as pd

        texts = ("task", "limits", "budget", "loop", "engine")
        columns = {name for row in self.rows for name in row} | COLUMNS
        frame = pd.DataFrame(
            [
                {**row, **{name: canonical(row[name]) for name in texts if name in row}}
                | {
                    part: value if is_scalar(value) else canonical(value)
                    for part, value in row["task"].items()
                    if part not in columns
                }
                for row in self.rows
            ]
        )
        if "environment" in frame and frame["environment"].nunique() == 1:
            frame["environment"] = frame["environment"].ffill().bfill()
        return frame

    def to_dataset(self) -> Dataset:
        """The frame as a Hugging Face dataset.

        A column of dictionaries, or of several kinds of values, is JSON text.
        """
        from datasets import Dataset

        frame = self.frame
        for name in frame.columns:
            values = frame[name].dropna()
            kinds = set(values.map(type)) if frame[name].dtype == "object" else set()
            if len(kinds) > 1 or dict in kinds:
                frame[name] = values.map(canonical)
        return Dataset.from_pandas(frame, preserve_index=False)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        solved = sum(row["solved"] for row in self.rows)
        broken = [row["error"] for row in self.rows if broke_down(row)]
        more = f", {len(broken)} broke down, the first with {broken[0]}" if broken else ""
        if failures := sum(row.get("failures") or 0 for row in self.rows):
            more = f", {failures} exceptions of methods' own code in them{more}"
        if cut := sum(bool(find_budget(row)) and not row["solved"] for row in self.rows):
            more = f", {cut} cut by a budget{more}"
        return sanitize(f"Results({len(self.rows)} episodes, {solved} solved{more})")

    def _repr_html_(self) -> str:
        from thread_kit.analysis.statistics import success

        if not self.rows:
            return "no episode yet"
        try:
            return success(self.frame).to_html(index=False)
        except ValueError as error:  # a task under two settings, which one table cannot show
            return html.escape(f"{self!r}: {error}")
