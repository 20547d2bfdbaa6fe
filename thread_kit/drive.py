"""Meets the requests of the threads of one episode: a small scheduler.

A thread that is ready runs until it generates or waits; of several, the one with the lowest number
goes first. When none is ready, the engine takes one step for all that generate. With join
synchronization that is one thread at a time, since every parent listens; children that nobody waits
for (THREAD paper, section 2.2) run beside their parent and beside one another.

No deadlock: a thread waits only for its own children, or for a future that it inherited, which is
an elder child of a thread above it. Take the tree in post-order, children in the order of their
spawning: both kinds stand before the thread that waits, and threads that are spawned later never
change who stands before whom. So the first thread in this order that is not over waits for nobody:
it is ready, or it generates.

What a thread sees never depends on who was faster: a future is taken where its name is
instantiated, and only there do its variables come up, whenever the child was over. (Except where
there is not enough of something for all: a budget, or the cells of the KV cache.)
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from thread_kit.budget import Limits, Over
from thread_kit.dialect import Dialect, Stop
from thread_kit.engines import Call, Engine, EngineBusyError, Prefilled, Sampled
from thread_kit.envs import Env
from thread_kit.events import (
    Acted,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Prefilling,
    Prompted,
    Referred,
    Resolved,
    Returned,
    Spawned,
    Token,
    Waiting,
    plain,
)
from thread_kit.namespace import Namespace
from thread_kit.prompts import Prompt
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.thread import (
    Act,
    Await,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    Request,
    Spawn,
    SpawnAsync,
    Status,
)
from thread_kit.trace import Episode

_KEYS = itertools.count()  # threads of several sessions may share one engine


@dataclass(slots=True)
class _Asked:
    """A call that runs: the new tokens it may have, what it means when they are spent, its end."""

    room: int
    spent: Status
    over: Call | None = None


@dataclass(slots=True)
class _Running:
    """A thread that is alive: its generator, its variables, and what it waits for.

    path: its place in the tree, which does not depend on who was faster, as its number does.
    acts: it may act in the environment: all threads from the main thread down to it are waited for.
    futures: the threads that names stand for, as long as this thread has not taken them.
    request: what it asked for and has to ask again, since there was no room for one more call.
    """

    id: int
    depth: int
    path: tuple[int, ...]
    context: Span
    prompt: Prompt
    namespace: Namespace
    acts: bool
    futures: dict[str, int]
    is_future: bool
    steps: Generator[Request, Any, Finished]
    key: int = field(default_factory=lambda: next(_KEYS))
    reply: Any = None
    request: Request | None = None
    call: _Asked | None = None
    waits_for: int | None = None
    is_held: bool = False
    shown: int = 0
    children: int = 0
    child: int = -1
    taken: tuple[str, int] | None = None
    defined: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        return self.call is None and self.waits_for is None and not self.is_held


class Drive:
    """The threads of one episode that are alive.

    thread: makes the generator of a thread from the futures that it inherits.
    check: called again and again; raises `Over` when somebody has stopped the session.
    """

    def __init__(
        self,
        engine: Engine,
        env: Env | None,
        episode: Episode,
        *,
        thread: Callable[..., Generator[Request, Any, Finished]],
        dialect: Dialect,
        prompts: tuple[Prompt, Prompt],
        namespace: Namespace,
        limits: Limits,
        sampling: Mapping[str, Any],
        check: Callable[[], None],
    ) -> None:
        self.engine = engine
        self.env = env
        self.episode = episode
        self._thread = thread
        self._dialect = dialect
        self._main_prompt, self._prompt = prompts
        self._namespace = namespace
        self._limits = limits
        self._temperature, self._seed = sampling["temperature"], sampling["seed"]
        self._check = check
        self._threads: dict[int, _Running] = {}  # in the order of their numbers
        self._finished: dict[int, Finished] = {}  # of threads that a future stands for
        self._done = False  # the environment's task is over

    def events(self, context: str) -> Iterator[Event]:
        """All events until the main thread is over. Each is in the episode before the next one."""
        yield from self._prefill()
        yield from self._spawn(None, context)
        while self._threads:
            self._check()
            ready = next((one for one in self._threads.values() if one.is_ready), None)
            yield from self._turn(ready) if ready else self._step()

    def cancel(self) -> Iterator[Event]:
        """Give up what is alive, and free what the engine keeps for it; what was generated."""
        for one in self._threads.values():
            call = self.engine.cancel(one.key)
            call = one.call.over if one.call and one.call.over else call
            if call and call.tokens:
                yield _generated(one, call)
            self.engine.release(one.key)
        self._threads.clear()

    def _prefill(self) -> Iterator[Event]:
        for sha, prompt in self.episode.header["prompts"].items():
            if not prompt["tokens"]:
                continue
            begun, first = time.perf_counter(), 0
            for number, done in enumerate(self.engine.prefill(prompt["tokens"])):
                first = first if number else done.done
                yield Prefilling(None, done.done, done.total)
                self._check()
            evaluated = len(prompt["tokens"]) - first
            yield Prompted(sha, first, evaluated, time.perf_counter() - begun)

    # Requests

    def _turn(self, one: _Running) -> Iterator[Event]:
        """What one thread does until its next request is met, or has to wait."""
        request, one.request = one.request, None
        if request is None:
            reply, one.reply = one.reply, None
            try:
                request = one.steps.send(reply)
            except StopIteration as stop:
                yield from self._end(one, stop.value)
                return
        match request:
            case Generate(sequence):
                yield from self._show(one, sequence)
                self._begin(one, request)
            case Execute(lines):
                yield from self._execute(one, lines)
            case Act(action):
                yield from self._act(one, action)
            case Spawn(context):
                yield from self._spawn(one, context)
            case SpawnAsync(context, name):
                yield from self._spawn(one, context, name)
            case Await(name):
                yield from self._await(one, name)
            case Define(variables):
                yield from self._define(one, variables)

    def _spawn(
        self, parent: _Running | None, context: str, future: str | None = None
    ) -> Iterator[Event]:
        prompt = self._prompt if parent else self._main_prompt
        text = self._dialect.context(context)
        span = Span(Provenance.CONTEXT, text, self.engine.tokenize(text, first=not prompt.examples))
        futures = dict(parent.futures) if parent else {}
        if parent:
            parent.children += 1
        child = _Running(
            id=len(self.episode.threads),
            depth=parent.depth + 1 if parent else 0,
            path=(*parent.path, parent.children) if parent else (),
            context=span,
            prompt=prompt,
            namespace=parent.namespace.child() if parent else self._namespace,
            acts=parent.acts and future is None if parent else True,
            futures=futures,
            is_future=future is not None,
            steps=self._thread(futures=tuple(futures)),
        )
        at = len(self.episode.threads[parent.id].sequence) if parent else 0
        yield Spawned(child.id, parent.id if parent else None, at, span, prompt.sha256, future)
        if parent:
            parent.child = child.id
            if future is None:
                parent.waits_for = child.id
            else:
                parent.futures[future] = child.id
        depth = self._limits.depth
        if depth is not None and child.depth > depth:
            detail = f"a thread may be at most {depth} levels below the main thread"
            yield Ended(child.id, Status.OUT_OF_DEPTH, detail)
            self._hand_over(child, Finished(Sequence(), Status.OUT_OF_DEPTH, {}))
        else:
            self._threads[child.id] = child

    def _await(self, one: _Running, name: str) -> Iterator[Event]:
        child = one.futures.pop(name)
        one.taken = name, child
        if child in self._finished:
            one.reply = self._finished[child]
        else:
            one.waits_for = child
            yield Waiting(one.id, child)

    def _define(self, one: _Running, variables: dict[str, Any]) -> Iterator[Event]:
        ran = one.namespace.define(variables)
        if one.taken:
            (name, child), one.taken = one.taken, None
            at = len(self.episode.threads[one.id].sequence)
            yield Resolved(one.id, child, name, at, variables[name], plain(ran.changed))
        else:
            one.defined = ran.changed
        if ran.error:
            yield ExecutedLine(one.id, "(what the child named)", None, ran.error, {})
        one.reply = Executed(one.namespace.variables, None)

    def _execute(self, one: _Running, lines: tuple[str, ...]) -> Iterator[Event]:
        printed = None
        for line in lines:
            self._check()
            ran = one.namespace.run(line)
            if not ran.executed:
                continue
            printed = printed if ran.answer is None else ran.answer
            yield ExecutedLine(one.id, line, ran.printed, ran.error, plain(ran.changed))
        one.reply = Executed(one.namespace.variables, printed)

    def _act(self, one: _Running, action: str) -> Iterator[Event]:
        if self.env is None:
            one.reply = "There is no environment to act in."
        elif not one.acts:  # else what it finds would depend on who was faster
            one.reply = "There is no environment to act in for a thread that nobody waits for."
        elif self._done:
            one.reply = "The task is over."
        else:
            observation, reward, terminated, truncated, info = self.env.step(action)
            self._done = terminated or truncated
            yield Acted(one.id, action, observation, reward, terminated, truncated, plain(info))
            one.reply = observation

    def _end(self, one: _Running, finished: Finished) -> Iterator[Event]:
        self.engine.release(one.key)
        del self._threads[one.id]
        details = {
            Status.END_OF_STREAM: "the model ended its text without the end mark",
            Status.TRUNCATED: f"cut after {self._limits.new_tokens} new tokens in one call",
            Status.OUT_OF_CONTEXT: f"a thread sees at most {self.engine.context_size} tokens",
        }
        yield Ended(one.id, finished.status, details.get(finished.status, ""))
        self._hand_over(one, finished)

    def _hand_over(self, one: _Running, finished: Finished) -> None:
        """To the parent that listens; or to whoever waits for the future, now or later."""
        if one.is_future:
            self._finished[one.id] = finished
        for waiting in self._threads.values():
            if waiting.waits_for == one.id:
                waiting.waits_for, waiting.reply = None, finished

    # Calls of the model

    def _show(self, one: _Running, sequence: Sequence) -> Iterator[Event]:
        """The spans that the thread added itself: observed, returned, or a reference."""
        for span in sequence.spans[one.shown :]:
            match span.provenance:
                case Provenance.OBSERVED:
                    yield Observed(one.id, span)
                case Provenance.REFERENCE:
                    yield Referred(one.id, one.child, span)
                case _:
                    yield Returned(one.id, one.child, span, plain(one.defined))
        one.shown = len(sequence.spans)

    def _begin(self, one: _Running, request: Generate) -> None:
        """Begin a call, or hold the thread back until there is room for one more."""
        others = [other.call.room for other in self._threads.values() if other.call]
        allowed = self._limits.room(self.episode.usage, others)
        if allowed is None:
            self._hold(one, request)
            return
        room, spent = allowed
        prompt = self.episode.header["prompts"][one.prompt.sha256]["tokens"]
        # A number can depend on who was faster; a draw must not.
        seed = (one.id,) if self._dialect.spawn is None else one.path
        try:
            self.engine.begin(
                one.key,
                [*prompt, *one.context.tokens, *request.sequence.tokens],
                stops=self._dialect.stops,
                max_tokens=room,
                temperature=self._temperature,
                seed=(self._seed, *seed),
            )
        except EngineBusyError:
            if not others:
                raise
            self._hold(one, request)
        else:
            one.call = _Asked(room, spent)

    def _hold(self, one: _Running, request: Generate) -> None:
        one.is_held, one.request = True, request

    def _step(self) -> Iterator[Event]:
        """One step of the engine, for all threads that generate."""
        calling = {one.key: one for one in self._threads.values() if one.call}
        if not calling:
            raise RuntimeError("every thread waits for another one; this must not happen")
        found = self.engine.advance(*calling)
        for news in found:  # first of all: whoever closes the session now must not lose a call
            if isinstance(news, Call) and (asked := calling[news.thread].call):
                asked.over = news
        for news in found:
            match news:
                case Prefilled(int(key), done, total):
                    yield Prefilling(calling[key].id, done, total)
                case Sampled(key, token, text):
                    yield Token(calling[key].id, token, text)
                case Call():
                    yield from self._called(calling[news.thread], news)
        self._check()

    def _called(self, one: _Running, call: Call) -> Iterator[Event]:
        asked, one.call = one.call, None
        event = _generated(one, call)
        yield event
        one.shown += 1
        if asked and call.stop is Stop.LENGTH and asked.spent is Status.OUT_OF_TOKENS:
            raise Over(asked.spent, f"{self.episode.usage.generated} new tokens are used up")
        one.reply = Generated(event.span, call.stop)
        for other in self._threads.values():
            other.is_held = False


def _generated(one: _Running, call: Call) -> GeneratedSpan:
    span = Span(Provenance.GENERATED, call.text, call.tokens)
    return GeneratedSpan(one.id, span, call.stop, call.reused, call.evaluated, call.seconds)


__all__ = ["Drive"]
