"""The numbers that the papers print, and ours beside them.

The data are data/published/*.csv, one number a line with its table, row, model and n; the README
there says what is quoted and what is inferred. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pandas as pd

from thread_kit.analysis.cut import count_cut
from thread_kit.analysis.records import DEFAULTS, TASK, list_records, read_setting
from thread_kit.analysis.statistics import check_episodes, must_have_episodes, success, wilson
from thread_kit.envs.alfworld.env import type_of
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.registry import BENCHMARKS, find_benchmark
from thread_kit.paths import resource

PAPERS = {
    "THREAD v2": "thread-v2.csv",
    "THREAD v1": "thread-v1.csv",
    "StateFlow": "stateflow.csv",
    "ADaPT": "adapt.csv",
}
"""The papers by the name under which they are cited here, and the file that quotes each."""

PUBLISHED_NAMES = {
    "stateflow": ("StateFlow", "StateFlow (7-state)"),
    "stateflow, 10 states": ("StateFlow (10-state)",),
    **{
        f"stateflow, no_{state.lower()}": (f"StateFlow without {state}",)
        for state in ("Verify", "Error", "Observe")
    },
    "react-hybrid": ("ReAct",),
    "react-by-type": ("ReAct",),
    "try-again-by-type": ("Try Again",),
    "plan-and-execute-by-type": ("Plan-and-Execute",),
    "reflexion-by-type": ("Reflexion",),
    "adapt-by-type": ("ADaPT",),
    "reflexion, gold answer": ("Reflexion",),
    "plan-and-solve": ("Plan & Solve",),
    "react, refined": ("ReAct_Refined",),
    **{f"alfchat, {n} agents": (f"ALFChat ({n} agents)",) for n in (2, 3)},
    "adaplanner, skills": ("AdaPlanner",),
    "try again, visible reward": ("Try Again",),
}
"""By our name of a method, the papers' names, where they are not the same in small letters.

StateFlow's ReAct+Reflexion has six trials (Figure 6), "reflexion" here the ADaPT paper's three or
four, so the two are not one method.
"""

OTHER_METHODS = dict.fromkeys(
    ("InterCode SQL", "InterCode Bash"), ("try again", "react-hybrid", "react-by-type")
)
"""By benchmark, our methods whose names the papers have there for another: StateFlow's Try Again
sees the reward, and its ReAct has no executor's prompt."""

RULES = {
    "nearest": "nearest actions",
    "mariadb": "in MariaDB",
    "by_people": "goals of people",
    "attributes": "pages with attributes",
    "products": "{products:g} products a page",
}
"""What a row of ours says of the rules (`Benchmark.rules`) and settings of its own that it has."""

RATES = ("success rate", "accuracy")
"""The metrics that are a share of tasks, so that an interval follows from value and n."""


def load_published(
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
    rows = _load_all()
    filters = {"paper": paper, "benchmark": benchmark, "method": method, "model": model}
    for column, wanted in filters.items():
        if wanted is not None:
            matches = rows[rows[column].str.casefold() == wanted.casefold()]
            if matches.empty:
                known = ", ".join(rows[column].unique())
                raise ValueError(f"no published number has {column} {wanted!r}; known: {known}")
            rows = matches
    return rows.reset_index(drop=True)


@cache
def _load_all() -> pd.DataFrame:
    frames = [
        pd.read_csv(
            resource(f"data/published/{file}"), keep_default_na=False, na_values={"stderr": ""}
        ).assign(paper=name)
        for name, file in PAPERS.items()
    ]
    rows = pd.concat(frames, ignore_index=True)
    rows.insert(0, "paper", rows.pop("paper"))
    return rows


def list_published_names(method: str, benchmark: str | None = None) -> list[str]:
    """The names under which the papers' numbers of a method of ours stand, in small letters.

    benchmark: as the papers call it; none where they have another method by that name.
    """
    if method in OTHER_METHODS.get(benchmark or "", ()):
        return []
    return [name.casefold() for name in PUBLISHED_NAMES.get(method, (method,))]


def compare_with_published(
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

    kind: "own run", "reproduction" or "published". published_as: what the papers call a method of
    ours on this benchmark, "" where they have none or it is another of ours. low, high: Wilson's
    interval (95%), for published rates computed here from value and n, where n tasks were played
    once. cut: of ours, episodes that a budget ended unsolved; no paper says it of its own. Raises
    ValueError for a benchmark, method or model that was never published, and for no episodes.
    """
    must_have_episodes(ours)
    if benchmark is None:
        name = str(ours["environment"].iloc[0])
        benchmark = find_benchmark(name).published or name
    theirs = load_published(benchmark=benchmark, method=method, model=model)
    theirs = theirs[
        theirs["metric"].isin(RATES) & (theirs["group"] == "All") & (theirs["paper"] != "THREAD v1")
    ]
    rows = _ours(ours, theirs, same_model or {}, benchmark) + [
        _theirs(row) for _, row in theirs.iterrows()
    ]
    table = pd.DataFrame(rows)
    published = {name.casefold(): name for name in theirs["method"]}
    names = _match_names(ours["method"], published, benchmark)
    table.insert(2, "published_as", [names.get(method, "") for method in table["method"]])
    return table.astype({"cut": "Int64"}) if "cut" in table else table


TYPES = (*(kind.capitalize() for kind in KINDS), "All")
"""The columns of the papers' tables by task type."""


def by_type(ours: pd.DataFrame | None = None) -> pd.DataFrame:
    """ALFWorld by task type, in percent: our episodes, and the papers' tables with their costs.

    ours: a suite's frame; None for the published ones alone. n: of all types. source: as in
    `compare_with_published`, so that half of the games is never taken for all of them. cut: ours
    that a budget ended unsolved. cost: US dollars, where a paper gives them; evaluated, generated,
    calls: our medians an episode. The tables are THREAD's 1, 2, 7 and 8, ADaPT's 1, 4 and 6,
    StateFlow's 3, 9 and 10.
    """
    rows: list[dict[str, object]] = []
    theirs = load_published(benchmark="ALFWorld")
    theirs = theirs[theirs["metric"].isin(("success rate", "cost")) & theirs["group"].isin(TYPES)]
    theirs = theirs[(theirs["paper"] != "THREAD v1") & theirs["table"].str.startswith("Table")]
    if ours is not None and len(ours):
        ours, by = _tell_apart(ours)
        for values, group in check_episodes(ours, by).groupby(by, sort=False):
            row: dict[str, object] = {"kind": "own run", **dict(zip(by, values, strict=True))}
            types = group["game"].map(find_type)
            row |= {name: 100 * part["solved"].mean() for name, part in group.groupby(types)}
            row |= {"All": 100 * group["solved"].mean(), "n": len(group), **count_cut(group)}
            row["source"] = _source(row, group["game"].nunique(), theirs)
            row |= {cost: group[cost].median() for cost in ("evaluated", "generated", "calls")}
            rows.append(row)
    for (paper, table, _), group in theirs.groupby(["paper", "table", "row"], sort=False):
        for model, part in group.groupby("model", sort=False):
            rates = part[part["metric"] == "success rate"]
            total = rates[rates["group"] == "All"].iloc[0]
            row = {"kind": "published", "method": total["method"], "model": model}
            row["split"] = total["split"]
            row |= dict(zip(rates["group"], rates["value"].astype(float), strict=True))
            costs = part.loc[part["metric"] == "cost", "value"].astype(float)
            row |= {"cost": costs.iloc[0]} if len(costs) else {}
            rows.append({**row, "n": int(total["n"]), "source": f"{paper}, {table}"})
    columns = ["kind", "method", "model", "split", "n", "cut", *TYPES]
    return pd.DataFrame(
        rows, columns=[*columns, "cost", "evaluated", "generated", "calls", "source"]
    ).astype({"cut": "Int64"})


def find_type(game: str) -> str | None:
    """The papers' name of a game's type, by its own name; None if that tells none."""
    return kind.capitalize() if (kind := type_of(game)) else None


def _tell_apart(ours: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The frame, and the columns by which its episodes are told apart in a table.

    Rows of other rules are never added up: `nearest`, say, is there where a part of them has it.
    """
    rules = [rule for rule in RULES if rule in ours]
    played = list_records(ours, *rules)
    ours = ours.assign(**{rule: [read_setting(row, rule) for row in played] for rule in rules})
    return ours, [name for name in ("method", "model", "split") if name in ours] + rules


def _published_split(split: str) -> str:
    """What the papers call a split of ours."""
    names = [b.published_splits[split] for b in BENCHMARKS.values() if split in b.published_splits]
    return names[0] if names else split


def _source(
    row: Mapping[Any, Any], tasks: int, theirs: pd.DataFrame, made_here: bool = False
) -> str:
    """Where a row of ours is from, and what else than in the papers was played."""
    split = row.get("split", "")
    same = theirs[(theirs["split"] == _published_split(split)) & (theirs["group"] == "All")]
    parts = ["this file"]
    if made_here:
        parts.append("other questions")
    elif len(same) and tasks < same["n"].max():
        parts.append(f"{tasks} of {same['n'].max()} tasks")
    others = [rule for rule in RULES if read_setting(row, rule) != DEFAULTS[rule]]
    parts += [RULES[rule].format_map(row) for rule in others]
    return ", ".join(parts)


def _match_names(
    methods: Iterable[str], published: Mapping[str, str], benchmark: str
) -> dict[str, str]:
    """Our methods by what the papers call them here; two of ours never have one name.

    published: the papers' names by small letters. "react" is ReAct before "react-hybrid" is.
    """
    names: dict[str, str] = {}
    for method in sorted(
        set(methods), key=lambda method: (method.casefold() not in published, method)
    ):
        known = [published[n] for n in list_published_names(method, benchmark) if n in published]
        if known and known[0] not in names.values():
            names[method] = known[0]
    return names


def _ours(
    ours: pd.DataFrame, theirs: pd.DataFrame, same_model: Mapping[str, str], benchmark: str
) -> list[dict[str, object]]:
    ours, by = _tell_apart(ours)
    records = list_records(ours, *TASK)
    made = pd.Series(
        [find_benchmark(row["environment"]).stands_in(row) for row in records], ours.index
    )
    rows: list[dict[str, object]] = []
    # Questions that were made here are never added up with the published ones.
    counted = [
        (made_here, row)
        for made_here, part in ours.groupby(made, sort=False)
        for _, row in success(part, by).iterrows()
    ]
    for made_here, row in counted:
        # What is published of the same weights, method and split.
        name = same_model.get(row["model"])
        split, tasks = row.get("split", ""), int(row["tasks"])
        same = theirs[(theirs["model"] == name) & (theirs["split"] == _published_split(split))]
        names = list_published_names(row["method"], benchmark)
        same = same[same["method"].str.casefold().isin(names)]
        # A reproduction is one of the same tasks; any other row is a run of one's own.
        if name is None:
            kind, note = "own run", "another model than any that is published here"
        elif same.empty:
            kind, note = "own run", f"nothing is published of {row['method']} with {name} on these"
        elif made_here:
            kind, note = "own run", "the weights are published, these questions are not"
        elif not (same["n"] == tasks).any():
            kind, note = "own run", f"{tasks} tasks, published are {same['n'].iloc[0]}"
        else:
            kind, note = "reproduction", f"the weights of {name}"
        if "solvable" in row:
            note += f"; the oracle solves {row['solvable']} of these {tasks} tasks"
        rows.append(
            {
                "kind": kind,
                "method": row["method"],
                "model": row["model"],
                "split": split,
                "n": int(row["n"]),
                **({"cut": int(row["cut"])} if "cut" in row else {}),
                "success": 100 * row["rate"],
                "low": 100 * row["low"],
                "high": 100 * row["high"],
                "source": _source(row, tasks, theirs, made_here),
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
