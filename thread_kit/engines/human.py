"""Be the model: a person writes what the model would write, call by call, or lets it write.

    engine = HumanEngine(load_model())
    player = tk.watch(tk.Session(engine, task))    # the player asks for each call who writes it

A call ends where the person writes a mark of the dialect, as a model's does; text without a mark
leaves it open. What is written is spelled in the model's own tokens, so that threads of both kinds
stand in one episode. The session has to run in a worker (`tk.watch`, `Worker`), since a call waits
until somebody answers it: `say`, or `pass_on`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from thread_kit.dialect import Stop, find_stop
from thread_kit.engines.engine import Completion, Engine, GenerateRequest, Prefilled, Sampled

PATIENCE = 0.05
"""Seconds that a step waits for a person, at most: a session that is stopped must hear of it."""


@dataclass(slots=True)
class _Waiting:
    """A call that a person may write: how to hand it to the model, and what is written so far."""

    hand_on: Callable[[], None]
    stops: Mapping[str, Stop]
    max_tokens: int
    text: str = ""
    tokens: tuple[int, ...] = ()
    new: list[tuple[int, str]] = field(default_factory=list)
    stop: Stop | None = None
    is_passed: bool = False
    begun: float = field(default_factory=time.perf_counter)

    @property
    def is_open(self) -> bool:
        return self.stop is None and not self.is_passed


class HumanEngine(Engine):
    """A person in front of another engine.

    engine: spells what the person writes, and writes what is passed on; closed with this one.
    heard: called, from any thread, whenever a call begins to wait or has been answered.
    """

    def __init__(self, engine: Engine, heard: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.engine = engine
        self.name = f"a person and {engine.name}"
        self.context_size = engine.context_size
        self.heard = heard
        self._calls: dict[int, _Waiting] = {}
        self._models: set[int] = set()  # threads that are the model's from now on
        self._changed = threading.Condition()

    @property
    def waiting(self) -> list[int]:
        """The keys of the threads whose calls wait for a person; `Session.thread_of` names them."""
        with self._changed:
            return [key for key, call in self._calls.items() if call.is_open]

    def say(self, text: str, thread: int | None = None) -> None:
        """Write for a thread, or for the first that waits; a mark of the dialect ends the call.

        What follows the mark is left out. Raises ValueError where nobody waits.
        """
        with self._changed:
            call = self._calls[self._one(thread)]
            written = (call.text + text).encode("utf-8", "replace")
            before = len(call.text.encode("utf-8", "replace"))
            found = find_stop(written, len(written) - before, call.stops)
            if found:
                text = written[before : found[0]].decode("utf-8", "replace")
                call.stop = call.stops[found[1]]
            tokens = self.engine.tokenize(text)
            if len(call.tokens) + len(tokens) >= call.max_tokens and not call.stop:
                call.stop = Stop.LENGTH
            call.text += text
            call.tokens += tokens
            call.new += [(token, "" if n else text) for n, token in enumerate(tokens)]
            self._changed.notify_all()
        self.heard()

    def pass_on(self, thread: int | None = None, *, always: bool = False) -> None:
        """Let the model write this call; `always`: and whatever else this thread writes.

        Raises ValueError where nobody waits, or where the person has begun to write.
        """
        with self._changed:
            key = self._one(thread)
            if self._calls[key].text:
                raise ValueError("you have begun to write; end the call with a mark first")
            if always:
                self._models.add(key)
            self._calls[key].is_passed = True
            self._changed.notify_all()
        self.heard()

    def _one(self, thread: int | None) -> int:
        keys = [key for key, call in self._calls.items() if call.is_open]
        if not keys or thread not in (None, *keys):
            raise ValueError("no call of this thread waits for a person")
        return keys[0] if thread is None else thread

    # An engine

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        return self.engine.tokenize(text, first=first)

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        return self.engine.prefill(tokens)

    def submit(self, thread: int, wanted: GenerateRequest) -> None:
        self._must_be_idle(thread, self._calls)
        hand_on = partial(self.engine.submit, thread, wanted)
        if thread in self._models or wanted.given or wanted.forbid:
            hand_on()  # a fork says itself how a call begins
            return
        with self._changed:
            self._calls[thread] = _Waiting(hand_on, wanted.stops, wanted.max_tokens)
        self.heard()

    def step(self) -> list[Prefilled | Sampled | Completion]:
        with self._changed:
            passed = [key for key, call in self._calls.items() if call.is_passed]
            for call in [self._calls.pop(key) for key in passed]:
                call.hand_on()  # here, since only one thread at a time may touch the other engine
        news = self.engine.step()
        with self._changed:
            calls = self._calls.values()
            if not news and not any(call.new or not call.is_open for call in calls):
                self._changed.wait(PATIENCE)
            for key, call in list(self._calls.items()):
                news += [Sampled(key, token, text) for token, text in call.new]
                call.new.clear()
                if call.stop:
                    del self._calls[key]
                    news.append(self._call(key, call, call.stop))
        return news

    def _call(self, key: int, call: _Waiting, stop: Stop) -> Completion:
        seconds = time.perf_counter() - call.begun
        return Completion(key, call.text, call.tokens, stop, 0, 0, seconds)

    def cancel(self, thread: int) -> Completion | None:
        with self._changed:
            call = self._calls.pop(thread, None)
        self.heard()
        return self._call(thread, call, Stop.CANCELLED) if call else self.engine.cancel(thread)

    def release(self, thread: int, *, keep: bool = False) -> None:
        self._models.discard(thread)
        self.engine.release(thread, keep=keep)

    def describe(self) -> dict[str, Any]:
        return {**self.engine.describe(), "person": True}

    def __repr__(self) -> str:
        return f"HumanEngine({self.engine!r}, {len(self.waiting)} calls wait)"

    def close(self) -> None:
        self._calls.clear()
        self.engine.close()
