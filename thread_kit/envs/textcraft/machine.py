"""TextCraft's state machine. No paper has one: it is our own, in the form of StateFlow's for SQL.

    Init -> Observe -> Solve -> Verify -> Solve ... -> End
                       Solve, Verify -> Error -> Solve

As there (StateFlow paper, section 4.1), Init takes a fixed action, what may have solved the task
goes to Verify, an error to Error, and all else to Solve. The environment says when the goal is
crafted, so no state hands anything in.
"""

from __future__ import annotations

from thread_kit.methods.state_outputs import Agent, ToolCall, execute
from thread_kit.methods.state_transitions import StringMatching, go_to
from thread_kit.methods.stateflow import Machine, State

AFTER_ACTION = StringMatching(
    {"^Crafted ": "Verify", "^Got ": "Solve", "^Inventory": "Solve"}, "Error"
)

MACHINE = Machine(
    {
        "Init": State((ToolCall("inventory"),), go_to("Observe")),
        "Observe": State((Agent(),), go_to("Solve"), instead="Solve"),
        "Solve": State((Agent(), execute), AFTER_ACTION),
        "Error": State((Agent(), execute), AFTER_ACTION, instead="Solve"),
        "Verify": State((Agent(),), go_to("Solve"), instead="Solve"),
    },
    repeats=3,
)
