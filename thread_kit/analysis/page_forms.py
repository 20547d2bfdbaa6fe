"""A page of tables and lines of Markdown, as text for a terminal, as Markdown, and as HTML."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from thread_kit.paths import resource
from thread_kit.trace.printable import sanitize
from thread_kit.views.table import Table

Sections = Sequence[tuple[str, pd.DataFrame | tuple[str, ...]]]
"""Headings, each with a table, or with lines of Markdown: code, bold words and links."""

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.1em; margin: 1.4em 0 0.4em; }
.tables { display: flex; flex-wrap: wrap; gap: 0 2em; align-items: flex-start; }
.tables > section { max-width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15em 0.5em; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid #8888; vertical-align: bottom; }
th.wide { white-space: normal; } tr:nth-child(even) td { background: #8881; }
.number { text-align: right; }
ul { margin: 0; padding-left: 1.2em; } li { max-width: 60em; overflow-wrap: anywhere; }
code { font-size: 90%; background: #8882; padding: 0 0.25em; }
a { color: #0072b2; } @media (prefers-color-scheme: dark) { a { color: #56b4e9; } }
"""

_LINK = re.compile(r"\[([^\[\]]+)\]\((?!/)([^):]+)\)")  # to a file, and so never a script
_NUMBER = re.compile(r"[-\d.,%± ]*")


def to_text(title: str, sections: Sections) -> str:
    """For a terminal: tables with columns below each other, and links as what they say."""
    parts = [title]
    for heading, content in sections:
        if isinstance(content, pd.DataFrame):
            text = repr(Table(content))
        else:
            lines = (re.sub(r"`|\*\*", "", _LINK.sub(r"\1", line)) for line in content)
            text = "\n".join(_wrap(line) for line in lines)
        parts.append(f"{heading}\n{text}")
    return sanitize("\n\n".join(parts) + "\n")


def _wrap(line: str) -> str:
    return textwrap.fill(
        line, 100, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )


def to_markdown(
    title: str, sections: Sections, picture: str = "", folder: Path | None = None
) -> str:
    """picture: the name of the figure's file, put behind the last table; "" for none.

    folder: where the page is to lie, from which links lead; None is the project's own.
    """
    parts = [f"## {heading}\n\n{_write_markdown(part, folder)}" for heading, part in sections]
    if picture:
        parts.insert(_find_end(sections), f"![{title}]({picture})")
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _find_end(sections: Sections) -> int:
    """The place behind the last table."""
    return (
        max(place for place, part in enumerate(sections) if isinstance(part[1], pd.DataFrame)) + 1
    )


def _write_markdown(content: pd.DataFrame | tuple[str, ...], folder: Path | None) -> str:
    if isinstance(content, pd.DataFrame):
        return write_table(content)
    return "\n".join(f"- {_lead(line, folder)}" for line in content)


def write_table(frame: pd.DataFrame) -> str:
    """A table of Markdown, with the digits of `Table`."""
    table = Table(frame)
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("| " + " | ".join(map(_write_cell, row)) + " |" for row in rows)


def _write_cell(text: str) -> str:
    """A cell, whose text may be of a file of somebody else's: no break, tag or picture."""
    for character, written in (("|", "\\|"), ("\n", " "), ("<", "&lt;"), ("![", "!\\[")):
        text = text.replace(character, written)
    return text


def to_html(title: str, sections: Sections, figure: str = "", folder: Path | None = None) -> str:
    """Tables side by side where the window has room; a wide one scrolls in its own frame.

    figure: HTML, put behind the last table. folder: as in `to_markdown`.
    """
    parts = [_write_section(*section, folder) for section in sections]
    if figure:
        parts.insert(_find_end(sections), figure)
    tables = re.compile(r'((?:<section class="table">.*?</section>)+)')
    body = tables.sub(r'<div class="tables">\1</div>', "".join(parts))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _write_section(
    heading: str, content: pd.DataFrame | tuple[str, ...], folder: Path | None
) -> str:
    if isinstance(content, pd.DataFrame):
        text = f'<div class="scroll">{_write_html(Table(content))}</div>'
        return f'<section class="table"><h2>{escape(heading)}</h2>{text}</section>'
    items = "".join(f"<li>{_write_line(_lead(line, folder))}</li>" for line in content)
    return f"<section><h2>{escape(heading)}</h2><ul>{items}</ul></section>"


def _write_html(table: Table) -> str:
    columns = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    looks = ["number" if all(map(_NUMBER.fullmatch, column)) else "" for column in columns]
    wide = [
        len(name) > max(map(len, column), default=0)
        for name, column in zip(table.columns, columns, strict=True)
    ]
    head = "".join(
        f'<th class="{look}{" wide" * is_wide}">{escape(name)}</th>'
        for name, look, is_wide in zip(table.columns, looks, wide, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="{look}">{escape(cell)}</td>' for cell, look in zip(row, looks, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _write_line(line: str) -> str:
    """A line of Markdown as HTML; what is not code, bold or a link stays as it is."""
    line = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(line, quote=False))
    line = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", line)
    return _LINK.sub(lambda link: f'<a href="{escape(link[2])}">{link[1]}</a>', line)


def _lead(line: str, folder: Path | None) -> str:
    """A line whose links lead from `folder` to the kit's files."""
    if folder is None:
        return line
    root = os.path.relpath(resource("data").resolve().parent, folder.resolve())
    return _LINK.sub(lambda link: f"[{link[1]}]({Path(root).as_posix()}/{link[2]})", line)
