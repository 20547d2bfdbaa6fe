"""StateFlow's machine as a picture; and above the tree of the player, the state of the moment lit.

    draw_machine(MACHINE)                the states and where each leads
    watch_machine(session)               while it runs, and when one steps or rewinds
    watch_machine(Episode.load(path))    a saved episode

The page finds the state by itself, from the frames that it has, so that going back and forth works
as it does in the tree (`state_machine.js`). The machine comes from the episode's own header.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import traitlets

from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, must_be_episode
from thread_kit.views.machine_picture import draw_svg
from thread_kit.views.machine_table import TAG, MachineTable, read_table
from thread_kit.views.player.widget import CSS, MODULE, Player

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class MachinePicture:
    """A machine, and the states that were gone through, the last of which is the current one."""

    table: MachineTable
    way: tuple[str, ...] = ()

    def _repr_svg_(self) -> str:
        return draw_svg(self.table, self.way)

    def _repr_html_(self) -> str:
        """For JupyterLab, which shows an SVG in its own width, however narrow the page is."""
        image = base64.b64encode(self._repr_svg_().encode()).decode()
        text = escape(" -> ".join(self.way) or "the state machine")
        return f'<img alt="{text}" style="max-width: 100%" src="data:image/svg+xml;base64,{image}">'

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, [str(self.table), " -> ".join(self.way)]))


def draw_machine(source: Any, whole: Any = None) -> MachinePicture:
    """The picture of a machine; of an episode of StateFlow with the way that it took.

    whole: the machine with all states, or an episode of it, whose order the picture has. Raises
    ValueError for an episode of another method.
    """
    table = read_table(source, whole)
    events = source.events if isinstance(source, Episode) else ()
    return MachinePicture(table, tuple(state for _, state in table.list_states(events)))


class MachinePlayer(Player):
    """A player of a session, or a saved episode, of StateFlow or SF_Chat.

    source, options: as `Player` takes them. whole: the machine with all states, for the place of
    those that were left out. Raises ValueError where another method plays.
    """

    _esm = MODULE + (HERE / "state_machine.js").read_text(encoding="utf-8")
    _css = CSS + (HERE / "state_machine.css").read_text(encoding="utf-8")

    machine = traitlets.Unicode().tag(sync=True)

    def __init__(self, source: Session | Episode, *, whole: Any = None, **options: Any) -> None:
        episode = source.episode if isinstance(source, Session) else must_be_episode(source)
        self.table = read_table(episode, whole)
        super().__init__(source, **options)

    @traitlets.default("machine")
    def _machine_json(self) -> str:
        reasons = {
            f"{edge.source} {edge.target}": self.table.find_transition(edge.source, edge.target)
            for edge in self.table.transitions
        }
        return json.dumps(
            {
                "svg": draw_svg(self.table),
                "tag": f"^{TAG.pattern}",
                "states": list(self.table.states),
                "start": self.table.start,
                "final": self.table.final[0],
                "reasons": reasons,
            }
        )

    def page_data(self) -> dict[str, str]:
        """The machine, and what every player has."""
        return {**super().page_data(), "machine": self.machine}

    @property
    def picture(self) -> MachinePicture:
        """The machine as it is now, with the way of the original so far."""
        way = self.table.list_states(list(self.episode.events))
        return MachinePicture(self.table, tuple(state for _, state in way))

    @property
    def static(self) -> str:
        """The picture, and what every player shows without a kernel."""
        picture = self.picture
        text = escape(" -> ".join(picture.way))
        shown = f"{picture._repr_html_()}<p>{text}</p>"
        return f'<div class="{self._static}">{shown}</div>{super().static}'

    def __repr__(self) -> str:
        return f"{' -> '.join(self.picture.way)}\n{super().__repr__()}".strip()


def watch_machine(
    source: Session | Episode, *, paused: bool = False, **options: Any
) -> MachinePlayer:
    """See StateFlow run, or a saved episode of it, with its machine; as `tk.watch` otherwise.

    options: as `MachinePlayer` takes them.
    """
    player = MachinePlayer(source, **options)
    if paused:
        player.pause()
    return player
