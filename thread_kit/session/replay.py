"""Replay: the recorded part of an episode, which a fork repeats before it goes on.

The recorded calls are the model's part (`engines/replay.py`), while environment and sandbox do
everything once more, and thereby come to the state that they were in. Every event that this makes
must be the recorded one. Behind the fork a session goes on as any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thread_kit.engines.engine import Engine
from thread_kit.engines.replay import CallStart, Place, ReplayEngine, ReplayError
from thread_kit.requests import Status
from thread_kit.session.limits import Limits
from thread_kit.trace.costs import Usage
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    OF_CHILD,
    Edited,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Prompted,
    Spawned,
    to_json,
)
from thread_kit.trace.jsonl import to_line


class Edits:
    """What a person changed in an episode, each at its place.

    placed: changes, each with the number of events (`Prompted` not counted) that come before it.
    """

    def __init__(self, placed: Iterable[tuple[int, Edited]] = ()) -> None:
        self.happened = 0
        self._edits: dict[tuple[str, int, int], Edited] = {}
        self._due: dict[int, list[tuple[int, Edited]]] = {}
        for place, edit in placed:
            self._edits[edit.what, edit.thread, edit.number] = edit
            if edit.what == "variables":
                self._due.setdefault(edit.thread, []).append((place, edit))

    def __iter__(self) -> Iterator[Edited]:
        return iter(self._edits.values())

    def find(self, what: str, thread: int, number: int) -> Edited | None:
        """The change of this thing; `number` says which of those that the thread has."""
        return self._edits.get((what, thread, number))

    @property
    def has_variables(self) -> bool:
        """Some change of variables has not been handed out yet."""
        return any(self._due.values())

    def pop_variables(self, thread: int) -> Edited | None:
        """The next change of a thread's variables that is due; it is handed out once."""
        due = self._due.get(thread)
        return due.pop(0)[1] if due and due[0][0] <= self.happened else None


Places = Sequence[tuple[int, Callable[..., Any]]]
"""Functions, each with the number of events (`Prompted` not counted) before which it counts."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A function of the exchange that forks have changed: what it is depends on the event.

    places: what it was up to the forks, in their order; last: what it is behind them.
    """

    edits: Edits
    places: Places
    last: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return getattr(self.last, "__name__", None) or repr(self.last)

    def __call__(self, *arguments: Any) -> Any:
        now = self.edits.happened
        return next((f for place, f in self.places if now < place), self.last)(*arguments)


@dataclass(slots=True)
class Replay:
    """What a session repeats before it goes on by itself; one without events repeats nothing.

    episode: recorded. at: so many of its events are repeated.
    changes: at the fork. Earlier changes are among the events.
    starts: the calls that the fork has cut.
    same_tokens: the recorded tokens are this model's; else they are spelled anew from their texts.
    origin: what the header says about where the fork parts from its original.
    limits_count: limits are those of what is repeated; else they hold from the fork on, since what
        was recorded happened within limits of its own. What it has spent counts in either case.
    """

    episode: Episode = field(default_factory=Episode)
    at: int = 0
    changes: Sequence[Edited] = ()
    starts: Mapping[Place, CallStart] = field(default_factory=dict)
    same_tokens: bool = True
    origin: dict[str, Any] | None = None
    limits_count: bool = False
    edits: Edits = field(init=False)
    _recorded: list[Event] = field(init=False)
    _seconds: float = field(init=False)

    def __post_init__(self) -> None:
        events = self.episode.events[: self.at]
        # What prompts cost is said by whoever pays it, at any moment: it is not compared.
        self._recorded = [event for event in events if not isinstance(event, Prompted)]
        calls = [event for event in events if isinstance(event, GeneratedSpan)]
        spent = sum(call.seconds for call in calls)
        # Calls side by side, and pauses within them, count several times in the sum.
        self._seconds = spent if self.episode.status.is_live else min(spent, self.episode.seconds)
        placed = [(n, event) for n, event in enumerate(self._recorded) if isinstance(event, Edited)]
        self.edits = Edits([*placed, *((len(self._recorded), edit) for edit in self.changes)])

    @staticmethod
    def of(engine: Engine) -> Replay:
        """What a session over this engine repeats: a whole recording, or nothing.

        Raises ValueError where a person or the clock ended what was recorded.
        """
        if not isinstance(engine, ReplayEngine):
            return Replay()
        episode = engine.episode
        if episode.status in (Status.STOPPED, Status.OUT_OF_TIME):
            raise ValueError(
                f"the recorded episode was ended from outside ({episode.status}), which does not "
                "happen again by itself; go on behind it: fork(episode, engine=..., env=...)"
            )
        whole = len(episode.events) - (0 if episode.status.is_live else 1)  # the end is its own
        return Replay(episode, whole, limits_count=True)

    @property
    def holds_calls(self) -> bool:
        """Not every recorded call of the model has been repeated."""
        rest = self._recorded[self.edits.happened :]
        return any(isinstance(event, GeneratedSpan) for event in rest)

    @property
    def is_over(self) -> bool:
        """The next event is the first one behind the fork."""
        return self.edits.happened >= len(self._recorded)

    def owes(self, episode: Episode) -> bool:
        """Whether an episode that repeats this has not come to all that the fork has changed."""
        if not self.is_over:
            return bool(self.changes or self.starts)
        calls = Counter(e.thread for e in episode.events if isinstance(e, GeneratedSpan))
        seen = [event for event in episode.events[self.at :] if isinstance(event, Edited)]
        done = {(edit.what, edit.thread, edit.number) for edit in seen}
        asked = {(edit.what, edit.thread, edit.number) for edit in self.changes}
        return not asked <= done or any(calls[t] <= number for t, number in self.starts)

    @property
    def seconds(self) -> float:
        """What the repeated calls of the model took when they were recorded, once all are."""
        return self._seconds if self.is_over else 0.0

    @property
    def refused_depth(self) -> str:
        """Why the thread that was spawned last did not live, by the record; "" where it did."""
        following = self._recorded[self.edits.happened]
        if isinstance(following, Ended) and following.status is Status.OUT_OF_DEPTH:
            return following.detail
        return ""

    def engine(self, engine: Engine) -> Engine:
        """An engine that repeats the recorded calls and goes on with this one."""
        return ReplayEngine(
            *(self.episode, engine),
            at=self.at,
            starts=self.starts,
            edits=self.edits,
            same_tokens=self.same_tokens,
        )

    def limits(self, limits: Limits) -> Limits:
        """The limits as they are to count (`limits_count`)."""
        if self.limits_count:
            return limits
        return _LimitsBehind(
            *(limits.calls, limits.new_tokens, limits.tokens, limits.depth, limits.seconds, self)
        )

    def check(self, event: Event) -> None:
        """Count an event; raises ReplayError if it is another one than was recorded."""
        if event.passing or isinstance(event, Prompted):
            return
        if not self.is_over:
            recorded = self._recorded[self.edits.happened]
            if self._essence(event) != self._essence(recorded):
                number = next(n for n, e in enumerate(self.episode.events) if e is recorded)
                if self._essence(event, tokens=False) == self._essence(recorded, tokens=False):
                    raise ReplayError(
                        f"event {number} has the text that was recorded in other tokens: this "
                        "model spells it otherwise; go on with it by fork(episode, engine=...)"
                    )
                raise ReplayError(
                    f"event {number} was {_short(recorded)} and is "
                    f"{_short(event)} now: the method, the environment, the sandbox or an exchange "
                    "function is not what it was when the episode was recorded; fork before this "
                    "event, or make them the same"
                )
        self.edits.happened += 1

    def _essence(self, event: Event, *, tokens: bool = True) -> str:
        """What must be the same when an event happens again. tokens: also how texts are spelled."""
        data = to_json(event)
        data.pop("traceback", None)  # whoever mends a function moves its lines
        for name in ("restored", "gone"):  # which older traces do not say
            data.pop(name, None)
        if isinstance(event, Spawned):
            data.pop("variables", None)  # nor these; the context says which task it is
        if isinstance(event, Ended):
            data.pop("detail")  # names limits, which may be others now
        if isinstance(event, ExecutedLine) and event.line == OF_CHILD and event.error:
            data["error"] = event.error.rpartition("\n")[2]
        if not (tokens and self.same_tokens):
            for name in ("at", "lengths", "logprobs"):
                data.pop(name, None)
            for name in ("context", "span"):
                if isinstance(data.get(name), list | tuple):
                    data[name] = data[name][:2]
        return to_line(data)

    def switch(
        self, before: Callable[..., Any], behind: Callable[..., Any], places: Places = ()
    ) -> Switch | Callable[..., Any]:
        """A function that is one of the two up to the fork, and the other behind it.

        places: what it was up to which event before that, where earlier forks had changed it.
        """
        if isinstance(before, Switch):
            places, last = before.places, before.last
            before, behind = last, last if behind is before else behind
        at = len(self._recorded)
        # One that was to end behind the fork ends at it.
        cut = next((function for place, function in places if place >= at), before)
        until = [*((place, function) for place, function in places if place < at), (at, cut)]
        if all(function is behind for _, function in until):
            return behind
        return Switch(self.edits, until, behind)


@dataclass(frozen=True, slots=True)
class _LimitsBehind(Limits):
    replay: Replay

    def room(self, used: Usage, running: Sequence[int]) -> tuple[int, Status] | None:
        if self.replay.holds_calls:
            return self.new_tokens, Status.TRUNCATED
        return Limits.room(self, used, running)

    def refuse_depth(self, depth: int) -> str:
        if self.replay.is_over:
            return Limits.refuse_depth(self, depth)
        return self.replay.refused_depth


def _short(event: Event) -> str:
    text = repr(event)
    return text if len(text) <= 300 else text[:300] + " ..."


def unwrap(engine: Engine) -> Engine:
    """The engine behind a replay; itself where there is none."""
    return engine.engine or engine if isinstance(engine, ReplayEngine) else engine
