"""State machines for `stateflow`, one a benchmark: people write them, models fill them in."""

from __future__ import annotations

from thread_kit.methods.machines_alfworld import ALFWORLD, ALFWORLD_SPLIT
from thread_kit.methods.stateflow import (
    Always,
    Machine,
    Matching,
    Say,
    State,
    execute,
    goes_to,
    heard,
    write,
)

AFTER_ACTION = Matching({"^Crafted ": "Verify", "^Got ": "Solve", "^Inventory": "Solve"}, "Error")
"""By string, as the SQL machine of StateFlow paper (section 4.1): an error goes to Error, what may
have solved the task to Verify, and all else to Solve."""

TEXTCRAFT = Machine(
    {
        "Init": State((Always("inventory"),), goes_to("Observe")),
        "Observe": State(
            (Say("[Observe] Which command makes the goal, and what does it need?"), write, heard),
            goes_to("Solve"),
        ),
        "Solve": State(
            (Say("[Solve] Take the next step: get what is missing, or craft."), write, execute),
            AFTER_ACTION,
        ),
        "Error": State(
            (Say("[Error] That failed. Find out why, then take another step."), write, execute),
            AFTER_ACTION,
        ),
        "Verify": State(
            (Say("[Verify] Is the goal itself crafted? Say yes, or no and why."), write, heard),
            Matching({r"(?i)^\W*yes\b": "End"}, "Solve"),
        ),
    }
)

MACHINES = {"textcraft": TEXTCRAFT, **ALFWORLD}

SPLIT_MACHINES = {**ALFWORLD_SPLIT}
"""StateFlow paper, appendix B.3: the same with a state for each kind of action."""

__all__ = ["MACHINES", "SPLIT_MACHINES", "TEXTCRAFT"]
