"""StateFlow's machine for Bash (StateFlow paper, section 4.1, Figures 1 and 10, Tables 16 and 17).

    Init -> Solve -> Verify -> End
            Solve, Verify, Error -> Error     where the command failed
            Solve, Verify, Error -> Verify    where it did not

Init does nothing. The environment is over when something is submitted, which leads to End. An agent
that gives no action is asked for one (`Agent.acts`); none at all goes to Error.
"""

from __future__ import annotations

from thread_kit.methods.state_outputs import Agent, execute_round
from thread_kit.methods.state_transitions import StringMatching, go_to
from thread_kit.methods.stateflow import Machine, State

AFTER_COMMAND = StringMatching({"^Error": "Error"}, "Error", actions={"": "Verify"})

MACHINE = Machine(
    {
        "Init": State((), go_to("Solve")),
        "Solve": State((Agent(acts=True), execute_round), AFTER_COMMAND),
        "Error": State((Agent(acts=True), execute_round), AFTER_COMMAND, instead="Verify"),
        "Verify": State((Agent(acts=True), execute_round), AFTER_COMMAND, instead="Solve"),
    }
)
