"""One thread that is alive, as the scheduler keeps it (`session/scheduler.py`)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from thread_kit.engines.engine import Completion, ThreadKey
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, Generate, Program, Request, Status
from thread_kit.sandbox.namespace import Namespace
from thread_kit.sequence import Provenance, Span
from thread_kit.trace.events import UNKNOWN, GeneratedSpan, TokenProbs


@dataclass(slots=True)
class RunningCall:
    """A call that runs: the new tokens it may have, what it means when they are spent, its end."""

    room: int
    spent: Status
    request: Generate
    over: Completion | None = None


@dataclass(slots=True)
class LiveThread:
    """A thread that is alive: its generator, its variables, and what it waits for.

    key: by which the engine knows it: the session's number and its own.
    path: its place in the tree, which does not depend on who was faster, as its number does.
    acts: it may act in the environment: all threads from the main thread down to it are waited for.
    futures: the threads that names stand for, as long as this thread has not taken them.
    request: what it asked for and has to ask again: there was no room for one more call.
    shown: spans of its sequence that are events already.
    lengths, logprobs: characters that each token of its call adds, and what the model weighed.
    child: the last one that it spawned. taken: the future that it waits for: name and thread.
    defined: variables that came up with what a child returned.
    """

    id: int
    key: ThreadKey
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
    reply: Any = None
    request: Request | None = None
    call: RunningCall | None = None
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


def generated_span(thread: LiveThread, completion: Completion) -> GeneratedSpan:
    """The event of a call that is over, with what each of its tokens adds and weighed."""
    span = Span(Provenance.GENERATED, completion.text, completion.tokens)
    lengths = completion.lengths
    if lengths is None:
        lengths = _fit(thread.lengths, span)
    logprobs = completion.logprobs or tuple(thread.logprobs[: len(span)])
    if logprobs:  # of tokens that nobody was told of, or that were spelled anew, none are known
        logprobs += (UNKNOWN,) * (len(span) - len(logprobs))
    return GeneratedSpan(
        *(thread.id, span, completion.stop),
        *(completion.reused, completion.evaluated, completion.seconds),
        *(lengths, logprobs),
        passes=completion.passes,
        drafted=completion.drafted,
        accepted=completion.accepted,
        came_true=completion.came_true,
    )


def _fit(lengths: list[int], span: Span) -> tuple[int, ...]:
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
