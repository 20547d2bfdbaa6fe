"""The view model of an episode: what every view shows, and in which order.

Immutable nodes, derived from an episode; text, HTML, figures and the live widget are lowered from
them and look at nothing else. Here are decided: where in its parent's sequence a child stands,
which action an observation answers, how values are written, and what text may do to a page or a
terminal (nothing: see `legible`). Not here: layout, words and colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from thread_kit.sequence import Provenance, Span
from thread_kit.trace.costs import Usage
from thread_kit.trace.episode import Episode, Thread
from thread_kit.trace.events import Acted, Edited, ExecutedLine
from thread_kit.views.formatting import costs, count, legible, shorten

_OF_CHILDREN = (Provenance.RETURNED, Provenance.REFERENCE)

VALUE = 2_000
"""Characters of a variable's value that are shown; what is cut is counted."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One span, as it is shown. `action` (a place in the list) led to it; `child` returned it, or
    is the thread that it refers to."""

    provenance: Provenance
    text: str
    tokens: int
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

    sequence: its pieces in order, and between them the places where children were spawned.
    variables: pairs of a name and its value, written as Python writes it.
    prompt: the name in `EpisodeView.prompts` of what it read first.
    future: what stands for it in its parent, which went on; "" if the parent waited.
    futures: pairs of a future's name and what became of it.
    pictures: pairs of a path and the PNG file there, in base64: those that the thread drew or got.
    """

    id: int
    parent: int | None
    depth: int
    title: str
    status: str
    is_live: bool
    is_cut: bool
    detail: str
    prompt: str
    context: Piece
    sequence: tuple[Piece | Branch, ...]
    variables: tuple[tuple[str, str], ...]
    actions: tuple[Action, ...]
    lines: tuple[Line, ...]
    usage: Usage
    future: str
    waits_for: int | None
    futures: tuple[tuple[str, str], ...]
    edits: tuple[Edit, ...]
    pictures: tuple[tuple[str, str], ...]

    @property
    def doing(self) -> str:
        """The status, and whom it waits for."""
        return self.status if self.waits_for is None else f"{self.status} for {self.waits_for}"

    @property
    def name(self) -> str:
        """The title, behind the reference that stands for the thread in its parent."""
        return f"{{{self.future}}} {self.title}" if self.future else self.title

    @property
    def pieces(self) -> list[Piece]:
        return [item for item in self.sequence if isinstance(item, Piece)]

    @property
    def children(self) -> list[int]:
        return [item.branch for item in self.sequence if isinstance(item, Branch)]


@dataclass(frozen=True, slots=True)
class PromptView:
    """A few-shot prompt, which the threads that use it read before their contexts."""

    name: str
    text: str
    tokens: int


@dataclass(frozen=True)
class EpisodeView:
    """A whole episode; `usage` is that of its threads, `prompting` that of the prompts."""

    model: str
    environment: str
    status: str
    is_live: bool
    detail: str
    reward: float | None
    threads: dict[int, ThreadView]
    prompts: dict[str, PromptView]
    prompting: Usage

    @cached_property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.threads.values()), Usage())

    @property
    def depth(self) -> int:
        return max((one.depth for one in self.threads.values()), default=0)

    @cached_property
    def work(self) -> dict[int, int]:
        """For each thread, the tokens that all threads below it generated."""
        below = dict.fromkeys(self.threads, 0)
        for one in reversed(self.threads.values()):  # children come after their parents
            if one.parent is not None:
                below[one.parent] += below[one.id] + one.usage.generated
        return below

    @cached_property
    def open(self) -> frozenset[int]:
        """What is unfolded at first: the main thread, and the path to each thread that was cut."""
        found = {one.id for one in self.threads.values() if one.parent is None}
        for one in self.threads.values():
            up: int | None = one.id if one.is_cut else None
            while up is not None and up not in found:
                found.add(up)
                up = self.threads[up].parent
        return frozenset(found)

    @property
    def totals(self) -> str:
        """One line, the same for the same tokens: no seconds, and nothing that a cache changes."""
        parts = [
            f"{self.status}",
            f"reward {'none' if self.reward is None else f'{self.reward:g}'}",
            count(len(self.threads), "thread"),
            f"depth {self.depth}",
            count(self.usage.calls, "call"),
            costs(self.usage),
        ]
        return " · ".join(parts)


def view(episode: Episode) -> EpisodeView:
    """The view model of an episode as it is now."""
    header = episode.header
    model = header.get("model")
    return EpisodeView(
        model=legible(str(model.get("name", ""))) if isinstance(model, Mapping) else "",
        environment=legible(str(header.get("environment") or "")),
        status=str(episode.status),
        is_live=episode.status.is_live,
        detail=legible(episode.detail),
        reward=episode.reward,
        threads={number: thread_view(episode, number) for number in episode.threads},
        prompts=prompt_views(header),
        prompting=episode.prompting,
    )


def prompt_views(header: Mapping[str, Any]) -> dict[str, PromptView]:
    """The few-shot prompts of an episode that hold any examples."""
    return {
        name: PromptView(
            legible(str(one.get("name", ""))), legible(one["text"]), len(one["tokens"])
        )
        for name, one in header.get("prompts", {}).items()
        if one["text"]
    }


def thread_view(episode: Episode, number: int) -> ThreadView:
    """The view model of one thread."""
    one = episode.threads[number]
    return ThreadView(
        id=one.id,
        parent=one.parent,
        depth=one.depth,
        title=legible(one.title),
        prompt=one.prompt,
        context=piece_view(one.context),
        sequence=tuple(_sequence(episode, one)),
        variables=variables_of(one),
        actions=tuple(_actions(episode, one)),
        lines=tuple(
            line_view(ran)
            for ran in one.executed
            if ran.printed is not None or ran.error is not None
        ),
        future=legible(one.future or ""),
        futures=futures_of(episode, number),
        edits=tuple(map(edit_view, one.edits)),
        pictures=pictures_of(episode, number),
        **head_of(one),
    )


def head_of(one: Thread) -> dict[str, Any]:
    """What changes with every step of a thread: its status and its costs."""
    return {
        "status": str(one.status),
        "is_live": one.status.is_live,
        "is_cut": not (one.status.is_live or one.status.is_end),
        "detail": legible(one.detail),
        "usage": one.usage,
        "waits_for": one.waits_for,
    }


def variables_of(one: Thread) -> tuple[tuple[str, str], ...]:
    """A thread's variables and their values, as Python writes them."""
    return tuple((legible(n), shorten(legible(repr(v)), VALUE)) for n, v in one.variables.items())


def line_view(ran: ExecutedLine) -> Line:
    """A line that ran."""
    printed, error = (None if text is None else legible(text) for text in (ran.printed, ran.error))
    return Line(legible(ran.line), printed, error)


def action_view(acted: Acted) -> Action:
    """An action that reached the environment."""
    return Action(legible(acted.action), legible(acted.observation), acted.reward)


def edit_view(event: Edited) -> Edit:
    """A change by a person."""
    values = ", ".join(f"{name} = {value!r}" for name, value in event.variables.items())
    return Edit(event.what, legible(event.was), shorten(legible(event.now or values), VALUE))


def piece_view(span: Span, child: int | None = None, action: int | None = None) -> Piece:
    """A span as it is shown."""
    return Piece(span.provenance, legible(span.text), len(span), child, action)


def _sequence(episode: Episode, one: Thread) -> Iterator[Piece | Branch]:
    """The spans, and before the span that is next at its place, each child that was spawned."""
    spawned = list(one.spawned)
    returned = list(one.returned.items())
    at = observed = 0
    for span in one.sequence:
        while spawned and episode.threads[spawned[0]].at <= at:
            yield Branch(spawned.pop(0))
        if span.provenance is Provenance.OBSERVED:
            yield piece_view(span, action=observed)
            observed += 1
        elif span.provenance in _OF_CHILDREN and returned and returned[0][1][0] <= at:
            yield piece_view(span, child=returned.pop(0)[0])
        else:
            yield piece_view(span)
        at += len(span)
    yield from map(Branch, spawned)


def futures_of(episode: Episode, number: int) -> tuple[tuple[str, str], ...]:
    """Each future that a thread has instantiated; then those of its own that it has not."""
    one = episode.threads[number]
    found = [(e.future, f"thread {e.child}: {legible(e.text)}") for e in one.resolved]
    known = {event.child for event in one.resolved}
    for child in one.spawned:
        future = episode.threads[child].future
        if future is not None and child not in known:
            found.append((future, f"thread {child}, not used yet"))
    return tuple((legible(name), text) for name, text in found)


def _actions(episode: Episode, one: Thread) -> Iterator[Action]:
    """What was done, in order; what the thread wrote as an action, but nobody executed, as well."""
    handed_in = list(map(action_view, one.actions))
    observed = [span for span in one.sequence if span.provenance is Provenance.OBSERVED]
    if episode.dialect.code:  # what the environment gets comes last
        yield from (elsewhere(episode, one, span) for span in observed)
        yield from handed_in
    else:
        yield from handed_in
        for span in observed[len(one.actions) :]:
            yield elsewhere(episode, one, span)


def elsewhere(episode: Episode, one: Thread, observed: Span) -> Action:
    """An action that the environment never saw: a line of code, or what nobody executed."""
    spans = one.sequence.spans
    place = next((n for n, span in enumerate(spans) if span is observed), len(spans))
    wrote = episode.dialect.bare(spans[place - 1].text if place else "").rpartition("\n")[2]
    shown, seen = legible(wrote.lstrip("#> ").rstrip()), observed.text.rstrip("\n")
    if episode.dialect.code:
        return Action(shown, legible(seen.removesuffix(episode.dialect.close)), 0.0)
    return Action(shown, legible(seen), None)


def pictures_of(episode: Episode, number: int) -> tuple[tuple[str, str], ...]:
    """Those that a thread drew or got: it names their paths."""
    one = episode.threads[number]
    if not episode.pictures:
        return ()
    named = one.sequence.text, *map(str, one.variables.values())
    return tuple(
        (path, png)
        for path, png in episode.pictures.items()
        if path in named[0] or path in named[1:]
    )
