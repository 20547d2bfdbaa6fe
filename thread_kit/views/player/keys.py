"""For boxes of buttons and menus (ipywidgets): keys that are pressed in a box stay there.

JupyterLab has commands on single letters: with the focus on a button, `x` would cut the cell that
the box stands in. And what goes wrong behind a button would go to JupyterLab's log: `show_error`.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets

from thread_kit.views.formatting import sanitize

BOX = "tk-keeps-keys"
"""The CSS class of a box whose keys stay."""

KEEP_KEYS = Path(__file__).with_name("player_keys.js").read_text(encoding="utf-8")


class KeyGuard(anywidget.AnyWidget):
    """A child of a box with the CSS class `BOX`, which nobody sees."""

    _esm = f"""{KEEP_KEYS}
    export default {{
      render({{ el }}) {{
        let next;
        const guard = () => {{
          const box = el.closest(".{BOX}");
          if (box) keepKeys(box);
          else next = requestAnimationFrame(guard); // it is not on the page yet
        }};
        guard();
        return () => cancelAnimationFrame(next);
      }},
    }};
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(layout=widgets.Layout(display="none"), **options)


def show_error(error: Exception) -> str:
    """What went wrong behind a button, as HTML to stand beside it."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    text = escape(sanitize(f"{kind}{error}"))
    return f'<span role="alert" style="border-left:3px solid #d55e00;padding:2px 8px">{text}</span>'
