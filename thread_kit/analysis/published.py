"""The numbers that the papers print, and ours beside them.

The data are data/published/*.csv, one number a line with its table, row, model and n; the README
there says what is quoted and what is inferred. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from thread_kit.analysis.statistics import success, wilson
from thread_kit.envs.alfworld.env import type_of
from thread_kit.envs.registry import BENCHMARKS, find_benchmark
from thread_kit.paths import resource

PAPERS = {
    "THREAD v2": "thread-v2.csv",
    "THREAD v1": "thread-v1.csv",
    "StateFlow": "stateflow.csv",
    "ADaPT": "adapt.csv",
}
"""The papers by the name under which they are cited here, and the file that quotes each."""

PRINTED_AS = {
    "stateflow": ("StateFlow", "StateFlow (7-state)"),
    "stateflow, 10 states": ("StateFlow (10-state)",),
    "reflexion": ("Reflexion", "ReAct+Reflexion"),
}
"""By our name of a method, the papers' names, where they are not the same in small letters."""

RATES = ("success rate", "accuracy")
"""The metrics that are a share of tasks, so that an interval follows from value and n."""


def published(
    *,
    paper: str | None = None,
    benchmark: str | None = None,
    method: str | None = None,
    model: str | None = None,
) -> pd.DataFrame:
    """The published numbers, one a row; each argument keeps only the rows that have it.

    Capital letters do not matter: "thread" finds THREAD. Raises ValueError for a value that no row
    has, naming those that there are.
    """
    frames = [
        pd.read_csv(
            resource(f"data/published/{file}"), keep_default_na=False, na_values={"stderr": ""}
        ).assign(paper=name)
        for name, file in PAPERS.items()
    ]
    found = pd.concat(frames, ignore_index=True)
    found.insert(0, "paper", found.pop("paper"))
    asked = {"paper": paper, "benchmark": benchmark, "method": method, "model": model}
    for column, wanted in asked.items():
        if wanted is not None:
            kept = found[found[column].str.casefold() == wanted.casefold()]
            if kept.empty:
                known = ", ".join(found[column].unique())
                raise ValueError(f"no published number has {column} {wanted!r}; known: {known}")
            found = kept
    return found.reset_index(drop=True)


def printed_as(method: str) -> list[str]:
    """The names under which the papers' numbers of a method of ours stand, in small letters."""
    return [name.casefold() for name in PRINTED_AS.get(method, (method,))]


def beside(
    ours: pd.DataFrame,
    *,
    benchmark: str | None = None,
    method: str | None = None,
    model: str | None = None,
    same_model: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Success rates of our episodes and the published ones of the benchmark, in percent.

    ours: a suite's frame, one row an episode. benchmark: None takes the environment's.
    method, model: of the published rows; None takes all. The earlier version of THREAD paper is
    left out, since the later one repeats its numbers.
    same_model: our name of a model -> the published one, where both are the same weights. Only with
    it, and with the same split and number of tasks, is a row of ours called a reproduction.
    source: of ours it says where fewer tasks were played than the papers have, or others, or with
        other rules.

    kind: "own run", "reproduction" or "published". low, high: Wilson's interval (95%), for
    published rates computed here from value and n, where n tasks were played once. Raises
    ValueError for a benchmark, method or model that was never published.
    """
    if benchmark is None:
        name = str(ours["environment"].iloc[0])
        benchmark = find_benchmark(name).published or name
    theirs = published(benchmark=benchmark, method=method, model=model)
    theirs = theirs[
        theirs["metric"].isin(RATES) & (theirs["group"] == "All") & (theirs["paper"] != "THREAD v1")
    ]
    rows = _ours(ours, theirs, same_model or {}) + [_theirs(row) for _, row in theirs.iterrows()]
    return pd.DataFrame(rows)


TYPES = ("Pick", "Clean", "Heat", "Cool", "Look", "Pick2", "All")
"""ALFWorld's task types, as the papers' tables name them."""


def by_type(ours: pd.DataFrame | None = None) -> pd.DataFrame:
    """ALFWorld by task type, in percent: our episodes, and the papers' tables with their costs.

    ours: a suite's frame; None for the published ones alone. n: of all types. source: as in
    `beside`, so that half of the games is never taken for all of them. cost: US dollars, where a
    paper gives them; evaluated, generated, calls: our medians an episode. The tables are THREAD's
    1, 2, 7 and 8, ADaPT's 1, 4 and 6, StateFlow's 3, 9 and 10.
    """
    rows: list[dict[str, object]] = []
    theirs = published(benchmark="ALFWorld")
    theirs = theirs[theirs["metric"].isin(("success rate", "cost")) & theirs["group"].isin(TYPES)]
    theirs = theirs[(theirs["paper"] != "THREAD v1") & theirs["table"].str.startswith("Table")]
    if ours is not None and len(ours):
        ours, by = _apart(ours)
        for values, group in ours.groupby(by, sort=False):
            row: dict[str, object] = {"kind": "own run", **dict(zip(by, values, strict=True))}
            kinds = group["game"].map(type_of).str.capitalize()
            row |= {kind: 100 * part["solved"].mean() for kind, part in group.groupby(kinds)}
            row |= {"All": 100 * group["solved"].mean(), "n": len(group)}
            row["source"] = _source(row, group["game"].nunique(), theirs)
            row |= {cost: group[cost].median() for cost in ("evaluated", "generated", "calls")}
            rows.append(row)
    for (paper, table, _), group in theirs.groupby(["paper", "table", "row"], sort=False):
        for model, part in group.groupby("model", sort=False):
            rates = part[part["metric"] == "success rate"]
            every = rates[rates["group"] == "All"].iloc[0]
            row = {"kind": "published", "method": every["method"], "model": model}
            row["split"] = every["split"]
            row |= dict(zip(rates["group"], rates["value"].astype(float), strict=True))
            costs = part.loc[part["metric"] == "cost", "value"].astype(float)
            row |= {"cost": costs.iloc[0]} if len(costs) else {}
            rows.append({**row, "n": int(every["n"]), "source": f"{paper}, {table}"})
    columns = ["kind", "method", "model", "split", "n", *TYPES]
    return pd.DataFrame(
        rows, columns=[*columns, "cost", "evaluated", "generated", "calls", "source"]
    )


def _apart(ours: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The frame, and the columns by which its episodes are told apart in a table.

    Rows of other rules are never added up: `nearest` is there where a part of them has it.
    """
    if "nearest" in ours:
        ours = ours.assign(nearest=ours["nearest"].eq(True))  # a row that does not say has it not
    return ours, [name for name in ("method", "model", "split", "nearest") if name in ours]


def _published_split(split: str) -> str:
    """What the papers call a split of ours."""
    names = [b.published_splits[split] for b in BENCHMARKS.values() if split in b.published_splits]
    return names[0] if names else split


def _source(row: Mapping[Any, Any], tasks: int, theirs: pd.DataFrame) -> str:
    """Where a row of ours is from, and what else than in the papers was played."""
    split = row.get("split", "")
    same = theirs[(theirs["split"] == _published_split(split)) & (theirs["group"] == "All")]
    parts = ["this file"]
    if len(same) and tasks < same["n"].max():
        parts.append(f"{tasks} of {same['n'].max()} tasks")
    if row.get("nearest", False):
        parts.append("nearest actions")
    return ", ".join(parts)


def _ours(
    ours: pd.DataFrame, theirs: pd.DataFrame, same_model: Mapping[str, str]
) -> list[dict[str, object]]:
    ours, by = _apart(ours)
    made_here = any(find_benchmark(name).synthetic for name in set(ours["environment"]))
    rows: list[dict[str, object]] = []
    for _, row in success(ours, by).iterrows():
        name = same_model.get(row["model"])
        split, tasks = row.get("split", ""), int(row["tasks"])
        same = theirs[(theirs["model"] == name) & (theirs["split"] == _published_split(split))]
        same = same[same["method"].str.casefold().isin(printed_as(row["method"]))]
        if name is None:
            kind, note = "own run", "another model than any that is published here"
        elif made_here:
            kind, note = "own run", "the weights are published, these questions are not"
        elif same.empty:
            kind, note = "own run", f"nothing is published of {row['method']} with {name} on these"
        elif not (same["n"] == tasks).any():
            kind, note = "own run", f"{tasks} tasks, published are {same['n'].iloc[0]}"
        else:
            kind, note = "reproduction", f"the weights of {name}"
        if "solvable" in row:
            note += f"; the oracle solves {row['solvable']} of these {tasks} tasks"
        source = "this file, other questions" if made_here else _source(row, tasks, theirs)
        rows.append(
            {
                "kind": kind,
                "method": row["method"],
                "model": row["model"],
                "split": split,
                "n": int(row["n"]),
                "success": 100 * row["rate"],
                "low": 100 * row["low"],
                "high": 100 * row["high"],
                "source": source,
                "note": note,
            }
        )
    return rows


def _theirs(row: pd.Series) -> dict[str, object]:
    value, n = float(row["value"]), int(row["n"])
    low = high = float("nan")
    if "runs" not in row["note"] and "attempts" not in row["note"]:
        low, high = wilson(round(value * n / 100), n)
    return {
        "kind": "published",
        "method": row["method"],
        "model": row["model"],
        "split": row["split"],
        "n": n,
        "success": value,
        "low": 100 * low,
        "high": 100 * high,
        "source": f"{row['paper']}, {row['table']}",
        "note": row["note"],
    }
