"""Replay: the recorded part of an episode, which a fork repeats before it goes on.

A thread makes the same requests whenever it gets the same replies (`thread.py`). So up to the fork
the model is not asked: its recorded calls are the replies, while the environment and the sandbox do
everything once more, and thereby come to the state that they were in. Every event that this makes
must be the recorded one. Behind the fork a session goes on as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thread_kit.engines.engine import Engine
from thread_kit.sequence import Span
from thread_kit.trace.events import Edited, Event, GeneratedSpan, Prompted, to_json
from thread_kit.trace.jsonl import to_line


class ReplayError(RuntimeError):
    """An episode does not happen again as it was recorded; the message shows where."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a call begins that a fork has cut.

    given: what it has written already, recorded tokens and new text.
    lengths: characters that each of its tokens adds.
    forbids: it must not listen before its line ends.
    """

    given: Span
    lengths: tuple[int, ...]
    forbids: bool = False


Place = tuple[int, int]
"""A call's place in an episode: the thread's number, and how many calls it had before."""


@dataclass(slots=True)
class Past:
    """What a session repeats before it goes on by itself; a session without one begins at once.

    events: of the recorded episode, up to the fork.
    edits: what is changed at the fork. Earlier changes are among the events.
    starts: the calls that the fork has cut.
    same_tokens: the recorded tokens are this model's; else they are spelled anew from their texts.
    origin: what the header says about where the fork parts from its original.
    done: how many events there have been since the start.
    """

    events: list[Event] = field(default_factory=list)
    edits: Iterable[Edited] = ()
    starts: Mapping[Place, Start] = field(default_factory=dict)
    same_tokens: bool = True
    origin: dict[str, Any] | None = None
    done: int = 0
    _calls: list[int] = field(init=False)
    _edits: dict[tuple[str, int, int], Edited] = field(init=False)
    _due: dict[int, list[tuple[int, Edited]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._calls = [n for n, one in enumerate(self.events) if isinstance(one, GeneratedSpan)]
        placed = [(n, event) for n, event in enumerate(self.events) if isinstance(event, Edited)]
        placed += [(len(self.events), edit) for edit in self.edits]
        self._edits = {(one.what, one.thread, one.number): one for _, one in placed}
        for place, one in placed:
            if one.what == "variables":
                self._due.setdefault(one.thread, []).append((place, one))

    def take(self, event: Event) -> None:
        """An event has happened; raises ReplayError if it is another one than was recorded."""
        if event.passing:
            return
        if self.done < len(self.events):
            was = self.events[self.done]
            if self._essence(event) != self._essence(was):
                del self.events[self.done :]  # the end of the session is none of the past's
                raise ReplayError(
                    f"event {self.done} was {_short(was)} and is {_short(event)} now: the "
                    "environment, the sandbox or an exchange function is not what it was when the "
                    "episode was recorded; fork before this event, or make them the same"
                )
        self.done += 1

    def _essence(self, event: Event) -> str:
        """What must be the same when an event happens again."""
        data = to_json(event)
        if not self.same_tokens:
            data = {
                name: value
                for name, value in data.items()
                if name not in ("at", "lengths", "logprobs")
            }
            if "context" in data or "span" in data:
                name = "context" if "context" in data else "span"
                data[name] = data[name][:2]
        return to_line(data)

    @property
    def is_over(self) -> bool:
        """The next event is the first one behind the fork."""
        return self.done >= len(self.events)

    # The model's part

    @property
    def next_prompted(self) -> Prompted | None:
        """What a few-shot prompt cost, if that was recorded next."""
        event = None if self.is_over else self.events[self.done]
        return event if isinstance(event, Prompted) else None

    @property
    def holds_calls(self) -> bool:
        """Not every recorded call of the model has been repeated."""
        return bool(self._calls)

    @property
    def call_is_next(self) -> bool:
        """A call is what was recorded next, changed or not."""
        if not self._calls:
            return False
        return all(isinstance(one, Edited) for one in self.events[self.done : self._calls[0]])

    def next_call(self, engine: Engine) -> GeneratedSpan:
        """The recorded call that comes next, in this engine's tokens."""
        event = self.events[self._calls.pop(0)]
        assert isinstance(event, GeneratedSpan)
        if self.same_tokens:
            return event
        span = replace(event.span, tokens=engine.tokenize(event.span.text))
        return replace(event, span=span, lengths=spread(len(span.text), len(span)), logprobs=())

    # What is changed

    def edit(self, what: str, thread: int, number: int) -> Edited | None:
        """The change of this thing; `number` says which of those that the thread has."""
        return self._edits.get((what, thread, number))

    def new_variables(self, thread: int) -> Edited | None:
        """The next change of a thread's variables that is due; it is handed out once."""
        due = self._due.get(thread)
        return due.pop(0)[1] if due and due[0][0] <= self.done else None

    def switch(self, before: Callable[..., Any], behind: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is one of the two up to the fork, and the other behind it."""
        if before is behind:
            return before

        def either(*arguments: Any) -> Any:
            return (behind if self.is_over else before)(*arguments)

        either.__name__ = getattr(behind, "__name__", repr(behind))
        return either


def spread(characters: int, tokens: int) -> tuple[int, ...]:
    """Lengths of tokens of which only the sum is known: all at the first."""
    return (characters, *[0] * (tokens - 1)) if tokens else ()


def _short(event: Event) -> str:
    text = repr(event)
    return text if len(text) <= 300 else text[:300] + " ..."
