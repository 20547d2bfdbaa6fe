"""The four papers as cards: each item with its state, and a link to where the kit has it.

draw_map(load_stored_rows())  # in a notebook the cards; printed, how many items of each state
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from thread_kit.analysis.item_list import describe_needs, list_items
from thread_kit.analysis.item_states import MEANINGS, State
from thread_kit.analysis.paper_items import PAPER_NAMES, find_item

MARKS = {
    State.REPRODUCED: "●",
    State.STAND_IN: "◐",
    State.SHOWN: "○",
    State.NOT_YET: "·",
    State.CANNOT: "×",
}
"""They say the state without a colour."""

STYLE = """
.papers { display: grid; grid-template-columns: repeat(auto-fit, minmax(22em, 1fr)); gap: 1em; }
.papers section { border: 1px solid #8888; border-radius: 6px; padding: 0 1em 0.6em; }
.papers details { margin: 0.2em 0; } .papers summary { cursor: pointer; }
.papers code { font-size: 90%; }
"""


@dataclass(frozen=True, slots=True)
class PaperMap:
    """items: of `list_items`. folder: the way from the page that shows it to the project's."""

    items: pd.DataFrame
    folder: str = ".."

    def __str__(self) -> str:
        counts = pd.crosstab(self.items["paper"], self.items["state"])
        states = [state for state in State if state in counts]
        return counts.loc[list(PAPER_NAMES), states].rename_axis(columns=None).to_string()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        legend = ", ".join(
            f"{mark} {state} ({MEANINGS[state]})"
            for state, mark in MARKS.items()
            if (self.items["state"] == state).any()
        )
        cards = "".join(
            f"<section><h3>{escape(PAPER_NAMES[str(paper)])}</h3>"
            + "".join(self._draw(row) for row in items.to_dict("records"))
            + "</section>"
            for paper, items in self.items.groupby("paper", sort=False)
        )
        return f'<style>{STYLE}</style><p>{escape(legend)}</p><div class="papers">{cards}</div>'

    def _draw(self, row: dict[str, Any]) -> str:
        """One item, folded: its state, what is other than in the paper, and the way there."""
        item = find_item(row["paper"], row["item"])
        reasons = f": {row['reasons']}" if row["reasons"] else ""
        takes = f"<br>{describe_needs(row)}" if row["episodes"] else ""
        link = f'<br><a href="{escape(self._link(row["where"]))}">{escape(row["where"])}</a>'
        return (
            f"<details><summary>{MARKS[State(row['state'])]} {item.number}: {escape(item.title)}"
            f"</summary>{escape(row['state'] + reasons)}{takes}<br><code>{item.command}</code>"
            f"{link if row['where'] else ''}</details>"
        )

    def _link(self, where: str) -> str:
        """A place as JupyterLab reads it: headings with hyphens for blanks."""
        file, _, heading = where.partition("#")
        anchor = f"#{heading.replace(' ', '-')}" if heading else ""
        return f"{self.folder}/{file}{anchor}"


def draw_map(frame: pd.DataFrame) -> PaperMap:
    """The map of all items. frame: of `load_stored_rows`."""
    return PaperMap(list_items(frame))
