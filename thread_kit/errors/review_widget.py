"""The review widget: read a failed episode, mark its first error, say its type.

    Reviewer("anna", {"adapt-0.jsonl": episode, ...}, path="reviews.jsonl")

Two people review the same episodes, each under a name of their own, before they see what the other
or the rules have said; `agreement` compares them. Every verdict is on disk at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

import ipywidgets as widgets

from thread_kit.errors.error_types import DESCRIPTIONS, ErrorType
from thread_kit.errors.first_error import find_first_error, has_failed
from thread_kit.errors.review import Review, read_reviews, write_review
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    Acted,
    Closed,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Instructed,
    Observed,
)
from thread_kit.views.formatting import sanitize, shorten
from thread_kit.views.html import episode_html
from thread_kit.views.player.keys import BOX, KeyGuard, show_error

LINE = 110  # characters of an event in the list

_WIDE = widgets.Layout(width="98%")


class Reviewer(widgets.VBox):
    """One reviewer at work on the failed episodes among those that are given.

    name: the reviewer's. episodes: by the names of their traces. path: the file of reviews.
    proposals: show what the rules propose; a second opinion should be formed without them.
    An episode that is not over has not failed. Raises ValueError if none failed, or the name is
    empty.
    """

    def __init__(
        self,
        name: str,
        episodes: Mapping[str, Episode],
        *,
        path: str | Path,
        proposals: bool = False,
    ) -> None:
        self.failed = {key: episode for key, episode in episodes.items() if has_failed(episode)}
        if not name.strip():
            raise ValueError("a review needs the name of its reviewer")
        if not self.failed:
            raise ValueError("no episode failed, so there is nothing to review")
        self.name, self.path, self.proposals = name, Path(path), proposals
        self._progress = widgets.HTML()
        self.choice = widgets.Dropdown(description="episode", layout=_WIDE)
        self.event = widgets.Select(description="first error", rows=8, layout=_WIDE)
        self.type = widgets.ToggleButtons(
            options=[(str(error_type), error_type) for error_type in ErrorType],
            value=None,
            tooltips=[DESCRIPTIONS[error_type] for error_type in ErrorType],
            description="type",
            style={"button_width": "max-content"},
        )
        self.note = widgets.Text(description="note", layout=_WIDE)
        self.save = widgets.Button(description="save, next", button_style="primary")
        self._tree = widgets.HTML(layout=widgets.Layout(max_height="28em", overflow="auto"))
        self.choice.observe(self._show, "value")
        self.save.on_click(lambda button: self._try_to_record())
        super().__init__(
            [
                self.choice,
                self._tree,
                self.event,
                self.type,
                self.note,
                widgets.HBox([self.save, self._progress, KeyGuard()]),
            ]
        )
        self.add_class(BOX)
        self._list()

    @property
    def reviews(self) -> dict[str, Review]:
        """This reviewer's verdicts by now, by episode."""
        return {
            review.episode: review
            for review in read_reviews(self.path)
            if review.reviewer == self.name and review.episode in self.failed
        }

    def record(self) -> Review:
        """Write the verdict that the controls show, and go to the next episode without one.

        Raises ValueError where no first error is chosen, or no type of it.
        """
        if self.event.value is None:
            raise ValueError("choose the first error in the list")
        if self.type.value is None:
            raise ValueError("choose the type of the error")
        review = Review(
            self.choice.value, self.name, self.type.value, self.event.value, self.note.value
        )
        write_review(self.path, review)
        self._list()
        return review

    def _try_to_record(self) -> None:
        """Of the button: what goes wrong is said beside it, where a person looks."""
        try:
            self.record()
        except (OSError, ValueError) as error:
            self._progress.value = show_error(error)

    def _list(self) -> None:
        """The episodes, and which are reviewed; the first that is not gets chosen."""
        done = self.reviews
        left = [key for key in self.failed if key not in done]
        options = [(f"{'✓' if key in done else '·'} {key}", key) for key in self.failed]
        chosen = left[0] if left else self.choice.value or next(iter(self.failed))
        self.choice.options = options
        self.choice.value = chosen
        self._show()

    def _show(self, change: object = None) -> None:
        key = self.choice.value
        if key not in self.failed:
            return
        episode = self.failed[key]
        self._tree.value = episode_html(episode)
        self.event.options = [
            (text, number)
            for number, event in enumerate(episode.events)
            if (text := label_event(event)) is not None
        ]
        self.event.value = self.type.value = None  # else what was chosen for another episode
        own, proposed = self.reviews.get(key), find_first_error(episode)
        about = ""
        if own:
            self._choose(own.event)
            self.type.value, self.note.value = own.type, own.note
        else:
            self.note.value = ""
            if self.proposals and proposed:
                self._choose(proposed.event)
                self.type.value = proposed.type
        if self.proposals and proposed:
            about = f"; the rules say: {proposed.type} ({proposed.why})"
        self._progress.value = escape(f"{len(self.reviews)} of {len(self.failed)} reviewed{about}")

    def _choose(self, event: int) -> None:
        """Show an event as the wrong one; a file of reviews may name one that is not there."""
        if event in [number for _, number in self.event.options]:
            self.event.value = event

    def __repr__(self) -> str:
        return f"Reviewer({self.name!r}, {len(self.reviews)} of {len(self.failed)} reviewed)"


def label_event(event: Event) -> str | None:
    """An event as a line to choose; None for one that cannot be an error."""
    match event:
        case GeneratedSpan(thread=thread, span=span):
            text = f"thread {thread} writes: {span.text.strip()}"
        case Acted(thread=thread):
            text = f"thread {thread} acts: {event.action} => {event.observation.strip()}"
        case Observed(thread=thread, span=span):
            text = f"thread {thread} reads: {span.text.strip()}"
        case Instructed(thread=thread, span=span):
            text = f"thread {thread} is told: {span.text.strip()}"
        case ExecutedLine(thread=thread, error=str(error)):
            text = f"thread {thread} fails: {error} in {event.line.strip()}"
        case Ended(thread=thread):
            text = f"thread {thread} is over: {event.status} {event.detail}"
        case Closed():
            text = f"the episode is over: {event.status} {event.detail}"
        case _:
            return None
    return shorten(" ".join(sanitize(text).split()), LINE)
