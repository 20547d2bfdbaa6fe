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
        "Observe": State(
            (Agent(),),
            go_to("Solve"),
            instead="Solve",
            chat="Which command makes the goal, and what does it need?",
        ),
        "Solve": State(
            (Agent(), execute),
            AFTER_ACTION,
            chat="Take the next step: get what is missing, or craft.",
        ),
        "Error": State(
            (Agent(), execute),
            AFTER_ACTION,
            instead="Solve",
            chat="That failed. Find out why, then take another step.",
        ),
        "Verify": State(
            (Agent(),),
            go_to("Solve"),
            instead="Solve",
            chat="Is the goal itself crafted? Say yes, or no and why.",
        ),
    },
    repeats=3,
)
