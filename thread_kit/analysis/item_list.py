"""All items of the papers with their states, as a table and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from thread_kit.analysis.item_states import MEANINGS, State, find_state
from thread_kit.analysis.paper_items import PAPER_NAMES, check_paper, load_items
from thread_kit.analysis.plan import (
    CORE,
    count_hours,
    list_parts,
    load_throughput,
    price_parts,
    select_tokens,
)

MODEL = "qwen2.5-coder-1.5b"
"""The one whose throughput on a core was measured."""


def list_items(frame: pd.DataFrame, paper: str | None = None) -> pd.DataFrame:
    """Every item, or those of one paper, with its state and its reasons; a row an item.

    frame: of `load_stored_rows`. rows: episodes behind it. needs: beside a model. episodes: all
    that its methods play with one model, and hours: what they take it on one core, measured with
    Qwen2.5-Coder-1.5B (`analysis/plan.py`). Raises ValueError for an unknown paper.
    """
    if paper is not None:
        check_paper(paper)
    rate, played = load_throughput().loc[CORE], select_tokens(frame)
    rows = []
    for item in load_items():
        if paper in (None, item.paper):
            state = find_state(item, frame)
            parts = list_parts([item])
            plan = price_parts(played, [part._replace(model="") for part in parts])
            rows.append(
                {
                    "paper": item.paper,
                    "item": item.item,
                    "title": item.title,
                    "state": str(state.state),
                    "rows": state.rows,
                    "reasons": "; ".join(state.reasons),
                    "needs": item.needs,
                    "episodes": int(plan["episodes"].sum()),
                    "hours": float(count_hours(plan, rate).sum()),
                    "where": item.where[0] if item.where else "",
                }
            )
    return pd.DataFrame(rows)


def describe_needs(row: Mapping[Any, Any]) -> str:
    """How much an item of `list_items` has to play with one model, and what else it needs."""
    needs = f"; needs {row['needs']}" if row["needs"] else ""
    size = f"{row['episodes']:,} episodes, {row['hours']:,.0f} h of one core with {MODEL}"
    return f"all of it: {size}{needs}"


def describe_items(frame: pd.DataFrame, paper: str | None = None) -> str:
    """The list as text, a line an item, and how many there are of each state."""
    table = list_items(frame, paper)
    lines = []
    for name, items in table.groupby("paper", sort=False):
        lines.append(f"{PAPER_NAMES[str(name)]} ({name})")
        for row in items.to_dict("records"):
            reasons = f": {row['reasons']}" if row["reasons"] else ""
            lines += [f"  {row['item']:12} {row['title']}", f"  {'':12} {row['state']}{reasons}"]
            if row["episodes"]:
                lines.append(f"  {'':12} {describe_needs(row)}")
    counts = table["state"].value_counts()
    lines.append(f"\n{len(table)} items:")
    lines += [
        f"  {state:12} {counts[state]:3}  {MEANINGS[state]}" for state in State if state in counts
    ]
    return "\n".join(lines)
