"""Recording an engine, and playing the record: the same tokens, with no model.

    engine = TapeEngine(load_model(), "demo.tape.jsonl")    # answers from the tape, else asks
    engine = TapeEngine.replay("demo.tape.jsonl")           # answers from the tape, else fails

What an engine is asked is known by all that decides the answer: the model, the tokens that the
thread sees, the stop strings, max_tokens, temperature and seed. Equal calls have the same answer,
always the first one that was recorded. So a session over a tape yields the trace that was recorded,
up to the wall-clock seconds that the session itself measures. Calls that were cancelled, or that
failed, are not recorded.

With an engine beside it, a tape that knows the beginning of an episode answers it, and the engine
is asked only from the first difference on. What it evaluates there includes what it has not seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from thread_kit.dialect import Stop
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineError,
    GenerateRequest,
    Prefilled,
    Sampled,
    ThreadKey,
)
from thread_kit.engines.tape_file import Answer, Request, TapeFile
from thread_kit.sequence import Provenance, Span


@dataclass(slots=True)
class _Playing:
    """A call that is answered from the tape."""

    answer: Answer
    rest: deque[tuple[int, Any]]
    text: str
    tokens: list[int]


@dataclass(slots=True)
class _Recording:
    """A call that the engine is answering."""

    request: Request
    news: list[tuple[int, Any]]


class TapeEngine(Engine):
    """An engine and a tape of it, or a tape alone (`replay`).

    engine: asked for what is not on the tape; it is closed with this one. None asks nobody.
    path: the tape (JSONL). A file that is there already is played and continued.

    Raises EngineError if the file is no tape, or the tape of another model.
    """

    def __init__(self, engine: Engine | None, path: str | Path) -> None:
        super().__init__()
        self._engine = engine
        self._tape = TapeFile(path)
        if engine is not None:
            size = engine.context_size
            self._tape.open({"model": engine.describe(), "name": engine.name, "context": size})
        elif not self._tape.header:
            raise EngineError(f"there is no tape at {path}; record one: TapeEngine(engine, path)")
        self.name = self._tape.header["name"]
        self.context_size = self._tape.header["context"]
        self._playing: dict[ThreadKey, _Playing] = {}
        self._recording: dict[ThreadKey, _Recording] = {}
        self._waiting: dict[ThreadKey, tuple[Request, str]] = {}  # for the answer to an equal call
        self._unseen: list[tuple[int, ...]] = []  # prompts that only the tape has evaluated
        self._open = True

    @classmethod
    def replay(cls, path: str | Path) -> Self:
        """The engine that was recorded, without it; raises EngineError where there is no tape."""
        return cls(None, path)

    def _must_be_open(self) -> None:
        if not self._open:
            raise EngineError(f"the tape {self._tape.path} is closed; open it again")

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        self._must_be_open()
        with self.lock:
            known = self._tape.texts.get((text, first))
            if known is not None:
                return known
            if self._engine is None:
                raise self._tape.missing_text(text, first)
            tokens = tuple(self._engine.tokenize(text, first=first))
            self._tape.add_text(text, first, tokens)
            return tokens

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        self._must_be_open()
        wanted = tuple(tokens)
        known = self._tape.prompts.get(wanted)
        if known is not None:
            if self._engine is not None and wanted not in self._unseen:
                self._unseen.append(wanted)
            yield from (Prefilled(None, done, total) for done, total in known)
            return
        if self._engine is None:
            raise self._tape.missing_prompt(wanted)
        news = []
        for one in self._engine.prefill(tokens):
            news.append((one.done, one.total))
            yield one
        with self.lock:
            self._tape.add_prompt(wanted, tuple(news))

    def submit(self, thread: ThreadKey, wanted: GenerateRequest) -> None:
        self._refuse_logprobs(wanted.logprobs)
        self._must_be_idle(thread, {**self._playing, **self._recording, **self._waiting})
        with self.lock:
            self._must_be_open()
            self._answer(thread, Request.of(wanted), wanted.given.text if wanted.given else "")

    def _answer(self, thread: ThreadKey, request: Request, text: str = "") -> None:
        answer = self._tape.calls.get(request)
        if answer is not None:
            begun = request.tokens[len(request.tokens) - request.given :]
            self._playing[thread] = _Playing(answer, deque(answer.news), text, list(begun))
        elif self._engine is None:
            raise self._tape.missing_call(request)
        elif any(one.request == request for one in self._recording.values()):
            self._waiting[thread] = request, text
        else:
            self._show_prompt(request.tokens)
            seen = len(request.tokens) - request.given
            given = Span(Provenance.GENERATED, text, request.tokens[seen:])
            wanted = GenerateRequest(
                tokens=request.tokens[:seen],
                stops={mark: Stop(stop) for mark, stop in request.stops},
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                seed=request.seed,
                given=given if request.given else None,
                forbid=request.forbid,
                logprobs=(),
            )
            self._engine.submit(thread, wanted)
            self._recording[thread] = _Recording(request, [])

    def _show_prompt(self, tokens: tuple[int, ...]) -> None:
        """The engine evaluates, once, the few-shot prompt that the tape has spared it so far."""
        assert self._engine is not None
        for prompt in [one for one in self._unseen if tokens[: len(one)] == one]:
            self._unseen.remove(prompt)
            for _ in self._engine.prefill(prompt):
                pass

    def _go_on(self, thread: ThreadKey) -> None:
        """A call that waits for an equal one goes on, if that one is over."""
        request, text = self._waiting.get(thread, (None, ""))
        if request and not any(one.request == request for one in self._recording.values()):
            del self._waiting[thread]
            self._answer(thread, request, text)

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        with self.lock:
            for thread in list(self._waiting):
                self._go_on(thread)
            played = [self._play(thread) for thread in list(self._playing)]
        if not self._recording or self._engine is None:
            return played
        return played + [self._record(news) for news in self._engine.step()]

    def advance(self, *threads: ThreadKey) -> list[Prefilled | Sampled | Completion]:
        """What is new for these threads; the engine is asked by its own `advance`."""
        self._must_be_open()
        with self.lock:
            for thread in threads:
                self._go_on(thread)
            played = [self._play(thread) for thread in threads if thread in self._playing]
        recorded = [thread for thread in threads if thread in self._recording]
        if not recorded or self._engine is None:
            return played
        return played + [self._record(news) for news in self._engine.advance(*recorded)]

    def _play(self, thread: ThreadKey) -> Prefilled | Sampled | Completion:
        playing = self._playing[thread]
        if not playing.rest:
            del self._playing[thread]
            end = playing.answer
            return Completion(
                thread, end.text, end.tokens, end.stop, end.reused, end.evaluated, end.seconds
            )
        number, said = playing.rest.popleft()
        if not isinstance(said, str):
            return Prefilled(thread, number, said)
        playing.text += said
        playing.tokens.append(number)
        return Sampled(thread, number, said)

    def _record(self, news: Prefilled | Sampled | Completion) -> Prefilled | Sampled | Completion:
        recording = self._recording.get(news.thread) if news.thread is not None else None
        if recording is None:
            return news
        match news:
            case Prefilled(_, done, total):
                recording.news.append((done, total))
            case Sampled(_, token, text):
                recording.news.append((token, text))
            case Completion(thread, text, tokens, stop, reused, evaluated, seconds):
                said = tuple(recording.news)
                with self.lock:
                    answer = Answer(said, text, tokens, stop, reused, evaluated, seconds)
                    self._tape.add_call(recording.request, answer)
                    del self._recording[thread]
        return news

    def cancel(self, thread: ThreadKey) -> Completion | None:
        with self.lock:
            if thread in self._waiting:
                del self._waiting[thread]
                return Completion(thread, "", (), Stop.CANCELLED, 0, 0, 0.0)
            playing = self._playing.pop(thread, None)
            if playing is not None:
                end = playing.answer
                left = sum(isinstance(said, str) for _, said in playing.rest)
                return Completion(
                    thread,
                    playing.text,
                    tuple(playing.tokens),
                    Stop.CANCELLED,
                    end.reused,
                    max(end.evaluated - left, 0),
                    0.0,
                )
            self._recording.pop(thread, None)
        return self._engine.cancel(thread) if self._engine else None

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        with self.lock:
            self._playing.pop(thread, None)
            self._waiting.pop(thread, None)
            self._recording.pop(thread, None)
        if self._engine is not None:
            self._engine.release(thread, keep=keep)

    def describe(self) -> dict[str, Any]:
        """The facts of the model that was recorded: a replay's trace is the recording's."""
        return dict(self._tape.header["model"])

    def __repr__(self) -> str:
        calls = len(self._tape.calls)
        source = f"of {self._engine!r}" if self._engine else f"of {self.name!r}, replayed"
        return f"TapeEngine({str(self._tape.path)!r} {source}, {calls} calls)"

    def close(self) -> None:
        self._open = False
        self._playing.clear()
        self._recording.clear()
        self._waiting.clear()
        if self._engine is not None:
            self._engine.close()
