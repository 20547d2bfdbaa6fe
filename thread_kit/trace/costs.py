"""Costs: tokens generated, evaluated and reused, against the least that was possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from thread_kit.dialect import Stop
from thread_kit.trace.events import GeneratedSpan

if TYPE_CHECKING:
    from thread_kit.trace.episode import Episode


@dataclass(frozen=True, slots=True)
class Usage:
    """What generation cost. Tokens; seconds. Usages add up with `+`.

    prompt: tokens of the contexts as the model saw them, summed over calls (an API would bill it).
    reused: of these, how many were in the KV cache already.
    evaluated: tokens that went through the model, prompt and generated.
    generated: tokens that the model wrote.
    passes, drafted, accepted: passes through the model, tokens that were looked up and verified in
        them, and those that came true; 0 where nothing was looked up (`engines/drafts.py`). Those
        that did not come true are not among the evaluated ones.
    """

    calls: int = 0
    prompt: int = 0
    reused: int = 0
    evaluated: int = 0
    generated: int = 0
    seconds: float = 0.0
    passes: int = 0
    drafted: int = 0
    accepted: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.reused + other.reused,
            self.evaluated + other.evaluated,
            self.generated + other.generated,
            self.seconds + other.seconds,
            self.passes + other.passes,
            self.drafted + other.drafted,
            self.accepted + other.accepted,
        )

    def __str__(self) -> str:
        return (
            f"{self.calls} calls, {self.generated} tokens generated, "
            f"{self.evaluated} evaluated, {self.reused} reused"
        )


class Costing(Protocol):
    """A thread, or what a view shows of one."""

    @property
    def id(self) -> int: ...
    @property
    def parent(self) -> int | None: ...
    @property
    def usage(self) -> Usage: ...


def sum_work_below(threads: Iterable[Costing]) -> dict[int, int]:
    """For each thread, the tokens that all threads below it generated.

    threads: in the order in which they were spawned, so that children come after their parents.
    """
    listed = list(threads)
    below = {thread.id: 0 for thread in listed}
    for thread in reversed(listed):
        if thread.parent is not None:
            below[thread.parent] += below[thread.id] + thread.usage.generated
    return below


def distinct_tokens(episode: Episode) -> int:
    """The tokens that a model has to evaluate for this episode if it evaluates none twice.

    Two tokens are the same where all before them are the same too, in whichever threads. The last
    token of a call is evaluated only if the thread goes on. `Usage.evaluated`, divided by this, is
    1.00 where nothing was evaluated twice; less, where a cache from before the episode helped.
    """
    return distinct_prefixes(
        [
            *episode.prompt(number).tokens,
            *episode.threads[number].context.tokens,
            *episode.threads[number].sequence.tokens[:end],
        ]
        for number, end in _evaluated(episode).items()
    )


def distinct_prefixes(texts: Iterable[Iterable[int]]) -> int:
    """How many different prefixes these token sequences have in all: a cell for each would do."""
    children: dict[tuple[int, int], int] = {}  # (a prefix's number, the next token): its number
    for tokens in texts:
        node = 0
        for token in tokens:
            node = children.setdefault((node, token), len(children) + 1)
    return len(children)


def _evaluated(episode: Episode) -> dict[int, int]:
    """For each thread that called the model, how many tokens of its sequence were evaluated."""
    ends: dict[int, int] = {}
    length = dict.fromkeys(episode.threads, 0)
    for event in episode.events:
        span = getattr(event, "span", None)
        if span is None:
            continue
        thread = getattr(event, "thread", 0)
        length[thread] += len(span)
        if isinstance(event, GeneratedSpan):
            # Behind its last token a model was asked once more where it ended the stream there.
            goes_on = event.stop is Stop.END_OF_STREAM
            ends[thread] = max(length[thread] - (not goes_on), 0)
    return ends
