"""The player's module in a bare page: no JupyterLab, no kernel."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page

from thread_kit.views.player.widget import MODULE


def call_module(page: Page, function: str, *arguments: Any) -> Any:
    """What a function in JavaScript makes of the module's exports and of these arguments."""
    return page.evaluate(
        """async ([source, text, json]) => {
            const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
            return eval(text)(await import(url), ...JSON.parse(json));
        }""",
        [MODULE, function, json.dumps(arguments)],  # Playwright writes large values slowly
    )


def show_player(page: Page, state: str) -> None:
    """Put a player into the page, whose messages from the kernel are `hear(message)` there,
    and those to it `sent`; `die()` ends the kernel.

    state: its snapshot, as JSON.
    """
    call_module(
        page,
        """({ default: make }, state) => {
            const heard = {};
            window.sent = [];
            const send = (message) => window.sent.push(message);
            const model = { get: () => state, on: (name, f) => (heard[name] = f), send };
            const widget = make();
            widget.initialize({ model });
            widget.render({ model, el: document.body });
            window.hear = (message) => heard["msg:custom"](message);
            window.die = () => heard["comm_live_update"]();
        }""",
        state,
    )
