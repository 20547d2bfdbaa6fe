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
        "Init": State(
            (Agent(is_heard=False), Naming("object")),
            go_to("Plan"),
            chat="Which object is it about?",
        ),
        "Plan": State(
            (Agent(),),
            go_to(find),
            instead=find,
            chat="Where can it be, and what has to be done with it?",
        ),
    }

    def act(
        name: str, chat: str, patterns: dict[str, str], otherwise: str, instead: str | None = None
    ) -> None:
        outputs = Agent(), Execute(nearest=True)
        states[name] = State(outputs, StringMatching(patterns, otherwise), instead, chat)

    # Pick, Pick_Error; split: Find, Take
    picked = {r"^You pick up the {object} \d": after, r"^You pick up the ": "Pick_Error"}
    if split:
        act("Find", "Go on until you see the object.", {r"\b{object} \d": "Take"}, "Find")
        act("Take", "Take it.", picked, "Find")
    else:
        act("Pick", "Find the object, and take it.", picked, "Pick")
    wrong = "That is something else. Put it back."
    act("Pick_Error", wrong, {"^You put ": find}, "Pick_Error", instead=find)

    # Process; split: GoProcess, Process
    if tool := TOOLS.get(kind):
        text = f"Go to a {tool}, and {kind} the object with it."
        if split:
            act("GoProcess", f"Go to a {tool}.", {rf"\b{tool} \d": "Process"}, "GoProcess")
            text = f"{kind.capitalize()} the object."
        act("Process", text, {f"^You {kind} ": f"{go}Put"}, f"{go}Process")

    # FindLamp, UseLamp; or Put; split: GoPut, Put
    if kind == "look":
        act("FindLamp", "Find a desklamp.", {r"\bdesklamp \d": "UseLamp"}, "FindLamp")
        act("UseLamp", "Switch it on.", {}, "UseLamp")
        return Machine(states, repeats=3)
    text = "Go where it belongs, open that if it is closed, and put it there."
    if split:
        text = "Go where it belongs, and open that if it is closed."
        act("GoPut", text, {"you see ": "Put"}, "GoPut")
        text = "Put it there."
    once_more = {r"^You put the {object} \d": find} if kind == "pick2" else {}
    act("Put", text, once_more, f"{go}Put")
    return Machine(states, repeats=3)


MACHINES = {
    f"alfworld-{kind}{'-split' if split else ''}": make_machine(kind, split=split)
    for kind in KINDS
    for split in (False, True)
}
