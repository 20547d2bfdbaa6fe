"""What of a household its goal has to do with: all that a plan needs.

The planner looks at every thing that could be carried to every place, so its time grows with what
is of no use: 47 s for two mugs among 30 things in a large kitchen, half a second when only the mugs
are left. A plan for the small household is one for the large one, since things are never in each
other's way and nothing is ever full.
"""

from __future__ import annotations

import re

_FACT = re.compile(r"\([^():][^()]*\)")
_TOOLS = {"SinkBasinType", "MicrowaveType", "FridgeType"}


def relevant(problem: str) -> str:
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

    kept = _TOOLS | asked | {place[home] for one, home in lying if thing[one] in asked}
    gone = {one for one, kind in {**thing, **place}.items() if kind not in kept}
    gone |= {spot for _, spot in spots} - {spot for home, spot in spots if home not in gone}
    gone -= set(re.findall(r"\(atLocation \S+ (\S+)\)", household))

    household = _FACT.sub(
        lambda fact: "" if gone & set(fact[0].strip("()").split()) else fact[0], household
    )
    declared = re.compile(r"(\S+) - (?:object|receptacle|location)\b")
    household = declared.sub(lambda one: "" if one[1] in gone else one[0], household)
    return household + mark + goal


__all__ = ["relevant"]
