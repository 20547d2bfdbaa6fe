"""The state machines of `stateflow` (StateFlow paper, sections 3.3 and 4.2, appendix B.3).

People write them, models fill them in: one for TextCraft, and for each of ALFWorld's six task types
one, which has three more states where it is split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from thread_kit.methods.stateflow import (
    Deciding,
    Machine,
    Output,
    Prompter,
    State,
    StringMatching,
    ToolCall,
    Transition,
    acknowledge,
    execute,
    go_to,
    respond,
)
from thread_kit.requests import NewThread
from thread_kit.sequence import Provenance, Sequence

TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""What a thing is processed with, by task type."""

STUCK = 3

_OBJECT = re.compile(r"^The object is: (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ObjectMatching:
    """`StringMatching`, in whose patterns {object} is the object that the model has named."""

    patterns: Mapping[str, str]
    otherwise: str

    def __call__(self, thread: NewThread, Y: Sequence) -> Deciding:
        named = _OBJECT.search(Y.text)
        name = named[1] if named else "(?!)"  # which no text matches
        patterns = {p.replace("{object}", name): state for p, state in self.patterns.items()}
        return StringMatching(patterns, self.otherwise)(thread, Y)


@dataclass(frozen=True, slots=True)
class UnlessStuck:
    """Another transition, except where the model has said the same `STUCK` times in a row."""

    transition: Transition

    def __call__(self, thread: NewThread, Y: Sequence) -> Deciding:
        replies = [span.text.strip() for span in Y if span.provenance is Provenance.GENERATED]
        if len(replies) >= STUCK and len(set(replies[-STUCK:])) == 1:
            return Y, "Error"
        return (yield from self.transition(thread, Y))


def _state(instruction: str, output: Output, transition: Transition) -> State:
    return State((Prompter(instruction), respond, output), transition)


def machine(kind: str, *, split: bool = False) -> Machine:
    """The machine for a task type ("pick", "clean" ...). split: the one with three more states."""
    states: dict[str, State] = {}

    def ask(name: str, question: str, following: str) -> None:
        states[name] = _state(f"[{name}] {question}", acknowledge, go_to(following))

    def act(name: str, instruction: str, patterns: dict[str, str], otherwise: str) -> None:
        transition = UnlessStuck(ObjectMatching(patterns, otherwise))
        states[name] = _state(f"[{name}] {instruction}", execute, transition)

    # Init, Plan
    go, find = ("Go", "Find") if split else ("", "Pick")
    ask("Init", "Which object is it about?", "Plan")
    ask("Plan", "Where can it be, and what has to be done with it?", find)
    rounds = ("", " again") if kind == "pick2" else ("",)
    for again in rounds:
        first, take, wrong, put = (f"{s}{again}" for s in (find, "Take", "Pick_Error", "Put"))
        after = "FindLamp" if kind == "look" else f"{go}Process" if kind in TOOLS else f"{go}{put}"
        done = "End" if again == rounds[-1] else f"{find}{rounds[-1]}"
        other = "another one of them" if again else "the object"

        # Pick, Pick_Error; split: Find, Take
        picked = {r"^You pick up the {object} \d": after, r"^You pick up the \w+ \d": wrong}
        if split:
            act(first, f"Go on until you see {other}.", {r"\b{object} \d": take}, first)
            act(take, "Take it.", picked, first)
        else:
            act(first, f"Find {other}, and take it.", picked, first)
        act(wrong, "That is something else. Put it back.", {"^You put ": first}, wrong)

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
            act("UseLamp", "Switch it on.", {"^You turn on ": "End"}, "UseLamp")
            continue
        text = "Go where it belongs, open that if it is closed, and put it there."
        if split:
            text = "Go where it belongs, and open that if it is closed."
            act(f"Go{put}", text, {"you see ": put}, f"Go{put}")
            text = "Put it there."
        act(put, text, {"^You put ": done}, f"{go}{put}")
    return Machine(states, final=("End", "Error"))


KINDS = ("pick", "clean", "heat", "cool", "look", "pick2")

AFTER_ACTION = StringMatching(
    {"^Crafted ": "Verify", "^Got ": "Solve", "^Inventory": "Solve"}, "Error"
)
"""By string, as the SQL machine of StateFlow paper (section 4.1): an error goes to Error, what may
have solved the task to Verify, and all else to Solve."""

TEXTCRAFT = Machine(
    {
        "Init": State((ToolCall("inventory"),), go_to("Observe")),
        "Observe": _state(
            "[Observe] Which command makes the goal, and what does it need?",
            acknowledge,
            go_to("Solve"),
        ),
        "Solve": _state(
            "[Solve] Take the next step: get what is missing, or craft.", execute, AFTER_ACTION
        ),
        "Error": _state(
            "[Error] That failed. Find out why, then take another step.", execute, AFTER_ACTION
        ),
        "Verify": _state(
            "[Verify] Is the goal itself crafted? Say yes, or no and why.",
            acknowledge,
            StringMatching({r"(?i)^\W*yes\b": "End"}, "Solve"),
        ),
    }
)

MACHINES = {"textcraft": TEXTCRAFT, **{f"alfworld-{kind}": machine(kind) for kind in KINDS}}

SPLIT_MACHINES = {f"alfworld-{kind}": machine(kind, split=True) for kind in KINDS}
"""StateFlow paper, appendix B.3: the same with a state for each kind of action."""
