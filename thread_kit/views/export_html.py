"""An episode as one HTML file: the player replays it anywhere, with no kernel and no network.

The file holds the recorded frames, the player's module and its style; where a state machine played
the episode (`state_machine.py`), that, too. Where scripts are switched off it shows the static form
(`html.py`). What needs a model, a fork for one, is not offered.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from thread_kit.replace_file import replace_text
from thread_kit.trace.episode import Episode
from thread_kit.views.close_widget import close_widget
from thread_kit.views.player.widget import Player
from thread_kit.views.state_machine import MachinePlayer

_START = """
const read = (name) => document.getElementById(name).textContent;
const model = { get: read, on: () => {}, send: () => {} };
const player = widget();
player.initialize({ model });
player.render({ model, el: document.getElementById("player") });
// Its keys work at once; within another page the focus is that page's.
if (window.top === window) document.querySelector(".tk-player").focus({ preventScroll: true });
"""


def render_page(source: Episode | Player, *, title: str = "", above: str = "") -> str:
    """The HTML file of a saved episode, or of a player with its forks.

    title: of the file; empty is the episode in a few words. above: HTML that stands over the
    player, which the caller has escaped.
    """
    if not isinstance(source, Player):
        player = _open_player(source)
        try:
            return render_page(player, title=title, above=above)
        finally:
            close_widget(player)
    player = source
    # No text can end the element that it is in.
    texts = {name: text.replace("<", "\\u003c") for name, text in player.page_data().items()}
    data = "".join(
        f'<script type="application/json" id="{name}">{text}</script>'
        for name, text in texts.items()
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title or repr(player.episode))}</title>"
        "<style>:root { color-scheme: light dark; } body { margin: 1em; }\n"
        f"{player._css}</style></head><body>{above}"
        f'<main id="player"></main><noscript>{player.static}</noscript>'
        f'{data}<script type="module">\n{player._esm}\n{_START}</script></body></html>\n'
    )


def _open_player(episode: Episode) -> Player:
    """Of an episode that a state machine played, the one with the machine."""
    try:
        return MachinePlayer(episode)
    except ValueError:  # none did, or it cannot be read
        return Player(episode)


def save_page(source: Episode | Player, path: str | Path) -> Path:
    """Write `render_page` to a file; its path. An old file stays until the new one is whole.

    Raises OSError (a full disk, say).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, render_page(source))
    return path
