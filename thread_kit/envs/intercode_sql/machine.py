"""StateFlow's machine for SQL (StateFlow paper, sections 3.3 and 4.1, Figures 1 and 9).

    Init -> Observe -> Solve -> Verify -> End
            Observe, Solve, Verify, Error -> Error     where the output is an error
            Solve, Verify, Error -> Verify             after a SELECT
            Solve, Verify, Error -> Solve              after a DESC, and any other command

The environment is over when something is submitted, which leads to End from wherever it is done. An
agent that gives no action is asked for one (`Agent.acts`); none at all goes to Error, as in the
paper's released code.
"""

from __future__ import annotations

from thread_kit.methods.state_outputs import Agent, ToolCall, execute_round
from thread_kit.methods.state_transitions import StringMatching, go_to
from thread_kit.methods.stateflow import Machine, State

AFTER_DESC = StringMatching({"^Error": "Error"}, "Error", actions={"": "Solve"})
AFTER_COMMAND = StringMatching(
    {"^Error": "Error"}, "Error", actions={r"(?i)^select\b": "Verify", "": "Solve"}
)

MACHINE = Machine(
    {
        "Init": State((ToolCall("SHOW TABLES"),), go_to("Observe")),
        "Observe": State((Agent(acts=True), execute_round), AFTER_DESC, instead="Solve"),
        "Solve": State((Agent(acts=True), execute_round), AFTER_COMMAND),
        "Error": State((Agent(acts=True), execute_round), AFTER_COMMAND, instead="Verify"),
        "Verify": State((Agent(acts=True), execute_round), AFTER_COMMAND, instead="Solve"),
    }
)
