"""StateFlow (Wu et al. 2024, Algorithm 1): a state machine says what is done next.

    G* = Q; s = s0
    while s is not in F do
      for w in s.outputs do
        G* = G* + w(G*)
      s = delta(s, G*)
      return s, G* if counter >= M
    return s, G*

G*, the context history, is the thread's sequence behind its context Q. An output function w is a
prompter, which adds a static prompt (`Prompter`), a call of the model (`respond`, `Agent`), or of a
tool (`execute`, `ToolCall`). The transition function delta matches strings (`StringMatching`) or
asks a model (`ModelCheck`); both are of section 3.2 there.

In the paper each state's model has its own instruction, which the others do not see: that is
`Agent`. Its variant SF_Chat (appendix A.2) puts the state's instruction into the history and goes
on with one model: `Prompter`, then `respond`. Nothing is evaluated twice then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from thread_kit.exchange import xi_after_mark
from thread_kit.methods.common import Answer, ask, with_break, write_reply
from thread_kit.methods.react import NO_ACTION
from thread_kit.prompts import Prompt
from thread_kit.requests import (
    ENDS,
    Act,
    Finished,
    Generate,
    Generated,
    NewThread,
    Request,
    Status,
    Steps,
)
from thread_kit.sequence import Provenance, Sequence

Writing = Generator[Request, Any, Sequence]

Output = Callable[[NewThread, Sequence], Writing]
"""w: from the history, the history with this output."""

Deciding = Generator[Request, Any, tuple[Sequence, str]]

Transition = Callable[[NewThread, Sequence], Deciding]
"""delta(s, ...): from the history, the history (asking adds to it) and the next state's name."""


@dataclass(frozen=True, slots=True)
class State:
    """What is done on entering a state, and where it goes on."""

    outputs: tuple[Output, ...]
    next: Transition


@dataclass(frozen=True, slots=True)
class Machine:
    """S, s0, F, delta and the outputs of a StateFlow model.

    Raises ValueError if the start is no state.
    """

    states: Mapping[str, State]
    start: str = "Init"
    final: tuple[str, ...] = ("End",)

    def __post_init__(self) -> None:
        if self.start not in self.states:
            raise ValueError(f"the machine starts in {self.start!r}, which is none of its states")


class _Cut(Exception):  # noqa: N818 (no error: a budget)
    """The model was cut in the middle of a reply."""

    def __init__(self, Y: Sequence, status: Status) -> None:
        super().__init__(status)
        self.Y, self.status = Y, status


def stateflow(thread: NewThread, *, machine: Machine, turns: int = 60) -> Steps:
    """Run a machine from its start to one of its final states; returns that state's name.

    turns: transitions at most (M); the paper allows 50 rounds on ALFWorld and 10 on InterCode.
    Raises ValueError for a transition to a state that there is not.
    """
    # G* = Q; s = s0
    Y, state = Sequence(), machine.start
    counter = 0
    # while s is not in F do
    while state not in machine.final:
        if state not in machine.states:
            raise ValueError(f"the machine went to {state!r}, which is none of its states")
        if counter >= turns:
            return Finished(Y, Status.OUT_OF_CALLS, {})
        try:
            # for w in s.outputs do G* = G* + w(G*)
            for output in machine.states[state].outputs:
                Y = yield from output(thread, Y)
            # s = delta(s, G*)
            Y, state = yield from machine.states[state].next(thread, Y)
        except _Cut as cut:
            return Finished(cut.Y, cut.status, {})
        counter += 1
    return Finished(Y, Status.ENDED, {}, state)


# Output functions


@dataclass(frozen=True, slots=True)
class Prompter:
    """P: a static prompt, on a line of its own."""

    text: str

    def __call__(self, thread: NewThread, Y: Sequence) -> Writing:
        yield from ()
        return Y + thread.instruction(with_break(Y, f"{self.text}\n"))


def respond(thread: NewThread, Y: Sequence) -> Writing:
    """M: the model goes on with the history, to its next mark."""
    generated: Generated = yield Generate(Y)
    Y += generated.span
    if generated.stop in ENDS and not ENDS[generated.stop].is_end:
        raise _Cut(Y, ENDS[generated.stop])
    return Y


@dataclass(frozen=True, slots=True)
class Agent:
    """M_i: a model with its own prompt reads the whole history and gives the next message."""

    prompt: Prompt

    def __call__(self, thread: NewThread, Y: Sequence) -> Writing:
        role = f"[{self.prompt.name}]"
        Y, text, _ = yield from _ask_model(thread, Y, role, "", self.prompt)
        return Y + thread.instruction(f"{text} {thread.dialect.listen}")


def execute(thread: NewThread, Y: Sequence) -> Writing:
    """E: takes the action that is the last line; says so where it is none."""
    if not thread.dialect.is_action(Y.last_line):
        return Y + thread.instruction(thread.dialect.closed(NO_ACTION))
    observation: str = yield Act(xi_after_mark(Y, {}, thread.dialect))
    return Y + thread.observed(observation.strip())


def acknowledge(thread: NewThread, Y: Sequence) -> Writing:
    """Close a line of the model that is not executed, so that it can go on."""
    yield from ()
    listens = Y.text.endswith(thread.dialect.listen)
    return Y + thread.instruction(thread.dialect.closed("OK.")) if listens else Y


@dataclass(frozen=True, slots=True)
class ToolCall:
    """E: the same action whenever the state is entered."""

    action: str

    def __call__(self, thread: NewThread, Y: Sequence) -> Writing:
        Y += thread.instruction(with_break(Y, f"> {self.action} {thread.dialect.listen}"))
        observation: str = yield Act(self.action)
        return Y + thread.observed(observation.strip())


# Transitions


@dataclass(frozen=True, slots=True)
class StringMatching:
    """By string: the state of the first pattern (a regular expression) that the last message has.

    The last message is what was observed last, or what the model wrote if nothing was since.
    """

    patterns: Mapping[str, str]
    otherwise: str

    def __call__(self, thread: NewThread, Y: Sequence) -> Deciding:
        yield from ()
        text = last_message(Y)
        states = (state for pattern, state in self.patterns.items() if re.search(pattern, text))
        return Y, next(states, self.otherwise)


def go_to(state: str) -> StringMatching:
    """ToolCall to the same state."""
    return StringMatching({}, state)


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """By model: it reads the history and the question; the state of the first answer it gives.

    prompt: of the model that is asked. Capital letters of its answer do not matter.
    """

    question: str
    answers: Mapping[str, str]
    otherwise: str
    prompt: Prompt

    def __call__(self, thread: NewThread, Y: Sequence) -> Deciding:
        Y, text, _ = yield from _ask_model(thread, Y, self.question, self.question, self.prompt)
        reply = text.casefold()
        states = (state for answer, state in self.answers.items() if answer.casefold() in reply)
        return Y, next(states, self.otherwise)


def _ask_model(thread: NewThread, Y: Sequence, line: str, question: str, prompt: Prompt) -> Answer:
    history = "\n".join(filter(None, [thread.context, Y.text.rstrip(), question]))
    return (yield from ask(thread, Y, line, history, program=write_reply, prompt=prompt))


def last_message(Y: Sequence) -> str:
    """What was observed last, or what the model wrote if nothing was since; "" at the start."""
    for span in reversed(Y.spans):
        if span.provenance is not Provenance.INSTRUCTION:
            return span.text
    return ""
