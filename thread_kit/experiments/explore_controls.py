"""The controls of `explore`: choices, fields for numbers and paths, and what changes of them do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from typing import Any

import ipywidgets as widgets

FILE = "a file ..."
"""The entry of a choice beside which a field for a path is shown."""

AUTO = {"description_width": "auto"}


def make_row(*controls: widgets.Widget) -> widgets.HBox:
    return widgets.HBox(controls).add_class("tk-explore-row")


def make_choice(label: str, options: Sequence[tuple[str, Any]] = ()) -> widgets.Dropdown:
    layout = widgets.Layout(width="auto", max_width="100%")
    return widgets.Dropdown(description=label, options=options, layout=layout, style=AUTO)


def make_number(label: str, value: str = "", empty: str = "no limit") -> widgets.Text:
    """A field for a number. empty: what an empty field is; "" where it has to have one."""
    return widgets.Text(
        value,
        description=label,
        placeholder=empty,
        continuous_update=False,
        layout=widgets.Layout(width=f"{6 + 0.6 * len(label):.1f}em"),
        style=AUTO,
    )


def make_path(label: str) -> widgets.Text:
    """A field for a path, beside a choice that has one more entry for it."""
    return widgets.Text(
        description=label,
        continuous_update=False,
        layout=widgets.Layout(width="24em", display="none"),
        style=AUTO,
    )


def read_number(field: widgets.Text) -> int | float | None:
    """None where the field is empty; raises ValueError."""
    text = field.value.strip()
    if not text:
        return None
    try:
        with suppress(ValueError):
            return int(text)  # exactly, however large
        number = float(text)
        if not isfinite(number):
            raise ValueError(text)
        return int(number) if number.is_integer() else number
    except ValueError:
        empty = field.placeholder
        raise ValueError(
            f"{field.description} is {text!r}, which is no number; give one"
            + (f", or leave the field empty for {empty}" if empty else "")
        ) from None


def read_path(choice: widgets.Dropdown, field: widgets.Text) -> str:
    if choice.value != FILE:
        return choice.value
    if not field.value.strip():
        raise ValueError(f"{choice.description} is a file that has no name yet; write its path")
    return field.value.strip()


def show_path(choice: widgets.Dropdown, field: widgets.Text) -> None:
    """The field for a path is there where it is wanted."""
    field.layout.display = None if choice.value == FILE else "none"


def on_change(control: widgets.ValueWidget, action: Callable[[], object]) -> None:
    """What to do where a person, and not this module, changes a control."""
    control.observe(lambda change: getattr(control, "is_quiet", False) or action(), "value")


@contextmanager
def quiet(*controls: Any) -> Iterator[None]:
    """Changes in here are not a person's."""
    for control in controls:
        control.is_quiet = True
    try:
        yield
    finally:
        for control in controls:
            control.is_quiet = False


def set_options(choice: Any, options: Sequence[tuple[str, Any]], wish: Any = None) -> None:
    """New options; what was chosen stays where it still can be, else the wish, or the first."""
    values = [value for _, value in options]
    wishes = (choice.value, wish, *values)
    with quiet(choice):
        choice.options = options
        choice.value = next((value for value in wishes if value in values), None)
