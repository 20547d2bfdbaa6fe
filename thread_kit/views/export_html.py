"""An episode as one HTML file: the player replays it anywhere, with no kernel and no network.

The file holds the films, the player's module and its style. Where scripts are switched off it shows
the static form (`html.py`). What needs a model, a fork for one, is not offered.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from thread_kit.trace.episode import Episode
from thread_kit.views.player.widget import CSS, MODULE, Player

_START = """
const data = document.getElementById("film").textContent;
const model = { get: () => data, on: () => {}, send: () => {} };
const one = widget();
one.initialize({ model });
one.render({ model, el: document.getElementById("player") });
"""


def page(source: Episode | Player) -> str:
    """The HTML file of a saved episode, or of a player with its forks."""
    player = source if isinstance(source, Player) else Player(source)
    film = player.snapshot_json(offline=True)
    safe = film.replace("<", "\\u003c")  # so that no text can end the element that it is in
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(repr(player.episode))}</title>"
        "<style>:root { color-scheme: light dark; } body { margin: 1em; }\n"
        f"{CSS}</style></head><body>"
        f'<div id="player"></div><noscript>{player.static}</noscript>'
        f'<script type="application/json" id="film">{safe}</script>'
        f'<script type="module">\n{MODULE}\n{_START}</script></body></html>\n'
    )


def save_page(source: Episode | Player, path: str | Path) -> Path:
    """Write `page` to a file; its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(source), encoding="utf-8")
    return path
