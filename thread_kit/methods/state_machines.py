"""State machines for `stateflow`, one a benchmark: people write them, models fill them in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from thread_kit.methods.stateflow import (
    Always,
    Deciding,
    Machine,
    Matching,
    Output,
    Say,
    State,
    Transition,
    execute,
    goes_to,
    heard,
    last_message,
    write,
)
from thread_kit.requests import Given
from thread_kit.sequence import Provenance, Sequence

TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""What a thing is processed with, by task type."""

STUCK = 3

_NAMED = re.compile(r"^The object is: (\w+)", re.MULTILINE)
_PICKED = re.compile(r"^You pick up the (\w+) \d+")


@dataclass(frozen=True, slots=True)
class Picked:
    """The next state by what was picked up: the named object, another, or nothing."""

    right: str
    wrong: str
    nothing: str

    def __call__(self, given: Given, Y: Sequence) -> Deciding:
        yield from ()
        picked, named = _PICKED.match(last_message(Y)), _NAMED.search(Y.text)
        if picked is None:
            return Y, self.nothing
        return Y, self.right if named and named[1] == picked[1] else self.wrong


@dataclass(frozen=True, slots=True)
class UnlessStuck:
    """Another transition, except where the model has said the same `STUCK` times in a row."""

    transition: Transition

    def __call__(self, given: Given, Y: Sequence) -> Deciding:
        said = [span.text.strip() for span in Y if span.provenance is Provenance.GENERATED]
        if len(said) >= STUCK and len(set(said[-STUCK:])) == 1:
            return Y, "Error"
        return (yield from self.transition(given, Y))


@dataclass(frozen=True, slots=True)
class Seen:
    """The next state by whether the object that the model named was seen last."""

    yes: str
    no: str

    def __call__(self, given: Given, Y: Sequence) -> Deciding:
        yield from ()
        named = _NAMED.search(Y.text)
        seen = named and re.search(rf"\b{named[1]} \d", last_message(Y))
        return Y, self.yes if seen else self.no


def machine(kind: str, *, split: bool = False) -> Machine:
    """The machine for a task type ("pick", "clean" ...). split: the one with three more states."""
    states = {
        "Init": _told("[Init] Which object is it about?", "Plan"),
        "Plan": _told(
            "[Plan] Where can it be, and what has to be done with it?", _first("", split)
        ),
    }
    rounds = ("", " again") if kind == "pick2" else ("",)
    for again in rounds:
        done = "End" if again == rounds[-1] else _first(rounds[-1], split)
        after = {"look": "FindLamp", **dict.fromkeys(TOOLS, "Process")}.get(kind, f"Put{again}")
        states |= _pick(again, f"Go{after}" if split and kind != "look" else after, split)
        if kind in TOOLS:
            states |= _process(kind, split)
        if kind == "look":
            states |= _lamp()
        else:
            states |= _put(again, done, split)
    return Machine(states, final=("End", "Error"))


def _first(again: str, split: bool) -> str:
    return f"Find{again}" if split else f"Pick{again}"


def _told(instruction: str, next_: str) -> State:
    """A state in which the model is asked, and nothing is done."""
    outputs: tuple[Output, ...] = (Say(instruction), write, heard)
    return State(outputs, goes_to(next_))


def _acts(instruction: str, transition: Transition) -> State:
    return State((Say(instruction), write, execute), UnlessStuck(transition))


def _pick(again: str, after: str, split: bool) -> dict[str, State]:
    first, wrong = _first(again, split), f"Pick_Error{again}"
    other = "another one of them" if again else "the object"
    states = {
        wrong: _acts(
            f"[{wrong}] That is something else. Put it back.", Matching({"^You put ": first}, wrong)
        )
    }
    if not split:
        pick = f"[{first}] Find {other}, and take it."
        return {first: _acts(pick, Picked(after, wrong, first)), **states}
    take = f"Take{again}"
    return {
        first: _acts(f"[{first}] Go on until you see {other}.", Seen(take, first)),
        take: _acts(f"[{take}] Take it.", Picked(after, wrong, first)),
        **states,
    }


def _process(kind: str, split: bool) -> dict[str, State]:
    tool, then = TOOLS[kind], "GoPut" if split else "Put"
    done = {f"^You {kind} ": then}
    if not split:
        text = f"[Process] Go to a {tool}, and {kind} the object with it."
        return {"Process": _acts(text, Matching(done, "Process"))}
    there = Matching({rf"\b{tool} \d": "Process"}, "GoProcess")
    return {
        "GoProcess": _acts(f"[GoProcess] Go to a {tool}.", there),
        "Process": _acts(f"[Process] {kind.capitalize()} the object.", Matching(done, "GoProcess")),
    }


def _lamp() -> dict[str, State]:
    return {
        "FindLamp": _acts(
            "[FindLamp] Find a desklamp.", Matching({r"\bdesklamp \d": "UseLamp"}, "FindLamp")
        ),
        "UseLamp": _acts("[UseLamp] Switch it on.", Matching({"^You turn on ": "End"}, "UseLamp")),
    }


def _put(again: str, done: str, split: bool) -> dict[str, State]:
    put = f"Put{again}"
    if not split:
        text = f"[{put}] Go where it belongs, open that if it is closed, and put it there."
        return {put: _acts(text, Matching({"^You put ": done}, put))}
    go = f"GoPut{again}"
    text = f"[{go}] Go where it belongs, and open that if it is closed."
    return {
        go: _acts(text, Matching({"you see ": put}, go)),
        put: _acts(f"[{put}] Put it there.", Matching({"^You put ": done}, go)),
    }


KINDS = ("pick", "clean", "heat", "cool", "look", "pick2")

ALFWORLD = {f"alfworld-{kind}": machine(kind) for kind in KINDS}
ALFWORLD_SPLIT = {f"alfworld-{kind}": machine(kind, split=True) for kind in KINDS}

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
