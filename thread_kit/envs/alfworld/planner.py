"""An expert for ALFWorld: the planner of the engine, which sees the whole household.

Unlike TextCraft's oracle it knows what the model cannot see (where things lie), so its plan tells
how few actions win a game, not how one finds out. Fast Downward plans the cheapest way by the
rules' own costs (1 an action; 5 to clean, heat, cool or use), not by the number of actions, in the
household without what the goal has nothing to do with (`envs/alfworld/worker.py`). A plan takes two
seconds.
"""

from __future__ import annotations

from typing import Any

from thread_kit.envs.alfworld.process import GameProcess


def solve(game: dict[str, Any], seconds: float = 120.0) -> list[str] | None:
    """Actions that win the game (what a game file holds) from its start, in the game's wording.

    They have been played and have won; None if the planner finds none that do. Takes some seconds.
    Raises ImportError without the engine, GameError where it cannot load the game: one that it
    sees to have no solution is such.
    """
    with GameProcess(seconds) as engine:
        plan: list[str] | None = engine.ask(do="solve", game=game)["plan"]
    return plan
