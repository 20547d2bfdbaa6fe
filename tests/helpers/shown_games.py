"""The generated ALFWorld games that few-shot prompts show."""

from __future__ import annotations

import re

from thread_kit.envs.alfworld.env import AlfWorld

SHOWN = {
    "pick": ("pick-105", "pick-100"),
    "clean": ("clean-101", "clean-105"),
    "heat": ("heat-108", "heat-101"),
    "cool": ("cool-103", "cool-102"),
    "look": ("look-107", "look-102"),
    "pick2": ("pick2-100", "pick2-101"),
}
"""Two of each type: of ReAct's and AdaPlanner's examples, and of the state machines' plans."""

REWORDED = {
    "clean-101": (r"clean some (\w+) and put it in (\w+)", r"put a clean \1 in \2"),
    "heat-108": (r"put a hot (\w+) in (\w+)", r"heat some \1 and put it in \2"),
    "look-107": (r"examine the (\w+) with the desklamp", r"look at \1 under the desklamp"),
}
"""Those that ReAct's examples ask for in ALFWorld's other wording, so that both are shown."""


class ShownGame(AlfWorld):
    """A generated game, its task in the words of ReAct's examples."""

    def __init__(self, name: str) -> None:
        super().__init__("generated", name)
        self.words = REWORDED.get(name)

    def reset(self) -> str:
        context = super().reset()
        return re.sub(*self.words, context) if self.words else context
