"""For boxes of buttons and menus (ipywidgets): keys that are pressed in a box stay there.

JupyterLab has commands on single letters: with the focus on a button, `x` would cut the cell that
the box stands in. What goes wrong behind a button would go to JupyterLab's log: `show_error`. And a
button says nothing where no kernel hears it: `KeyGuard` does.
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

NO_KERNEL = "The kernel was restarted or has ended: run the cell again."

ALERT = "border-left:3px solid #d55e00;padding:2px 8px"


class KeyGuard(anywidget.AnyWidget):
    """In a box with the CSS class `BOX`: nobody sees it before it says that the kernel has ended.

    So it stands where a person looks for what a button has done.
    """

    _esm = f"""{KEEP_KEYS}
    export default {{
      render({{ model, el }}) {{
        let next, box;
        const die = () => {{
          if (el.firstChild) return;
          // What stands there would look like the answer to this click.
          const old = box?.querySelectorAll(".widget-html :is([role=alert], [role=status])");
          for (const answer of old ?? []) answer.remove();
          el.append(Object.assign(document.createElement("span"), {{
            role: "alert", className: "tk-no-kernel", style: "{ALERT}", textContent: "{NO_KERNEL}",
          }}));
          el.style.display = "";
        }};
        const ask = () => {{
          try {{
            model.send({{}}); // nobody has to answer
          }} catch {{
            die();
          }}
        }};
        const guard = () => {{
          box = el.closest(".{BOX}");
          if (!box) return (next = requestAnimationFrame(guard)); // it is not on the page yet
          keepKeys(box);
          for (const kind of ["click", "change"]) box.addEventListener(kind, ask);
        }};
        guard();
        model.on("comm_live_update", die);
        return () => {{
          cancelAnimationFrame(next);
          model.off("comm_live_update", die);
        }};
      }},
    }};
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(layout=widgets.Layout(display="none"), **options)


def show_error(error: Exception) -> str:
    """What went wrong behind a button, as HTML to stand beside it."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    text = escape(sanitize(f"{kind}{error}"))
    return f'<span role="alert" style="{ALERT}">{text}</span>'
