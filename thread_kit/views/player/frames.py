"""An episode as frames: one for each token and each event, with what it changes.

The player shows an episode as it was at any frame. It keeps no picture of each; a frame holds only
what it changes in the view model of `views/view_model.py`, as JSON, and the page folds them
(`player_recording.js`). So what a page has is never sent again, a page can go back in time by
itself, and frames in a file play without Python. Two kinds of frames:

    {"thread": 1, "token": " mug"}                        a token was written
    {"event": 7, "kind": "spawned", "thread": 2, "description": "...", "changes": [...]}

A change is [verb, path, value]: `set` puts the value there, `push` appends the values to the list
there, `put` gives pairs there the values for their names, or appends them, and `each` puts it under
the last name of the path into all that the rest of it holds. A
recorded episode has no tokens of its own; they are made from what its calls wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
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
    Instructed,
    Observed,
    Referred,
    Resolved,
    Returned,
    Spawned,
    Token,
    TokenProbs,
)
from thread_kit.trace.printable import mend_surrogates
from thread_kit.views.formatting import describe_reward, describe_totals, sanitize
from thread_kit.views.narration import describe_event
from thread_kit.views.view_model import (
    Piece,
    header_part,
    view_action,
    view_edit,
    view_futures,
    view_line,
    view_observation,
    view_pictures,
    view_piece,
    view_prompts,
    view_status,
    view_thread,
    view_unsent_action,
    view_variables,
)
from thread_kit.views.xray import Xray

Frame = dict[str, Any]
Pairs = tuple[tuple[str, str], ...]  # of variables: a name, and its value as it is shown
Change = list[Any]  # [verb, path, value]


class FrameRecorder:
    """The frames of an episode so far.

    episode: may be running; `add` is called after each of its events.
    functions: the phi and psi of its session, by kind (`views/xray.py`).
    """

    def __init__(
        self, episode: Episode, functions: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        self._xray = Xray(functions or {})
        self.frames: list[Frame] = []
        self._heads: dict[int, dict[str, Any]] = {}  # as the frames have left them
        self._depth = 0
        self._top = _top(Episode(episode.header), 0)
        self._written: set[int] = set()  # threads whose call has shown its tokens
        self._observed: dict[int, int] = {}
        self._pictures: dict[int, tuple[tuple[str, str], ...]] = {}
        # As the frames have left them; None is all threads, where they share them.
        self._variables: dict[int | None, Pairs] = {}
        self._next = 0  # number of the event that comes next
        self.episode = Episode(episode.header)
        for event in list(episode.events):
            self.episode.add(event)
            self._add_event(event)
        self.episode = episode

    @property
    def about(self) -> dict[str, Any]:
        """What does not change while the episode runs, and the state before its first frame."""
        header = self.episode.header
        prompts = view_prompts(header)
        dialect = header_part(header, "dialect")
        return _to_json(
            {
                "prompts": {
                    role: asdict(prompt) | _exact(header["prompts"][role]["text"], prompt.text)
                    for role, prompt in prompts.items()
                },
                "marks": {name: dialect.get(name) for name in ("listen", "close", "end", "spawn")},
                # Of another method than THREAD there are no phi and psi to exchange.
                "exchange": {} if "program" in header else header_part(header, "exchange"),
                "scope": header.get("scope", "exported"),
                "sampling": header_part(header, "sampling"),
                "fork": header.get("fork"),
                "start": {**_top(Episode(header), 0), "threads": {}},
            }
        )

    def add(self, event: Event | None) -> list[Frame]:
        """The frames of an event that the episode has taken in; None: of all that are left.

        (An error ends threads by events that nobody is handed.)
        """
        before = len(self.frames)
        if event is not None and event.passing:
            if isinstance(event, Token):
                self._add_token(event)
        else:
            for new in self.episode.events[self._next :]:
                self._add_event(new)
        return self.frames[before:]

    def _add_token(self, event: Token) -> None:
        self._written.add(event.thread)
        frame = {"thread": event.thread, "token": sanitize(event.text)}
        if event.logprobs:
            frame["logprobs"] = _to_json(_logprobs(event.logprobs))
        self.frames.append(frame)

    def _add_event(self, event: Event) -> None:
        if isinstance(event, GeneratedSpan):
            if event.thread not in self._written:
                parts = split_tokens(event)
                for token, text, logprobs in zip_longest(
                    event.span.tokens[: len(parts)], parts, event.logprobs[: len(parts)]
                ):
                    self._add_token(Token(event.thread, token, text, logprobs))
            self._written.discard(event.thread)
        changes = _to_json([*self._changes(event), *self._differences()])
        self.frames.append(
            {
                "event": self._next,
                "kind": type(event).__name__.lower(),
                "thread": getattr(event, "thread", None),
                "description": sanitize(describe_event(self.episode, event, self._next)),
                "changes": changes,
            }
        )
        self._next += 1

    def _changes(self, event: Event) -> Iterator[Change]:
        """What an event changes in its threads."""
        thread: int | None = getattr(event, "thread", None)
        path, at = ["threads", str(thread)], self._next
        taken = self._xray.add(self.episode, event)
        # 1. What is new in the thread: a piece of its sequence, a line, an action.
        match event:
            case Spawned():
                yield from self._spawned(event, path, at, taken)
            case GeneratedSpan(span=span, lengths=lengths, logprobs=logprobs, came_true=true):
                yield ["set", [*path, "writing"], ""]
                more: dict[str, Any] = {"lengths": list(lengths)}
                more |= {"logprobs": list(map(_logprobs, logprobs))} if logprobs else {}
                more |= {"cameTrue": true} if true else {}
                piece = _piece(view_piece(span), span, at, **more)
                yield ["push", [*path, "sequence"], [piece]]
            case ExecutedLine(printed=printed, error=error):
                if printed is not None or error is not None:
                    yield ["push", [*path, "lines"], [asdict(view_line(event))]]
            case Acted():
                yield ["push", [*path, "actions"], [asdict(view_action(event))]]
            case Instructed(span=span):
                yield ["push", [*path, "sequence"], [_piece(view_piece(span), span, at)]]
            case Observed(span=span):
                yield from self._observation(event.thread, span, path, at)
            case Returned(child=child, span=span) | Referred(child=child, span=span):
                piece = _piece(view_piece(span, child), span, at, taken=taken)
                yield ["push", [*path, "sequence"], [piece]]
            case Resolved():
                yield ["set", [*path, "futures"], view_futures(self.episode, event.thread)]
            case Edited():
                yield ["push", [*path, "edits"], [asdict(view_edit(event))]]
        # 2. Variables: of all threads where they share them.
        if isinstance(event, ExecutedLine | Returned | Resolved | Edited):
            yield from self._changed_variables(event.thread, [*path, "variables"])
        # 3. Status and costs of the thread, and of the parent of one that was spawned.
        for touched in (thread, getattr(event, "parent", None)):
            if touched in self._heads:
                head = _head(self.episode.threads[touched])
                before, self._heads[touched] = self._heads[touched], head
                for name, value in head.items():
                    if before[name] != value:
                        yield ["set", ["threads", str(touched), name], value]
        # 4. Pictures that it now names.
        if self.episode.pictures and thread is not None:
            pictures = view_pictures(self.episode, thread)
            if pictures != self._pictures.get(thread, ()):
                known = self._pictures.get(thread, ())
                self._pictures[thread] = pictures
                if pictures[: len(known)] == known:
                    yield ["push", [*path, "pictures"], pictures[len(known) :]]
                else:
                    yield ["set", [*path, "pictures"], pictures]

    def _changed_variables(self, number: int, path: list[str]) -> Iterator[Change]:
        """The variables of a thread, or of all, whose values the frames have not got yet."""
        variables = view_variables(self.episode.threads[number])
        is_shared = self.episode.header.get("scope") == "shared"
        before = self._variables.get(None if is_shared else number, ())
        self._variables[None if is_shared else number] = variables
        known = set(before)
        changed = [pair for pair in variables if pair not in known]
        if is_shared and variables != before:
            yield ["each", ["threads", "variables"], variables]
        elif tuple((dict(before) | dict(changed)).items()) != tuple(variables):
            yield ["set", path, variables]
        elif changed:
            yield ["put", path, changed]

    def _spawned(
        self, event: Spawned, path: list[str], at: int, taken: dict[str, Any] | None
    ) -> Iterator[Change]:
        thread = self.episode.threads[event.thread]
        self._heads[thread.id] = _head(thread)
        self._depth = max(self._depth, thread.depth)
        view = view_thread(self.episode, thread.id)
        self._variables[thread.id] = view.variables
        self._pictures[thread.id] = view.pictures
        request = sanitize(self.episode.dialect.asked(thread.context.text))
        context = _piece(view.context, thread.context, at, asked=request, taken=taken)
        yield ["set", path, {**asdict(view), "context": context, "writing": ""}]
        if thread.parent is not None:
            above = ["threads", str(thread.parent)]
            yield ["push", [*above, "sequence"], [{"branch": thread.id}]]
            if thread.future is not None:
                yield ["set", [*above, "futures"], view_futures(self.episode, thread.parent)]

    def _observation(self, number: int, span: Span, path: list[str], at: int) -> Iterator[Change]:
        place = self._observed.get(number, 0)
        self._observed[number] = place + 1
        thread = self.episode.threads[number]
        if place >= len(thread.actions):
            *before, _ = thread.sequence.spans[-3:]  # the last one is what was observed
            action = view_unsent_action(self.episode, tuple(before), span)
            yield ["push", [*path, "actions"], [asdict(action)]]
        piece = view_observation(self.episode, thread, span, place)
        yield ["push", [*path, "sequence"], [_piece(piece, span, at)]]

    def _differences(self) -> Iterator[Change]:
        top = _top(self.episode, self._depth)
        before, self._top = self._top, top
        for name, value in top.items():
            if before[name] != value:
                yield ["set", [name], value]


def split_tokens(event: GeneratedSpan) -> list[str]:
    """The text that each token of a call added, or all of it at once where no trace says so."""
    text, at, parts = event.span.text, 0, []
    for length in event.lengths or (len(text),):
        parts.append(text[at : at + length])
        at += length
    return parts


def _piece(piece: Piece, span: Span, event: int, **more: Any) -> dict[str, Any]:
    """A piece, and the event that brought it."""
    return {**asdict(piece), "event": event, **_exact(span.text, piece.text), **more}


def _exact(text: str, shown: str) -> dict[str, str]:
    """A text as the model read it, where that is not what is shown."""
    exact = mend_surrogates(text)
    return {} if exact == shown else {"exact": exact}


def _logprobs(logprobs: TokenProbs) -> TokenProbs:
    return logprobs._replace(top=tuple((sanitize(text), share) for text, share in logprobs.top))


def _head(thread: Thread) -> dict[str, Any]:
    return {**view_status(thread), "usage": asdict(thread.usage)}


def _top(episode: Episode, depth: int) -> dict[str, Any]:
    """What is shown of the whole episode; what reading the few-shot prompts cost stands apart."""
    prompting, usage = episode.prompting, episode.usage
    usage = replace(
        usage,
        evaluated=usage.evaluated - prompting.evaluated,
        reused=usage.reused - prompting.reused,
    )
    totals = describe_totals(episode.reward, len(episode.threads), depth, usage)
    for name in ("evaluated", "reused"):
        if number := getattr(prompting, name):
            totals += f" · few-shot {name} {number:,}"
    return {
        "status": str(episode.status),
        "detail": sanitize(episode.detail),
        "reward": describe_reward(episode.reward),
        "totals": totals,
    }


def _to_json(data: Any) -> Any:
    """Data as strict JSON has it: lists for tuples, and text for what is no finite number."""
    return json.loads(json.dumps(data), parse_constant=str)
