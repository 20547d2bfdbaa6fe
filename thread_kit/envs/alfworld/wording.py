"""The words of an ALFWorld game: what one writes to act, and what one reads.

ALFWorld changed them in 2025: "put mug 1 in/on desk 1" became "move mug 1 to desk 1" (package 0.4,
data json_2.1.1), while all papers' prompts are from before; and `help` became an action. But
for that the rules of a game and its household are the same in every wording.
"""

from __future__ import annotations

import re
from typing import Any

WORDINGS = {
    "papers": "`put X in/on Y`; going to Y tells what is seen there and nothing more",
    "classic": "`put X in/on Y`; going to Y tells first: You arrive at loc N.",
    "engine": "as the game file has it: `move X to Y`, You arrive at Y.",
}

# The grammar of data json_2.1.1, and what stood there before (ALFWorld 0.2 and 0.3).
_BEFORE = (
    ("You arrive at {r.name}. ", "You arrive at {lend.name}. "),
    ('"move {o} to {r}"', '"put {o} in/on {r}"'),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
    ("move (object) to (receptacle):  ", "put (object) in/on (receptacle): "),
)

_HELP = {
    "pddl_domain": re.compile(r"^\(:action help$.*?^\)\n", re.MULTILINE | re.DOTALL),
    "grammar": re.compile(r"^action help \{$.*?^\}\n", re.MULTILINE | re.DOTALL),
}
"""The action of that name; before, it was answered as what is none."""

_ARRIVAL = re.compile(r"^You arrive at loc [0-9]+\. ")
_GOAL = re.compile(r"Your task is to: (.*?)\.?\s*\"")


def apply_wording(game: dict[str, Any], wording: str) -> dict[str, Any]:
    """The game (what a game file holds) in one of `WORDINGS`; `game` is left as it is."""
    if wording == "engine":
        return game
    older = {part: action.sub("", game[part]) for part, action in _HELP.items()}
    for now, before in _BEFORE:
        older["grammar"] = older["grammar"].replace(now, before)
    return {**game, **older}


def trim_arrival(observation: str, wording: str) -> str:
    """An observation as the wording has it: THREAD's and Reflexion's scripts cut the arrival."""
    return _ARRIVAL.sub("", observation) if wording == "papers" else observation


def read_goal(game: dict[str, Any]) -> str:
    """What is to be done, as the game says it: "put a clean mug in desk".

    Raises ValueError if the game does not say it.
    """
    match = _GOAL.search(game["grammar"])
    if not match:
        raise ValueError("the game's grammar has no line 'Your task is to: ...'")
    return match[1]
