"""Be the model: a person writes what the model would write, call by call, or lets it write.

    engine = HumanEngine(load_model())
    player = tk.watch(tk.Session(engine, task))    # the player asks for each call who writes it

A call ends where the person writes a mark of the dialect, as a model's does; text without a mark
leaves it open. What is written becomes the model's own tokens, so that threads of both kinds
stand in one episode. The session has to run in a worker (`tk.watch`, `Worker`), since a call waits
until somebody answers it: `say`, or `pass_on`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineBusyError,
    GenerateRequest,
    News,
    Prefilled,
    Sampled,
    ThreadKey,
    Tokenize,
)
from thread_kit.trace.events import Prefilling, Prompted

POLL = 0.05
"""Seconds that a step waits for a person, at most: a session that is stopped must hear of it."""


@dataclass(slots=True)
class _Call:
    """A call that a person may write. news: what is written that no step has brought yet."""

    request: GenerateRequest
    completion: PartialCompletion
    news: list[Sampled] = field(default_factory=list)
    is_passed_on: bool = False

    @property
    def is_open(self) -> bool:
        return self.completion.stop is None and not self.is_passed_on


class Listeners:
    """Methods to call together, each as long as its object lives."""

    def __init__(self) -> None:
        self._methods: list[weakref.WeakMethod[Callable[[], None]]] = []

    def add(self, method: Callable[[], None]) -> None:
        """Adding one twice is fine."""
        if all(known() != method for known in self._methods):
            self._methods.append(weakref.WeakMethod(method))

    def __call__(self) -> None:
        for reference in self._methods:
            if method := reference():
                method()


class HumanEngine(Engine):
    """A person in front of another engine.

    engine: tokenizes what the person writes, and writes what is passed on; closed with this one.
    listeners: called, from any thread, whenever a call begins to wait or has been answered; those
        methods whose objects are still there.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self.name = f"a person and {engine.name}"
        self.context_size = engine.context_size
        self.listeners = Listeners()
        self._calls: dict[ThreadKey, _Call] = {}
        self._passed_on: set[ThreadKey] = set()  # threads that are the model's from now on
        self._generating: set[ThreadKey] = set()  # whose calls the model writes
        self._prompts: dict[ThreadKey, str] = {}
        self._changed = threading.Condition()

    @property
    def waiting(self) -> list[ThreadKey]:
        """The keys of the threads whose calls wait for a person; `Session.thread_of` names them."""
        with self._changed:
            return [key for key, call in self._calls.items() if call.is_open]

    def say(self, text: str, thread: ThreadKey | None = None) -> None:
        """Write for a thread, or for the first that waits; a mark of the dialect ends the call.

        A text is what the model writes next, in the same line unless the one before ends its line.
        What follows the mark is left out. A text beyond the call's max_tokens stays whole, and ends
        the call as too long unless it holds a mark. Raises ValueError where nobody waits.
        """
        with self._changed:
            key = self._choose(thread)
            call = self._calls[key]
            tokens, added = call.completion.add_text(text)
            # The first token brings the text of all: it is only known what they say together.
            call.news += [Sampled(key, token, "" if n else added) for n, token in enumerate(tokens)]
            self._changed.notify_all()
        self.listeners()

    def pass_on(self, thread: ThreadKey | None = None, *, always: bool = False) -> None:
        """Let the model write this call; `always`: and whatever else this thread writes.

        Raises ValueError where nobody waits, or where the person has begun to write.
        """
        with self._changed:
            key = self._choose(thread)
            if self._calls[key].completion.written:
                raise ValueError("you have begun to write; end the call with a mark first")
            if always:
                self._passed_on.add(key)
            self._calls[key].is_passed_on = True
            self._changed.notify_all()
        self.listeners()

    def _choose(self, thread: ThreadKey | None) -> ThreadKey:
        """This thread if its call waits, or the first that does."""
        waiting = [key for key, call in self._calls.items() if call.is_open]
        if not waiting or thread not in (None, *waiting):
            raise ValueError("no call of this thread waits for a person")
        return waiting[0] if thread is None else thread

    # Which model

    def assign(self, thread: ThreadKey, prompt: str) -> None:
        self._prompts[thread] = prompt
        self.engine.assign(thread, prompt)

    def tokenizer(self, prompt: str) -> Tokenize:
        return self.engine.tokenizer(prompt)

    def context_of(self, prompt: str) -> int:
        return self.engine.context_of(prompt)

    def describe_other(self, prompt: str) -> dict[str, Any] | None:
        return self.engine.describe_other(prompt)

    # An engine

    @property
    def steps_taken(self) -> int:  # type: ignore[override]
        return self.engine.steps_taken

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        return self.engine.tokenize(text, first=first)

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        return self.engine.prefill(tokens)

    def prefill_prompt(self, sha256: str, tokens: Sequence[int]) -> Iterator[Prefilling | Prompted]:
        return self.engine.prefill_prompt(sha256, tokens)

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._must_be_open()
        self._must_be_idle(thread, self._calls)
        if thread in self._passed_on or request.given or request.forbid:
            self._let_write(thread, request)  # a fork says itself how a call begins
            return
        tokenize = self.tokenizer(self._prompts.get(thread, ""))
        completion = PartialCompletion(thread, request.stops, request.max_tokens, tokenize)
        with self._changed:
            self._calls[thread] = _Call(request, completion)
        self.listeners()

    def _let_write(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self.engine.submit(thread, request)
        self._generating.add(thread)

    def step(self) -> Sequence[News]:
        return self.advance(*self._calls, *self._generating)

    def advance(self, *threads: ThreadKey) -> list[News]:
        """What a person has written for these threads, and the model, which others may use too."""
        # 1. Calls that were passed on become the model's.
        with self._changed:
            self._must_be_open()
            own = {key: self._calls[key] for key in threads if key in self._calls}
            requests = {key: call.request for key, call in own.items() if call.is_passed_on}
        for key, request in requests.items():
            with suppress(EngineBusyError):  # then it stays, and is passed on at a later step
                self._let_write(key, request)
                with self._changed:
                    self._calls.pop(key, None)
        # 2. What the model writes; where nobody has written, wait a moment for the person.
        generating = [key for key in threads if key in self._generating]
        news = list(self.engine.advance(*generating)) if generating else []
        self._generating -= {one.thread for one in news if isinstance(one, Completion)}
        with self._changed:
            calls = {key: self._calls[key] for key in threads if key in self._calls}
            if not news and not any(call.news or call.completion.stop for call in calls.values()):
                self._changed.wait(POLL)
            # 3. What the person has written.
            for key, call in calls.items():
                news += call.news
                call.news.clear()
                if call.completion.stop:
                    del self._calls[key]
                    news.append(call.completion.finish())
        return news

    def cancel(self, thread: ThreadKey) -> Completion | None:
        with self._changed:
            call = self._calls.pop(thread, None)
        self._generating.discard(thread)
        self.listeners()
        return call.completion.finish(Stop.CANCELLED) if call else self.engine.cancel(thread)

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        self._passed_on.discard(thread)
        self._generating.discard(thread)
        self._prompts.pop(thread, None)
        self.engine.release(thread, keep=keep)

    def describe(self) -> dict[str, Any]:
        return {**self.engine.describe(), "person": True}

    def __repr__(self) -> str:
        return f"HumanEngine({self.engine!r}, {len(self.waiting)} calls wait)"

    def close(self) -> None:
        with self._changed:
            self.is_open = False
            self._calls.clear()
            self._changed.notify_all()
        self.engine.close()
