"""Episodes side by side: the same task, and what differs is seen at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from thread_kit.trace.episode import Episode
from thread_kit.views.html import episode_html
from thread_kit.views.text import episode_text


class SideBySide:
    """Episodes by name: their trees in columns, and as text one below the other.

    Raises ValueError for what has no names, or is no episode.
    """

    def __init__(self, episodes: Mapping[str, Episode]) -> None:
        named = isinstance(episodes, Mapping)
        if not named or not all(isinstance(one, Episode) for one in episodes.values()):
            raise ValueError(
                f"{episodes!r:.80} are no episodes by name; give {{'NAME': episode, ...}}"
            )
        self.episodes = dict(episodes)

    def __str__(self) -> str:
        return "\n\n".join(
            f"{name}\n{episode_text(episode)}" for name, episode in self.episodes.items()
        )

    def __repr__(self) -> str:
        return f"SideBySide({', '.join(map(repr, self.episodes))})"

    def _repr_html_(self) -> str:
        columns = "".join(
            f'<div style="flex:1 1 24em;min-width:0"><p><b>{escape(name)}</b></p>'
            f"{episode_html(episode)}</div>"
            for name, episode in self.episodes.items()
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{columns}</div>'
