"""What went wrong in an episode: the paper's types of errors, and rules that propose one.

THREAD paper, E.1: the first error of a failed episode is held responsible for its failure (Tables 9
to 12). There it was found by hand; here rules read the trace and propose it, and `errors/review.py`
is for people to say what it was.

What the rules can see is what an environment says (`errors/rules.py`): that an action is refused,
that an item is used which could not be found, that code fails, that a budget is spent. They know
the observations of TextCraft, ALFWorld and InterCode, and what a question about data needs. Not
covered: a plan that is executed well and is the wrong one counts as inadequate only at its end, and
of misreadings only those that an action shows: what is taken or used was not there, or what was
looked for was seen and is looked for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thread_kit.envs.registry import find_benchmark
from thread_kit.errors.error_types import ErrorType
from thread_kit.errors.rules import ErrorRules
from thread_kit.trace.episode import Episode, TraceError, must_be_episode
from thread_kit.trace.events import Acted, Returned
from thread_kit.trace.jsonl import MALFORMED


@dataclass(frozen=True, slots=True)
class Finding:
    """An error. event: its number in the trace; why: what the rule saw."""

    type: ErrorType
    event: int
    thread: int
    why: str


def has_failed(episode: Episode) -> bool:
    """Whether an episode is over, and not solved."""
    return not episode.solved and not episode.status.is_live


def find_first_error(episode: Episode) -> Finding | None:
    """The first error that a rule finds in a failed episode; None for one that is solved.

    And where no rule finds any, for one without an environment, since nobody has judged it.
    Raises ValueError for an episode that is not over.
    """
    if must_be_episode(episode).status.is_live:
        raise ValueError("the episode is not over; what went wrong can be said when it is")
    if episode.solved:
        return None
    if first := next(find_errors(episode), None):
        return first
    if episode.header.get("environment") is None:
        return None
    kind, why = _rules_for(episode).unsolved
    return Finding(kind, len(episode.events) - 1, 0, why)


def find_errors(episode: Episode) -> Iterator[Finding]:
    """All errors that the rules find, in the order of time.

    Raises TraceError for an event with facts that its environment does not write.
    """
    rules = _rules_for(episode)
    for number, event in enumerate(episode.events):
        try:
            error = rules.check_event(event)
        except MALFORMED as problem:
            name = episode.header.get("environment")
            raise TraceError(f"event {number} is not what {name} tells: {problem!r:.200}") from None
        if error:
            yield Finding(error[0], number, getattr(event, "thread", 0), error[1])


def _rules_for(episode: Episode) -> ErrorRules:
    context = episode.threads[0].context.text if episode.threads else ""
    return find_benchmark(str(episode.header.get("environment"))).error_rules(context)


def measure_action_runs(episode: Episode) -> list[tuple[int, bool]]:
    """For each action, how many its thread has taken in a row, and whether it misreads feedback.

    THREAD paper, Figure 5. A row ends where a child returns, since what it says is no observation;
    the paper does not say where its rows end.
    """
    misread = {
        error.event for error in find_errors(episode) if error.type is ErrorType.MISREAD_OBSERVATION
    }
    lengths: dict[int, int] = {}
    rows = []
    for number, event in enumerate(episode.events):
        if isinstance(event, Returned):
            lengths[event.thread] = 0
        elif isinstance(event, Acted):
            lengths[event.thread] = lengths.get(event.thread, 0) + 1
            rows.append((lengths[event.thread], number in misread))
    return rows
