"""An engine that answers with the recorded calls of an episode, in the order of the record.

A thread makes the same requests whenever it gets the same replies (`thread.py`). So an episode
happens again without its model: the recorded calls are the replies, while environment and sandbox
do everything once more. Behind the last recorded call another engine goes on, if there is one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineError,
    GenerateRequest,
    News,
    Postponed,
    Prefilled,
    Sampled,
    ThreadKey,
    Tokenize,
)
from thread_kit.sequence import Provenance, Span
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import UNKNOWN, Edited, Event, GeneratedSpan, Prefilling, Prompted

OF_CALLS = ("text", "forbidden")
"""What an edit can change in a call of the model."""

Place = tuple[int, int]
"""A call's place in an episode: the thread's number, and how many calls it had before."""


class ReplayError(RuntimeError):
    """An episode does not happen again as it was recorded; the message shows where."""


@dataclass(frozen=True, slots=True)
class CallStart:
    """How a call begins that a fork has cut.

    given: what it has written already, recorded tokens and new text.
    lengths: characters that each of its tokens adds.
    forbids: it must not listen before its line ends.
    """

    given: Span
    lengths: tuple[int, ...]
    forbids: bool = False


class ReplayEngine(Engine):
    """Plays the model's part of a saved episode; behind its end asks `engine`.

    episode: recorded, running and paused, or over. at: so many of its events are repeated; None is
        all of them.
    engine: goes on behind them; it is not closed with this one. None: a call that was not recorded
        is an EngineError.
    starts: the calls that a fork has cut, by their places; edits: what a person changed in them.
    same_tokens: the recorded tokens are `engine`'s; else its own spell the recorded texts.

    Raises ReplayError where a thread that was recorded as writing does not ask to.
    """

    def __init__(
        self,
        episode: Episode,
        engine: Engine | None = None,
        *,
        at: int | None = None,
        starts: Mapping[Place, CallStart] | None = None,
        edits: Iterable[Edited] = (),
        same_tokens: bool = True,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.episode = episode
        recorded: dict[str, Any] = episode.header.get("model", {})
        self.name = engine.name if engine else str(recorded.get("name", "recorded"))
        size = recorded.get("context")
        known = size if type(size) is int and size > 0 else 2**31
        self.context_size = engine.context_size if engine else known
        if engine:
            self.lock = engine.lock
        self._same_tokens = same_tokens
        self._starts = dict(starts or {})
        events = episode.events[:at]
        self._recorded = deque(_answers(events))
        self._is_live = engine is not None and not events and not self._starts
        self._edits = {
            (edit.what, edit.thread, edit.number): edit for edit in edits if edit.what in OF_CALLS
        }
        self._spelled: dict[str, dict[str, tuple[int, ...]]] = {}  # by what spelled it
        self._prompts: dict[ThreadKey, str] = {}
        self._numbers: Counter[int] = Counter()  # calls of each thread so far
        self._waiting: dict[ThreadKey, GenerateRequest] = {}
        self._places: dict[ThreadKey, Place] = {}  # of the calls that `engine` answers
        self._news: list[News] = []  # what is said before `engine` is asked
        self._owed: dict[str, Sequence[int]] = {}  # few-shot prompts that nobody has evaluated
        self._prefilling: Iterator[Event] | None = None

    @property
    def steps_taken(self) -> int:  # type: ignore[override]
        return self.engine.steps_taken if self.engine else 0

    def context_of(self, prompt: str) -> int:
        return self.engine.context_of(prompt) if self.engine else self.context_size

    # Few-shot prompts

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        self._must_be_open()
        if not self._is_live:
            raise ValueError("a recorded prompt is known by its hash: use `prefill_prompt`")
        assert self.engine
        yield from self.engine.prefill(tokens)

    def prefill_prompt(self, sha256: str, tokens: Sequence[int]) -> Iterator[Prefilling | Prompted]:
        """What was recorded of a prompt; it is evaluated only when `engine` is asked for a call."""
        self._must_be_open()
        if self._is_live:
            assert self.engine
            yield from self.engine.prefill_prompt(sha256, tokens)
            return
        self._owed[sha256] = tokens
        if self._recorded and isinstance(self._recorded[0][0], Prompted):
            (prompted,) = self._recorded.popleft()
            assert isinstance(prompted, Prompted)
            yield prompted

    def _prefill_owed(self) -> Iterator[Event]:
        """Evaluate the prompts, behind the record; what is in the cache already is not told."""
        for sha256, tokens in self._owed.items() if self.engine else ():
            assert self.engine
            for event in self.engine.prefill_prompt(sha256, tokens):
                if isinstance(event, Prefilling) or event.evaluated:
                    yield event

    # Calls

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._must_be_open()
        self._must_be_idle(thread, self._waiting)
        if not self._is_live:
            self._waiting[thread] = request
            return
        if self.engine is None:
            raise EngineError(
                "the recorded episode is over, and a thread asks for more; give an engine that "
                "goes on: ReplayEngine(episode, engine)"
            )
        number = _number(thread)
        place = number, self._numbers[number]
        start = self._starts.get(place)
        stop = start and _stop_of(start.given.text, request.stops)
        if start and stop:  # nothing is left to write
            self._news += self._edits_at(place)
            self._news.append(
                Completion(
                    *(thread, start.given.text, start.given.tokens, stop),
                    *(0, 0, 0.0, start.lengths),
                )
            )
        else:
            marks = [mark for mark, s in request.stops.items() if s in (Stop.LISTEN, Stop.SPAWN)]
            if start:
                forbid = marks if start.forbids else ()
                request = replace(request, given=start.given or None, forbid=forbid)
            self.engine.submit(thread, request)  # may raise, and then nothing has begun
            self._places[thread] = place
            self._news += _given_tokens(thread, start) if start else ()
        self._numbers[number] += 1

    def advance(self, *threads: ThreadKey) -> list[News]:
        """The next recorded answers; behind them prompts are evaluated, and the calls begin."""
        self._must_be_open()
        if self._news:
            news, self._news = self._news, []
            return news
        if not self._is_live:
            if self._recorded:
                return self._answer(self._recorded.popleft())
            self._prefilling = self._prefilling or self._prefill_owed()
            if event := next(self._prefilling, None):
                return [event]
            self._is_live = True
            waiting, self._waiting = self._waiting, {}
            return [Postponed(thread) for thread in waiting]
        assert self.engine
        news = []
        for item in self.engine.advance(*threads):
            if isinstance(item, Completion):
                news += self._edits_at(self._places.pop(item.thread, (-1, 0)))
            news.append(item)
        return news

    def _answer(self, events: Sequence[Event]) -> list[News]:
        """What these recorded events, which came together, are to those that wait."""
        news: list[News] = []
        keys = {_number(thread): thread for thread in self._waiting}
        for event in events:
            if not isinstance(event, GeneratedSpan):
                news.append(event)
                continue
            key = keys.pop(event.thread, None)
            if key is None:
                raise ReplayError(
                    f"thread {event.thread} wrote when the episode was recorded, and does not ask "
                    "to write now; fork before this event, or make environment, sandbox and "
                    "exchange functions what they were"
                )
            del self._waiting[key]
            self._numbers[event.thread] += 1
            news.append(self._completion(key, event))
        return news

    def _completion(self, key: ThreadKey, event: GeneratedSpan) -> Completion:
        span, lengths, logprobs = event.span, event.lengths, event.logprobs
        if not self._same_tokens:
            tokenize = self.tokenizer(self._prompts.get(key, ""))
            span = replace(span, tokens=tokenize(span.text))
            lengths, logprobs = spread(len(span.text), len(span)), ()
        return Completion(
            thread=key,
            text=span.text,
            tokens=span.tokens,
            stop=event.stop,
            reused=event.reused,
            evaluated=event.evaluated,
            seconds=event.seconds,
            lengths=lengths,
            logprobs=logprobs,
            passes=event.passes,
            drafted=event.drafted,
            accepted=event.accepted,
            came_true=event.came_true if self._same_tokens else (),
        )

    def _edits_at(self, place: Place) -> list[Edited]:
        edits = (self._edits.get((what, *place)) for what in OF_CALLS)
        return [edit for edit in edits if edit]

    def edits_of(self, thread: ThreadKey) -> list[Edited]:
        """What a person has changed in the call of a thread; it has not come to its end yet."""
        return self._edits_at(self._places[thread]) if thread in self._places else []

    def step(self) -> list[News]:
        return self.advance(*self._waiting, *self._places)

    def cancel(self, thread: ThreadKey) -> Completion | None:
        was_waiting = self._waiting.pop(thread, None)
        self._places.pop(thread, None)
        over = [item for item in self._news if getattr(item, "thread", None) == thread]
        self._news = [item for item in self._news if item not in over]
        if over and isinstance(over[-1], Completion):
            return over[-1]
        if was_waiting and not self._is_live:  # as it was given up when it was recorded
            group = self._recorded[0] if self._recorded else ()
            for event in group:
                if isinstance(event, GeneratedSpan) and event.thread == _number(thread):
                    return self._completion(thread, event)
        return self.engine.cancel(thread) if self.engine else None

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        self._waiting.pop(thread, None)
        self._prompts.pop(thread, None)
        if self.engine:
            self.engine.release(thread, keep=keep)

    # What there is

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        self._must_be_open()
        if self.engine:
            return self.engine.tokenize(text, first=first)
        return self._spell("", text)

    def _spell(self, prompt: str, text: str, *, first: bool = False) -> tuple[int, ...]:
        """A text as the record has it in threads with this few-shot prompt."""
        self._must_be_open()
        model = str(self.describe_other(prompt))
        if model not in self._spelled:
            prompts = self.episode.header.get("prompts", {})
            own = {sha for sha in prompts if str(self.describe_other(sha)) == model}
            self._spelled[model] = _spelled(self.episode, own)
        if text not in self._spelled[model]:
            raise EngineError(
                f"the recorded episode has no tokens of {text[:80]!r}; give an engine that has: "
                "ReplayEngine(episode, engine)"
            )
        return self._spelled[model][text]

    def assign(self, thread: ThreadKey, prompt: str) -> None:
        self._prompts[thread] = prompt
        if self.engine:
            self.engine.assign(thread, prompt)

    def tokenizer(self, prompt: str) -> Tokenize:
        self._must_be_open()
        return self.engine.tokenizer(prompt) if self.engine else partial(self._spell, prompt)

    def describe_other(self, prompt: str) -> dict[str, Any] | None:
        if self.engine:
            return self.engine.describe_other(prompt)
        other = self.episode.header.get("prompts", {}).get(prompt, {}).get("model")
        return other if isinstance(other, dict) else None

    def describe(self) -> dict[str, Any]:
        if self.engine:
            return self.engine.describe()
        return dict(self.episode.header.get("model", {}))

    def __repr__(self) -> str:
        left = sum(isinstance(event, GeneratedSpan) for group in self._recorded for event in group)
        return f"ReplayEngine({left} recorded calls left, then {self.engine!r})"

    def close(self) -> None:
        self.is_open = False
        self._waiting.clear()
        self._news.clear()


def spread(characters: int, tokens: int) -> tuple[int, ...]:
    """Lengths of tokens of which only the sum is known: all at the last, so that nothing counts as
    written before all of them are (traces up to 2026-11-29 have it at the first).
    """
    return (*[0] * (tokens - 1), characters) if tokens else ()


def _number(thread: ThreadKey) -> int:
    """The number of a thread in its episode."""
    return thread[1] if isinstance(thread, tuple) else int(str(thread))


def _answers(events: Iterable[Event]) -> Iterator[list[Event]]:
    """The model's part of the events; calls with nothing between them ended in one step."""
    group: list[Event] = []
    for event in events:
        if isinstance(event, GeneratedSpan) or (
            isinstance(event, Edited) and event.what in OF_CALLS
        ):
            # A program may call again with nothing between: that is the next step.
            if any(isinstance(e, GeneratedSpan) and e.thread == event.thread for e in group):
                yield group
                group = []
            group.append(event)
            continue
        if group:
            yield group
        group = []
        if isinstance(event, Prompted):
            yield [event]
    if any(isinstance(event, GeneratedSpan) for event in group):
        yield group


def _stop_of(text: str, stops: Mapping[str, Stop]) -> Stop | None:
    """What a text ends with that stops a call."""
    return next((stop for mark, stop in stops.items() if text.endswith(mark)), None)


def _given_tokens(thread: ThreadKey, start: CallStart) -> Iterator[Sampled]:
    """What a call has written before it goes on; no model has weighed it."""
    at = 0
    for token, length in zip(start.given.tokens, start.lengths, strict=True):
        yield Sampled(thread, token, start.given.text[at : at + length], UNKNOWN)
        at += length


def _spelled(episode: Episode, prompts: Collection[str]) -> dict[str, tuple[int, ...]]:
    """The tokens of every text in these few-shot prompts and the threads that have them."""
    stored = episode.header.get("prompts", {})
    known = {stored[sha]["text"]: tuple(stored[sha]["tokens"]) for sha in prompts}
    for thread in episode.threads.values():
        if stored and thread.prompt not in prompts:
            continue
        spans: list[Span] = [thread.context, *thread.sequence]
        known |= {
            span.text: span.tokens for span in spans if span.provenance is not Provenance.GENERATED
        }
    return known
