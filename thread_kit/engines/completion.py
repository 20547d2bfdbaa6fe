"""One call while it grows: tokens in, text out, stop strings found exactly."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from thread_kit.dialect import Stop, find_stop
from thread_kit.engines.engine import Completion
from thread_kit.sequence import Span


@dataclass(slots=True)
class PartialCompletion:
    """The tokens that a call has generated so far.

    tokenize: text to tokens, used only where a stop string ends inside a token: the head of that
    token is kept, and has to be spelled by tokens of its own.
    """

    thread: int
    stops: Mapping[str, Stop]
    max_tokens: int
    tokenize: Callable[[str], tuple[int, ...]]
    reused: int = 0
    evaluated: int = 0
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
        if len(self.tokens) >= self.max_tokens:
            self.stop = Stop.LENGTH

    @property
    def written(self) -> bytes:
        """What the call has written so far."""
        return self._bytes

    def would_complete(self, piece: bytes, marks: Iterable[str]) -> bool:
        """Would these bytes, behind what is written, complete one of the marks?"""
        return find_stop(self._bytes + piece, len(piece), marks) is not None

    def add(self, token: int, piece: bytes) -> str:
        """Take in a token and the bytes that it spells; the text that it adds.

        Afterwards `stop` says whether the call is over.
        """
        self.tokens.append(token)
        before = len(self._bytes)
        self._bytes += piece
        found = find_stop(self._bytes, len(piece), self.stops)
        if found:
            end, stop = found
            self.stop = self.stops[stop]
            if end < len(self._bytes):
                # The head of the token is spelled anew, from the start of its first character.
                start = before
                self.tokens.pop()
                while self._sizes and 0x80 <= self._bytes[start] < 0xC0:
                    start -= self._sizes.pop()
                    self.tokens.pop()
                head = self._bytes[start:end].decode("utf-8", "replace")
                self.tokens += self.tokenize(head)
                self._bytes = self._bytes[:end]
        elif len(self.tokens) >= self.max_tokens:
            self.stop = Stop.LENGTH
        self._sizes.append(len(piece))
        return self._decoder.decode(self._bytes[before:], final=self.stop is not None)

    def finish(self, stop: Stop | None = None) -> Completion:
        """The call as it ended, for the reason found in its tokens or the one given."""
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
        )
