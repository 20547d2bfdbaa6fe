"""What was measured, as pandas tables. Ratios are taken within one run, against KV-true threads."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

import pandas as pd

from thread_kit.bench import growth as counts

Result = Mapping[str, Any]
"""What `python -m thread_kit.bench --out` wrote."""


def contenders(result: Result) -> pd.DataFrame:
    """A row a contender: tokens evaluated, time as a multiple of KV-true's in the same round.

    low and high are the extremes over the rounds; as recorded: calls in which the contender's own
    tokens were the recorded ones.
    """
    frame = pd.DataFrame(result["contenders"])
    frame["round"] = frame.groupby("contender").cumcount()
    base = frame[frame["contender"] == "KV-true"].set_index("round")
    frame["times"] = frame["seconds"] / frame["round"].map(base["seconds"])
    calls = result["workload"]["calls"]
    rows = [
        {
            "contender": name,
            "evaluated": int(group["evaluated"].iloc[0]),
            "tokens, times": group["evaluated"].iloc[0] / base["evaluated"].iloc[0],
            "time, times": median(group["times"]),
            "low": group["times"].min(),
            "high": group["times"].max(),
            "peak MiB": round(group["peak"].max() / 2**20),
            "as recorded": f"{group['as_recorded'].min()} of {calls}",
        }
        for name, group in frame.groupby("contender", sort=False)
    ]
    return pd.DataFrame(rows).sort_values("time, times", ignore_index=True).round(3)


def episodes(result: Result) -> pd.DataFrame:
    """A row a contender and number of episodes at once; rates are multiples of KV-true's there.

    waits: the share of the time in which the model waits for Python, where it can be seen.
    """
    frame = pd.DataFrame(result["episodes"])
    rate = frame["generated"] / frame["seconds"]
    base = rate[frame["contender"] == "KV-true"].set_axis(
        frame["at_once"][frame["contender"] == "KV-true"]
    )
    return pd.DataFrame(
        {
            "at once": frame["at_once"],
            "contender": frame["contender"],
            "tokens/s": rate.round(1),
            "rate, times": rate / frame["at_once"].map(base),
            "passes a token": frame["passes"] / frame["generated"],
            "waits": frame["outside"].astype(float),
            "as recorded": [
                f"{same} of {calls}"
                for same, calls in zip(frame["as_recorded"], frame["calls"], strict=True)
            ],
        }
    ).round(3)


def exactness(result: Result) -> pd.DataFrame:
    """How far logits are from those of an evaluation from scratch, in logits (`exactness.py`)."""
    names = {"equal": "equal to the bit", "other": "other tokens", "gap": "their largest gap"}
    return pd.DataFrame(result["exactness"]).rename(columns=names).round(3)


def drafts(result: Result) -> pd.DataFrame:
    """A row a length of drafts (auto: by the machine): passes a token, rate, times without."""
    frame = pd.DataFrame(result["drafts"])
    lengths = ["auto" if row["draft"] is None else str(row["draft"]) for row in result["drafts"]]
    return pd.DataFrame(
        {
            "draft": lengths,
            "passes a token": frame["passes"] / frame["generated"],
            "drafted": frame["drafted"],
            "accepted": frame["accepted"],
            "rate, times": frame["seconds"].iloc[0] / frame["seconds"],
            "as recorded": frame["as_recorded"],
        }
    ).round(3)


def kinds(result: Result) -> pd.DataFrame:
    """A row a kind of weights and a length of drafts, against the file without drafts."""
    named = [row["kind"] or "as the file is" for row in result["kinds"]]
    table = drafts({"drafts": result["kinds"]})
    table.insert(0, "kind", named)
    return table


def rates(result: Result) -> pd.DataFrame:
    """A row a number of sessions at once: their rate as a share of the bare loop's."""
    names = {
        "at_once": "at once",
        "share": "share of bare loop",
        "per_second": "tokens/s in all",
        "outside": "outside llama.cpp",
    }
    return pd.DataFrame(result["rates"]).rename(columns=names).round(3)


def bookkeeping(result: Result) -> pd.DataFrame:
    """What the kit itself takes of an episode of 1,000 threads, by the tree's shape.

    The model's part is what a call of the KV-true run took on average.
    """
    seconds = [row["seconds"] for row in result["contenders"] if row["contender"] == "KV-true"]
    call = median(seconds) / result["workload"]["calls"]
    rows = [
        {"tree": shape, "ms a call": 1000 * kit, "share of the episode": kit / (kit + call)}
        for shape, kit in result["bookkeeping"].items()
    ]
    return pd.DataFrame(rows).round(4)


def growth() -> pd.DataFrame:
    """Tokens evaluated by the shape of the tree, its number of threads and the scheme: counted."""
    return pd.DataFrame(counts.growth())
