"""Whether the list of the papers' items holds: what it names is there, and every page is made."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from thread_kit.analysis.item_page import make_page
from thread_kit.analysis.item_states import State, find_place
from thread_kit.analysis.paper_items import PAPER_NAMES, PaperItem, load_items
from thread_kit.analysis.published import load_published
from thread_kit.analysis.stored_rows import load_commands
from thread_kit.analysis.studies import STUDIES
from thread_kit.experiments.results_file import canonical
from thread_kit.paths import resource
from thread_kit.views.figure_image import draw_svg

TASKS = re.compile(r" suite .*?--tasks (\d+)")
"""In a command, how many tasks are played."""


def check_items(frame: pd.DataFrame) -> list[str]:
    """What is wrong with the list, one problem a line; empty where nothing is.

    frame: of `load_stored_rows`.
    """
    items = load_items()
    problems = [
        f"{paper} {item} is listed {times} times"
        for (paper, item), times in Counter((item.paper, item.item) for item in items).items()
        if times > 1
    ]
    problems += [f"{item.label}: {problem}" for item in items for problem in _check(item, frame)]
    return problems + _check_published(items) + _check_commands()


def _check(item: PaperItem, frame: pd.DataFrame) -> list[str]:
    """What is wrong with one item; its page is made on the way."""
    problems = []
    if item.paper not in PAPER_NAMES:
        return [f"no paper is called {item.paper!r}"]
    if item.study and item.study not in STUDIES:
        return [f"no study is called {item.study!r}"]
    if bool(item.study) != bool(item.benchmarks and item.methods):
        problems.append("a study has benchmarks and methods, and nothing else has")
    for place in item.where:
        file, _, heading = place.partition("#")
        if heading and find_place(file) and not find_place(place):
            problems.append(f"{file} has no heading {heading!r}")
    page = make_page(item, frame)
    if not page.markdown or not page.html:
        problems.append("its page is empty")
    if page.figure is not None and not draw_svg(page.figure):
        problems.append("its figure is empty")
    state = page.state
    if state.state in (State.REPRODUCED, State.STAND_IN) and not (state.rows and len(page.ours)):
        problems.append(f"it is called {state.state}, and no row is behind it")
    if state.state == State.STAND_IN and not state.reasons:
        problems.append("it is called a stand-in, and no reason is given")
    return problems


def _check_published(items: Sequence[PaperItem]) -> list[str]:
    """Every published number belongs to an item, with its benchmark."""
    listed = {(PAPER_NAMES[item.paper], item.number): item for item in items}
    problems = []
    for (paper, table), part in load_published().groupby(["paper", "table"]):
        item = listed.get((paper, table))
        if item is None or not item.study:
            problems.append(f"{paper}, {table} has published numbers and is not listed as a study")
        elif missing := set(part["benchmark"]) - set(item.benchmarks):
            problems.append(f"{paper}, {table} lacks {', '.join(sorted(missing))}")
    return problems


def _check_commands() -> list[str]:
    """Every file that has a command is there, with all tasks of that command or a note."""
    problems = []
    for file, made in load_commands().items():
        path = resource("data") / file
        if not path.exists():
            problems.append(f"data/results/runs.csv names {file}, which is not there")
            continue
        asked = max(map(int, TASKS.findall(made["command"])), default=0)
        played = {
            canonical(json.loads(line)["task"]) for line in path.read_text("utf-8").splitlines()
        }
        if len(played) < asked and not made["note"]:
            problems.append(
                f"{file} has {len(played)} of {asked} tasks, and no note in data/results/runs.csv"
            )
    return problems
