"""An episode as a film: one frame for each token and each event, with what it changes.

The player shows an episode as it was at any frame. It keeps no picture of each; a frame holds only
what it changes in the view model of `views/view_model.py`, as JSON, and the page folds them
(`player_film.js`). So what a page has seen is never sent again, a page can go back in time by
itself, and a film in a file plays without Python. Two kinds of frames:

    {"thread": 1, "token": " mug"}                        a token was written
    {"event": 7, "kind": "spawned", "thread": 2, "says": "...", "changes": [...]}

A change is [verb, path, value]: `set` puts the value there, `push` appends the values to the list
there. A recorded episode has no tokens of its own; they are made from what its calls wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from thread_kit.sequence import Span
from thread_kit.trace.episode import Episode, Thread
from thread_kit.trace.events import (
    Acted,
    Edited,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Referred,
    Resolved,
    Returned,
    Spawned,
    Token,
    TokenProbs,
)
from thread_kit.views.formatting import legible
from thread_kit.views.narration import told
from thread_kit.views.view_model import (
    action_view,
    edit_view,
    elsewhere,
    futures_of,
    head_of,
    line_view,
    pictures_of,
    piece_view,
    prompt_views,
    thread_view,
    variables_of,
)

Frame = dict[str, Any]
Change = list[Any]  # [verb, path, value]


class Film:
    """The frames of an episode so far.

    episode: may be running; `take` is called after each of its events.
    """

    def __init__(self, episode: Episode) -> None:
        self.frames: list[Frame] = []
        self._heads: dict[int, dict[str, Any]] = {}  # as the frames have left them
        self._top = _top(Episode(episode.header))
        self._written: set[int] = set()  # threads whose call has shown its tokens
        self._observed: dict[int, int] = {}
        self._pictures: dict[int, tuple[tuple[str, str], ...]] = {}
        self._next = 0  # number of the event that comes next
        self.episode = Episode(episode.header)
        for event in list(episode.events):
            self.episode.add(event)
            self._add(event)
        self.episode = episode

    @property
    def about(self) -> dict[str, Any]:
        """What does not change while the episode runs, and the state before its first frame."""
        header = self.episode.header
        model = header.get("model")
        prompts = {name: asdict(one) for name, one in prompt_views(header).items()}
        dialect = header.get("dialect", {})
        return _plain(
            {
                "model": legible(str(model.get("name", ""))) if isinstance(model, dict) else "",
                "environment": legible(str(header.get("environment") or "")),
                "task": header.get("task"),
                "prompts": prompts,
                "marks": {name: dialect.get(name) for name in ("listen", "close", "end", "spawn")},
                "exchange": header.get("exchange", {}),
                "sampling": header.get("sampling", {}),
                "fork": header.get("fork"),
                "start": {**_top(Episode(header)), "threads": {}},
            }
        )

    def take(self, event: Event | None) -> list[Frame]:
        """The frames of an event that the episode has taken in; None: of all that are left.

        (An error ends threads by events that nobody is handed.)
        """
        before = len(self.frames)
        if event is not None and event.passing:
            if isinstance(event, Token):
                self._token(event)
        else:
            for one in self.episode.events[self._next :]:
                self._add(one)
        return self.frames[before:]

    def _token(self, event: Token) -> None:
        self._written.add(event.thread)
        frame = {"thread": event.thread, "token": legible(event.text)}
        self.frames.append(
            {**frame, "logprobs": _logprobs(event.logprobs)} if event.logprobs else frame
        )

    def _add(self, event: Event) -> None:
        if isinstance(event, GeneratedSpan):
            if event.thread not in self._written:
                said = zip_longest(event.span.tokens, tokens_of(event), event.logprobs)
                for token, text, logprobs in said:
                    self._token(Token(event.thread, token, text, logprobs))
            self._written.discard(event.thread)
        changes = _plain([*self._changes(event), *self._differences()])
        self.frames.append(
            {
                "event": self._next,
                "kind": type(event).__name__.lower(),
                "thread": getattr(event, "thread", None),
                "says": legible(told(self.episode, event)),
                "changes": changes,
            }
        )
        self._next += 1

    def _changes(self, event: Event) -> Iterator[Change]:
        """What an event changes in its threads."""
        thread: int | None = getattr(event, "thread", None)
        path, at = ["threads", str(thread)], self._next
        match event:
            case Spawned():
                yield from self._spawned(event, path, at)
            case GeneratedSpan(span=span, lengths=lengths, logprobs=logprobs):
                yield ["set", [*path, "writing"], ""]
                weighed = {"logprobs": list(map(_logprobs, logprobs))} if logprobs else {}
                piece = _piece(span, at, lengths=list(lengths), **weighed)
                yield ["push", [*path, "sequence"], [piece]]
            case ExecutedLine(printed=printed, error=error):
                if printed is not None or error is not None:
                    yield ["push", [*path, "lines"], [asdict(line_view(event))]]
            case Acted():
                yield ["push", [*path, "actions"], [asdict(action_view(event))]]
            case Observed(span=span):
                place = self._observed.get(event.thread, 0)
                self._observed[event.thread] = place + 1
                one = self.episode.threads[event.thread]
                if place >= len(one.actions):
                    tried = asdict(elsewhere(self.episode, one, span))
                    yield ["push", [*path, "actions"], [tried]]
                yield ["push", [*path, "sequence"], [_piece(span, at, action=place)]]
            case Returned(child=child, span=span) | Referred(child=child, span=span):
                yield ["push", [*path, "sequence"], [_piece(span, at, child=child)]]
            case Resolved():
                yield ["set", [*path, "futures"], futures_of(self.episode, event.thread)]
            case Edited():
                yield ["push", [*path, "edits"], [asdict(edit_view(event))]]
        if isinstance(event, ExecutedLine | Returned | Resolved | Edited):
            shared = self.episode.header.get("scope") == "shared"
            for number in list(self.episode.threads) if shared else [event.thread]:
                variables = variables_of(self.episode.threads[number])
                yield ["set", ["threads", str(number), "variables"], variables]
        for touched in (thread, getattr(event, "parent", None)):
            if touched in self._heads:
                head = _head(self.episode.threads[touched])
                was, self._heads[touched] = self._heads[touched], head
                for name, value in head.items():
                    if was[name] != value:
                        yield ["set", ["threads", str(touched), name], value]
        if self.episode.pictures and thread is not None:
            drawn = pictures_of(self.episode, thread)
            if drawn != self._pictures.get(thread, ()):
                self._pictures[thread] = drawn
                yield ["set", [*path, "pictures"], drawn]

    def _spawned(self, event: Spawned, path: list[str], at: int) -> Iterator[Change]:
        one = self.episode.threads[event.thread]
        self._heads[one.id] = _head(one)
        shown = asdict(thread_view(self.episode, one.id))
        asked = self.episode.dialect.asked(one.context.text)
        context = _piece(one.context, at, asked=legible(asked))
        yield ["set", path, {**shown, "context": context, "writing": ""}]
        if one.parent is not None:
            above = ["threads", str(one.parent)]
            yield ["push", [*above, "sequence"], [{"branch": one.id}]]
            if one.future is not None:
                yield ["set", [*above, "futures"], futures_of(self.episode, one.parent)]

    def _differences(self) -> Iterator[Change]:
        top = _top(self.episode)
        was, self._top = self._top, top
        for name, value in top.items():
            if was[name] != value:
                yield ["set", [name], value]


def tokens_of(event: GeneratedSpan) -> list[str]:
    """The text that each token of a call added; all at the first where the trace does not say."""
    text, at, found = event.span.text, 0, []
    for length in event.lengths or (len(text), *[0] * (len(event.span) - 1)):
        found.append(text[at : at + length])
        at += length
    return found


def _piece(span: Span, event: int, **more: Any) -> dict[str, Any]:
    """A piece, and the event that brought it; `exact` is its text as the model read it, where that
    is not what is shown."""
    piece = asdict(piece_view(span, more.pop("child", None), more.pop("action", None)))
    read = span.text.encode("utf-8", "replace").decode()
    exact = {} if read == piece["text"] else {"exact": read}
    return {**piece, "event": event, **exact, **more}


def _logprobs(logprobs: TokenProbs) -> TokenProbs:
    return logprobs._replace(top=tuple((legible(text), share) for text, share in logprobs.top))


def _head(one: Thread) -> dict[str, Any]:
    return {**head_of(one), "usage": asdict(one.usage)}


def _top(episode: Episode) -> dict[str, Any]:
    return {
        "status": str(episode.status),
        "detail": legible(episode.detail),
        "reward": episode.reward,
        "prompting": asdict(episode.prompting),
    }


def _plain(data: Any) -> Any:
    """Data as JSON has it: lists instead of tuples."""
    return json.loads(json.dumps(data))
