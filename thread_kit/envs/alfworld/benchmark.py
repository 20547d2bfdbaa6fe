"""ALFWorld's record."""

from __future__ import annotations

from typing import Any

from thread_kit.envs.alfworld.env import SPLITS, AlfWorld, tasks, type_of
from thread_kit.envs.alfworld.machine import MACHINES
from thread_kit.envs.benchmark import Benchmark
from thread_kit.errors.rules import AlfWorldRules


def choose_game(text: str) -> dict[str, Any]:
    """A game by its number within the split, or by its name."""
    return {"game": int(text) if text.isascii() and text.isdecimal() else text}


ALFWORLD = Benchmark(
    "alfworld",
    AlfWorld,
    tasks,
    splits=SPLITS,
    arguments=lambda task: {"split": task.split, "game": task.name},
    choose=choose_game,
    rules={"nearest": "take what is no action for the admissible one most like it (StateFlow)"},
    examples="alfworld-pick",
    methods=(
        *("react-hybrid", "react-atomic", "adapt-atomic"),
        *("react-by-type", "plan-and-execute-by-type", "try-again-by-type", "reflexion-by-type"),
        *("adapt-by-type", "react+reflexion", "stateflow, 10 states", "sf_chat, 10 states"),
        *("alfchat, 2 agents", "alfchat, 3 agents", "thread, task-general"),
    ),
    max_actions=50,
    # ADaPT paper, section 6.2: atomic skills and two whole games (hybrid), or the skills only.
    executors=("executor", "atomic"),
    carry=True,  # appendix A
    in_on=True,
    react_judges=False,
    handlers=("find", "make", "put", "use"),
    machines=MACHINES,
    error_rules=AlfWorldRules,
    adapters={"smollm2-135m": "thread-135m"},
    published="ALFWorld",
    published_splits={"valid_unseen": "test"},  # the 134 games that the papers test on
    group_of=lambda row: (type_of(row["game"]) or "").capitalize(),
)
