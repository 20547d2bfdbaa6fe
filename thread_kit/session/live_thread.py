"""One thread that is alive, as the scheduler keeps it (`session/scheduler.py`)."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from thread_kit.engines.engine import Completion
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, Program, Request, Status
from thread_kit.sandbox.namespace import Namespace
from thread_kit.sequence import Provenance, Span
from thread_kit.trace.events import GeneratedSpan, TokenProbs

_KEYS = itertools.count()  # threads of several sessions may share one engine


@dataclass(slots=True)
class Asked:
    """A call that runs: the new tokens it may have, what it means when they are spent, its end."""

    room: int
    spent: Status
    over: Completion | None = None


@dataclass(slots=True)
class LiveThread:
    """A thread that is alive: its generator, its variables, and what it waits for.

    path: its place in the tree, which does not depend on who was faster, as its number does.
    acts: it may act in the environment: all threads from the main thread down to it are waited for.
    futures: the threads that names stand for, as long as this thread has not taken them.
    request: what it asked for and has to ask again: there was no room for one more call, or a call
        of the past stands for it so far.
    lengths, logprobs: characters that each token of its call adds, and what the model weighed for
    it.
    """

    id: int
    depth: int
    path: tuple[int, ...]
    context: Span
    program: Program
    prompt: Prompt
    namespace: Namespace
    acts: bool
    futures: dict[str, int]
    is_future: bool
    steps: Generator[Request, Any, Finished]
    key: int = field(default_factory=lambda: next(_KEYS))
    reply: Any = None
    request: Request | None = None
    call: Asked | None = None
    is_held: bool = False
    shown: int = 0
    lengths: list[int] = field(default_factory=list)
    logprobs: list[TokenProbs] = field(default_factory=list)
    children: int = 0
    child: int = -1
    taken: tuple[str, int] | None = None
    defined: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        return self.call is None and not self.is_held


def generated_span(one: LiveThread, call: Completion) -> GeneratedSpan:
    """The event of a call that is over, with what each of its tokens adds and weighed."""
    span = Span(Provenance.GENERATED, call.text, call.tokens)
    lengths = _fitted(one.lengths, span)
    logprobs = tuple(one.logprobs[: len(span)])
    return GeneratedSpan(
        one.id, span, call.stop, call.reused, call.evaluated, call.seconds, lengths, logprobs
    )


def _fitted(lengths: list[int], span: Span) -> tuple[int, ...]:
    """Lengths for just these tokens: where the last ones were cut to a stop string and spelled
    anew, the first of those has what they add together."""
    fitted = (lengths + [0] * len(span))[: len(span)]
    extra = sum(fitted) - len(span.text)
    for n in reversed(range(len(span))):
        if extra <= 0:
            break
        less = min(extra, fitted[n])
        fitted[n] -= less
        extra -= less
    if fitted and extra < 0:
        fitted[-1] -= extra
    return tuple(fitted)
