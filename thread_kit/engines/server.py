"""Threads on a server: llama-server, or whatever offers OpenAI's completions (vLLM, hosted models).

Each call is one streaming request to {base_url}/v1/completions, read by a worker thread of its own,
so that threads that generate at the same time do so in one batch of the server, where it has room
(llama-server -np).

The stop strings are found here and not by the server, which would cut them off without saying
which one it was: the request is broken off as soon as one is complete, and llama-server then stops
generating. A hosted server may write, and bill, a little more.
"""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from thread_kit.dialect import Stop, find_stop
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineError,
    GenerateRequest,
    Prefilled,
    Sampled,
)
from thread_kit.engines.http_client import Exchange, Wire
from thread_kit.engines.tokenizers import Pieces, ServerTokens, Spelled, Spelling
from thread_kit.sequence import Span

GLANCE = 0.1
"""Seconds that `advance` waits at most, so that a driver can look whether it is to stop."""

UNKNOWN_CONTEXT = 4096
"""Tokens: what is assumed where a server does not say how much a model sees."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A token has come. reused, evaluated: tokens, by the server's account up to here."""

    token: int
    piece: bytes
    reused: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class _Finished:
    """The server is done, for this reason."""

    stop: Stop
    reused: int
    evaluated: int


@dataclass(slots=True)
class _Call:
    """A call that is running: its request, and what has come of it that nobody has seen yet.

    seen: all that the request sends; its last tokens are `given`, what the call begins with.
    """

    seen: list[int]
    growing: PartialCompletion
    given: Span | None = None
    exchange: Exchange = field(default_factory=Exchange)
    news: deque[Prefilled | _Written | _Finished | EngineError] = field(default_factory=deque)
    worker: threading.Thread | None = None

    @property
    def ready(self) -> bool:
        return bool(self.news) or self.growing.stop is not None


class ServerEngine(Engine):
    """A model behind an OpenAI-compatible completions API.

    base_url: the server's address, with or without /v1.
    model: its name there; None takes the one that the server has.
    key_name: the environment variable with the key. It is sent over https, and to this machine.
    context: how many tokens a thread can see; None asks the server (4096 where it does not say).
    timeout: seconds without a byte after which a request has failed.
    retries, backoff: how often a request is sent again where that can help (no connection, a
        time-out, 429, 5xx), and the seconds before the first time, which then double.

    With llama-server tokens are the model's: /tokenize gives them, requests send them and calls
    report what the server reused. (A character that is spelled by several tokens arrives whole; its
    tokens are those of /tokenize.) Any other server is sent text; tokens are then pieces of text
    (`Pieces`) that only this engine knows, and every count, max_tokens and the context included, is
    in pieces; nothing is reported as reused.

    Of OpenAI's own models only those with completions can be used (gpt-3.5-turbo-instruct): a
    thread goes on in the middle of a text, which a chat does not allow.

    Raises EngineError if no server answers, if it refuses the key, or if it has several models and
    none was named.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8080",
        model: str | None = None,
        *,
        key_name: str = "OPENAI_API_KEY",
        context: int | None = None,
        timeout: float = 120.0,
        retries: int = 4,
        backoff: float = 0.5,
    ) -> None:
        super().__init__()
        if context is not None and context < 1:
            raise EngineError(f"context={context}: give a positive number of tokens")
        self._open = True
        self._running: dict[int, _Call] = {}
        self._arrived = threading.Condition()
        self._wire = Wire(
            base_url, key_name=key_name, timeout=timeout, retries=retries, backoff=backoff
        )
        try:
            self._meet(model, context)
        except BaseException:
            self._wire.close()
            raise

    def _meet(self, model: str | None, context: int | None) -> None:
        """Ask the server what it is and what it has."""
        answer = self._wire.get("/v1/models", patient=False, missing={})
        listed = answer.get("data") if isinstance(answer, dict) else None
        models = [one for one in listed or [] if isinstance(one, dict) and one.get("id")]
        if model is None and len(models) != 1:
            names = ", ".join(str(one["id"]) for one in models[:8]) or "no list of models"
            raise EngineError(f"{self._wire.url} has {names}; name the model: model=...")
        alone = models[0] if len(models) == 1 else {}  # llama-server takes any name for its model
        facts = next((one for one in models if one["id"] == model), alone)
        self._model = model or str(facts["id"])
        self._props: dict[str, Any] = {}
        if facts.get("owned_by") == "llamacpp":
            props = self._wire.get("/props", missing={})
            self._props = props if isinstance(props, dict) else {}
        self.exact = "default_generation_settings" in self._props
        self._spelling: Spelling = ServerTokens(self._wire) if self.exact else Pieces()
        # llama-server names a model by its file; where that lies is nobody's business.
        self.name = self._model
        if self.exact:
            self.name = PurePath(self._model).name.removesuffix(".gguf")
        said = self._props.get("default_generation_settings", {}).get("n_ctx")
        said = said or facts.get("max_model_len")  # vLLM
        self.context_size = context or (said if isinstance(said, int) else UNKNOWN_CONTEXT)

    # Text and tokens

    def _must_be_open(self) -> None:
        if not self._open:
            raise EngineError(f"{self.name} is closed; make a new ServerEngine")

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        self._must_be_open()
        return tuple(token for token, _ in self._spelling.spell(text, first=first))

    def _prompt(self, tokens: Sequence[int]) -> list[int] | str:
        """Tokens as the server reads them."""
        if isinstance(self._spelling, Pieces):
            return self._spelling.text(tokens)
        return list(tokens)

    def _body(
        self, tokens: Sequence[int], max_tokens: int, temperature: float, seed: int
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": self._prompt(tokens),
            "max_tokens": max_tokens,
            "temperature": max(temperature, 0.0),
            "seed": seed,
            "stream": True,
        }
        if self.exact:
            body |= {
                "cache_prompt": True,
                "return_progress": True,
                "timings_per_token": True,
                "logprobs": 1,  # these carry each token's number
                # The model's own probabilities, as LlamaEngine takes them: not cut to the top.
                "samplers": ["temperature"],
            }
        return body

    # Calls

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        """See Engine. Only llama-server evaluates a prompt ahead of the calls."""
        self._must_be_open()
        if len(tokens) >= self.context_size:
            raise EngineError(
                f"the few-shot prompt takes {len(tokens)} tokens, and a thread of {self.name} at "
                f"{self._wire.url} sees at most {self.context_size}; start the server with a "
                "larger context (llama-server -c) or shorten the prompt"
            )
        done, total = -1, len(tokens)
        if self.exact:
            exchange = Exchange()
            for event in self._wire.stream(self._body(tokens, 1, 0.0, 0), exchange):
                if progress := event.get("prompt_progress"):
                    done = int(progress["processed"])
                    yield Prefilled(None, done, total)
                elif done < 0:  # an older server, which keeps its progress to itself
                    done = _costs(event)[0]
                    yield Prefilled(None, done, total)
                if _finish_reason(event):
                    break
        if done < total:
            yield Prefilled(None, total, total)

    def submit(self, thread: int, wanted: GenerateRequest) -> None:
        self._must_be_idle(thread, self._running)
        self._cannot_forbid(wanted.forbid)
        self._cannot_tell(wanted.logprobs)
        given, tokens = wanted.given, wanted.seen
        with self.lock:
            self._must_be_open()
            growing = PartialCompletion(thread, wanted.stops, wanted.max_tokens, self.tokenize)
            more = wanted.max_tokens
            if given:
                growing.give(given)
                more -= len(given)
            call = _Call(tokens, growing, given)
            room = self.context_size - len(tokens)
            if room <= 0:
                growing.stop = Stop.CONTEXT
            elif growing.stop is None:
                # Seeded by place as well, so that a thread's calls do not repeat their draws.
                number = zlib.crc32(repr((*wanted.seed, len(tokens))).encode()) & 0x7FFFFFFF
                body = self._body(tokens, min(more, room), wanted.temperature, number)
                cut = Stop.CONTEXT if room < more else Stop.LENGTH
                call.worker = threading.Thread(
                    target=self._work,
                    args=(thread, call, body, cut),
                    name=f"{self.name}, thread {thread}",
                    daemon=True,
                )
                call.worker.start()
            self._running[thread] = call

    def _work(self, thread: int, call: _Call, body: dict[str, Any], cut: Stop) -> None:
        """Read one request to its end, or to a stop string; runs in a worker thread."""
        try:
            for news in self._read(thread, call, body, cut):
                self._tell(call, news)
        except EngineError as error:
            self._tell(call, error)
        except Exception as error:
            fault = EngineError(
                f"{self._wire.url} sent what no completion looks like ({error!r}); check that it "
                "offers OpenAI's completions, with streaming"
            )
            fault.__cause__ = error
            self._tell(call, fault)

    def _tell(self, call: _Call, news: Prefilled | _Written | _Finished | EngineError) -> None:
        with self._arrived:
            call.news.append(news)
            self._arrived.notify_all()

    def _read(
        self, thread: int, call: _Call, body: dict[str, Any], cut: Stop
    ) -> Iterator[Prefilled | _Written | _Finished]:
        reused, evaluated = 0, len(call.seen)
        said = call.given.text.encode("utf-8", "replace") if call.given else b""
        counted = 0
        for event in self._wire.stream(body, call.exchange):
            progress = event.get("prompt_progress")
            if progress and progress["processed"] < progress["total"]:
                yield Prefilled(thread, int(progress["processed"]), int(progress["total"]))
            timings = event.get("timings") or {}
            if timings:
                reused, evaluated = _costs(event)
            new = int(timings.get("predicted_n", counted + 1)) - counted
            counted += new
            for token, piece in self._spelled(event, new):
                if not self.exact:
                    evaluated += 1
                yield _Written(token, piece, reused, evaluated)
                said += piece
                if find_stop(said, len(piece), call.growing.stops):
                    return
            if reason := _finish_reason(event):
                yield _Finished(
                    cut if reason == "length" else Stop.END_OF_STREAM, reused, evaluated
                )
                return
        yield _Finished(Stop.END_OF_STREAM, reused, evaluated)

    def _spelled(self, event: dict[str, Any], new: int) -> Spelled:
        """The tokens of what an event adds. new: how many the server counts."""
        choice = _choice(event)
        text = choice.get("text") or ""
        if not text:
            return []
        if self.exact and new == 1:
            listed = (choice.get("logprobs") or {}).get("content") or []
            raw = text.encode("utf-8", "replace")
            if len(listed) == 1 and bytes(listed[0].get("bytes") or ()) == raw:
                return [(int(listed[0]["id"]), raw)]
        return self._spelling.spell(text)

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        with self._arrived:
            self._arrived.wait_for(
                lambda: not self._running or any(call.ready for call in self._running.values())
            )
        with self.lock:
            ready = [thread for thread, call in self._running.items() if call.ready]
            failed = [
                t for t in ready if isinstance(next(iter(self._running[t].news), 0), EngineError)
            ]
            return [self._one(thread) for thread in (failed or ready)]

    def advance(self, *threads: int) -> list[Prefilled | Sampled | Completion]:
        """What is new for these threads; [] after a moment, so that its driver can look around.

        Requests run by themselves: no driver takes steps for another, or sees another's error.
        """
        self._must_be_open()

        def ready() -> bool:
            calls = [self._running.get(thread) for thread in threads]
            return any(call is None or call.ready for call in calls)

        with self._arrived:
            self._arrived.wait_for(ready, timeout=GLANCE)
        with self.lock:
            calls = {thread: self._running.get(thread) for thread in threads}
            return [self._one(thread) for thread, call in calls.items() if call and call.ready]

    def _one(self, thread: int) -> Prefilled | Sampled | Completion:
        """The next piece of news of a call that has some."""
        call = self._running[thread]
        growing = call.growing
        if growing.stop is not None:
            return self._finish(thread)
        news = call.news.popleft()
        if isinstance(news, Prefilled):
            return news
        if isinstance(news, EngineError):
            self._drop(thread)
            raise news
        growing.reused, growing.evaluated = news.reused, news.evaluated
        if isinstance(news, _Finished):
            return self._finish(thread, news.stop)
        text = growing.add(news.token, news.piece)
        new = len(growing.tokens) - len(call.given or ())
        if growing.stop is None and len(call.seen) + new >= self.context_size:
            growing.stop = Stop.CONTEXT
        return Sampled(thread, news.token, text)

    def _finish(self, thread: int, stop: Stop | None = None) -> Completion:
        return self._drop(thread).growing.finish(stop)

    def _drop(self, thread: int) -> _Call:
        with self._arrived:
            call = self._running.pop(thread)
            call.exchange.end()
            self._arrived.notify_all()
        return call

    def cancel(self, thread: int) -> Completion | None:
        with self.lock:
            return self._finish(thread, Stop.CANCELLED) if thread in self._running else None

    def release(self, thread: int, *, keep: bool = False) -> None:
        with self.lock:
            if thread in self._running:
                self._drop(thread)

    # About

    def describe(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "engine": "server",
            "name": self.name,
            "url": self._wire.url,
            "model": PurePath(self._model).name if self.exact else self._model,
            "context": self.context_size,
            "tokens": "the model's" if self.exact else "pieces of text",
        }
        if self.exact:
            facts["file"] = PurePath(str(self._props.get("model_path", ""))).name
            facts["build"] = str(self._props.get("build_info", ""))
        return facts

    def __repr__(self) -> str:
        return f"ServerEngine({self.name!r} at {self._wire.url}, context {self.context_size})"

    def close(self) -> None:
        with self.lock:
            self._open = False
            calls = [self._drop(thread) for thread in list(self._running)]
        for call in calls:
            if call.worker:
                call.worker.join(2.0)  # it ends by itself, if not now; nobody waits for its news
        self._wire.close()


def _choice(event: dict[str, Any]) -> dict[str, Any]:
    choices = event.get("choices") or [{}]
    return choices[0] if isinstance(choices[0], dict) else {}


def _finish_reason(event: dict[str, Any]) -> str | None:
    return _choice(event).get("finish_reason")


def _costs(event: dict[str, Any]) -> tuple[int, int]:
    """Tokens reused and evaluated, by llama-server's account; the last one written is neither."""
    timings = event.get("timings") or {}
    written = max(int(timings.get("predicted_n", 0)) - 1, 0)
    return int(timings.get("cache_n", 0)), int(timings.get("prompt_n", 0)) + written
