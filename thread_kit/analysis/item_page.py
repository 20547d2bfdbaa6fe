"""The page of an item: the published table, ours in the same shape, what differs, how it is made.

A page is made of the repository and the rows alone, so the same rows always make the same page: it
has the date of its rows, not today's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from thread_kit.analysis.item_states import ItemState, find_place, find_state
from thread_kit.analysis.item_tables import make_published_table, select_rows
from thread_kit.analysis.paper_items import PaperItem
from thread_kit.analysis.published import list_published_names
from thread_kit.analysis.studies import keep_usable, make_outcome
from thread_kit.trace.jsonl import replace_file

SCRIPT = "plotly.min.js"
"""Beside pages with a figure, so that they open without a network."""


@dataclass(frozen=True, slots=True)
class ItemPage:
    """published, ours: tables, empty where there is nothing. figure: ours, or None."""

    item: PaperItem
    state: ItemState
    published: pd.DataFrame
    ours: pd.DataFrame
    figure: go.Figure | None
    notes: tuple[str, ...]

    @property
    def markdown(self) -> str:
        """The page as Markdown; its figure is left to the HTML form."""
        parts = [f"# {self._title}", f"State: {self.state}."]
        for heading, table in self._tables:
            text = _to_markdown(table) if len(table) else _explain(heading, self.item)
            parts += [f"## {heading}", text]
        parts += ["## How", "\n".join(f"- {note}" for note in self.notes)]
        return "\n\n".join(parts) + "\n"

    @property
    def html(self) -> str:
        """The page as HTML, with its figure; `save` puts beside it what draws the figure."""
        parts = [f"<h1>{escape(self._title)}</h1><p>State: {escape(str(self.state))}.</p>"]
        for heading, table in self._tables:
            text = _show(table).to_html(index=False, border=0, na_rep="")
            text = text if len(table) else f"<p>{escape(_explain(heading, self.item))}</p>"
            parts.append(f"<h2>{heading}</h2>{text}")
        if self.figure is not None:
            parts.append(self.figure.to_html(full_html=False, include_plotlyjs=SCRIPT))
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        parts.append(f"<h2>How</h2><ul>{notes}</ul>")
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(self._title)}</title><style>:root {{ color-scheme: light dark; }} "
            "body { font-family: sans-serif; margin: 1em; } td, th { padding: 0.1em 0.6em; "
            "text-align: right; }</style></head><body>" + "\n".join(parts) + "</body></html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the page, as HTML where the path ends so, else as Markdown; its path.

        Raises OSError (a full disk, say).
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        as_html = path.suffix == ".html"
        with replace_file(path) as part:
            part.write_text(self.html if as_html else self.markdown, encoding="utf-8")
        if as_html and self.figure is not None:
            path.with_name(SCRIPT).write_text(get_plotlyjs(), encoding="utf-8")
        return path

    @property
    def _title(self) -> str:
        return f"{self.item.label}: {self.item.title}"

    @property
    def _tables(self) -> list[tuple[str, pd.DataFrame]]:
        return [(PUBLISHED, self.published), (OURS, self.ours)] if self.item.study else []

    def __str__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


PUBLISHED, OURS = "Published", "Ours"


def make_page(item: PaperItem, frame: pd.DataFrame) -> ItemPage:
    """The page of an item, of stored rows (`load_stored_rows`); plays nothing."""
    if not item.study:
        empty = pd.DataFrame()
        return ItemPage(item, find_state(item, frame), empty, empty, None, _list_notes(item, empty))
    rows = select_rows(item, frame)
    outcome = make_outcome(item, rows)
    return ItemPage(
        item,
        find_state(item, frame),
        make_published_table(item),
        outcome.table,
        outcome.figure,
        _list_notes(item, keep_usable(item, rows)),
    )


def _list_notes(item: PaperItem, rows: pd.DataFrame) -> tuple[str, ...]:
    """Where rows are from, what they cost to make again, what differs, and where to read on."""
    notes = [f"Make it again: `{item.command}`"]
    if len(rows):
        notes.append(
            "Ours: n episodes; cut: ended by a budget, unsolved; low, high: Wilson's interval, 95%."
        )
        for _, part in rows.groupby("path", sort=False):
            row = part.iloc[0]
            made = f", by `{row['command']}`" if row["command"] else ""
            models = ", ".join(part["model"].unique())
            notes.append(
                f"{row['file']}.jsonl: {len(part)} episodes, {models}, {row['date']}{made}"
            )
    if absent := _list_absent(item):
        notes.append(f"Published numbers alone, no method here: {', '.join(absent)}")
    if item.needs:
        notes.append(f"It needs {item.needs}.")
    if places := [place for place in item.where if find_place(place)]:
        notes.append(f"In the kit: {', '.join(places)}")
    pages = [page for page in (item.fidelity, "docs/fidelity/budgets.md") if find_place(page)]
    notes.append(f"What differs from the paper: {', '.join(pages)}")
    return tuple(notes)


def _list_absent(item: PaperItem) -> list[str]:
    """The methods of the published table that are not among ours."""
    ours = {
        name
        for method in item.known_methods()
        for benchmark in item.benchmarks
        for name in list_published_names(method, benchmark)
    }
    printed = dict.fromkeys(item.load_numbers()["method"]) if item.study else {}
    return [method for method in printed if method.casefold() not in ours]


def _explain(heading: str, item: PaperItem) -> str:
    """What stands where a table is empty."""
    if heading == PUBLISHED:
        return "Printed as a picture: the paper gives no numbers."
    return f"Nothing yet. Play it: `{item.command}`"


def _show(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its numbers as they are printed: one decimal; whole where all are."""
    return table.apply(lambda column: column.map(_format))


def _format(value: Any) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.1f}" if abs(value) >= 1.05 else f"{value:.3g}"
    return "" if value is pd.NA else str(value)


def _to_markdown(table: pd.DataFrame) -> str:
    rows = [table.columns, ["---"] * len(table.columns), *_show(table).itertuples(index=False)]
    return "\n".join(_line(row) for row in rows)


def _line(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
