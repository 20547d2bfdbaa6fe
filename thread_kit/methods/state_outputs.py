"""Output functions of StateFlow (section 3.1 there): what a state does, one after the other.

A model (`Agent`), the environment (`Execute`, `ToolCall`), or a static prompt (`Prompter`).
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.exchange import psi_print, read_action, unless_replaced
from thread_kit.methods.common import go_on, say_no_action, with_break, write_reply
from thread_kit.methods.stateflow import Cut, History, Machine
from thread_kit.program import UNNAMED
from thread_kit.prompts import Prompt
from thread_kit.requests import Act, Define, Finished, Observation, Request, Show, Spawn
from thread_kit.sequence import Provenance, Span


@dataclass(frozen=True, slots=True)
class Agent:
    """M_i: a model with its own prompt reads the whole history and gives the next message.

    prompt: None is the one that belongs to the state. is_heard: whether the other agents read it.
    reads_all: whether it reads the whole history; if not, the last line of what was asked alone.
    acts: as in the paper's released code for InterCode, its reply ends with its first action, and
        where it has none, it is asked for one, behind the reply and the mark of one.
    """

    prompt: Prompt | None = None
    is_heard: bool = True
    reads_all: bool = field(default=True, metadata=UNNAMED)
    acts: bool = field(default=False, metadata=UNNAMED)

    def find_prompt(self, history: History) -> Prompt:
        """Raises ValueError where there is none."""
        prompt = self.prompt or history.agents.get(history.state)
        if prompt is None:
            raise ValueError(f"the state {history.state!r} has no prompt for its agent")
        return prompt

    def __call__(self, history: History) -> Generator[Request, Any, None]:
        thread, prompt = history.thread, self.find_prompt(history)
        history.begin_line()
        history.add(thread.instruction(f"[{history.state}] "), is_heard=False)
        yield Show(history.Y)
        context = "\n".join(filter(None, [thread.context, history.text.strip()]))
        if not self.reads_all:
            context = thread.context.rpartition("\n")[2]
        reply = yield from self._ask(history, context, prompt)
        asked = read_action(reply, thread.dialect)
        if self.acts and (not asked or MARKED_THOUGHT.match(asked)):
            reply += yield from self._ask(history, context, prompt, reply)
        history.add_reply(reply)

    def _ask(
        self, history: History, context: str, prompt: Prompt, said: str | None = None
    ) -> Generator[Request, Any, str]:
        """What the model replies, put into the history.

        said: its reply without an action, behind which it is asked for one.
        """
        mark = history.thread.dialect.actions[0]
        program = write_reply if said is None else partial(write_reply, begun=f"{said}\n{mark}")
        finished: Finished = yield Spawn(context, program=program, prompt=prompt)
        if not finished.status.is_end and finished.instead is None:
            raise Cut(finished.status)
        reply = unless_replaced(psi_print)(finished)
        if said is not None:
            reply = f"\n{go_on(f'{mark} ', reply, history.thread.dialect)}"
        elif self.acts and reply.rpartition("\n")[2] == mark:  # alone, behind a thought
            reply = reply.removesuffix(mark).rstrip()
        if self.acts:
            reply = until_first_action(reply, history.thread.dialect)
        yield Define({})
        span = Span(Provenance.RETURNED, reply, history.thread.tokenize(reply))
        history.add(span, is_heard=self.is_heard)
        yield Show(history.Y)
        return reply


MARKED_THOUGHT = re.compile(r"[\s#>]*think\b", re.IGNORECASE)
"""A model that is asked for an action may think once more, behind the mark of one."""


def until_first_action(reply: str, dialect: Dialect) -> str:
    """A reply to the end of its first action; what follows, another one or a thought, is gone."""
    lines = reply.split("\n")
    acts = (dialect.is_action(line) and not MARKED_THOUGHT.match(line) for line in lines)
    first = next((n for n, is_action in enumerate(acts) if is_action), len(lines))
    following = (*(f"{mark} " for mark in dialect.actions), "think:")
    more = takewhile(lambda line: not f"{line} ".startswith(following), lines[first + 1 :])
    return "\n".join([*lines[: first + 1], *more])


def list_agents(machine: Machine) -> tuple[str, ...]:
    """The states whose agent has the prompt of its state (`History.agents`)."""
    return tuple(
        name
        for name, state in machine.states.items()
        if any(isinstance(output, Agent) and not output.prompt for output in state.outputs)
    )


@dataclass(frozen=True, slots=True)
class Prompter:
    """P: a static prompt, on a line of its own."""

    text: str

    def __call__(self, history: History) -> Generator[Request, Any, None]:
        yield from ()
        history.add(history.thread.instruction(with_break(history.Y, f"{self.text}\n")))


@dataclass(frozen=True, slots=True)
class Execute:
    """E: takes the action at the end of the reply; says so where there is none.

    nearest: whatever the last line is, the environment takes it for the valid action that is most
    like it (StateFlow paper, section 4.2).
    is_round: a reply without an action is one of the environment's rounds, too (InterCode).
    """

    nearest: bool = False
    is_round: bool = field(default=False, metadata=UNNAMED)

    def __call__(self, history: History) -> Generator[Request, Any, None]:
        thread, dialect = history.thread, history.thread.dialect
        if not history.Y.text.endswith(dialect.listen):
            history.add(thread.instruction(f" {dialect.listen}"))
        reply = history.replies[-1] if history.replies else ""
        action = read_action(reply, dialect)
        if action is None and self.nearest:
            action = reply.rpartition("\n")[2].strip() or None
        if action is None and self.is_round:
            action = ""
        if action is None:
            history.observe("", None)
            history.add(thread.instruction(dialect.closed(say_no_action(dialect))))
            return
        observation: Observation = yield Act(action, nearest=self.nearest)
        history.observe(action, observation)
        history.add(thread.observed(observation.strip()))


execute = Execute()
execute_round = Execute(is_round=True)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """E: the same action whenever the state is entered."""

    action: str

    def __call__(self, history: History) -> Generator[Request, Any, None]:
        thread = history.thread
        history.begin_line()
        line = thread.dialect.write_action(self.action)
        history.add(thread.instruction(f"{line} {thread.dialect.listen}"))
        observation: Observation = yield Act(self.action)
        history.observe(self.action, observation)
        history.add(thread.observed(observation.strip()))


@dataclass(frozen=True, slots=True)
class Naming:
    """Gives the last reply a name, by which patterns call it: "Object of interest: mug." is mug.

    (StateFlow paper, section 4.2: the object is named by a call of its own.)
    """

    name: str

    def __call__(self, history: History) -> Generator[Request, Any, None]:
        yield from ()
        lines = [line for line in history.replies[-1].splitlines() if line.strip()]
        value = lines[-1].rpartition(":")[2] if lines else ""
        words = re.findall(r"\w+", value.casefold())
        history.names[self.name] = words[-1] if words else ""
