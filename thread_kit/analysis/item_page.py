"""The page of an item: the published table, ours in the same shape, what differs, how it is made.

A page is made of the repository and the rows alone, so the same rows always make the same page: it
has the date of its rows, not today's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from thread_kit.analysis.item_pairs import compare_with_own
from thread_kit.analysis.item_states import MEANINGS, ItemState, find_place, find_state
from thread_kit.analysis.item_tables import (
    find_priced_as,
    list_remarks,
    make_published_table,
    select_rows,
)
from thread_kit.analysis.page_forms import to_html, to_markdown, to_text
from thread_kit.analysis.paper_items import PaperItem, list_names
from thread_kit.analysis.studies import keep_usable, make_outcome
from thread_kit.replace_file import replace_text
from thread_kit.views.figure_image import draw_svg

SCRIPT = "plotly.min.js"
"""Beside pages with a figure, so that they open without a network."""

TASK_BY_TASK = (
    "Task by task: solved by the paper's own method alone, and by the other alone; McNemar's exact "
    "test, p_holm adjusted for the rows of the same benchmark and model; of taught models none."
)


@dataclass(frozen=True, slots=True)
class ItemPage:
    """published, ours, pairs: tables, empty where there is nothing. figure: ours, or None.

    remarks: on published numbers. notes: how ours are made. Both are lines of Markdown, whose links
    are paths from the project's folder.
    """

    item: PaperItem
    state: ItemState
    published: pd.DataFrame
    ours: pd.DataFrame
    pairs: pd.DataFrame
    figure: go.Figure | None
    remarks: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """ "THREAD v2, Table 3: TextCraft"."""
        return f"{self.item.label}: {self.item.title}"

    @property
    def sections(self) -> list[tuple[str, pd.DataFrame | tuple[str, ...]]]:
        """Headings, each with its table or its lines of Markdown."""
        state = f"**{self.state.state}**: {MEANINGS[self.state.state]}"
        parts: list[tuple[str, pd.DataFrame | tuple[str, ...]]] = [
            ("State", (state, *self.state.reasons))
        ]
        if self.item.study:
            picture = ("Printed as a picture: the paper gives no numbers.",)
            nothing = (f"Nothing yet. Play it: `{self.item.command}`",)
            parts.append(("Published", self.published if len(self.published) else picture))
            parts.append(("Ours", self.ours if len(self.ours) else nothing))
        parts += [("Task by task", self.pairs)] if len(self.pairs) else []
        parts += [("On the published numbers", self.remarks)] if self.remarks else []
        return [*parts, ("How", self.notes)]

    @property
    def markdown(self) -> str:
        """The page as Markdown; its figure is left to `save`."""
        return to_markdown(self.title, self.sections)

    @property
    def html(self) -> str:
        """The page as HTML, with its figure; `save` puts beside it what draws the figure."""
        return to_html(self.title, self.sections, self._draw_figure(), Path.cwd())

    def save(self, path: str | Path) -> Path:
        """Write the page, as HTML where the path ends so, else as Markdown; its path.

        Its figure lies beside it, as an SVG by the same name; links lead from where it lies to the
        kit's files. Raises OSError (a full disk, say).
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = path.with_suffix(".svg") if self.figure is not None else None
        if picture and self.figure is not None:
            replace_text(picture, draw_svg(self.figure))
        name = picture.name if picture else ""
        if path.suffix != ".html":
            replace_text(path, to_markdown(self.title, self.sections, name, path.parent))
            return path
        if picture:
            replace_text(path.with_name(SCRIPT), get_plotlyjs())
        figure = self._draw_figure(name)
        replace_text(path, to_html(self.title, self.sections, figure, path.parent))
        return path

    def _draw_figure(self, picture: str = "") -> str:
        """What shows the figure in HTML. picture: the name of its SVG; "" for none."""
        if self.figure is None:
            return ""
        config = {
            "toImageButtonOptions": {"format": "svg", "filename": self.item.item},
            "displaylogo": False,
            "responsive": True,
        }
        text = self.figure.to_html(
            full_html=False, include_plotlyjs=SCRIPT, config=config, div_id="figure"
        )
        if picture:
            text += f'<noscript><img src="{picture}" alt=""></noscript>'
            text += f'<p><a href="{picture}">The figure as SVG</a></p>'
        return text

    def __str__(self) -> str:
        return to_text(self.title, self.sections)

    def _repr_markdown_(self) -> str:
        return self.markdown


def make_page(item: PaperItem, frame: pd.DataFrame) -> ItemPage:
    """The page of an item, of stored rows (`load_stored_rows`); plays nothing."""
    state = find_state(item, frame)
    if not item.study:
        empty = pd.DataFrame()
        return ItemPage(item, state, empty, empty, empty, None, (), _list_notes(item, empty, empty))
    rows = keep_usable(item, select_rows(item, frame))
    outcome = make_outcome(item, rows)
    pairs = compare_with_own(item, rows)
    tested = (TASK_BY_TASK,) if len(pairs) else ()
    return ItemPage(
        item,
        state,
        make_published_table(item),
        outcome.table,
        pairs,
        outcome.figure,
        (*list_remarks(item), *_name_absent(item)),
        (*_list_notes(item, rows, outcome.table), *tested, *outcome.notes),
    )


def _list_notes(item: PaperItem, rows: pd.DataFrame, ours: pd.DataFrame) -> tuple[str, ...]:
    """Where rows are from, what they cost to make again, what differs, and where to read on."""
    notes = [f"Make it again: `{item.command}`"]
    if len(rows):
        notes.append(
            "Ours: n episodes; cut: ended by a budget, unsolved; low, high: Wilson's interval, "
            "95%, where each task was played once."
        )
        if any(name.endswith("cost") for name in ours.columns):  # "All, cost" beside other groups
            notes.append(
                f"Our cost: US dollars for all of the paper's tasks, at {find_priced_as(item)}'s "
                "price for the tokens of the model that played."
            )
        for _, part in rows.groupby("path", sort=False):
            row = part.iloc[0]
            made = f", by `{row['command']}`" if row["command"] else ""
            models = ", ".join(part["model"].unique())
            notes.append(
                f"{row['file']}.jsonl: {len(part)} episode{'s' * (len(part) != 1)}, {models}, "
                f"{row['date']}{made}"
            )
    if item.needs:
        notes.append(f"It needs {item.needs}.")
    if places := [place for place in item.where if find_place(place)]:
        notes.append(f"In the kit: {', '.join(map(_link, places))}")
    pages = item.fidelity, "docs/fidelity/budgets.md", "docs/fidelity/reproduce.md"
    links = ", ".join(_link(page) for page in pages if find_place(page))
    notes.append(f"What differs from the paper, and what a state means: {links}")
    return tuple(notes)


def _link(place: str) -> str:
    """A place as a link; headings of a notebook as JupyterLab has them, hyphens for blanks."""
    file, _, heading = place.partition("#")
    return f"[{place}]({file}#{heading.replace(' ', '-')})" if heading else f"[{place}]({place})"


def _name_absent(item: PaperItem) -> list[str]:
    """The methods of the published table that are not among ours, in a line, if there are any."""
    ours = {
        name
        for method in item.known_methods()
        for benchmark in item.benchmarks
        for name in list_names(method, benchmark)
    }
    printed = dict.fromkeys(item.load_numbers()["method"])
    absent = [method for method in printed if method.casefold() not in ours]
    return [f"No method of this kit: {', '.join(absent)}"] if absent else []
