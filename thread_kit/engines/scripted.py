"""An engine that says what it was told to say: for teaching, and for tests that need no model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineError,
    GenerateRequest,
    Prefilled,
    Sampled,
    ThreadKey,
)
from thread_kit.engines.kv_cache import common_prefix


class ScriptedEngine(Engine):
    """Replies from a queue, one a call, in the order in which calls begin; or from a function.

    replies: texts; or a function of all that the thread sees (q + c + Y) that gives the text.
    context: how many tokens a thread can see.

    A token is a character (its code point), so that every text can be written and cut anywhere. A
    reply is generated token by token like a model's and stops at the stop strings; one that holds
    none ends the stream. Raises EngineError when the queue is empty.
    """

    def __init__(
        self,
        replies: Iterable[str] | Callable[[str], str],
        *,
        name: str = "scripted",
        context: int = 100_000,
    ) -> None:
        super().__init__()
        self.name = name
        self.context_size = context
        self.seen: list[str] = []
        self._speak = replies if callable(replies) else None
        self._replies = deque(() if callable(replies) else replies)
        self._running: dict[ThreadKey, tuple[deque[int], PartialCompletion]] = {}
        self._prompt: list[int] = []
        self._cached: dict[ThreadKey, list[int]] = {}

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        self._must_be_open()
        return tuple(map(ord, text))

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        self._must_be_open()
        yield Prefilled(None, len(tokens) if list(tokens) == self._prompt else 0, len(tokens))
        self._prompt = list(tokens)
        yield Prefilled(None, len(tokens), len(tokens))

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._must_be_idle(thread, self._running)
        self._refuse_forbid(request.forbid)
        self._refuse_logprobs(request.logprobs)
        completion = PartialCompletion(thread, request.stops, request.max_tokens, self.tokenize)
        if request.given:
            completion.give(request.given)
        tokens = request.seen
        with self.lock:
            self._must_be_open()
            self.seen.append("".join(map(chr, tokens)))
            if len(tokens) >= self.context_size:
                completion.stop = Stop.CONTEXT
                reply: deque[int] = deque()
            elif not (self._speak or self._replies):
                raise EngineError("the script is over, and a thread asks for more; add a reply")
            else:
                text = self._speak(self.seen[-1]) if self._speak else self._replies.popleft()
                reply = deque(self.tokenize(text))
                completion.reused = common_prefix(self._cached.get(thread, self._prompt), tokens)
                completion.evaluated = len(tokens) - completion.reused
                self._cached[thread] = tokens
            self._running[thread] = reply, completion

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        return [self._write_token(thread) for thread in list(self._running)]

    def _spell(self, token: int) -> bytes:
        return chr(token).encode("utf-8", "replace")

    def _write_token(self, thread: ThreadKey) -> Sampled | Completion:
        reply, completion = self._running[thread]
        if completion.stop is not None or not reply:
            del self._running[thread]
            return completion.finish(Stop.END_OF_STREAM)
        token = reply.popleft()
        text = completion.add(token, self._spell(token))
        if completion.stop is None:
            self._cached[thread].append(token)
            completion.evaluated += 1
            if len(self._cached[thread]) >= self.context_size:
                completion.stop = Stop.CONTEXT
        return Sampled(thread, token, text)

    def cancel(self, thread: ThreadKey) -> Completion | None:
        with self.lock:  # another scheduler's step goes through all calls
            running, over = self._running.pop(thread, None), self._take_mail(thread)
            return running[1].finish(Stop.CANCELLED) if running else over

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        with self.lock:
            self._running.pop(thread, None)
            self._cached.pop(thread, None)

    def describe(self) -> dict[str, Any]:
        return {"engine": "scripted", "name": self.name, "context": self.context_size}

    def __repr__(self) -> str:
        if self._speak:
            return f"ScriptedEngine({self._speak!r})"
        return f"ScriptedEngine({len(self._replies)} replies left)"

    def close(self) -> None:
        with self.lock:
            self.is_open = False
            self._running.clear()
