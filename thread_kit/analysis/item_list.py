"""All items of the papers with their states, as a table and as text."""

from __future__ import annotations

import pandas as pd

from thread_kit.analysis.item_states import MEANINGS, State, find_state
from thread_kit.analysis.paper_items import PAPER_NAMES, check_paper, load_items


def list_items(frame: pd.DataFrame, paper: str | None = None) -> pd.DataFrame:
    """Every item, or those of one paper, with its state and its reasons; a row an item.

    frame: of `load_stored_rows`. rows: episodes behind it. Raises ValueError for an unknown paper.
    """
    if paper is not None:
        check_paper(paper)
    rows = []
    for item in load_items():
        if paper in (None, item.paper):
            found = find_state(item, frame)
            rows.append(
                {
                    "paper": item.paper,
                    "item": item.item,
                    "title": item.title,
                    "state": str(found.state),
                    "rows": found.rows,
                    "reasons": "; ".join(found.reasons),
                    "where": item.where[0] if item.where else "",
                }
            )
    return pd.DataFrame(rows)


def describe_items(frame: pd.DataFrame, paper: str | None = None) -> str:
    """The list as text, a line an item, and how many there are of each state."""
    table = list_items(frame, paper)
    lines = []
    for name, items in table.groupby("paper", sort=False):
        lines.append(f"{PAPER_NAMES[str(name)]} ({name})")
        for row in items.itertuples():
            reasons = f": {row.reasons}" if row.reasons else ""
            lines.append(f"  {row.item:12} {row.title}\n  {'':12} {row.state}{reasons}")
    counts = table["state"].value_counts()
    lines.append(f"\n{len(table)} items:")
    lines += [
        f"  {state:12} {counts[state]:3}  {MEANINGS[state]}" for state in State if state in counts
    ]
    return "\n".join(lines)
