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
    _held: str = ""
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
        """Append a token and its bytes; the text that they add, in whole characters.

        Where they end in a part of one, all of it comes with the next token. Afterwards `stop` says
        whether the call is over.
        """
        # 1. Before anything changes, what can fail: over a server, to tokenize.
        before, whole = len(self._bytes), self._bytes + piece
        kept, stop = self._find_kept(piece)
        again = 0
        new: tuple[int, ...] = (token,)
        if len(kept) < len(whole):
            # The head of the token is tokenized anew, from the start of its first character.
            start = before
            while again < len(self._sizes) and 0x80 <= whole[start] < 0xC0:
                again += 1
                start -= self._sizes[-again]
            new = self.tokenize(kept[start:].decode("utf-8", "replace"))
        # 2. The token, in the place of those that its head is tokenized with.
        self._bytes, self.stop = kept, stop
        del self.tokens[len(self.tokens) - again :]
        del self._sizes[len(self._sizes) - again :]
        self.tokens += new
        self._stop_at_length()
        self._sizes.append(len(piece))
        # 3. Its text, in whole characters: what ends in a part of one waits for the rest.
        self._held += self._decoder.decode(kept[before:], final=self.stop is not None)
        if self._decoder.getstate()[0]:
            return ""
        text, self._held = self._held, ""
        return text

    def add_text(self, text: str) -> tuple[tuple[int, ...], str]:
        """Append text that has no tokens yet; its tokens, and the text up to its stop string.

        Afterwards `stop` says whether the call is over. Text is not cut at max_tokens: it is whole.
        """
        kept, stop = self._find_kept(text.encode("utf-8", "replace"))
        added = kept[len(self._bytes) :].decode("utf-8", "replace")
        tokens = self.tokenize(added)
        self._bytes, self.stop = kept, stop
        self.tokens += tokens
        self._stop_at_length()
        return tokens, added

    def _find_kept(self, piece: bytes) -> tuple[bytes, Stop | None]:
        """What is written with these bytes, up to their stop string; and why the call is over."""
        whole = self._bytes + piece
        found = find_stop(whole, len(piece), self.stops)
        return (whole[: found[0]], self.stops[found[1]]) if found else (whole, self.stop)

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
