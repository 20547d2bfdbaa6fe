"""Transitions of StateFlow (section 3.2 there): by string matching, or by asking a model."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from thread_kit.methods.common import ask, write_reply
from thread_kit.methods.stateflow import History
from thread_kit.prompts import Prompt
from thread_kit.requests import Request


@dataclass(frozen=True, slots=True)
class StringMatching:
    """By string: the state of the first pattern (a regular expression) that the last message has.

    The message of a state that acts is what the environment said, and never what the model wrote: a
    reply that is no action leads `otherwise`. Patterns can hold names (`Naming`): "You pick up the
    {object}". actions: patterns of the action that was executed, which are tried after those.
    """

    patterns: Mapping[str, str]
    otherwise: str
    actions: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, history: History) -> Generator[Request, Any, str]:
        yield from ()
        if history.message is None:
            return self.otherwise
        for text, patterns in ((history.message, self.patterns), (history.action, self.actions)):
            for pattern, state in patterns.items():
                if re.search(_fill_in(pattern, history.names), text):
                    return state
        return self.otherwise


def _fill_in(pattern: str, names: Mapping[str, str]) -> str:
    """A pattern with the values of its names; one that is not known, no text matches."""

    def value(match: re.Match[str]) -> str:
        return re.escape(names.get(match[1], "")) or "(?!)"

    return re.sub(r"\{([a-z]\w*)\}", value, pattern)


def go_to(state: str) -> StringMatching:
    """Always to the same state."""
    return StringMatching({}, state)


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """By model: it reads the history and the question; the state of the first answer it gives.

    prompt: of the model that is asked. Capital letters of its answer do not matter. What it says is
    no message: no agent reads it.
    """

    question: str
    answers: Mapping[str, str]
    otherwise: str
    prompt: Prompt

    def __call__(self, history: History) -> Generator[Request, Any, str]:
        parts = [history.thread.context, history.text.strip(), self.question]
        context = "\n".join(filter(None, parts))
        history.Y, text, _ = yield from ask(
            *(history.thread, history.Y, self.question, context),
            program=write_reply,
            prompt=self.prompt,
        )
        reply = text.casefold()
        states = (state for answer, state in self.answers.items() if answer.casefold() in reply)
        return next(states, self.otherwise)
