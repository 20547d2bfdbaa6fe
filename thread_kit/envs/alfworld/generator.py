"""New ALFWorld games: own households and the package's rules, goals and planner.

For those who have not downloaded the official games, and for training: what is learned from these
games says nothing about the official ones. A generated game is valid in the way that an official
one is: same rules, same grammar, same six goals, objects only where the package lets them lie (and
the desk lamp, which it places nowhere, on tables and desks), nothing won at the start, solved by
the planner and won by playing what it planned. It is not taken from ALFRED's scenes: the households
are rolled from `ROOMS`, and so are what lies in them and the goal. The name says that it is
generated ("heat-12": type and seed), and the same name is the same game everywhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thread_kit.envs.alfworld.process import GameProcess
from thread_kit.paths import cache_folder
from thread_kit.replace_file import replace_text

VERSION = 1  # raised when a name comes to mean another game

KINDS = {
    "pick": "pick_and_place_simple",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "look": "look_at_obj_in_light",
    "pick2": "pick_two_obj_and_place",
}
"""The six task types as the papers' tables name them, in their order, and ALFWorld's names."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a room has: of each receptacle so many to so many, and the things that lie in it."""

    places: Mapping[str, tuple[int, int]]
    things: tuple[str, ...]


ROOMS = {
    "kitchen": Room(
        {
            "Cabinet": (4, 9),
            "CoffeeMachine": (1, 1),
            "CounterTop": (1, 3),
            "DiningTable": (0, 2),
            "Drawer": (2, 7),
            "Fridge": (1, 1),
            "GarbageCan": (1, 1),
            "Microwave": (1, 1),
            "Shelf": (0, 3),
            "SideTable": (0, 1),
            "SinkBasin": (1, 1),
            "StoveBurner": (4, 4),
            "Toaster": (1, 1),
        },
        (
            *("Apple", "Bowl", "Bread", "ButterKnife", "Cup", "DishSponge", "Egg", "Fork"),
            *("Glassbottle", "Kettle", "Knife", "Ladle", "Lettuce", "Mug", "Pan", "PepperShaker"),
            *("Plate", "Pot", "Potato", "SaltShaker", "SoapBottle", "Spatula", "Spoon", "Tomato"),
            *("Vase", "WineBottle"),
        ),
    ),
    "living room": Room(
        {
            "ArmChair": (1, 2),
            "CoffeeTable": (1, 1),
            "DiningTable": (0, 1),
            "Drawer": (0, 5),
            "Dresser": (0, 1),
            "GarbageCan": (1, 1),
            "Ottoman": (0, 1),
            "Safe": (0, 1),
            "Shelf": (0, 5),
            "SideTable": (1, 3),
            "Sofa": (1, 2),
        },
        (
            *("Book", "Box", "Bowl", "CellPhone", "CreditCard", "KeyChain", "Laptop"),
            *("Newspaper", "Pillow", "RemoteControl", "Statue", "TissueBox", "Vase", "Watch"),
            *("WateringCan", "Candle", "Plate"),
        ),
    ),
    "bedroom": Room(
        {
            "ArmChair": (0, 1),
            "Bed": (1, 1),
            "Desk": (1, 2),
            "Drawer": (2, 6),
            "Dresser": (0, 1),
            "GarbageCan": (1, 1),
            "LaundryHamper": (0, 1),
            "Safe": (0, 1),
            "Shelf": (1, 6),
            "SideTable": (1, 2),
        },
        (
            *("AlarmClock", "BaseballBat", "BasketBall", "Book", "Bowl", "CD", "CellPhone"),
            *("Cloth", "CreditCard", "KeyChain", "Laptop", "Mug", "Pen", "Pencil", "Pillow"),
            *("RemoteControl", "Statue", "TennisRacket", "TissueBox", "Watch"),
        ),
    ),
    "bathroom": Room(
        {
            "BathtubBasin": (0, 1),
            "Cabinet": (2, 4),
            "CounterTop": (1, 1),
            "Drawer": (0, 4),
            "GarbageCan": (1, 1),
            "HandTowelHolder": (1, 2),
            "Shelf": (0, 2),
            "SinkBasin": (1, 2),
            "Toilet": (1, 1),
            "ToiletPaperHanger": (1, 1),
            "TowelHolder": (1, 1),
        },
        (
            *("Candle", "Cloth", "DishSponge", "HandTowel", "PaperTowelRoll", "Plunger"),
            *("ScrubBrush", "SoapBar", "SoapBottle", "SprayBottle", "TissueBox", "ToiletPaper"),
            *("ToiletPaperRoll", "Towel"),
        ),
    ),
}

_ROOMS_FOR = {
    "pick": ("kitchen", "living room", "bedroom", "bathroom"),
    "clean": ("kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
    "look": ("living room", "bedroom"),
    "pick2": ("kitchen", "living room", "bedroom", "bathroom"),
}
_NEEDS = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
_SUITS = {"clean": "Cleanable", "heat": "Heatable", "cool": "Coolable"}
_LAMP = "DeskLamp"
_LAMP_STANDS_ON = ("Desk", "SideTable", "Dresser", "CoffeeTable", "DiningTable")
_PARTS = {"SinkBasin": "Sink", "BathtubBasin": "Bathtub"}


@dataclass(frozen=True, slots=True)
class HouseholdData:
    """What the package knows about households.

    domain, grammar: the rules and the words, with "UNKNOWN GOAL" where the task's words go.
    goals, phrases: by ALFWorld's name of a task type, with {obj}, {recep} and {toggle}.
    holds: what can lie in or on a receptacle. suits: what can be cleaned, heated, cooled.
    """

    domain: str
    grammar: str
    goals: Mapping[str, str]
    phrases: Mapping[str, tuple[str, ...]]
    holds: Mapping[str, frozenset[str]]
    suits: Mapping[str, frozenset[str]]
    openable: frozenset[str]
    vessels: frozenset[str]


def generate_file(kind: str, seed: int) -> Path:
    """The file of a generated game: made at the first time, then from the user's cache folder.

    Takes some seconds at the first time. Raises ValueError for an unknown type or a seed that is
    no number from 0, ImportError if the engine is not installed.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown task type {kind!r}; choose one of {', '.join(KINDS)}")
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"the seed of a generated game is a number from 0, not {seed!r}")
    path = cache_folder() / "alfworld" / f"generated-{VERSION}" / f"{kind}-{seed}.tw-pddl"
    if not path.exists():
        with GameProcess() as engine:
            game = engine.ask(do="generate", kind=kind, seed=seed)["game"]
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps(game))  # in one step: another process may want the same game
    return path


def invent(kind: str, seed: int, attempt: int, data: HouseholdData) -> dict[str, Any] | None:
    """A household with a goal, as a game file has it but yet to be solved; None if no goal fits.

    The same arguments always give the same game.
    """
    rng = random.Random(f"{VERSION} {kind} {seed} {attempt}")
    # The room, its places, and the goal.
    room = ROOMS[rng.choice(_ROOMS_FOR[kind])]
    places = [
        place
        for place, (least, most) in room.places.items()
        for _ in range(rng.randint(least, most))
    ]
    goal = _choose_goal(kind, room, places, data, rng)
    if goal is None:
        return None
    thing, target = goal

    # What lies where: the goal's things, then all others, then the lamp.
    lying = [
        (thing, _choose_place(thing, target, places, data, rng))
        for _ in range(_choose_count(kind, rng))
    ]
    for other in room.things:
        if other != thing:
            for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
                lying.append((other, _choose_place(other, None, places, data, rng)))
    if kind == "look":
        stands = [number for number, place in enumerate(places) if place in _LAMP_STANDS_ON]
        lying.append((_LAMP, rng.choice(stands)))
    laid = [(item, place) for item, place in lying if place is not None]
    if [item for item, _ in laid].count(thing) < (2 if kind == "pick2" else 1):
        return None

    # The task's words and its condition, by the package's own templates.
    name = KINDS[kind]
    words = {"obj": thing.lower(), "recep": target.lower(), "toggle": _LAMP.lower()}
    phrase = rng.choice(data.phrases[name]).format(**words)
    types = {"obj": thing, "recep": target, "toggle": _LAMP}
    return {
        "pddl_domain": data.domain,
        "grammar": data.grammar.replace("UNKNOWN GOAL", phrase),
        "pddl_problem": _write_problem(places, laid, data.goals[name].format(**types), data, rng),
        "generated": {"type": kind, "seed": seed, "version": VERSION},
    }


def _choose_goal(
    kind: str, room: Room, places: list[str], data: HouseholdData, rng: random.Random
) -> tuple[str, str] | None:
    """What is to be brought where; for "look", what is to be looked at, and the lamp."""
    if kind == "look":
        return (rng.choice(room.things), _LAMP) if set(places) & {*_LAMP_STANDS_ON} else None
    pairs = [
        (thing, place)
        for thing in room.things
        for place in sorted(set(places))
        if thing in data.holds.get(place, ())
        and place != _NEEDS.get(kind)
        and (kind not in _SUITS or thing in data.suits[_SUITS[kind]])
    ]
    return rng.choice(pairs) if pairs else None


def _choose_count(kind: str, rng: random.Random) -> int:
    return rng.randint(2, 3) if kind == "pick2" else rng.randint(1, 2)


def _choose_place(
    thing: str, target: str | None, places: list[str], data: HouseholdData, rng: random.Random
) -> int | None:
    """The number of a place that can hold the thing and is none of the target's type."""
    fit = [
        number
        for number, place in enumerate(places)
        if place != target and thing in data.holds.get(place, ())
    ]
    return rng.choice(fit) if fit else None


def _write_problem(
    places: list[str],
    lying: list[tuple[str, int]],
    goal: str,
    data: HouseholdData,
    rng: random.Random,
) -> str:
    """The household in PDDL, with the predicates that the official games use."""
    spots = [f"loc_bar_{number}_bar_0_bar_0_bar_0" for number in range(len(places) + 1)]
    positions = iter(rng.sample(range(10**6), len(places) + len(lying)))
    homes = [_make_id(place, next(positions)) for place in places]
    objects = [(_make_id(thing, next(positions)), thing, number) for thing, number in lying]
    place_types, thing_types = sorted(set(places)), sorted({thing for thing, _ in lying})

    # What there is.
    declared = ["agent1 - agent"]
    declared += [f"{kind}Type - rtype" for kind in place_types]
    declared += [f"{kind}Type - otype" for kind in thing_types]
    # The rules name these types, wherever one is.
    named = {"SinkBasin", "Microwave", "Fridge"} - set(place_types)
    declared += [f"{kind}Type - rtype" for kind in sorted(named)]
    declared += [f"{k}Type - otype" for k in sorted({"Knife", "ButterKnife"} - set(thing_types))]
    declared += [f"{home} - receptacle" for home in homes]
    declared += [f"{name} - object" for name, _, _ in objects]
    declared += [f"{spot} - location" for spot in spots]

    # Where the agent stands, the places, and what each type of them can hold.
    facts = [f"atLocation agent1 {spots[-1]}"]  # in the middle of the room
    for home, kind, spot in zip(homes, places, spots, strict=False):
        facts += [f"receptacleType {home} {kind}Type", f"receptacleAtLocation {home} {spot}"]
        facts += [f"openable {home}"] if kind in data.openable else []
    for kind in place_types:
        held = data.holds.get(kind, frozenset())
        facts += [f"canContain {kind}Type {thing}Type" for thing in thing_types if thing in held]

    # The things: where they lie, and what can be done with them.
    for name, kind, number in objects:
        facts += [
            f"objectType {name} {kind}Type",
            f"inReceptacle {name} {homes[number]}",
            f"objectAtLocation {name} {spots[number]}",
            f"toggleable {name}" if kind == _LAMP else f"pickupable {name}",
        ]
        for able in ("Cleanable", "Heatable", "Coolable", "Sliceable"):
            facts += [f"{able.lower()} {name}"] if kind in data.suits[able] else []
        facts += [f"isReceptacleObject {name}"] if kind in data.vessels else []

    return "\n".join(
        [
            "(define (problem generated)",
            "(:domain alfred)",
            "(:objects",
            *declared,
            ")",
            "(:init",
            *(f"({fact})" for fact in facts),
            ")",
            goal,  # it closes the problem, too
        ]
    )


def _make_id(kind: str, position: int) -> str:
    """A name as ALFRED gives it, kind and position; the engine numbers things by its order."""
    x, y, z = position // 10_000, position // 100 % 100, position % 100
    at = "".join(f"_bar__plus_{number // 10:02}_dot_{number % 10}0" for number in (x, y, z))
    # A basin is a part of something, and the engine's name for it is made of both.
    return f"{_PARTS[kind]}{at}_bar_{kind}" if kind in _PARTS else f"{kind}{at}"
