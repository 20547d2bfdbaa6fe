"""Training games for ALFWorld: households of our own, none of them one of the official test's.

They are rolled like all generated games, with seeds that no listed game has (`FIRST` and above),
and a household with just the places of one of the four floor plans of the official valid_unseen
games is left out. What training and test share is what ALFWorld's own training and test share: the
six tasks and their phrases, the kinds of things and places, and hence pairs such as a mug and a
fridge. In three games of four the things and most of the places have other names (`words.py`).
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from thread_kit.distill.words import TAUGHT_WORDS, draw_word
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.alfworld.process import GameProcess

FIRST = 1_000_000

KEPT = ("Agent", "BathtubBasin", "Cabinet", "Drawer", "Fridge", "Microwave", "Safe", "SinkBasin")
"""Kinds of places whose names the teacher knows: they are closed, or something is done there."""

FLOOR_PLANS = {
    10: "Cabinet 6, CoffeeMachine 1, CounterTop 3, Drawer 3, Fridge 1, GarbageCan 1, Microwave 1, "
    "Shelf 3, SinkBasin 1, StoveBurner 4, Toaster 1",
    219: "ArmChair 1, Cabinet 4, Drawer 5, Dresser 1, GarbageCan 1, Safe 1, Shelf 12, SideTable 1, "
    "Sofa 1",
    308: "Bed 1, Desk 2, Drawer 6, GarbageCan 1, LaundryHamper 1, Safe 1, Shelf 6",
    424: "Cabinet 4, CounterTop 1, GarbageCan 1, HandTowelHolder 2, SinkBasin 2, Toilet 1, "
    "ToiletPaperHanger 1, TowelHolder 1",
}
"""The places of ALFRED's floor plans that the valid_unseen games are in, by their numbers there."""


def training_games(seed: int) -> Iterator[dict[str, Any]]:
    """Training games without end, for `AlfWorld(game=...)`, the six types in turn, most renamed.

    No planner has seen them: whoever wins one shows that it can be won. Raises ImportError without
    the engine.
    """
    held_out = {
        frozenset((kind, int(count)) for kind, count in re.findall(r"(\w+) (\d+)", plan))
        for plan in FLOOR_PLANS.values()
    }
    with GameProcess() as engine:
        for number in itertools.count(FIRST + seed * 1_000_000):
            for kind in KINDS:
                game = engine.ask(do="invent", kind=kind, seed=number)["game"]
                if count_places(game) not in held_out:
                    draw = random.Random(f"names {kind} {number}")
                    yield game if draw.random() < 0.25 else rename_kinds(game, draw)


def rename_kinds(
    game: Mapping[str, Any], draw: random.Random, part: str = TAUGHT_WORDS
) -> dict[str, Any]:
    """The same game, whose kinds of things and places have other names, but for `KEPT`.

    part: whose words these are (`words.py`).
    """
    problem, grammar = game["pddl_problem"], game["grammar"]
    kinds = sorted({*re.findall(r"\b([A-Za-z]+)Type - [or]type", problem)} - {*KEPT})
    names: dict[str, str] = {}
    while len(names) < len(kinds):
        word = draw_word(draw, part)
        if word.capitalize() not in {*names.values(), *KEPT}:
            names[kinds[len(names)]] = word.capitalize()
    either = "|".join(kinds)
    problem = re.sub(rf"\b({either})(?=Type\b|_bar_)", lambda kind: names[kind[1]], problem)
    small = {kind.lower(): name.lower() for kind, name in names.items()}
    task = re.compile(r"(?<=Your task is to: )[^\n\"]*")
    words = re.compile(rf"\b({either.lower()})\b")
    grammar = task.sub(lambda line: words.sub(lambda kind: small[kind[1]], line[0]), grammar)
    return {**game, "pddl_problem": problem, "grammar": grammar}


def count_places(game: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    """What places a game has, and how many of each kind."""
    places = re.findall(r"\(receptacleType (\S+) (\w+)Type\)", game["pddl_problem"])
    return frozenset(Counter(kind for _, kind in set(places)).items())
