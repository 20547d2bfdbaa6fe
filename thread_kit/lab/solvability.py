"""Can a task be solved at all? The oracle's actions, played in a fresh environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from thread_kit.envs import Env
from thread_kit.lab.ledger import canonical


def solvable(environment: Callable[..., Env], task: Mapping[str, Any]) -> bool | None:
    """Whether the oracle's actions earn the full reward; None where it knows none.

    None is no proof that a task cannot be solved. False means that the oracle is wrong, or the task
    is not what it was when the oracle was written.
    """
    return _solvable(environment, canonical(task))


@cache  # many methods and seeds ask for each task; an oracle may be slow
def _solvable(environment: Callable[..., Env], task: str) -> bool | None:
    env = environment(**json.loads(task))
    try:
        env.reset()
        actions = env.oracle()
        if actions is None:
            return None
        return any(env.step(action).reward == 1 for action in actions)
    finally:
        env.close()


__all__ = ["solvable"]
