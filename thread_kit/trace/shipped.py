"""The saved episodes that come with the kit: a name in, an episode out.

data/episodes/index.csv has a line for each, in the order of the gallery.
"""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from thread_kit.paths import resource
from thread_kit.trace.episode import Episode

FOLDER = "data/episodes"
_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class ShippedEpisode:
    """A line of the index.

    name: what `open_episode` takes. sentences: what is to be seen in it. status, reward, threads:
    how it ended (no reward: no answer), and how many threads it has. command: what made it, for a
    shell or in Python. file: its trace, in data/episodes.
    """

    name: str
    title: str
    sentences: str
    benchmark: str
    method: str
    model: str
    status: str
    reward: float | None
    threads: int
    command: str
    file: str

    def load(self) -> Episode:
        """The episode; raises what `Episode.load` raises."""
        return Episode.load(resource(f"{FOLDER}/{self.file}"))


def list_episodes() -> list[ShippedEpisode]:
    """The episodes that come with the kit; raises ValueError naming a line that lists none."""
    episodes = []
    with resource(f"{FOLDER}/index.csv").open(encoding="utf-8", newline="") as file:
        for row in (rows := csv.DictReader(file)):
            try:
                episodes.append(ShippedEpisode(**_parse(row)))
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"{file.name}, line {rows.line_num}: no episode ({error})"
                ) from error
    return episodes


def open_episode(name: str) -> Episode:
    """An episode that comes with the kit, by its name; raises ValueError if there is none."""
    shipped = {episode.name: episode for episode in list_episodes()}
    if name not in shipped:
        near = get_close_matches(name, shipped) or shipped
        raise ValueError(f"no episode {name!r} comes with the kit; there is {', '.join(near)}")
    return shipped[name].load()


def _parse(row: dict[str, str]) -> dict[str, Any]:
    # Of a page that is written, and of a file that is read.
    is_file = os.path.normpath(f"{FOLDER}/{row['file']}").startswith("data" + os.sep)
    if not _NAME.fullmatch(row["name"]) or not is_file:
        raise ValueError(f"{row['name']!r} is no name, or {row['file']!r} no file of data/")
    reward = float(row["reward"]) if row["reward"] else None
    return {**row, "reward": reward, "threads": int(row["threads"])}
