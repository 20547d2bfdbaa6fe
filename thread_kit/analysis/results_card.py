"""The tables and the picture of docs/results.md, made of the rows that have been played.

python -m thread_kit.analysis.results_card  # makes them anew, and those of docs/howto/scale.md
"""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd

from thread_kit.analysis.cut import is_cut
from thread_kit.analysis.item_tables import name_with_settings
from thread_kit.analysis.page_forms import write_table
from thread_kit.analysis.plan import load_throughput, make_plan
from thread_kit.analysis.records import is_sampled, list_records, read_setting
from thread_kit.analysis.results_picture import draw_results, name_row
from thread_kit.analysis.statistics import success
from thread_kit.analysis.stored_rows import load_stored_rows
from thread_kit.envs.registry import BENCHMARKS, find_benchmark
from thread_kit.experiments.budgets import budget_of
from thread_kit.experiments.method_registry import has_trials, load_method
from thread_kit.paths import resource

LOOP = ("actions", "turns", "iterations", "trials", "d_max", "steps", "subtasks")
"""Units of budgets that a method's own loop counts (data/budgets.csv)."""


def summarize_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a benchmark, model and method, the best of each first; of two alike, that of more.

    Behind all that were played on as many tasks as any stand those that were played on fewer
    (`is_sample`): their rates are of a part of the tasks, or of others.

    Of each benchmark those of the split of the papers' numbers. As `success`, whose rates are
    shares of 1 and whose tokens are medians of an episode, with `limit`, the calls that an episode
    had ("several" where rows had others), `refused` (neither solved nor cut, and refused a thread
    at the limit of depth), `nearest` (invalid actions were taken for the nearest
    admissible one by the environment, which is no part of the method), and `date`.
    """
    frame = _keep_tests(frame)
    frame = frame.assign(benchmark=name_with_settings(frame, {"nearest"}))
    by = ["environment", "benchmark", "model", "method"]
    table = success(frame, by).join(
        frame.groupby(by, sort=False).apply(_describe_group, include_groups=False), on=by
    )
    places = {name: place for place, name in enumerate(BENCHMARKS)}
    models = {name: place for place, name in enumerate(dict.fromkeys(frame["model"]))}
    table["is_sample"] = table["n"] < table.groupby(["environment", "model"])["n"].transform("max")
    order = table.assign(
        rank=table["environment"].map(places), place=table["model"].map(models)
    ).sort_values(
        ["rank", "place", "is_sample", "rate", "n"],
        ascending=[True, True, True, False, False],
        kind="stable",
    )
    return table.loc[order.index].reset_index(drop=True)


def _keep_tests(frame: pd.DataFrame) -> pd.DataFrame:
    """Of each benchmark the rows of the split of the papers' numbers, one greedy run of them."""
    tests = {name: benchmark.splits[0] for name, benchmark in BENCHMARKS.items()}
    of_tests = frame["split"] == frame["environment"].map(tests)
    return frame[of_tests & ~is_sampled(frame)]


def _describe_group(rows: pd.DataFrame) -> pd.Series:
    limits = rows["limits"].dropna() if "limits" in rows else pd.Series(dtype=str)
    calls = {match[1] for text in limits if (match := re.search(r'"calls": (\w+)', text))}
    limit = next(iter(calls)) if len(calls) == 1 else "several" if calls else ""
    nearest = any(read_setting(row, "nearest") for row in list_records(rows, "nearest"))
    most = rows["limits"].map(read_depth_limit) if "limits" in rows else math.inf
    refused = (rows["depth"] > most) & ~(rows["solved"].astype(bool) | is_cut(rows))
    return pd.Series(
        {
            "limit": "no limit" if limit == "null" else limit,
            "nearest": nearest,
            "refused": int(refused.sum()),
            "date": rows["date"].max(),
        }
    )


def read_depth_limit(limits: Any) -> float:
    """The depth of threads that an episode was allowed, by the limits of its row."""
    found = json.loads(limits) if isinstance(limits, str) else {}
    return found["depth"] if found.get("depth") is not None else math.inf


def make_table(frame: pd.DataFrame) -> str:
    """A row of Markdown a benchmark and method of one model's rows, as `summarize_rows` has them.

    at most: those solved, those that a budget cut and those that were refused a deeper thread,
    together; empty where others could be added (`has_other_budgets`). evaluated, generated: tokens.
    """
    rows = [
        {
            "benchmark": row.benchmark,
            "method": name_row(row.method, nearest=row.nearest),
            "budget": _describe_budget(row),
            "solved": f"{row.solved} of {row.n}",
            "cut": row.cut,
            "rate": row.rate,
            "Wilson 95%": f"{row.low:.1%} to {row.high:.1%}",
            "at most": "" if has_other_budgets(row.method) else row.solved + row.cut + row.refused,
            "evaluated": row.evaluated,
            "generated": row.generated,
            "date": row.date,
        }
        for row in summarize_rows(frame).itertuples()
    ]
    return write_table(pd.DataFrame(rows))


def _describe_budget(row: Any) -> str:
    """What a method's own loop may take, of the table, and the calls that its rows had."""
    own = budget_of(row.method, row.environment)
    if "," in row.method:  # a variant has its method's, but for what its own loop does not count
        benchmark = find_benchmark(row.environment)
        program = load_method(row.method, benchmark.examples or benchmark.name).fixed.get("program")
        loop = getattr(program, "keywords", {})
        counted = {"actions", *loop, *getattr(loop.get("actor"), "keywords", ())}
        own = {unit: limit for unit, limit in own.items() if unit in counted}
    limits = [f"{own[unit].value} {unit}" for unit in LOOP if unit in own and own[unit].value]
    calls = [f"{row.limit} calls"] if row.limit.isdigit() else []
    return ", ".join([*limits, *calls])


PARTS = ("adapt", "plan-and-execute", "tdag", "decomp")
"""Methods whose executors, agents or handlers have iterations of their own."""


def has_other_budgets(method: str) -> bool:
    """Whether more of what cuts no episode could add solved tasks: trials, or a part's own loop."""
    return has_trials(method) or method.startswith(PARTS)


def fill_page(text: str, frame: pd.DataFrame) -> str:
    """The page with its tables made anew.

    Each stands between `<!-- rows: MODEL -->` and `<!-- end -->`. Raises ValueError for a model of
    which there are no rows, or rows whose model has no table.
    """
    frame = _keep_tests(frame)
    marks = re.compile(r"(?s)(<!-- rows: (.+?) -->\n).*?(<!-- end -->)")
    shown = {match[2] for match in marks.finditer(text)}
    if missing := shown ^ set(frame["model"]):
        raise ValueError(f"rows and tables of {', '.join(sorted(missing))} do not go together")

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{make_table(frame[frame['model'] == match[2]])}\n\n{match[3]}"

    return marks.sub(fill, text)


def fill_plan(text: str, frame: pd.DataFrame) -> str:
    """docs/howto/scale.md with its two tables made anew: the plan, and the speeds that it assumes.

    Each stands between `<!-- NAME -->` and `<!-- end -->`.
    """
    tables = {"plan": make_plan(frame), "throughput": load_throughput().reset_index()}
    for name, table in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        end = rest.index("<!-- end -->")
        text = f"{before}{mark}\n{write_table(table)}\n\n{rest[end:]}"
    return text


def write_card(folder: Path, frame: pd.DataFrame) -> None:
    """Make the tables of results.md and howto/scale.md current, and the picture of the results."""
    for name, fill in (("results.md", fill_page), ("howto/scale.md", fill_plan)):
        page = folder / name
        page.write_text(fill(page.read_text("utf-8"), frame), encoding="utf-8")
    picture = draw_results(summarize_rows(frame))
    (folder / "images/results.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m thread_kit.analysis.results_card", description=__doc__
    ).parse_args()
    write_card(resource("docs"), load_stored_rows())
