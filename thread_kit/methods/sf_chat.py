"""SF_Chat, a variant of StateFlow (appendix A.3 there): one model, and all instructions stay.

The machine is the same. Where StateFlow asks the agent of a state, the agent's instruction is put
into the history like a user's message, and one model replies, which has read everything since the
start. Nothing is evaluated twice then, but the history grows by the instructions. It shows the
model what a reply is like, so it begins with a thought, as any reply does.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from thread_kit.methods.common import own_text, with_break
from thread_kit.methods.state_outputs import Agent, Prompter
from thread_kit.methods.stateflow import Cut, History, Machine, Output
from thread_kit.requests import Generate, Generated, Request
from thread_kit.sequence import Sequence

THOUGHT = Prompter("think: I look at what there is.")


def as_chat(machine: Machine) -> Machine:
    """The machine, each agent of which is the one model, after the agent's instruction."""

    def change(output: Output) -> tuple[Output, ...]:
        if not isinstance(output, Agent):
            return (output,)
        return Instruct(Agent(output.prompt, output.is_heard)), respond  # one model reads all

    states = {
        name: replace(state, outputs=tuple(new for old in state.outputs for new in change(old)))
        for name, state in machine.states.items()
    }
    start = machine.resolve(machine.start)
    states[start] = replace(states[start], outputs=(THOUGHT, *states[start].outputs))
    return replace(machine, states=states)


@dataclass(frozen=True, slots=True)
class Instruct:
    """Puts what an agent is instructed to do into the history, laid out as a context is."""

    agent: Agent

    def __call__(self, history: History) -> Generator[Request, Any, None]:
        yield from ()
        thread, prompt = history.thread, self.agent.find_prompt(history)
        message = f"[{history.state}]\n{thread.dialect.context(prompt.instructions.strip())}"
        history.add(thread.instruction(with_break(history.Y, message)))


def respond(history: History) -> Generator[Request, Any, None]:
    """M: one model goes on with the history, to its next mark."""
    generated: Generated = yield Generate(history.Y)
    history.add(generated.span)
    if generated.ended and not generated.ended.is_end:
        raise Cut(generated.ended)
    history.add_reply(own_text(Sequence((generated.span,)), history.thread.dialect))
