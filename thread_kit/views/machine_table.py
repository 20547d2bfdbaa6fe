"""StateFlow's machines as a table: states, transitions, what is left out; and an episode's way.

A table is read from a machine, or from the header of a trace, which has its machine as data
(`trace/header.py`), so that a saved episode needs no benchmark to be drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thread_kit.methods.stateflow import TAG, follow
from thread_kit.requests import Status
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Ended, Event, Instructed
from thread_kit.trace.header import describe_program
from thread_kit.trace.jsonl import MALFORMED
from thread_kit.trace.printable import sanitize

OVER = "the task is over"


@dataclass(frozen=True, slots=True)
class Transition:
    """when: what leads from one state to the other."""

    source: str
    target: str
    when: str


@dataclass(frozen=True, slots=True)
class MachineTable:
    """S, s0, F and delta of a machine (StateFlow paper, section 3).

    states: by name what each does, those that are left out among them. left_out: each with the
    state that takes its place.
    """

    states: Mapping[str, str]
    start: str
    final: tuple[str, ...]
    transitions: tuple[Transition, ...]
    left_out: Mapping[str, str]

    def list_states(self, events: Sequence[Event]) -> list[tuple[int, str]]:
        """The states that an episode went through, each with the number of the event at which.

        A state without a model is known where it is the start alone. Of several final states it
        is the first.
        """
        way = [(0, self.start)] if events else []
        is_begun = False
        for number, event in enumerate(events):
            match event:
                case Instructed(span=span) if span.provenance is Provenance.INSTRUCTION:
                    tag = TAG.match(span.text)
                    if tag and tag[1] in self.states:
                        # A start with an agent, as ALFWorld's, is named too: the one there is.
                        if is_begun or tag[1] != self.start:
                            way.append((number, tag[1]))
                        is_begun = True
                case Ended(thread=0, status=Status.ENDED):
                    way.append((number, self.final[0]))
        return way

    def find_transition(self, source: str, target: str) -> str:
        """What leads from one state to the other, in words; "" for what the table lacks."""
        reasons = [t.when for t in self.transitions if (t.source, t.target) == (source, target)]
        return "; ".join(dict.fromkeys(reasons))

    def __str__(self) -> str:
        width = max(map(len, [*self.states, *self.final]))
        does = max(map(len, self.states.values()))
        lines = []
        for name, what in self.states.items():
            if name in self.left_out:
                lines.append(f"{name:{width}}  left out: {self.left_out[name]} takes its place")
                continue
            ways = [f"{t.when} -> {t.target}" for t in self.transitions if t.source == name]
            lines.append(f"{name:{width}}  {what:{does}}  {'; '.join(ways)}".rstrip())
        return "\n".join([*lines, *(f"{name:{width}}  final" for name in self.final)])


def read_table(source: Any, whole: Any = None) -> MachineTable:
    """The table of a machine, or of the machine of an episode.

    whole: the machine with all states, or an episode of it, whose order is that of the table; None:
    those that are left out come last. Raises ValueError for an episode of another method.
    """
    if not isinstance(source, Episode):
        return _make_table(describe_program(source), whole)
    machine = _find_machine(source.header.get("program"))
    if machine is None:
        raise ValueError("no state machine played this episode: its method is no StateFlow")
    try:  # of a file that anybody may have written
        return _make_table(_sanitize(machine), whole)
    except MALFORMED as error:
        raise ValueError(f"the trace's state machine is none: {error!r:.200}") from error


def _make_table(machine: Any, whole: Any) -> MachineTable:
    left_out = {name: follow(name, machine["rerouted"]) for name in machine["rerouted"]}
    states = {name: _describe(state) for name, state in machine["states"].items()}
    states |= dict.fromkeys(left_out, "")
    if whole is not None:
        order = [name for name in read_table(whole).states if name in states]
        states = {name: states[name] for name in dict.fromkeys([*order, *states])}
    transitions = [
        Transition(name, follow(target, machine["rerouted"]), when)
        for name, state in machine["states"].items()
        for target, when in _list_transitions(state, machine["final"][0])
    ]
    start = follow(machine["start"], machine["rerouted"])
    if start not in states or not machine["final"]:
        raise ValueError(f"it starts in {start!r} and ends in {machine['final']!r}")
    return MachineTable(states, start, tuple(machine["final"]), tuple(transitions), left_out)


def _find_machine(program: Any) -> Any:
    """The machine in a header's program, also where it is the actor of another (Reflexion)."""
    if not isinstance(program, dict):
        return None
    machine = program.get("machine")
    return machine if isinstance(machine, dict) else _find_machine(program.get("actor"))


def _sanitize(data: Any) -> Any:
    """Data of which no text acts on a page or a terminal; a number becomes its text."""
    match data:
        case dict():
            return {sanitize(key): _sanitize(value) for key, value in data.items()}
        case list():
            return [_sanitize(value) for value in data]
        case int() | float():
            return str(data)
    return data if data is None else sanitize(data)


def _name(part: Any) -> str:
    return part["name"] if isinstance(part, dict) else str(part)


def _describe(state: Mapping[str, Any]) -> str:
    """What a state does: "agent, execute"."""
    words = {"Agent": "agent", "respond": "agent", "Execute": "execute", "Naming": "name it"}
    outputs = [output for output in state["outputs"] if _name(output) != "Prompter"]
    parts = [
        output["action"] if _name(output) == "ToolCall" else words.get(_name(output), _name(output))
        for output in outputs
    ]
    return ", ".join(parts)


def _list_transitions(state: Mapping[str, Any], final: str) -> Iterator[tuple[str, str]]:
    """(where it leads, when), in the order in which the table is tried."""
    if "Execute" in map(_name, state["outputs"]):  # a model can end the task
        yield final, OVER
    table = state["next"]
    if not isinstance(table, dict):  # a function of one's own: nobody knows where it leads
        return
    for pattern, target in table.get("patterns", {}).items():
        yield target, f"observed “{pattern}”"
    for pattern, target in table.get("actions", {}).items():
        yield target, f"done “{pattern}”" if pattern else "any other action"
    for answer, target in table.get("answers", {}).items():
        yield target, f"the model says {answer}"
    if "otherwise" in table:
        alone = not any(table.get(name) for name in ("patterns", "actions", "answers"))
        yield table["otherwise"], "always" if alone else "else"
