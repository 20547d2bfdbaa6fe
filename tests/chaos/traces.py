"""Traces that somebody changed: each opens and shows in every view, or is refused."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import traceback
from typing import Any

from thread_kit.analysis.depths import count_depths
from thread_kit.analysis.recovery import find_rephrasings
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.errors.review import review_by_rules
from thread_kit.experiments.episode_facts import (
    claims_success,
    count_trials,
    find_k_max,
    list_states,
)
from thread_kit.trace.episode import Episode, TraceError
from thread_kit.trace.shipped import list_episodes
from thread_kit.views.export_html import render_page
from thread_kit.views.gallery import draw_bars
from thread_kit.views.machine_table import read_table
from thread_kit.views.narration import describe_event
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.plot import supplemental_work_figure, usage_figure
from thread_kit.views.text import read_text, thread_text
from thread_kit.views.tree_edge import draw_edge
from thread_kit.views.tree_nodes import draw_nodes
from thread_kit.views.tree_rows import draw_rows

from .episodes import Echo, find_ways, open_sandboxes
from .tally import Tally
from .texts import HostileModel

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**400, 2**63, 0.5, "inf", "nan", "", "x", [], [[]], {}, {"x": 1}),
    *("\ud800", "\x1b[2J", "<script>", [1, 2], ["generated", "x", [1]], "generated", 10**6),
)


def play(seed: int, count: int) -> Tally:
    """`count` changed traces, each of a hostile episode with one to three changes."""
    tally, chance = Tally(), random.Random(seed)
    originals = [list(episode.to_lines()) for episode in _episodes(seed, 12)]
    small = [shipped for shipped in list_episodes() if shipped.threads < 20]
    originals += [list(shipped.load().to_lines()) for shipped in chance.sample(small, 6)]
    for number in range(count):
        lines = list(chance.choice(originals))
        for _ in range(chance.randint(1, 3)):
            _change(chance, lines)
        if chance.random() < 0.3:  # the header, which is one line among many
            head = lines[:1]
            _change(chance, head)
            lines[:1] = head
        place = f"trace {number} of seed {seed}"
        tally.counts["changed traces"] += 1
        try:
            episode = Episode.from_lines(lines, torn=chance.random() < 0.3)
        except TraceError:
            tally.counts["refused"] += 1
            continue
        except Exception:
            tally.find(f"{place}, to open", traceback.format_exc())
            continue
        try:
            _show(episode, number)
            tally.counts["shown"] += 1
        except Exception:
            tally.find(f"{place}, to show", traceback.format_exc())
    return tally


def _show(episode: Episode, number: int) -> None:
    """Every view of an episode; of those that take longer one."""
    # 1. What a terminal and a notebook show.
    for text in (str(episode), repr(episode), episode.summary, episode._repr_html_()):
        assert "\x1b" not in text
    for thread in episode.threads:
        assert "\x1b" not in thread_text(episode, thread) + read_text(episode, thread)
    _ = (
        FrameRecorder(episode).frames,
        [describe_event(episode, event, n) for n, event in enumerate(episode.events)],
    )

    # 2. What tables and reviews ask of it.
    _ = count_depths(episode), count_trials(episode), find_rephrasings(episode)
    _ = list_states(episode), find_k_max(episode), claims_success(episode)
    if not episode.status.is_live:
        review_by_rules({"trace": episode})
    draw_bars(episode)

    # 3. Machines, pictures, pages; there are none without a thread.
    with contextlib.suppress(ValueError):
        str(read_table(episode))
    if episode.threads:
        views = (render_page, draw_rows, draw_nodes, usage_figure, supplemental_work_figure)
        views[number % len(views)](episode)
    if len(episode.threads) > 1:
        draw_edge(episode, 1)


def _episodes(seed: int, count: int) -> list[Episode]:
    ways = find_ways()
    with open_sandboxes() as sandboxes:
        return [
            ways[name](
                ScriptedEngine(HostileModel(f"{seed}-{name}").speak),
                Echo(),
                sandbox=sandboxes["monty"],
                seed=0,
                path=None,
                calls=8,
                new_tokens=200,
            ).run(progress=False)
            for name in random.Random(seed).sample(sorted(ways), count)
        ]


def _change(chance: random.Random, lines: list[str]) -> None:
    """One change: of the lines' order, of a line's text, or of a value in it."""
    at = chance.randrange(len(lines))
    match chance.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        case 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            place = chance.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + chance.choice('{}[]",:0e\\') + lines[at][place + 1 :]
        case _:
            try:
                data = json.loads(lines[at])
            except ValueError:
                return
            data = copy.deepcopy(data)
            _replace(chance, data)
            lines[at] = json.dumps(data)
    if not lines:
        lines.append("")


def _replace(chance: random.Random, data: Any) -> None:
    """Put something odd somewhere in a value."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(data[key], dict | list) and data[key] and chance.random() < 0.7:
            data = data[key]
            continue
        if chance.random() < 0.2:
            del data[key]
        else:
            data[key] = chance.choice(ODD)
        return
