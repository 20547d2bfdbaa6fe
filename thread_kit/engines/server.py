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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import Any

from thread_kit.dialect import Stop, find_stop
from thread_kit.engines.cancel_token import CancelToken
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineError,
    GenerateRequest,
    News,
    Prefilled,
    Sampled,
    ThreadKey,
)
from thread_kit.engines.http_client import HttpClient
from thread_kit.engines.server_events import (
    Costs,
    End,
    Written,
    find_fault,
    finish_reason,
    read_tokens,
)
from thread_kit.engines.tokenizers import (
    PieceTokenizer,
    ServerTokenizer,
    Tokenizer,
    check_count,
)
from thread_kit.sequence import Span
from thread_kit.trace.events import Idle

POLL, MOMENT = 0.1, 0.001
"""Seconds that `advance` waits at most, so that a scheduler can look whether to stop; and where
there is news for another one."""

TAKE_ANY_NAME = ("llamacpp", "me")
"""Who own, by their own word, the one model of a llama-server and of llama-cpp-python's server."""

UNKNOWN_CONTEXT = 4096
"""Tokens: what is assumed where a server does not say how much a model sees."""


@dataclass(slots=True)
class _Call:
    """A call that is running: its request, and what has come of it that nobody has seen yet.

    seen: all that the request sends; its last tokens are `given`, what the call begins with.
    """

    seen: list[int]
    completion: PartialCompletion
    given: Span | None = None
    cancel_token: CancelToken = field(default_factory=CancelToken)
    news: deque[Prefilled | Written | End | EngineError] = field(default_factory=deque)
    worker: threading.Thread | None = None

    @property
    def has_failed(self) -> bool:
        return bool(self.news) and isinstance(self.news[0], EngineError)

    @property
    def ready(self) -> bool:
        return bool(self.news) or self.completion.stop is not None


class ServerEngine(Engine):
    """A model behind an OpenAI-compatible completions API.

    base_url: the server's address, with or without /v1.
    model: its name there; None takes the one that the server has. (llama-server takes any name for
        the one that it has.)
    key_name: the environment variable with the key. It is sent over https, and to this machine.
    context: how many tokens a thread can see; None asks the server (4096 where it does not say).
    timeout: seconds without a byte after which a request has failed.
    retries, backoff: how often a request is sent again where that can help (no connection, a
        time-out, 429, 5xx), and the seconds before the first time, which then double.

    With llama-server tokens are the model's: /tokenize gives them, requests send them and calls
    report what the server reused. (A character of several tokens arrives whole; its tokens are
    those of /tokenize.) Any other server is sent text; tokens are then pieces of text
    (`PieceTokenizer`) that only this engine knows, and every count, that of max_tokens and of the
    context, too, is in pieces; nothing is reported as reused.

    Of hosted models only those with completions can be used: a thread goes on in the middle of a
    text, which a chat does not allow.

    Raises EngineError if no server answers, if it refuses the key, if it has several models and
    none was named, or one and another was.
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
        if context is not None and (type(context) is not int or context < 1):
            raise EngineError(f"context={context!r}: give a positive number of tokens")
        for name, number in {"timeout": timeout, "retries": retries, "backoff": backoff}.items():
            kinds = (int,) if name == "retries" else (int, float)
            if type(number) not in kinds or not 0 <= number < 1e9:
                raise EngineError(f"{name}={number!r}: give a number, 0 or more")
        if not timeout:
            raise EngineError("timeout=0 leaves no time for an answer; give seconds")
        self._running: dict[ThreadKey, _Call] = {}
        self._failed: dict[ThreadKey, _Call] = {}  # what they have written is there to be taken
        self._prefills: set[CancelToken] = set()
        self._arrived = threading.Condition()
        self._client = HttpClient(
            base_url, key_name=key_name, timeout=timeout, retries=retries, backoff=backoff
        )
        try:
            self._query_server(model, context)
        except BaseException:
            self._client.close()
            raise

    def _query_server(self, model: str | None, context: int | None) -> None:
        """Ask the server what it is and what it has."""
        # 1. Which models; one is needed.
        answer = self._client.get("/v1/models", patient=False, missing={})
        listed = answer.get("data") if isinstance(answer, dict) else None
        models = [
            facts
            for facts in (listed if isinstance(listed, list) else [])
            if isinstance(facts, dict) and facts.get("id") and isinstance(facts["id"], str)
        ]
        if model is None and len(models) != 1:
            if not models:
                raise EngineError(
                    f"{self._client.url} has no list of models at /v1/models: it is perhaps "
                    "another address, or no server of completions (docs/howto/server.md); else "
                    "name the model: model=..."
                )
            names = self._client.clean(", ".join(facts["id"] for facts in models[:8]))
            raise EngineError(f"{self._client.url} has {names}; name the model: model=...")
        alone = models[0] if len(models) == 1 else {}
        facts = next((facts for facts in models if facts["id"] == model), alone)
        # Some take any name for their model, which may be listed by its file; or without its tag.
        listed_as = facts.get("id", model)
        is_called_so = not model or model in (listed_as, str(listed_as).partition(":")[0])
        if not is_called_so and facts.get("owned_by") not in TAKE_ANY_NAME:
            raise EngineError(
                self._client.clean(
                    f"{self._client.url} has {facts['id']} and no model {model!r}; give the name "
                    "that it has there, or leave it out"
                )
            )
        self._model = model or facts["id"]
        # 2. Whether it is llama-server, which knows the model's own tokens.
        self._props: dict[str, Any] = {}
        if facts.get("owned_by") == "llamacpp":
            props = self._client.get("/props", missing={})
            self._props = props if isinstance(props, dict) else {}
        settings = self._props.get("default_generation_settings")
        self.exact = isinstance(settings, dict)
        self._tokenizer: Tokenizer = PieceTokenizer()
        size = facts.get("max_model_len")  # vLLM's
        self.name = self._client.clean(self._model)
        if isinstance(settings, dict):
            self._tokenizer, size = ServerTokenizer(self._client), settings.get("n_ctx") or size
            # It names a model by its file; where that lies is nobody's business.
            self.name = PurePath(self.name).name.removesuffix(".gguf")
        # 3. How much a thread can see.
        known = size if type(size) is int and size > 0 else None
        self.context_size = context or known or UNKNOWN_CONTEXT
        self._is_assumed = not (context or known)

    # Text and tokens

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        self._must_be_open()
        return tuple(token for token, _ in self._tokenizer.tokenize(text, first=first))

    def _body(
        self, tokens: Sequence[int], max_tokens: int, temperature: float, seed: int
    ) -> dict[str, Any]:
        prompt: list[int] | str = list(tokens)
        if isinstance(self._tokenizer, PieceTokenizer):
            prompt = self._tokenizer.detokenize(tokens)
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": prompt,
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
                f"{self._client.url} sees at most {self.context_size}; "
                + (
                    "the server does not say how much, and that is assumed: say it, with context= "
                    "or --context, or shorten the prompt"
                    if self._is_assumed
                    else "start the server with a larger context (llama-server -c) or shorten the "
                    "prompt"
                )
            )
        if not self.exact:
            yield Prefilled(None, len(tokens), len(tokens))
            return
        # In a thread of its own, so that whoever waits here can look around, and stop it.
        cancel_token, done = CancelToken(), 0
        news: deque[Prefilled | EngineError | None] = deque()
        self._prefills.add(cancel_token)
        progress = chain(self._read_progress(tokens, cancel_token), [None])
        threading.Thread(target=self._read_news, args=(progress, news), daemon=True).start()
        try:
            while True:
                with self._arrived:
                    self._arrived.wait_for(lambda: news, timeout=POLL)
                    one = news.popleft() if news else Prefilled(None, done, len(tokens), 0)
                if one is None:
                    return
                if isinstance(one, EngineError):
                    raise one
                done = one.done
                yield one
        finally:
            cancel_token.cancel()
            self._prefills.discard(cancel_token)

    def _read_progress(
        self, tokens: Sequence[int], cancel_token: CancelToken
    ) -> Iterator[Prefilled]:
        done, total = -1, len(tokens)
        for event in self._client.stream(self._body(tokens, 1, 0.0, 0), cancel_token):
            if progress := event.get("prompt_progress"):
                now = check_count(progress["processed"], total)
                # Servers of some months tell of their first batch when it is evaluated already.
                known = check_count(progress.get("cache", now), now) if done < 0 else done
                done = check_count(now, total, at_least=known)
                yield Prefilled(None, done, total, done - known)
            elif done < 0:  # an older server, which keeps its progress to itself
                done = check_count(Costs.of(event).reused, total)
                yield Prefilled(None, done, total, 0)
            if finish_reason(event):
                break
        if done < total and not cancel_token.is_cancelled:
            yield Prefilled(None, total, total, total - max(done, 0))

    @contextmanager
    def _refuse_malformed(self) -> Iterator[None]:
        """Whatever the reading of an answer raises is the server's fault, and said so.

        Without its cause, which could quote the server, and the server the key.
        """
        try:
            yield
        except (EngineError, GeneratorExit):
            raise
        except Exception as error:
            why = self._client.clean(repr(error))
            raise EngineError(
                f"{self._client.url} sent what no completion looks like ({why}); check that it "
                "offers OpenAI's completions, with streaming"
            ) from None

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._must_be_idle(thread, self._running)
        self._refuse_forbid(request.forbid)
        self._refuse_logprobs(request.logprobs)
        given, tokens = request.given, request.seen
        with self.lock:
            self._must_be_open()
            completion = PartialCompletion(thread, request.stops, request.max_tokens, self.tokenize)
            more = request.max_tokens
            if given:
                completion.give(given)
                more -= len(given)
            call = _Call(tokens, completion, given)
            room = self.context_size - len(tokens)
            if room <= 0:
                completion.stop = Stop.CONTEXT
            elif completion.stop is None:
                # Seeded by place as well, so that a thread's calls do not repeat their draws.
                number = zlib.crc32(repr((*request.seed, len(tokens))).encode()) & 0x7FFFFFFF
                body = self._body(tokens, min(more, room), request.temperature, number)
                cut = Stop.CONTEXT if room < more else Stop.LENGTH
                call.worker = threading.Thread(
                    target=self._read_news,
                    args=(self._read_events(thread, call, body, cut), call.news),
                    name=f"{self.name}, thread {thread}",
                    daemon=True,
                )
                call.worker.start()
            self._failed.pop(thread, None)
            with self._arrived:  # others go through the calls that run
                self._running[thread] = call
                self._arrived.notify_all()

    def _read_news(self, news: Iterable[Any], box: deque[Any]) -> None:
        """Read one request to its end, or to a stop string; runs in a worker thread."""
        try:
            with self._refuse_malformed():
                for one in news:
                    self._post(box, one)
        except EngineError as error:
            self._post(box, error)

    def _post(self, box: deque[Any], news: Any) -> None:
        with self._arrived:
            box.append(news)
            self._arrived.notify_all()

    def _read_events(
        self, thread: ThreadKey, call: _Call, body: dict[str, Any], cut: Stop
    ) -> Iterator[Prefilled | Written | End]:
        """What the events of a request say. cut: why the call is over after its max_tokens."""
        costs = Costs(0, len(call.seen))
        text = call.given.text.encode("utf-8", "replace") if call.given else b""
        counted = written = 0
        has_answered = False
        for event in self._client.stream(body, call.cancel_token):
            if fault := find_fault(event):
                raise EngineError(f"{self._client.url} {fault}")
            has_answered |= bool(event.get("choices"))
            # 1. How far the prompt is evaluated, and what the call has cost so far.
            progress = event.get("prompt_progress")
            if progress and progress["processed"] < progress["total"]:
                yield Prefilled(thread, int(progress["processed"]), int(progress["total"]))
            timings = event.get("timings") or {}
            if timings:
                costs = Costs.of(event)
            new = int(timings.get("predicted_n", counted + 1)) - counted
            counted += new
            # 2. New tokens, up to a stop string, or to as many as were asked for.
            tokens = read_tokens(event, self._tokenizer, exact=self.exact and new == 1)
            for token, piece in tokens:
                if not self.exact:
                    costs = Costs(costs.reused, costs.evaluated + 1)
                written += 1
                text += piece
                found = find_stop(text, len(piece), call.completion.stops)
                if found and found[0] < len(text):  # asked here, where nobody waits for the answer
                    head = text[len(text) - len(piece) : found[0]]
                    self._tokenizer.tokenize(head.decode("utf-8", "replace"))
                yield Written(token, piece, costs)
                if found:
                    return
                if written >= body["max_tokens"]:
                    yield End(cut, costs)
                    return
            # 3. The server's own end.
            if reason := finish_reason(event):
                yield End(cut if reason == "length" else Stop.END_OF_STREAM, costs)
                return
        if not has_answered:
            raise EngineError(f"{self._client.url} ended its answer without a text or a reason")
        yield End(Stop.END_OF_STREAM, costs)

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        with self._arrived:
            self._arrived.wait_for(
                lambda: not self._running or any(call.ready for call in self._running.values())
            )
        with self.lock:
            return self._ready_news(self._running)

    def advance(self, *threads: ThreadKey) -> list[News]:
        """What is new for these threads; `Idle` after a moment, so that its scheduler looks around.

        Requests run by themselves: no scheduler takes steps for another, or sees another's error;
        where another's news is there, its turn is not held up.
        """
        self._must_be_open()

        def ready() -> bool:
            calls = [self._running.get(thread) for thread in threads]
            return any(call is None or call.ready for call in calls)

        def anything() -> bool:
            return ready() or any(call.ready for call in self._running.values())

        with self._arrived:
            self._arrived.wait_for(anything, timeout=POLL)
            self._arrived.wait_for(ready, timeout=MOMENT)
        with self.lock:
            return list(self._ready_news(threads)) or [Idle()]

    def _ready_news(self, threads: Iterable[ThreadKey]) -> list[Prefilled | Sampled | Completion]:
        """The next piece of news of each of these threads that has some.

        Raises what a request failed with before anything is taken, so that no other call's is lost.
        """
        calls = {thread: self._running.get(thread) for thread in threads}
        ready = {thread: call for thread, call in calls.items() if call and call.ready}
        failed = [thread for thread, call in ready.items() if call.has_failed]
        return [self._next_news(thread) for thread in failed or ready]

    def _next_news(self, thread: ThreadKey) -> Prefilled | Sampled | Completion:
        """The next piece of news of a call that has some."""
        completion = (call := self._running[thread]).completion
        if completion.stop is not None:
            return self._drop(thread).completion.finish()
        news = call.news.popleft()
        if isinstance(news, Prefilled):
            return news
        if isinstance(news, EngineError):
            self._failed[thread] = self._drop(thread)
            raise news
        completion.reused, completion.evaluated = news.costs.reused, news.costs.evaluated
        if isinstance(news, End):
            return self._drop(thread).completion.finish(news.stop)
        text = completion.add(news.token, news.piece)
        new = len(completion.tokens) - len(call.given or ())
        if completion.stop is None and len(call.seen) + new >= self.context_size:
            completion.stop = Stop.CONTEXT
        return Sampled(thread, news.token, text)

    def _drop(self, thread: ThreadKey) -> _Call:
        with self._arrived:
            call = self._running.pop(thread)
            call.cancel_token.cancel()
            self._arrived.notify_all()
        return call

    def cancel(self, thread: ThreadKey) -> Completion | None:
        with self.lock:
            if call := self._failed.pop(thread, None):
                return call.completion.finish(Stop.CANCELLED)
            if thread in self._running:
                return self._drop(thread).completion.finish(Stop.CANCELLED)
            return self._take_mail(thread)

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        self.cancel(thread)

    # About

    def describe(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "engine": "server",
            "name": self.name,
            "url": self._client.url,
            "model": self._client.clean(PurePath(self._model).name if self.exact else self._model),
            "context": self.context_size,
            "tokens": "the model's" if self.exact else "pieces of text",
        }
        if self.exact:
            path, build = (self._props.get(name, "") for name in ("model_path", "build_info"))
            facts["file"] = PurePath(self._client.clean(str(path))).name
            facts["build"] = self._client.clean(str(build))
        return facts

    def __repr__(self) -> str:
        return f"ServerEngine({self.name!r} at {self._client.url}, context {self.context_size})"

    def close(self) -> None:
        with self.lock:
            self.is_open = False
            calls = [self._drop(thread) for thread in list(self._running)]
            self._failed.clear()
        for cancel_token in list(self._prefills):
            cancel_token.cancel()
        for call in calls:
            if call.worker:
                call.worker.join(2.0)  # it ends by itself, if not now; nobody waits for its news
        self._client.close()
