"""The process that one ALFWorld game runs in; `process.py` starts it and speaks with it.

The planner is a C++ library with global state that writes to the standard output, and it ends the
process on what it does not understand. So each game has a process of its own, and everything that
imports the packages `alfworld` and `textworld` runs here.

The protocol: one JSON object a message, over a pipe. A request names what to do ("do"), the reply
has what came of it, or "error": one line of text.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from multiprocessing.connection import Connection
from typing import Any

from thread_kit.envs.alfworld.generator import HouseholdData, invent

Message = dict[str, Any]


class Game:
    """A game in the engine."""

    def __init__(self, game: Message) -> None:
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld import EnvInfos
        from textworld.envs.pddl import PddlEnv

        keep_what_is_parsed()
        # The demangler names things as people read them: "mug 1" for "Mug_bar__plus_00_dot_27...".
        self._env = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)))
        self._env.load(game)
        self._state = self._env.reset()

    def observe(self) -> Message:
        return {
            "observation": self._state["feedback"],
            "admissible": self._state["admissible_commands"],
            "won": bool(self._state["won"]),
        }

    def step(self, action: str) -> Message:
        self._state, _, _ = self._env.step(action)
        return self.observe()

    def plan(self) -> list[str]:
        """Commands that win from here, by the engine's planner; [] if it finds none."""
        engine = self._env.unwrapped
        state = engine._pddl_state
        problem = translate_for_planner(state._logic.domain, state.pddl_problem)
        state.downward_lib.load_sas_replan(problem.encode("utf-8"))
        return state.replan(engine._entity_infos)


@functools.lru_cache(maxsize=32)
def translate_for_planner(domain: str, problem: str) -> str:
    """A game's problem as the engine's planner reads it."""
    from fast_downward.interface import pddl2sas

    return pddl2sas(domain, problem, optimize=True)[1]


@functools.cache
def keep_what_is_parsed() -> None:
    """Let the engine parse each text once, which it does anew at every start and step.

    A game's problem is translated twice to load it, once of these for the planner, which hardly any
    game asks (`translate_for_planner`); its grammar and the conditions of its sentences, which all
    games share, are more than half of what a step takes. Of what is left, half was copies.
    """
    import fast_downward
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    translate = functools.lru_cache(maxsize=32)(fast_downward.pddl2sas)  # 5 MB each
    fast_downward.pddl2sas = lambda domain, problem, optimize=False, **how: (
        (None, "") if optimize else translate(domain, problem, **how)
    )
    logic._parse_and_convert = functools.lru_cache(maxsize=4)(logic._parse_and_convert)
    Rule.parse_conjunctive_query = functools.lru_cache(maxsize=1024)(Rule.parse_conjunctive_query)
    parse_symbols = functools.lru_cache(maxsize=1024)(textgen._parse_and_convert)
    # Symbols are given their context when they are used: each use has its own.
    textgen._parse_and_convert = lambda *text, **how: deepcopy(parse_symbols(*text, **how))
    # Names and things of the household are never changed, so their tables alone are copied.
    textgen.copy_context = lambda context: {
        **context,
        "variables": dict(context["variables"]),
        "mapping": dict(context["mapping"]),
    }


def load_household_data() -> HouseholdData:
    """What the package knows about households: what can hold what, the goals, the rules."""
    from alfworld.gen.constants import MOVABLE_RECEPTACLES, VAL_ACTION_OBJECTS
    from alfworld.gen.constants import OPENABLE_CLASS_LIST as OPENABLE
    from alfworld.gen.constants import VAL_RECEPTACLE_OBJECTS as HOLDS
    from alfworld.gen.goal_library import gdict

    data = importlib.resources.files("alfworld") / "data"
    return HouseholdData(
        domain=(data / "alfred.pddl").read_text("utf-8"),
        grammar=(data / "alfred.twl2").read_text("utf-8"),
        goals={kind: goal["pddl"].replace("#", "-") for kind, goal in gdict.items()},
        phrases={kind: tuple(goal["templates"]) for kind, goal in gdict.items()},
        holds={place: frozenset(things) for place, things in HOLDS.items()},
        suits={how: frozenset(things) for how, things in VAL_ACTION_OBJECTS.items()},
        openable=frozenset(OPENABLE),
        vessels=frozenset(MOVABLE_RECEPTACLES),
    )


def solve(game: Message) -> list[str] | None:
    """Commands that win the game; they have been played. None if the planner finds none that do.

    It plans in a household without what the goal has nothing to do with, which is faster a hundred
    times where two things are to be brought into a large kitchen. Where that plan does not win
    (none such game is known), it plans in the whole one.
    """
    for planned in ({**game, "pddl_problem": drop_irrelevant(game["pddl_problem"])}, game):
        plan = Game(planned).plan()
        played = Game(game)
        if played.observe()["won"]:
            return []
        if any(played.step(action)["won"] for action in plan):
            return plan
    return None


def invent_games(kind: str, seed: int) -> Iterator[Message]:
    """New games that nobody has solved."""
    households = load_household_data()
    games = (invent(kind, seed, attempt, households) for attempt in range(100))
    yield from filter(None, games)


def generate(kind: str, seed: int) -> Message:
    """A new game that the planner has solved, and that was won by playing what it planned."""
    for game in invent_games(kind, seed):
        if plan := solve(game):  # not [], which is won at the start
            return {**game, "solvable": True, "walkthrough": plan}
    raise RuntimeError(f"no solvable household came of {kind!r} and seed {seed}")


def answer(request: Message, game: Game | None) -> tuple[Message, Game | None]:
    """The reply to one request, and the game that is on from now."""
    match request:
        case {"do": "start", "game": data}:
            game = Game(data)
            return game.observe(), game
        case {"do": "generate", "kind": kind, "seed": seed}:
            return {"game": generate(kind, seed)}, game
        case {"do": "invent", "kind": kind, "seed": seed}:
            return {"game": next(invent_games(kind, seed))}, game
        case {"do": "step", "action": action} if game:
            return game.step(action), game
        case {"do": "solve", "game": data}:
            return {"plan": solve(data)}, game
    raise ValueError(f"not a request: {request}")


def main(descriptor: int) -> None:
    """Answer until whoever started this process hangs up."""
    pipe = Connection(descriptor)
    game: Game | None = None
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        try:
            reply, game = answer(request, game)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        pipe.send_bytes(json.dumps(reply).encode())


# What of a household its goal has to do with: all that a plan needs.
#
# The planner looks at every thing that could be carried to every place, so its time grows with what
# is of no use: 47 s for two mugs among 30 things in a large kitchen, half a second when only the
# mugs are left. A plan for the small household is one for the large one, since things are never in
# each other's way and nothing is ever full.

_FACT = re.compile(r"\([^():][^()]*\)")
_TOOLS = {"SinkBasinType", "MicrowaveType", "FridgeType"}


def drop_irrelevant(problem: str) -> str:
    """The problem (PDDL, as a game file has it) without things and places that do not matter.

    What stays: things of the goal's types, places of its types, places that hold such things, and
    those that clean, heat and cool. Of a type all places stay or none, so that the numbers in their
    names ("cabinet 3") are those of the whole household.
    """
    household, mark, goal = problem.partition("(:goal")
    asked = set(re.findall(r"\b\w+Type\b", goal))
    thing = dict(re.findall(r"\(objectType (\S+) (\S+)\)", household))
    place = dict(re.findall(r"\(receptacleType (\S+) (\S+)\)", household))
    spots = re.findall(r"\(receptacleAtLocation (\S+) (\S+)\)", household)
    lying = re.findall(r"\(inReceptacle (\S+) (\S+)\)", household)

    kept = _TOOLS | asked | {place[home] for item, home in lying if thing[item] in asked}
    gone = {name for name, kind in {**thing, **place}.items() if kind not in kept}
    gone |= {spot for _, spot in spots} - {spot for home, spot in spots if home not in gone}
    gone -= set(re.findall(r"\(atLocation \S+ (\S+)\)", household))

    household = _FACT.sub(
        lambda fact: "" if gone & set(fact[0].strip("()").split()) else fact[0], household
    )
    declared = re.compile(r"(\S+) - (?:object|receptacle|location)\b")
    household = declared.sub(lambda match: "" if match[1] in gone else match[0], household)
    return household + mark + goal


if __name__ == "__main__":
    main(int(sys.argv[1]))
