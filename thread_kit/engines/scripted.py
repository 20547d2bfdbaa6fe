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
)
from thread_kit.engines.kv_cache import common_prefix


class ScriptedEngine(Engine):
    """Replies from a queue, one a call, in the order in which calls begin; or from a function.

    replies: texts; or a function of all that the thread sees (q + c + Y) that gives the text.

    A token is a character (its code point), so that every text can be written and cut anywhere. A
    reply is generated token by token like a model's and stops at the stop strings; one that holds
    none ends the stream. Raises EngineError when the queue is empty.

    context: how many tokens a thread can see.
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
        self._running: dict[int, tuple[deque[int], PartialCompletion]] = {}
        self._prompt: list[int] = []
        self._cached: dict[int, list[int]] = {}

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        yield Prefilled(None, len(tokens) if list(tokens) == self._prompt else 0, len(tokens))
        self._prompt = list(tokens)
        yield Prefilled(None, len(tokens), len(tokens))

    def submit(self, thread: int, wanted: GenerateRequest) -> None:
        self._cannot_forbid(wanted.forbid)
        self._cannot_tell(wanted.logprobs)
        growing = PartialCompletion(thread, wanted.stops, wanted.max_tokens, self.tokenize)
        if wanted.given:
            growing.give(wanted.given)
        tokens = wanted.seen
        self.seen.append("".join(map(chr, tokens)))
        if len(tokens) >= self.context_size:
            growing.stop = Stop.CONTEXT
            reply: deque[int] = deque()
        elif not (self._speak or self._replies):
            raise EngineError("the script is over, and a thread asks for more; add a reply")
        else:
            said = self._speak(self.seen[-1]) if self._speak else self._replies.popleft()
            reply = deque(self.tokenize(said))
            growing.reused = common_prefix(self._cached.get(thread, self._prompt), tokens)
            growing.evaluated = len(tokens) - growing.reused
            self._cached[thread] = tokens
        self._running[thread] = reply, growing

    def step(self) -> list[Prefilled | Sampled | Completion]:
        return [self._one(thread) for thread in list(self._running)]

    def _one(self, thread: int) -> Sampled | Completion:
        reply, growing = self._running[thread]
        if growing.stop is not None or not reply:
            del self._running[thread]
            return growing.finish(Stop.END_OF_STREAM)
        token = reply.popleft()
        text = growing.add(token, chr(token).encode("utf-8", "replace"))
        if growing.stop is None:
            self._cached[thread].append(token)
            growing.evaluated += 1
            if len(self._cached[thread]) >= self.context_size:
                growing.stop = Stop.CONTEXT
        return Sampled(thread, token, text)

    def cancel(self, thread: int) -> Completion | None:
        running = self._running.pop(thread, None)
        return running[1].finish(Stop.CANCELLED) if running else None

    def release(self, thread: int, *, keep: bool = False) -> None:
        self._running.pop(thread, None)
        self._cached.pop(thread, None)

    def describe(self) -> dict[str, Any]:
        return {"engine": "scripted", "name": self.name, "context": self.context_size}

    def __repr__(self) -> str:
        if self._speak:
            return f"ScriptedEngine({self._speak!r})"
        return f"ScriptedEngine({len(self._replies)} replies left)"

    def close(self) -> None:
        self._running.clear()
