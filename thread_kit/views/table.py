"""A table as a notebook shows it: texts on the left, numbers with the digits that say something."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pandas as pd

from thread_kit.views.formatting import sanitize

SHARES = ("rate", "difference", "same", "share")
"""Columns whose name begins so are shares of 1, written in percent; so are the ends of theirs."""


class Table:
    """Rows to be read: as text, and as HTML, where a long table scrolls in a frame of its own.

    data: a frame, or what `pandas.DataFrame` takes. Its index is shown where it has a meaning (is
    no mere count). Counts have thousands separators, gaps are empty, shares are in percent.
    """

    def __init__(self, data: Any) -> None:
        frame = pd.DataFrame(data)
        if not isinstance(frame.index, pd.RangeIndex):
            names = [name or "" for name in frame.index.names]
            frame = frame.rename_axis(columns=None).reset_index(names=names)
        has_shares = any(str(name).startswith(SHARES[:2]) for name in frame.columns)
        self.columns = [sanitize(str(name)) for name in frame.columns]
        self.numeric = [_is_number(frame.iloc[:, place]) for place in range(len(self.columns))]
        texts = [
            _write_column(name, frame.iloc[:, place], has_shares)
            if number
            else ["" if pd.isna(value) else sanitize(str(value)) for value in frame.iloc[:, place]]
            for place, (name, number) in enumerate(zip(self.columns, self.numeric, strict=True))
        ]
        self.rows = list(zip(*texts, strict=True))

    def __repr__(self) -> str:
        widths = [
            max(map(len, (name, *(row[place] for row in self.rows))))
            for place, name in enumerate(self.columns)
        ]
        lines = [
            "  ".join(
                f"{text:>{width}}" if number else f"{text:<{width}}"
                for text, width, number in zip(row, widths, self.numeric, strict=True)
            ).rstrip()
            for row in (self.columns, *self.rows)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        sides = ["right" if number else "left" for number in self.numeric]
        head, *body = (
            "".join(
                f'<{tag} style="text-align:{side}">{escape(text)}</{tag}>'
                for text, side in zip(row, sides, strict=True)
            )
            for tag, row in [("th", self.columns), *(("td", row) for row in self.rows)]
        )
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        return (
            '<div style="overflow:auto;max-height:36em"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _write_column(name: str, column: pd.Series, has_shares: bool) -> list[str]:
    """Numbers with as many digits as the largest of them needs to show three or so."""
    known = column.dropna()
    largest = float(known.abs().max()) if len(known) else 0.0
    is_end = has_shares and name in ("low", "high")
    if (name.startswith(SHARES) or is_end) and largest <= 1:
        form = "{:.1%}"
    elif (known == known.round()).all() or largest > 100:  # 100 itself is most often percent
        form = "{:,.0f}"
    elif 1e-4 < largest < 0.1 or name.startswith("p_") or name == "p":
        form = "{:.2g}"
    else:
        form = "{:.1f}" if largest >= 10 else "{:.2f}"
    # What rounds to zero has no sign.
    texts = ["" if pd.isna(value) else form.format(value) for value in column]
    return [re.sub(r"^-(?=[0.]+%?$)", "", text) for text in texts]
