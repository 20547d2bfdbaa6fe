"""StateFlow (Wu et al. 2024, Algorithm 1): a state machine says what is done next.

    G* = Q; s = s0
    while s is not in F do
      for w in s.outputs do
        G* = G* + w(G*)
      s = delta(s, G*)
      return s, G* if counter >= M
    return s, G*

G*, the context history, is `History`; output functions w are in `state_outputs.py`, the transition
function delta is in `state_transitions.py`. Each state's model is an agent with an instruction of
its own, which the others do not see (sections 3.1 and 4.1 there): they share what was replied and
observed. In the variant SF_Chat (`sf_chat.py`) the instructions stay in the history of one model.

A machine is written in its benchmark's folder (`envs/alfworld/machine.py`), and the prompts of its
agents are the sections of one file (prompts/stateflow/alfworld.txt):

    SQL = Machine(
        {
            "Init": State((ToolCall("SHOW TABLES"),), go_to("Observe")),
            "Observe": State((Agent(acts=True), execute), go_to("Solve"), instead="Solve"),
            "Solve": State(
                (Agent(acts=True), execute),
                StringMatching({"^Error": "Error"}, "Solve", actions={"(?i)^select": "Verify"}),
            ),
            ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, NewThread, Observation, Request, Status, Steps
from thread_kit.sequence import Sequence, Span

TAG = re.compile(r"\s*\[(\w+(?: \w+)?)\]")
"""How a state begins in a thread's sequence (`state_outputs.py`, `sf_chat.py`)."""


@dataclass(slots=True)
class History:
    """G*, and what of it the output functions and transitions ask for.

    Y: the thread's sequence, with all that happened. text: the messages in it, as agents read them;
    the names of the states are none. message: the one that decides: what was observed, None if what
    the model wrote was no action; of a state that does not act, what the model wrote. action: the
    one that was executed for it, or "". replies: all that models wrote. names: what patterns
    call by a name. is_over: the environment says that the task is solved, or failed for good.
    """

    thread: NewThread
    agents: Mapping[str, Prompt]
    state: str
    Y: Sequence = field(default_factory=Sequence)
    text: str = ""
    message: str | None = None
    action: str = ""
    replies: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    is_over: bool = False

    def add(self, span: Span, *, is_heard: bool = True) -> None:
        """A message, or a part of one; what is not heard stands in the trace alone."""
        self.Y += span
        if is_heard:
            self.text += span.text

    def begin_line(self) -> None:
        """Let what comes next stand on a line of its own."""
        if self.Y.text and not self.Y.text.endswith("\n"):
            self.add(self.thread.instruction("\n"))

    def add_reply(self, text: str) -> None:
        """A model has written this: it decides, unless it is an action."""
        self.replies.append(text)
        self.message, self.action = text, ""

    def observe(self, action: str, observation: Observation | None) -> None:
        """What came of an action decides; None: there was none."""
        self.message, self.action = observation, action
        self.is_over = observation is not None and observation.is_over

    def repeats(self, times: int | None) -> bool:
        """Whether the last replies are the same, so many times."""
        last = self.replies[-times:] if times else []
        return len(last) == times and len(set(last)) == 1


Output = Callable[[History], Generator[Request, Any, None]]
"""w: puts its output into the history."""

Transition = Callable[[History], Generator[Request, Any, str]]
"""delta(s, ...): from the history, the next state's name."""


@dataclass(frozen=True, slots=True)
class State:
    """What is done on entering a state, and where it goes on.

    instead: the state that transitions lead to where this one is left out; None if it cannot be.
    """

    outputs: tuple[Output, ...]
    next: Transition
    instead: str | None = None


def follow(name: str, rerouted: Mapping[str, str]) -> str:
    """The state that a transition to this one leads to, where some are left out."""
    for _ in rerouted:  # one that is left out can lead to another such one
        name = rerouted.get(name, name)
    return name


@dataclass(frozen=True, slots=True)
class Machine:
    """S, s0, F, delta and the outputs of a StateFlow model.

    final: of these, the first is where the end of the task leads: the environment has said that it
        is over, or a model has written the same `repeats` times in a row (StateFlow paper, appendix
        B.1, of two states; here, and in its code, of any. None: it may).
    rerouted: states that are left out.

    Raises ValueError if the start is no state.
    """

    states: Mapping[str, State]
    start: str = "Init"
    final: tuple[str, ...] = ("End",)
    repeats: int | None = None
    rerouted: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.resolve(self.start) not in self.states:
            known = ", ".join(self.states)
            raise ValueError(
                f"the machine starts in {self.start!r}; give one of its states: {known}"
            )

    def resolve(self, name: str) -> str:
        """The state that a transition to this one leads to."""
        return follow(name, self.rerouted)

    @property
    def optional(self) -> dict[str, str]:
        """The states that can be left out, each with the one that takes its place."""
        return {name: state.instead for name, state in self.states.items() if state.instead}

    def without(self, *names: str) -> Machine:
        """The machine with these states left out (StateFlow paper, section 4.1, Figure 4).

        Transitions to them lead where they say `instead`. Raises ValueError for a state that there
        is not, or that cannot be left out.
        """
        rerouted = dict(self.rerouted)
        for name in names:
            if name not in self.optional:
                known = ", ".join(self.optional) or "none"
                raise ValueError(f"the state {name!r} cannot be left out; those that can: {known}")
            rerouted[name] = self.optional[name]
        states = {name: state for name, state in self.states.items() if name not in names}
        return replace(self, states=states, rerouted=rerouted)


class Cut(Exception):  # noqa: N818 (no error: a budget)
    """A model was cut in the middle of a reply, which ends the machine."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def stateflow(
    thread: NewThread,
    *,
    machine: Machine,
    agents: Mapping[str, Prompt] | None = None,
    turns: int = 60,
) -> Steps:
    """Run a machine from its start to one of its final states; returns that state's name.

    agents: by state, the prompt of its agent. turns: transitions at most (M); the paper allows 50
    rounds on ALFWorld and 10 on InterCode, which their environments count.
    Raises ValueError for a transition to a state that there is not.
    """
    # G* = Q; s = s0
    history = History(thread, agents or {}, machine.resolve(machine.start))
    counter = 0
    # while s is not in F do
    while history.state not in machine.final:
        if history.state not in machine.states:
            raise ValueError(
                f"a transition leads to {history.state!r}; it is neither a state of the machine "
                f"({', '.join(machine.states)}) nor final ({', '.join(machine.final)}): add it"
            )
        if counter >= turns:
            return Finished(history.Y, Status.OUT_OF_CALLS, {})
        try:
            # for w in s.outputs do G* = G* + w(G*)
            for output in machine.states[history.state].outputs:
                yield from output(history)
            # s = delta(s, G*)
            if history.is_over or history.repeats(machine.repeats):
                history.state = machine.final[0]
            else:
                following = yield from machine.states[history.state].next(history)
                history.state = machine.resolve(following)
        except Cut as cut:
            return Finished(history.Y, cut.status, {})
        counter += 1
    return Finished(history.Y, Status.ENDED, {}, history.state)
