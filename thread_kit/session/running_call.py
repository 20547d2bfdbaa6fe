"""One call of the model under way, and the event that comes of it (`session/calls.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from thread_kit.engines.engine import Completion
from thread_kit.requests import Generate, Status
from thread_kit.sequence import Provenance, Span
from thread_kit.session.live_thread import LiveThread
from thread_kit.trace.events import UNKNOWN, Edited, GeneratedSpan, TokenProbs


@dataclass(slots=True)
class RunningCall:
    """A call that runs.

    room: new tokens that it may have; spent: what it means when they are used up. lengths,
    logprobs: characters that each token adds, and what the model weighed. over, edits: its
    end, and what a person changed in it, where the engine has told them and no event has yet.
    """

    thread: LiveThread
    room: int
    spent: Status
    request: Generate
    lengths: list[int] = field(default_factory=list)
    logprobs: list[TokenProbs] = field(default_factory=list)
    over: Completion | None = None
    edits: list[Edited] = field(default_factory=list)

    def to_event(self, completion: Completion) -> GeneratedSpan:
        """The event of the call's end, with what each of its tokens adds and weighed."""
        span = Span(Provenance.GENERATED, completion.text, completion.tokens)
        lengths = completion.lengths
        if lengths is None:
            lengths = _fit(self.lengths, span)
        logprobs = completion.logprobs or tuple(self.logprobs[: len(span)])
        if logprobs:  # of tokens that nobody was told of, or that were spelled anew, none are known
            logprobs += (UNKNOWN,) * (len(span) - len(logprobs))
        return GeneratedSpan(
            *(self.thread.id, span, completion.stop),
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
