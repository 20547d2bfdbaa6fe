"""A call while it is generated: tokens in, text out, stop strings found exactly."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from thread_kit.dialect import Stop, find_stop
from thread_kit.engines.engine import Completion, ThreadKey
from thread_kit.sequence import Span


@dataclass(slots=True)
class PartialCompletion:
    """The tokens that a call has generated so far.

    max_tokens: where the call stops. Only two things go beyond it: the last token, where a stop
        string ends inside it and its head takes more tokens than one (a byte each, at most), and
        text that comes at once (`add_text`).
    tokenize: text to tokens, used only where text comes without tokens of its own, or where a stop
        string ends inside a token: the head of that token is kept, and is tokenized anew.
    reused, evaluated, drafted: tokens, and passes; the engine counts them. came_true: the places
        among `tokens` of those that were drafted and accepted.
    stop: why the call is over; None while it goes on.
    """

    thread: ThreadKey
    stops: Mapping[str, Stop]
    max_tokens: int
    tokenize: Callable[[str], tuple[int, ...]]
    reused: int = 0
    evaluated: int = 0
    passes: int = 0
    drafted: int = 0
    came_true: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    stop: Stop | None = None
    _bytes: bytes = b""
    _sizes: list[int] = field(default_factory=list)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _start: float = field(default_factory=time.perf_counter)

    def give(self, given: Span) -> None:
        """Begin with what is written already; it holds no stop string."""
        self.tokens += given.tokens
        self._bytes += given.text.encode("utf-8", "replace")
        self._stop_at_length()

    @property
    def written(self) -> bytes:
        """What the call has written so far."""
        return self._bytes

    def would_complete(self, piece: bytes, marks: Iterable[str]) -> bool:
        """Would these bytes, behind what is written, complete one of the marks?"""
        return find_stop(self._bytes + piece, len(piece), marks) is not None

    def add(self, token: int, piece: bytes) -> str:
        """Append a token and its bytes; the text that they add.

        Afterwards `stop` says whether the call is over.
        """
        before = len(self._bytes)
        self.tokens.append(token)
        cut = self._append(piece)
        if cut:
            # The head of the token is tokenized anew, from the start of its first character.
            start = before
            self.tokens.pop()
            while self._sizes and 0x80 <= cut[start] < 0xC0:
                start -= self._sizes.pop()
                self.tokens.pop()
            self.tokens += self.tokenize(self._bytes[start:].decode("utf-8", "replace"))
        self._stop_at_length()
        self._sizes.append(len(piece))
        return self._decoder.decode(self._bytes[before:], final=self.stop is not None)

    def add_text(self, text: str) -> tuple[tuple[int, ...], str]:
        """Append text that has no tokens yet; its tokens, and the text up to its stop string.

        Afterwards `stop` says whether the call is over. Text is not cut at max_tokens: it is whole.
        """
        before = len(self._bytes)
        self._append(text.encode("utf-8", "replace"))
        added = self._bytes[before:].decode("utf-8", "replace")
        tokens = self.tokenize(added)
        self.tokens += tokens
        self._stop_at_length()
        return tokens, added

    def _append(self, piece: bytes) -> bytes:
        """Append bytes up to their stop string; all bytes, where it cuts some off, else b""."""
        whole = self._bytes = self._bytes + piece
        if found := find_stop(whole, len(piece), self.stops):
            end, mark = found
            self.stop = self.stops[mark]
            self._bytes = whole[:end]
        return whole if len(self._bytes) < len(whole) else b""

    def _stop_at_length(self) -> None:
        if self.stop is None and len(self.tokens) >= self.max_tokens:
            self.stop = Stop.LENGTH

    def finish(self, stop: Stop | None = None) -> Completion:
        """The call as it ended, for the reason found in its tokens or the one given.

        Raises ValueError where there is no reason.
        """
        self.stop = self.stop or stop
        if self.stop is None:
            raise ValueError(f"the call of thread {self.thread} has not stopped; give the reason")
        return Completion(
            self.thread,
            self._bytes.decode("utf-8", "replace"),
            tuple(self.tokens),
            self.stop,
            self.reused,
            self.evaluated,
            time.perf_counter() - self._start,
            passes=self.passes,
            drafted=self.drafted,
            accepted=len(self.came_true),
            came_true=tuple(place for place in self.came_true if place < len(self.tokens)),
        )
