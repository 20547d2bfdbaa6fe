"""Engines: the G of Algorithm 1, behind one small interface that serves many threads at once.

A scheduler calls `begin` for each thread that generates and then `step` until every call has
finished (or `advance`, where schedulers share an engine): one step is one batch through the model,
for all threads that are generating. A call always names all the tokens that the thread sees
(q + c + Y); what of them is cached already is the engine's own business, so that the answer can
never depend on it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from thread_kit.dialect import Stop
from thread_kit.engines.lock import FairLock
from thread_kit.interrupt import hold_interrupts
from thread_kit.sequence import Span
from thread_kit.trace.events import Edited, Event, Prefilling, Prompted, TokenProbs

ThreadKey = Hashable
"""Which thread it is: anything that can be the key of a dict, apart from None."""


class SessionThread(NamedTuple):
    """The key of a session's thread: the numbers of both."""

    session: int
    thread: int


Tokenize = Callable[..., tuple[int, ...]]
"""As `Engine.tokenize`."""


class EngineError(RuntimeError):
    """The model could not do its work; the message says why and what helps."""


class EngineBusyError(EngineError):
    """There is no place for one more call as long as the others run."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """`done` of `total` tokens before the first new one are in the cache.

    thread: None is the few-shot prompt. evaluated: tokens that this step has evaluated itself,
        where others may have evaluated some; None: all that are new since the last step.
    """

    thread: ThreadKey | None
    done: int
    total: int
    evaluated: int | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """One new token, the text that it adds, and its probabilities, if they were asked for."""

    thread: ThreadKey
    token: int
    text: str
    logprobs: TokenProbs | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished call.

    text, tokens: what was generated, trimmed to the stop string (which is the last of it).
    reused, evaluated: tokens; `seconds` from begin to end.
    lengths, logprobs: the characters that each token adds, and its probabilities, where the engine
        knows them already; None and () where they are those of the call's `Sampled`.
    passes, drafted, accepted, came_true: as in `GeneratedSpan`.
    """

    thread: ThreadKey
    text: str
    tokens: tuple[int, ...]
    stop: Stop
    reused: int
    evaluated: int
    seconds: float
    lengths: tuple[int, ...] | None = None
    logprobs: tuple[TokenProbs, ...] = ()
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    came_true: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Postponed:
    """A call that has not begun after all; whoever asked may ask again, with what is left then."""

    thread: ThreadKey


News = Prefilled | Sampled | Completion | Postponed | Event
"""What a step brings; events are what a replay says itself, and a server that has nothing yet."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """What a call continues, and how: the arguments of `Engine.begin`."""

    tokens: Sequence[int]
    stops: Mapping[str, Stop]
    max_tokens: int
    temperature: float
    seed: tuple[int, ...]
    given: Span | None
    forbid: Collection[str]
    logprobs: Collection[str]

    @property
    def seen(self) -> list[int]:
        """All that the thread sees, with what the call has written already."""
        return [*self.tokens, *(self.given.tokens if self.given else ())]


class Engine(ABC):
    """A source of tokens.

    name: the model's name.
    context_size: how many tokens one thread can see at most.
    lock: held while the model is touched, so that several schedulers, each in a worker thread of
        its own, can share one engine and its batches.
    steps_taken: how many steps this class's `advance` has taken, for whichever scheduler; of an
        engine in front of others, theirs. One with an `advance` of its own leaves it at 0.
    is_open: False once it is closed; every call raises EngineError from then on.
    """

    name: str
    context_size: int
    steps_taken: int = 0
    is_open: bool = True

    def __init__(self) -> None:
        self.lock = FairLock()
        self._mail: dict[ThreadKey, list[News]] = {}

    @abstractmethod
    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        """Text to tokens. `first`: it opens the context, so marks of a beginning belong to it."""

    @abstractmethod
    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        """Evaluate a few-shot prompt once, to be shared by all threads; yields progress.

        Raises EngineError if the prompt does not fit.
        """

    def prefill_prompt(self, sha256: str, tokens: Sequence[int]) -> Iterator[Prefilling | Prompted]:
        """`prefill` as events: its progress, then what it cost.

        What sessions side by side evaluate of the same prompt is counted once in all.
        """
        begun, done, evaluated = time.perf_counter(), None, 0
        for progress in self.prefill(tokens):
            new = 0 if done is None else progress.done - done
            evaluated += new if progress.evaluated is None else progress.evaluated
            done = progress.done
            yield Prefilling(None, progress.done, progress.total)
        seconds = time.perf_counter() - begun
        yield Prompted(sha256, max(len(tokens) - evaluated, 0), evaluated, seconds)

    def assign(self, thread: ThreadKey, prompt: str) -> None:  # noqa: B027 (most have one model)
        """The thread has the few-shot prompt of this hash; said once, before its first call."""

    def tokenizer(self, prompt: str) -> Tokenize:
        """What spells the texts of threads that have the few-shot prompt of this hash."""
        return self.tokenize

    def context_of(self, prompt: str) -> int:
        """How many tokens a thread with the few-shot prompt of this hash can see at most."""
        return self.context_size

    def edits_of(self, thread: ThreadKey) -> list[Edited]:
        """What a person has changed in the call of a thread, of which the events do not tell yet.

        Of a recording alone, and before `cancel`.
        """
        return []

    def describe_other(self, prompt: str) -> dict[str, Any] | None:
        """Facts of the model that answers threads with this prompt, where it is another one."""
        return None

    def begin(
        self,
        thread: ThreadKey,
        tokens: Sequence[int],
        *,
        stops: Mapping[str, Stop],
        max_tokens: int,
        temperature: float = 0.0,
        seed: tuple[int, ...] = (0,),
        given: Span | None = None,
        forbid: Collection[str] = (),
        logprobs: Collection[str] = (),
    ) -> None:
        """Ask for a continuation of `tokens`; `step` brings it.

        thread: any key, as long as no two threads that are alive share it.
        stops: the strings that end the call, each with what it means; the string is kept.
        temperature: 0 takes the likeliest token; above it, `seed` and place decide the draw.
        given: what the call has written already, without a stop string: it goes on behind it, and
            its `Completion` holds both. max_tokens counts both.
        forbid: strings that must not be completed before the next line break.
        logprobs: strings whose probability each `Sampled` tells (`engines/token_probs.py`); it
            costs a little.

        Raises EngineBusyError where as many calls run already as there is room for, EngineError
        where this engine is closed, cannot forbid anything, or knows no probabilities; ValueError
        if the thread generates already, or there is nothing to continue.
        """
        if not tokens:
            raise ValueError("there are no tokens to continue")
        request = GenerateRequest(
            tokens, stops, max_tokens, temperature, seed, given, forbid, logprobs
        )
        self.submit(thread, request)

    @abstractmethod
    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        """`begin`, as an engine has it: its arguments are one value."""

    def _must_be_open(self) -> None:
        if not self.is_open:
            raise EngineError(f"{self.name} is closed; load it again ({type(self).__name__})")

    @staticmethod
    def _must_be_idle(thread: ThreadKey, generating: Container[ThreadKey]) -> None:
        if thread in generating:
            raise ValueError(f"thread {thread} is generating already; wait for its call to finish")

    def _refuse_forbid(self, marks: Collection[str]) -> None:
        if marks:
            raise EngineError(
                f"{self.name} cannot be kept from writing {', '.join(marks)}: only a llama.cpp "
                "model in this process can; load one, or write other text in its place"
            )

    def _refuse_logprobs(self, marks: Collection[str]) -> None:
        if marks:
            raise EngineError(
                f"{self.name} does not tell what it weighed: only a llama.cpp model in this "
                "process does; load one, or leave logprobs=True away"
            )

    @abstractmethod
    def step(self) -> Sequence[News]:
        """Take every call that has begun one step further; [] when there is none."""

    def advance(self, *threads: ThreadKey) -> Sequence[News]:
        """What is new for these threads, in their order: all that generate for one scheduler.

        Takes one step for every call of every scheduler, unless another scheduler's step has
        brought news for one of these threads already.
        """
        with self.lock:
            if not any(thread in self._mail for thread in threads):
                with hold_interrupts():  # in the middle of a step one would cost others their news
                    self.steps_taken += 1
                    self._send(self.step())
            return [news for thread in threads for news in self._mail.pop(thread, [])]

    @abstractmethod
    def cancel(self, thread: ThreadKey) -> Completion | None:
        """End a call at once; what it generated so far, or None if there is no such call.

        Of a call that is over without its scheduler's knowing, all of it (`_take_mail`).
        """

    def _send(self, news: Iterable[News]) -> None:
        """Keep news for the schedulers of their threads, until these ask."""
        for one in news:
            if (key := getattr(one, "thread", None)) is not None:
                self._mail.setdefault(key, []).append(one)

    def _take_mail(self, thread: ThreadKey) -> Completion | None:
        """What another scheduler's step brought of a call, if it was its end."""
        mail = self._mail.pop(thread, [])
        return next((news for news in mail if isinstance(news, Completion)), None)

    @abstractmethod
    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        """The thread is over: free what the engine keeps for it.

        keep: leave it, as long as nobody needs the room, for who begins with the same tokens; it
            can be released again, and is free then.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Facts for the header of a trace (model, file, hash, offload ...); JSON values."""

    @abstractmethod
    def close(self) -> None:
        """Free everything; the engine cannot be used afterwards. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
