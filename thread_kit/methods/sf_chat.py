"""SF_Chat, a variant of StateFlow (appendix A.3 there): one model, and all instructions stay.

The machine is the same. On entering a state its instruction is put into the history, and one model
goes on with it, which has read everything since the start. Nothing is evaluated twice then, but the
history grows by the instructions. Here the model has read two whole games as well, as ReAct's has.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from thread_kit.methods.common import own_text
from thread_kit.methods.state_outputs import Agent, Execute, Prompter, execute
from thread_kit.methods.stateflow import Cut, History, Machine, Output
from thread_kit.requests import ENDS, Generate, Generated, Request
from thread_kit.sequence import Sequence


def as_chat(machine: Machine) -> Machine:
    """The machine, each agent of which is the one model with the state's instruction (`chat`).

    A line that is no action does nothing, as in the examples; none is taken for one like it.
    """
    states = {}
    for name, state in machine.states.items():
        outputs: list[Output] = []
        for output in state.outputs:
            match output:
                case Agent():
                    outputs += [Prompter(f"[{name}] {state.chat}"), respond]
                case Execute():
                    outputs.append(execute)
                case _:
                    outputs.append(output)
        if respond in outputs and execute not in outputs:
            outputs.append(acknowledge)
        states[name] = replace(state, outputs=tuple(outputs))
    return replace(machine, states=states)


def respond(history: History) -> Generator[Request, Any, None]:
    """M: one model goes on with the history, to its next mark."""
    generated: Generated = yield Generate(history.Y)
    history.add(generated.span)
    if generated.stop in ENDS and not ENDS[generated.stop].is_end:
        raise Cut(ENDS[generated.stop])
    history.add_reply(own_text(Sequence((generated.span,)), history.thread.dialect))


def acknowledge(history: History) -> Generator[Request, Any, None]:
    """Close a line of the model that is not executed, so that it can go on."""
    yield from ()
    thread = history.thread
    if history.Y.text.endswith(thread.dialect.listen):
        history.add(thread.instruction(thread.dialect.closed("OK.")))
