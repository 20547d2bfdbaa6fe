"""The budget that ended an episode, from its row of results; of many episodes: `cut.py`.

Without pandas: a process that plays episodes needs this, and no frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thread_kit.envs.registry import BENCHMARKS
from thread_kit.requests import Status

BUDGETS = {
    Status.OUT_OF_CALLS: "calls",
    Status.OUT_OF_TOKENS: "tokens",
    Status.OUT_OF_TIME: "seconds",
    Status.TRUNCATED: "tokens a call",
}
"""The statuses of an episode that a budget ended, and the budget."""


def find_budget(row: Mapping[str, Any]) -> str:
    """The budget that ended an episode, by its row of results; "" if none did.

    "actions" where the environment had taken its last one; of a row that does not say so, where it
    has as many as the environment's limit was.
    """
    out_of_actions = row.get("out_of_actions")
    if not isinstance(out_of_actions, bool):  # a row from before it was recorded
        own = BENCHMARKS.get(row.get("environment") or "")
        most = own.max_actions if own else None
        out_of_actions = (
            most is not None and not row["solved"] and (row.get("actions") or 0) >= most
        )
    if out_of_actions:
        return "actions"
    return BUDGETS.get(row.get("status", ""), "")
