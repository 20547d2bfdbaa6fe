"""ALFWorld's state machines (StateFlow paper, Figures 5, 7 and 8, appendix B.1 and B.3).

    Init -> Plan -> Pick -> Process -> Put -> End          clean, heat, cool
                 -> Pick -> Put -> End                     pick; pick2 goes back to Pick once more
                 -> Pick -> FindLamp -> UseLamp -> End     look
                    Pick -> Pick_Error -> Pick             where something else was taken

Transitions match what the environment says. A state is left when its part is done, and the machine
ends when the environment says that the task is over, or when a model writes the same three times.
The machine of ten states divides Pick into Find and Take, Process into GoProcess and Process, Put
into GoPut and Put; where a try fails in the second of such a pair it goes back to the first, which
is not in the paper's text.
"""

from __future__ import annotations

from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.methods.state_outputs import Agent, Execute, Naming
from thread_kit.methods.state_transitions import StringMatching, go_to
from thread_kit.methods.stateflow import Machine, State

TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""What a thing is processed with, by task type."""


def make_machine(kind: str, *, split: bool = False) -> Machine:
    """The machine for a task type ("pick", "clean" ...). split: the one with three more states."""
    go, find = ("Go", "Find") if split else ("", "Pick")
    after = "FindLamp" if kind == "look" else f"{go}Process" if kind in TOOLS else f"{go}Put"
    states = {
        "Init": State((Agent(is_heard=False, reads_all=False), Naming("object")), go_to("Plan")),
        "Plan": State((Agent(),), go_to(find), instead=find),
    }

    def act(
        name: str, patterns: dict[str, str], otherwise: str, instead: str | None = None
    ) -> None:
        outputs = Agent(), Execute(nearest=True)
        states[name] = State(outputs, StringMatching(patterns, otherwise), instead)

    # Pick, Pick_Error; split: Find, Take
    picked = {r"^You pick up the {object} \d": after, r"^You pick up the ": "Pick_Error"}
    if split:
        act("Find", {r"\b{object} \d": "Take"}, "Find")
        act("Take", picked, "Find")
    else:
        act("Pick", picked, "Pick")
    act("Pick_Error", {"^You (?:put|move) ": find}, "Pick_Error", instead=find)

    # Process; split: GoProcess, Process
    if tool := TOOLS.get(kind):
        if split:
            act("GoProcess", {rf"\b{tool} \d": "Process"}, "GoProcess")
        act("Process", {f"^You {kind} ": f"{go}Put"}, f"{go}Process")

    # FindLamp, UseLamp; or Put; split: GoPut, Put
    if kind == "look":
        act("FindLamp", {r"\bdesklamp \d": "UseLamp"}, "FindLamp")
        act("UseLamp", {}, "UseLamp")
        return Machine(states, repeats=3)
    if split:
        act("GoPut", {"you see ": "Put"}, "GoPut")
    once_more = {r"^You (?:put|move) the {object} \d": find} if kind == "pick2" else {}
    act("Put", once_more, f"{go}Put")
    return Machine(states, repeats=3)


MACHINES = {
    f"alfworld-{kind}{'-split' if split else ''}": make_machine(kind, split=split)
    for kind in KINDS
    for split in (False, True)
}
