"""What happens in an episode, one frozen dataclass an event; and each event as a line of JSON.

An episode is its events: the tree, the spans, the costs and every picture are derived from them
(`trace/episode.py`). Three kinds are passing and are never written to disk, since a later event
holds all that they say: `Token`, `Prefilling` and `Idle`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from thread_kit.dialect import Stop
from thread_kit.requests import Status
from thread_kit.sequence import Span
from thread_kit.trace.fields import (
    Read,
    or_none,
    read_as,
    read_count,
    read_number,
    read_span,
    read_text,
)
from thread_kit.trace.jsonl import MALFORMED, parse_line, to_line

OF_CHILD = "(what the child named)"
"""Stands for a line where a variable of a child could not become its parent's."""


class TokenProbs(NamedTuple):
    """One token that was written: its chance, that of each mark, and the likeliest tokens."""

    chance: float
    marks: dict[str, float]
    top: tuple[tuple[str, float], ...]

    @classmethod
    def read(cls, data: Any) -> TokenProbs:
        """From a line of a trace; raises ValueError or TypeError."""
        chance, marks, top = data
        return cls(
            read_number(chance),
            {mark: read_number(share) for mark, share in marks.items()},
            tuple((read_text(text), read_number(share)) for text, share in top),
        )


UNKNOWN = TokenProbs(0.0, {}, ())
"""For a token that no model has weighed: a person wrote it, or it was taken over."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. Threads are numbered in order of spawning; 0 is the main thread."""

    passing: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Prompted(Event):
    """A few-shot prompt is in the cache. Tokens reused and evaluated; seconds."""

    prompt: str
    reused: int
    evaluated: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Spawned(Event):
    """A thread exists. `at` is the number of tokens of the parent's sequence at the spawn.

    future: the name that stands for it in the parent, which goes on; None if the parent waits.
    variables: those that the main thread begins with, by name: the environment's.
    """

    thread: int
    parent: int | None
    at: int
    context: Span
    prompt: str
    future: str | None = None
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prefilling(Event):
    """`done` of `total` tokens of a context are evaluated; thread None is the few-shot prompt."""

    thread: int | None
    done: int
    total: int
    passing: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Idle(Event):
    """A server has brought nothing for a moment: the turn of sessions side by side."""

    passing: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Token(Event):
    """One token was sampled; `text` is what it adds (bytes of half a character wait)."""

    thread: int
    token: int
    text: str
    logprobs: TokenProbs | None = None
    passing: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class GeneratedSpan(Event):
    """One call of the model is over. Tokens reused from the cache and evaluated; seconds.

    lengths: characters that each token of the span adds; () in traces that do not say.
    logprobs: what the model weighed for each token, where the session asked for it.
    passes, drafted, accepted: passes through the model, tokens that were looked up and verified in
        them, and those that came true; 0 where nothing was looked up (`engines/drafts.py`).
    came_true: which tokens of the span these were, counted from 0; () in traces that do not say.
    """

    thread: int
    span: Span
    stop: Stop
    reused: int
    evaluated: int
    seconds: float
    lengths: tuple[int, ...] = ()
    logprobs: tuple[TokenProbs, ...] = ()
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    came_true: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutedLine(Event):
    """A line of the thread ran: what it printed, its error, and the variables it changed.

    gone: variables that are none any more, such as one that was deleted.
    """

    thread: int
    line: str
    printed: str | None
    error: str | None
    changed: dict[str, Any]
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pictured(Event):
    """A line of the thread saved a picture (THREAD paper, Figure 8): a PNG file, in base64."""

    thread: int
    path: str
    png: str


@dataclass(frozen=True, slots=True)
class Acted(Event):
    """An action was executed in the environment; the observation is as it came."""

    thread: int
    action: str
    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """An observation entered the thread's sequence."""

    thread: int
    span: Span


@dataclass(frozen=True, slots=True)
class Instructed(Event):
    """A text that the thread's program wrote entered its sequence."""

    thread: int
    span: Span


@dataclass(frozen=True, slots=True)
class Restarted(Event):
    """The environment began anew; `context` is how it asks for the task.

    actions: those that were done again, as far as they had led before. reward: of the last of them.
    restored: it was brought back to where it had been, which is no other trial.
    """

    thread: int
    context: str
    actions: tuple[str, ...] = ()
    reward: float = 0.0
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """What psi took from a child entered the parent's sequence, with the variables it named."""

    thread: int
    child: int
    span: Span
    variables: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Referred(Event):
    """A reference to a child, which nobody waits for yet, entered the parent's sequence."""

    thread: int
    child: int
    span: Span


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """A thread waits for a future: for `child`, which is its own or was inherited from above."""

    thread: int
    child: int


@dataclass(frozen=True, slots=True)
class Resolved(Event):
    """A thread has instantiated a future: what psi took from `child`, its names instantiated.

    at: the number of tokens of the thread's sequence by then. variables: those that changed: the
    future itself, and those that psi's text names.
    """

    thread: int
    child: int
    future: str
    at: int
    text: str
    variables: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Edited(Event):
    """A person changed something here: a fork. It comes right before what it changes.

    what: "text" or "forbidden" (the beginning of a call, or its right to listen), "context" (of a
    child), "observation", "returned" (what psi takes of a child) or "variables".
    number: which of them: the thread's call or observation, counted from 0, or the child.
    was, now: texts. variables: those that are new.
    """

    thread: int
    what: str
    number: int
    was: str
    now: str
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """A thread is over. traceback: of what failed beside the model, if this thread met it."""

    thread: int
    status: Status
    detail: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """The episode is over: its status, the environment's last reward, and seconds in all."""

    status: Status
    reward: float | None
    detail: str
    seconds: float


KINDS: dict[str, type[Event]] = {
    kind.__name__.lower(): kind
    for kind in (
        Prompted,
        Spawned,
        GeneratedSpan,
        ExecutedLine,
        Pictured,
        Acted,
        Observed,
        Instructed,
        Restarted,
        Returned,
        Referred,
        Waiting,
        Resolved,
        Edited,
        Ended,
        Closed,
    )
}


def to_json(event: Event) -> dict[str, Any]:
    """An event as plain data: {"event": kind, ...fields}; a span is [provenance, text, tokens].

    A field that has its default, which is empty, is left out: traces without it stay as they were.
    """
    data: dict[str, Any] = {"event": type(event).__name__.lower()}
    for name, _, optional in _FIELDS[type(event)]:
        value = getattr(event, name)
        if optional and not value:
            continue
        if isinstance(value, Span):
            value = [value.provenance, value.text, list(value.tokens)]
        data[name] = value
    return data


def plain(data: dict[str, Any]) -> dict[str, Any]:
    """Data as it reads back from a trace, so that a live episode and a saved one say the same."""
    return parse_line(to_line(data))


def from_json(data: dict[str, Any]) -> Event:
    """The event that `to_json` wrote.

    Raises ValueError for a kind that this version does not know, or for fields that do not fit.
    """
    data = dict(data)
    if "lens" in data:  # the name that it had before
        data["logprobs"] = data.pop("lens")
    kind = KINDS.get(data.pop("event", ""))
    if kind is None:
        raise ValueError("no event of this kind is known to this version of thread-kit")
    try:
        values = {
            name: read(data.pop(name))
            for name, read, optional in _FIELDS[kind]
            if not optional or name in data
        }
        if data:
            raise ValueError(f"there is no {', '.join(data)}")
        event = kind(**values)
        if isinstance(event, GeneratedSpan):
            _check_tokens(event)
        return event
    except MALFORMED as error:
        raise ValueError(f"fields do not fit a {kind.__name__.lower()}: {error}") from error


def _check_tokens(call: GeneratedSpan) -> None:
    """Raises ValueError where what is said of the tokens of the span does not fit them."""
    tokens, characters = len(call.span), len(call.span.text)
    if call.lengths and (len(call.lengths) != tokens or sum(call.lengths) != characters):
        raise ValueError(f"the lengths are not those of {tokens} tokens, {characters} characters")
    if call.logprobs and len(call.logprobs) != tokens:
        raise ValueError(f"there are {len(call.logprobs)} logprobs for {tokens} tokens")
    if any(place >= tokens for place in call.came_true):
        raise ValueError(f"a draft came true behind the last of {tokens} tokens")


_READ: dict[str, Read] = {
    "Span": read_span,
    "Stop": Stop,
    "Status": Status,
    "str": read_text,
    "str | None": or_none(read_text),
    "int": read_count,
    "int | None": or_none(read_count),
    "float": read_number,
    "float | None": or_none(read_number),
    "bool": read_as(bool),
    "dict[str, Any]": read_as(dict),
    "tuple[str, ...]": lambda value: tuple(map(read_text, value)),
    "tuple[int, ...]": lambda value: tuple(map(read_count, value)),
    "tuple[TokenProbs, ...]": lambda value: tuple(map(TokenProbs.read, value)),
}
"""How each kind of field is read back."""

_FIELDS: dict[type[Event], list[tuple[str, Read, bool]]] = {
    kind: [
        (
            item.name,
            _READ[str(item.type)],
            (item.default, item.default_factory) != (MISSING, MISSING),
        )
        for item in fields(kind)
    ]
    for kind in KINDS.values()
}
"""Of each kind of event, its fields: the name, how it is read, and whether it can be left out."""
