"""Widgets that are shown no longer."""

from __future__ import annotations

import ipywidgets as widgets


def close_widget(widget: widgets.Widget) -> None:
    """Close a widget with its children, its layout and its style.

    Else the kernel keeps them, and sends them to each page that is opened.
    """
    for child in getattr(widget, "children", ()):
        close_widget(child)
    for part in (getattr(widget, "layout", None), getattr(widget, "style", None), widget):
        if part is not None:
            part.close()
