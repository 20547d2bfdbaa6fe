"""The X-ray of phi and psi: what they took of a text, as they themselves show it.

phi and psi are functions of text, and anybody's function can take their place. So they are run once
more, on a copy in which each word is one character that stands nowhere else: where that character
comes out, that word was taken, and not one that only reads the same. Filled in again, what comes
out must be what really passed, to the character; otherwise nothing is claimed (a person changed it,
or the function looks at the words).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from thread_kit.code_lines import lost
from thread_kit.dialect import REFERENCE, Dialect
from thread_kit.exchange import FUNCTIONS
from thread_kit.requests import Finished
from thread_kit.sequence import Sequence, Span
from thread_kit.trace.episode import Episode, Thread
from thread_kit.trace.events import Edited, Event, ExecutedLine, Resolved, Returned, Spawned
from thread_kit.views.formatting import sanitize

Y, PRINTED, ERROR = range(3)  # the texts that a function can take from
_FIRST, _LAST = 0x20000, 0x2FFFF  # characters that stand for words: letters, like them
_VALUES = 0x30000  # and for the values of variables, up to the last such letter
_VALUES_END = 0x3134A


@dataclass(frozen=True, slots=True)
class Place:
    """Characters of one of the texts; of a reference, those of its name."""

    text: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what passed. place: where it was taken, if it was. name: of the variable whose
    value it is, or that it refers to; "" for words."""

    text: str
    place: Place | None = None
    name: str = ""


class Xray:
    """What phi and psi took at each spawn and each return of an episode.

    `add` is called with each event, when the episode has taken it in.
    functions: a session's own phi and psi, by kind; else the one of the
        kit's own (`exchange.FUNCTIONS`) that fits to the character is the one that ran.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._phi = (*filter(None, [functions.get("phi")]), *FUNCTIONS["phi"])
        self._psi = (*filter(None, [functions.get("psi")]), *FUNCTIONS["psi"])
        self._run: dict[int, int] = defaultdict(int)  # characters of Y whose lines have run
        self._printing: dict[int, tuple[str, Place]] = {}  # the last print and its line
        self._assigned: dict[int, dict[str, Place]] = defaultdict(dict)  # in Y

    def add(self, episode: Episode, event: Event) -> dict[str, Any] | None:
        """Of a spawn what phi took, of a return what psi took; None where that cannot be told."""
        match event:
            case Spawned(parent=int(parent)):
                passed = episode.dialect.asked(event.context.text)
                return self._of_phi(episode, episode.threads[parent], passed)
            case ExecutedLine():
                self._add_line(episode.threads[event.thread], event)
            case Returned():
                taken = self._of_psi(episode, episode.threads[event.child], event.span.text)
                self._assign(episode, event, len(event.span.text))
                return taken
            case Resolved():
                self._assign(episode, event, 0)
            case Edited():
                for name in event.variables:
                    self._assigned[event.thread].pop(name, None)
        return None

    def _add_line(self, thread: Thread, event: ExecutedLine) -> None:
        start = thread.sequence.text.find(event.line, self._run[thread.id])
        if start < 0:
            return
        place = Place(Y, start, start + len(event.line))
        self._run[thread.id] = place.stop
        self._assigned[thread.id].update(dict.fromkeys(event.changed, place))
        if event.printed is not None:
            self._printing[thread.id] = event.printed, place

    def _assign(self, episode: Episode, event: Returned | Resolved, length: int) -> None:
        """Variables that came with a text stand where it stands."""
        end = len(episode.threads[event.thread].sequence.text)
        place = Place(Y, end - length, end)
        self._assigned[event.thread].update(dict.fromkeys(event.variables, place))

    def _of_phi(self, episode: Episode, parent: Thread, passed: str) -> dict[str, Any] | None:
        for phi in self._phi:
            copy = _Copy(episode.dialect, parent.variables)
            sequence = copy.encode_sequence(parent.sequence)
            parts = copy.decode(_try(phi, sequence, copy.variables, episode.dialect), passed)
            if parts is not None:
                return self._describe(parent, parts, values={part.name for part in parts})
        return None

    def _of_psi(self, episode: Episode, child: Thread, closed: str) -> dict[str, Any] | None:
        dialect = episode.dialect
        passed = closed.removesuffix(dialect.after_close).removesuffix(dialect.close)
        printed, _ = self._printing.get(child.id, (None, None))
        error = next((line.error for line in child.executed if line.error), None)
        for psi in self._psi:
            copy = _Copy(dialect, child.variables)
            finished = Finished(
                copy.encode_sequence(child.sequence),
                child.status,
                copy.variables,
                None if printed is None else copy.encode(PRINTED, printed),
                error=None if error is None else copy.encode(ERROR, error),
                lost={
                    name: copy.encode(ERROR, text)
                    for name, text in lost(
                        (run.line, run.error, run.changed) for run in child.executed
                    ).items()
                },
            )
            parts = copy.decode(_try(psi, finished), passed)
            if parts is not None:
                return self._describe(child, parts, values={part.name for part in parts})
        return None

    def _describe(self, thread: Thread, parts: list[Part], *, values: set[str]) -> dict[str, Any]:
        """As the page has it: marks are [piece, start, stop, kind, name], in characters of a piece
        of the thread (0 is its context); `passed` is [text, kind, name]; `above` are names whose
        values the thread has inherited."""
        marks: list[list[Any]] = []
        for part in parts:
            if part.place and (place := self._in_sequence(thread, part.place)):
                kind = "value" if part.name else "taken"
                marks += _pieces(thread.sequence, place, kind, part.name)
        assigned = self._assigned[thread.id]
        for name in sorted(values & assigned.keys()):
            marks += _pieces(thread.sequence, assigned[name], "assigned", name)
        passed = [
            [
                sanitize(part.text),
                "value" if part.name else "taken" if part.place else "",
                part.name,
            ]
            for part in parts
        ]
        inherited = thread.variables.keys() - assigned.keys() if thread.id else set()
        above = sorted(values & inherited)
        return {"marks": marks, "passed": passed, "above": above}

    def _in_sequence(self, thread: Thread, place: Place) -> Place | None:
        """What was printed stands in the line that printed it: word for word, or as its result."""
        if place.text == Y:
            return place
        if place.text == ERROR or thread.id not in self._printing:
            return None
        printed, line = self._printing[thread.id]
        text = printed.rstrip("\n")
        at = thread.sequence.text.find(text, line.start, line.stop) if text else -1
        return line if at < 0 else Place(Y, at + place.start, min(at + place.stop, line.stop))


def _pieces(sequence: Sequence, place: Place, kind: str, name: str) -> Iterator[list[Any]]:
    """A place in Y as marks in its pieces; the context is piece 0."""
    at = 0
    for number, span in enumerate(sequence, 1):
        start, stop = max(place.start - at, 0), min(place.stop - at, len(span.text))
        if start < stop:
            yield [number, start, stop, kind, name]
        at += len(span.text)


class _Copy:
    """Texts in which each word is one character, and what those characters stand for."""

    def __init__(self, dialect: Dialect, variables: Mapping[str, Any]) -> None:
        marks = [dialect.listen, dialect.close, dialect.end, dialect.start, dialect.spawn or "=>"]
        kept = "|".join(map(re.escape, marks))
        self._words = re.compile(rf"{REFERENCE.pattern}|{kept}|(?P<word>\w+)")
        self._values = dict(variables)
        self._texts: dict[int, str] = {}
        self._places: list[tuple[Place, bool]] = []  # of a word; of the name in a reference
        self._named: list[tuple[str, Place | None]] = []  # of a value
        self.variables: dict[str, str] = {}
        for name in variables:
            self._define(name, name, None)

    def _define(self, key: str, name: str, place: Place | None) -> None:
        self.variables[key] = chr(_VALUES + len(self._named))
        self._named.append((name, place))

    def encode_sequence(self, sequence: Sequence) -> Sequence:
        return Sequence(
            tuple(Span(s.provenance, self.encode(Y, s.text), s.tokens) for s in sequence)
        )

    def encode(self, number: int, text: str) -> str:
        """A text, or more of it, with a character for each word."""
        before = self._texts.get(number, "")
        self._texts[number] = before + text

        def character(match: re.Match[str]) -> str:
            name = match[1]
            start, stop = match.span("word") if name is None else match.span(1)
            if start < 0:
                return match[0]  # a mark of the dialect
            place = Place(number, len(before) + start, len(before) + stop)
            letter = chr(_FIRST + len(self._places))
            self._places.append((place, name is not None))
            if name is None:
                return letter
            if name in self._values:
                self._define(letter, name, place)
            return f"{{{letter}}}"

        return self._words.sub(character, text)

    def decode(self, made: str, passed: str) -> list[Part] | None:
        """What a function made of the copy, if with the words filled in it is what passed."""
        if len(self._places) > _LAST - _FIRST or len(self._named) > _VALUES_END - _VALUES:
            return None
        parts = list(map(self._part, made))
        if "".join(part.text for part in parts) != passed:
            return None
        self._follow(parts, 1)
        self._follow(parts, -1)
        return _merge(parts)

    def _part(self, letter: str) -> Part:
        code = ord(letter)
        if 0 <= code - _VALUES < len(self._named):
            name, place = self._named[code - _VALUES]
            around = place and Place(place.text, place.start - 1, place.stop + 1)
            return Part(str(self._values[name]), around, name)
        if 0 <= code - _FIRST < len(self._places):
            place, is_name = self._places[code - _FIRST]
            text = self._texts[place.text][place.start : place.stop]
            return Part(text, place, text if is_name and text in self._values else "")
        return Part(letter)

    def _follow(self, parts: list[Part], step: int) -> None:
        """What stands between words was taken where it stands beside one in its text, too."""
        last: Place | None = None
        for at in range(len(parts))[::step]:
            if parts[at].place is None and not parts[at].name and last is not None:
                start = last.stop if step > 0 else last.start - 1
                text = self._texts[last.text]
                if 0 <= start < len(text) and text[start] == parts[at].text:
                    parts[at] = Part(parts[at].text, Place(last.text, start, start + 1))
            last = parts[at].place


def _try(function: Callable[..., str], *arguments: Any) -> str:
    """Somebody's own function may look at the words, and find none that it knows."""
    try:
        return function(*arguments)
    except Exception:
        return ""


def _merge(parts: list[Part]) -> list[Part]:
    """Parts that stood side by side, as one."""
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        match last, part:
            case Part(before, None, ""), Part(text, None, ""):
                merged[-1] = Part(before + text)
            case (
                Part(before, Place(number, start, end), ""),
                Part(text, Place(other, begin, stop), ""),
            ) if (number, end) == (other, begin):
                merged[-1] = Part(before + text, Place(number, start, stop))
            case _:
                merged.append(part)
    return merged
