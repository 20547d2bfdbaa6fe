"""The generated ALFWorld games that few-shot prompts show."""

from __future__ import annotations

SHOWN = {
    "pick": ("pick-105", "pick-100"),
    "clean": ("clean-101", "clean-105"),
    "heat": ("heat-108", "heat-101"),
    "cool": ("cool-103", "cool-102"),
    "look": ("look-107", "look-102"),
    "pick2": ("pick2-100", "pick2-101"),
}
"""Two of each type: of ReAct's and AdaPlanner's examples, and of the state machines' plans."""
