"""A widget that nobody sees: keys that are pressed in the box around it stay there.

JupyterLab has commands on single letters. In a box of buttons and menus of ipywidgets, `x` would
cut the cell that the box stands in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets

BOX = "tk-keeps-keys"
"""The CSS class of a box whose keys stay."""

KEEP_KEYS = Path(__file__).with_name("player_keys.js").read_text(encoding="utf-8")


class KeyGuard(anywidget.AnyWidget):
    """A child of a box with the CSS class `BOX`."""

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
