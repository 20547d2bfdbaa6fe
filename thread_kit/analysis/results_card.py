"""The tables of docs/results.md, made of the rows that have been played.

python -m thread_kit.analysis.results_card  # writes them anew between the page's marks
"""

from __future__ import annotations

import re

import pandas as pd

from thread_kit.analysis.cut import count_cut
from thread_kit.analysis.item_tables import name_benchmark
from thread_kit.analysis.statistics import wilson
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.paths import resource

COLUMNS = ("benchmark", "method", "calls", "solved", "cut", "rate", "Wilson 95%", "at most", "date")


def make_table(frame: pd.DataFrame) -> str:
    """A row of Markdown a benchmark and method of one model's rows, the best of each first.

    calls: the budget of an episode; "several" where rows had others. at most: those solved and
    those that a budget cut, together.
    """
    rows = [
        _make_row(str(environment), str(method), part)
        for (environment, method), part in frame.groupby(["environment", "method"], sort=False)
    ]
    places = {name: place for place, name in enumerate(BENCHMARKS)}
    rows.sort(key=lambda row: (places[row[0]], -row[1]))
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row[2] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _make_row(
    environment: str, method: str, rows: pd.DataFrame
) -> tuple[str, float, tuple[str, ...]]:
    solved, n, cut = int(rows["solved"].sum()), len(rows), count_cut(rows)["cut"]
    low, high = wilson(solved, n)
    cells = (
        name_benchmark(environment),
        method,
        _find_calls(rows),
        f"{solved} of {n}",
        str(cut),
        f"{solved / n:.1%}",
        f"{low:.1%} to {high:.1%}",
        str(solved + cut),
        str(rows["date"].max()),
    )
    return environment, solved / n, cells


def _find_calls(rows: pd.DataFrame) -> str:
    """The budget of calls; "" for rows that do not say it."""
    limits = rows["limits"].dropna() if "limits" in rows else pd.Series(dtype=str)
    found = {match[1] for text in limits if (match := re.search(r'"calls": (\w+)', text))}
    return next(iter(found)) if len(found) == 1 else "several" if found else ""


def fill_page(text: str, frame: pd.DataFrame) -> str:
    """The page with its tables made anew.

    Each stands between `<!-- rows: MODEL -->` and `<!-- end -->`. Raises ValueError for a model of
    which there are no rows, or rows whose model has no table.
    """
    marks = re.compile(r"(?s)(<!-- rows: (.+?) -->\n).*?(<!-- end -->)")
    shown = {match[2] for match in marks.finditer(text)}
    if missing := shown ^ set(frame["model"]):
        raise ValueError(f"rows and tables of {', '.join(sorted(missing))} do not go together")

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{make_table(frame[frame['model'] == match[2]])}\n\n{match[3]}"

    return marks.sub(fill, text)


if __name__ == "__main__":
    page = resource("docs/results.md")
    page.write_text(fill_page(page.read_text("utf-8"), load_stored_rows()), encoding="utf-8")
