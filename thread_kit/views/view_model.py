"""The view model of an episode: what every view shows, and in which order.

Immutable nodes, derived from an episode; text, HTML, figures and the live widget are lowered from
them and look at nothing else. Here are decided: where in its parent's sequence a child stands,
which action an observation answers, how values are written, and what text may do to a page or a
terminal (nothing: see `sanitize`). Not here: layout, words and colours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

from thread_kit.exchange import read_action
from thread_kit.sequence import Provenance, Span
from thread_kit.trace.costs import Usage, sum_work_below
from thread_kit.trace.episode import Episode, Thread, must_be_episode
from thread_kit.trace.events import Acted, Edited, ExecutedLine
from thread_kit.views.formatting import (
    describe_origin,
    describe_totals,
    describe_usage,
    pluralize,
    sanitize,
    shorten,
)

_OF_CHILDREN = (Provenance.RETURNED, Provenance.REFERENCE)

INHERITED, INHERITED_CHARACTERS = 40, 4_000
"""Inherited variables of a thread that are shown, and their characters, at most."""

MORE = "…"
"""Stands for the variables that are not."""

VALUE = 2_000
"""Characters of a variable's value that are shown; what is cut is counted."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One span, as it is shown. `label` says where it comes from; `action` (a place in the list)
    led to it; `child` returned it, or is the thread that it refers to."""

    provenance: Provenance
    text: str
    tokens: int
    label: str
    child: int | None = None
    action: int | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """The place in a parent's sequence where a child was spawned."""

    branch: int


@dataclass(frozen=True, slots=True)
class Action:
    """An action and what came of it; `reward` is None where it never reached the environment."""

    action: str
    observation: str
    reward: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the thread that ran, if it printed something or failed."""

    line: str
    printed: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person changed in this thread where a fork begins; `now` also holds variables."""

    what: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class ThreadView:
    """One thread.

    label: the title, behind the reference that stands for the thread in its parent.
    status_text: the status, and whom it waits for. costs: its calls and tokens in words.
    sequence: its pieces in order, and between them the places where children were spawned.
    variables: pairs of a name and its value, written as Python writes it.
    prompt: the name in `EpisodeView.prompts` of what it read first.
    futures: pairs of a future's name and what became of it.
    pictures: pairs of a path and the PNG file there, in base64: those that the thread drew or got.
    """

    id: int
    parent: int | None
    depth: int
    title: str
    label: str
    status: str
    status_text: str
    cut_short: bool
    detail: str
    prompt: str
    context: Piece
    sequence: tuple[Piece | Branch, ...]
    variables: tuple[tuple[str, str], ...]
    actions: tuple[Action, ...]
    lines: tuple[Line, ...]
    usage: Usage
    costs: str
    futures: tuple[tuple[str, str], ...]
    edits: tuple[Edit, ...]
    pictures: tuple[tuple[str, str], ...]

    @property
    def pieces(self) -> list[Piece]:
        return [item for item in self.sequence if isinstance(item, Piece)]

    @property
    def children(self) -> list[int]:
        return [item.branch for item in self.sequence if isinstance(item, Branch)]


@dataclass(frozen=True, slots=True)
class PromptView:
    """A few-shot prompt, which the threads that use it read before their contexts.

    label: its name and its length in words.
    """

    name: str
    text: str
    tokens: int
    label: str


@dataclass(frozen=True)
class EpisodeView:
    """A whole episode; `usage` is that of its threads, without that of the prompts."""

    status: str
    detail: str
    reward: float | None
    threads: dict[int, ThreadView]
    prompts: dict[str, PromptView]

    @cached_property
    def usage(self) -> Usage:
        return sum((thread.usage for thread in self.threads.values()), Usage())

    @property
    def depth(self) -> int:
        return max((thread.depth for thread in self.threads.values()), default=0)

    @cached_property
    def work(self) -> dict[int, int]:
        """For each thread, the tokens that all threads below it generated."""
        return sum_work_below(self.threads.values())

    @cached_property
    def unfolded(self) -> frozenset[int]:
        """What is unfolded at first: the main thread, and the path to each that was cut short."""
        unfolded = {thread.id for thread in self.threads.values() if thread.parent is None}
        for thread in self.threads.values():
            up: int | None = thread.id if thread.cut_short else None
            while up is not None and up not in unfolded:
                unfolded.add(up)
                up = self.threads[up].parent
        return frozenset(unfolded)

    @property
    def totals(self) -> str:
        """One line, the same for the same tokens: no seconds, and nothing that a cache changes."""
        return describe_totals(self.reward, len(self.threads), self.depth, self.usage)


def view_episode(episode: Episode) -> EpisodeView:
    """The view model of an episode as it is now; raises TypeError for what is none."""
    must_be_episode(episode)
    return EpisodeView(
        status=str(episode.status),
        detail=sanitize(episode.detail),
        reward=episode.reward,
        threads={number: view_thread(episode, number) for number in episode.threads},
        prompts=view_prompts(episode.header),
    )


def view_prompts(header: Mapping[str, Any]) -> dict[str, PromptView]:
    """The few-shot prompts of an episode that hold any examples."""
    views = {}
    for role, prompt in header_part(header, "prompts").items():
        match prompt:  # of an odd file, what has no text and tokens is left out
            case {"text": str(text), "tokens": [*tokens]} if text:
                name = sanitize(str(prompt.get("name", "")))
                label = f"few-shot prompt {name}: {pluralize(len(tokens), 'token')}"
                views[role] = PromptView(name, sanitize(text), len(tokens), label)
    return views


def header_part(header: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of a header by its name; {} where it is missing, or where an odd file has no names."""
    part = header.get(name)
    return part if isinstance(part, Mapping) else {}


def name_exchange(episode: Episode, kind: str, number: int) -> str:
    """The name of what was phi (or psi ...) at an event, by its number; a fork may have another.

    "" where there was none: other methods than THREAD say themselves what a thread is given.
    """
    header = episode.header
    if "program" in header:
        return ""
    last = str(header_part(header, "exchange").get(kind, ""))
    if not (places := header_part(header_part(header, "fork"), "exchange").get(kind)):
        return last
    # Forks count their events without the prompts', which another engine may not have.
    place = number - bisect_left(episode.prompted, number)
    return next((str(name) for end, name in places if place < end), last)


def view_thread(episode: Episode, number: int) -> ThreadView:
    """The view model of one thread."""
    thread = episode.threads[number]
    title, future = sanitize(thread.title), sanitize(thread.future or "")
    return ThreadView(
        id=thread.id,
        parent=thread.parent,
        depth=thread.depth,
        title=title,
        label=f"{{{future}}} {title}" if future else title,
        prompt=thread.prompt,
        context=view_piece(thread.context),
        sequence=tuple(_sequence(episode, thread)),
        variables=view_variables(thread),
        actions=tuple(_actions(episode, thread)),
        lines=tuple(
            view_line(line)
            for line in thread.executed
            if line.printed is not None or line.error is not None
        ),
        futures=view_futures(episode, number),
        edits=tuple(map(view_edit, thread.edits)),
        pictures=view_pictures(episode, number),
        **view_status(thread),
    )


def view_status(thread: Thread) -> dict[str, Any]:
    """What changes with every step of a thread: its status and its costs."""
    waits = "" if thread.waits_for is None else f" for {thread.waits_for}"
    return {
        "status": str(thread.status),
        "status_text": f"{thread.status}{waits}",
        "cut_short": thread.status.is_cut_short,
        "detail": sanitize(thread.detail),
        "usage": thread.usage,
        "costs": f"{pluralize(thread.usage.calls, 'call')} · {describe_usage(thread.usage)}",
    }


def view_variables(thread: Thread) -> tuple[tuple[str, str], ...]:
    """A thread's variables and their values, as Python writes them.

    Of those that it inherited, and that stand in its parent as well, the latest alone where there
    are many: else what is shown would grow with the threads times the variables.
    """
    variables, inherited = thread.variables, thread.inherited
    own = {
        name
        for name, value in variables.items()
        if name not in inherited or inherited[name] is not value
    }
    shown, characters = dict[str, str](), 0
    for name in islice((name for name in reversed(variables) if name not in own), INHERITED):
        shown[name] = shorten(sanitize(repr(variables[name])), VALUE)
        characters += len(name) + len(shown[name])
        if characters > INHERITED_CHARACTERS:
            break
    left_out = len(variables) - len(own) - len(shown)
    rows = [(MORE, f"{left_out:,} more that it inherited")] if left_out else []
    for name, value in variables.items():
        if name in own or name in shown:
            text = shown.get(name) or shorten(sanitize(repr(value)), VALUE)
            rows.append((sanitize(name), text))
    return tuple(rows)


def view_line(event: ExecutedLine) -> Line:
    """A line that ran."""
    printed, error = (
        None if text is None else sanitize(text) for text in (event.printed, event.error)
    )
    return Line(sanitize(event.line), printed, error)


def view_action(event: Acted) -> Action:
    """An action that reached the environment."""
    return Action(sanitize(event.action), sanitize(event.observation), event.reward)


def view_edit(event: Edited) -> Edit:
    """A change by a person."""
    values = ", ".join(f"{name} = {value!r}" for name, value in event.variables.items())
    return Edit(event.what, sanitize(event.was), shorten(sanitize(event.now or values), VALUE))


def view_piece(
    span: Span, child: int | None = None, action: int | None = None, *, executed: bool = True
) -> Piece:
    """A span as it is shown. executed: whether the environment saw what it answers."""
    label = describe_origin(span.provenance, child) + ("" if executed else ", not executed")
    return Piece(span.provenance, sanitize(span.text), len(span), label, child, action)


def view_observation(episode: Episode, thread: Thread, span: Span, place: int) -> Piece:
    """What a thread observed as the `place`-th of all that it has observed."""
    executed = episode.dialect.code or place < len(thread.actions)
    return view_piece(span, action=place, executed=executed)


def _sequence(episode: Episode, thread: Thread) -> Iterator[Piece | Branch]:
    """The spans, and before the span that is next at its place, each child that was spawned."""
    spawned = list(thread.spawned)
    returned = list(thread.returned.items())
    at = observed = 0
    for span in thread.sequence:
        while spawned and episode.threads[spawned[0]].at <= at:
            yield Branch(spawned.pop(0))
        if span.provenance is Provenance.OBSERVED:
            yield view_observation(episode, thread, span, observed)
            observed += 1
        elif span.provenance in _OF_CHILDREN and returned and returned[0][1][0] <= at:
            yield view_piece(span, child=returned.pop(0)[0])
        else:
            yield view_piece(span)
        at += len(span)
    yield from map(Branch, spawned)


def view_futures(episode: Episode, number: int) -> tuple[tuple[str, str], ...]:
    """Each future that a thread has instantiated; then those of its own that it has not."""
    thread = episode.threads[number]
    futures = [(event.future, f"thread {event.child}: {event.text}") for event in thread.resolved]
    known = {event.child for event in thread.resolved}
    for child in thread.spawned:
        future = episode.threads[child].future
        if future is not None and child not in known:
            futures.append((future, f"thread {child}, not used yet"))
    return tuple((sanitize(name), sanitize(text)) for name, text in futures)


def _actions(episode: Episode, thread: Thread) -> Iterator[Action]:
    """What was done, in order; what the thread wrote as an action, but nobody executed, as well."""
    spans = thread.sequence.spans
    observed = [
        (spans[max(n - 2, 0) : n], span)
        for n, span in enumerate(spans)
        if span.provenance is Provenance.OBSERVED
    ]
    if episode.dialect.code:  # what the environment gets comes last
        yield from (view_unsent_action(episode, *each) for each in observed)
        yield from map(view_action, thread.actions)
    else:
        yield from map(view_action, thread.actions)
        for each in observed[len(thread.actions) :]:
            yield view_unsent_action(episode, *each)


def view_unsent_action(episode: Episode, before: tuple[Span, ...], observed: Span) -> Action:
    """An action that the environment never saw: a line of code, or what nobody executed.

    before: the two spans before what was observed, of which a mark that listens may be the second.
    """
    if before and before[-1].text.strip() in episode.dialect.listens:
        before = before[:-1]
    text = before[-1].text.rstrip().removesuffix(episode.dialect.end).rstrip() if before else ""
    written = read_action(text, episode.dialect) or episode.dialect.bare(text).rpartition("\n")[2]
    action, observation = sanitize(written.lstrip("#> ").rstrip()), observed.text.rstrip("\n")
    if episode.dialect.code:
        return Action(action, sanitize(observation.removesuffix(episode.dialect.close)), 0.0)
    return Action(action, sanitize(observation), None)


def view_pictures(episode: Episode, number: int) -> tuple[tuple[str, str], ...]:
    """Those that a thread drew or got: it names their paths."""
    thread = episode.threads[number]
    if not episode.pictures:
        return ()
    texts = thread.sequence.text, *map(str, thread.variables.values())
    return tuple(
        (path, png)
        for path, png in episode.pictures.items()
        if path in texts[0] or path in texts[1:]
    )


def list_starts(thread: ThreadView) -> list[tuple[int, Piece]]:
    """Each piece with its place in the sequence, in tokens."""
    ends = accumulate((piece.tokens for piece in thread.pieces), initial=0)
    return list(zip(ends, thread.pieces, strict=False))
