"""A session drives the threads of one episode over an engine and an environment.

It is a generator of events: a Step button calls `next()`, `run` drains it, a `Worker` drains it
beside a notebook that stays alive, tests iterate over it. The threads themselves are the
generators of `thread.py`; here their requests are met, one thread at a time (join
synchronization: a parent listens until its child is over). Budgets are kept here, outside the
model's reach.
"""

from __future__ import annotations

import inspect
import itertools
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from thread_kit import exchange
from thread_kit.dialect import Dialect, Stop
from thread_kit.engines import Call, Engine, Prefilled, Sampled
from thread_kit.envs import Env
from thread_kit.events import (
    Acted,
    Closed,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Prefilling,
    Prompted,
    Returned,
    Spawned,
    Token,
    plain,
)
from thread_kit.namespace import LiteralNamespace, Namespace, PythonNamespace
from thread_kit.progress import Progress
from thread_kit.prompts import EMPTY, Prompt
from thread_kit.recorder import Recorder
from thread_kit.sandbox import MontySandbox, Sandbox
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.soundness import interrupt_stops, must_be_numbers, must_be_sound, versions
from thread_kit.thread import (
    Act,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    Request,
    Spawn,
    Status,
    thread,
)
from thread_kit.trace import Episode

_KEYS = itertools.count()  # threads of several sessions may share one engine


class _Over(Exception):  # noqa: N818 (no error: every episode is over one day)
    """The episode cannot go on: a budget is spent, or somebody stopped it."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(slots=True)
class _Running:
    """A thread that is alive: its generator, its variables, and what it waits to be sent."""

    id: int
    depth: int
    context: Span
    prompt: Prompt
    namespace: Namespace
    steps: Generator[Request, Any, Finished]
    key: int = field(default_factory=lambda: next(_KEYS))
    reply: Any = None
    shown: int = 0
    child: int = -1
    defined: dict[str, Any] = field(default_factory=dict)


class Session:
    """One episode, from its first token to its end.

    engine: the model.
    env: the environment, whose reset gives the context of the main thread; or give `context`.
    prompt: the few-shot prompt of every thread; `main_prompt`: another one for the main thread
        (ablation 3 of THREAD paper, E.2; task-general prompts, appendix D).
    phi, psi, xi, abstract: the exchange (`exchange.py`).
    scope: "exported" gives a child a copy of the variables and brings back those that it names;
        "shared" is one namespace for all threads, as in the papers' own implementation.
    variables: False executes nothing (ablation 1 of THREAD paper, E.2).
    sandbox: where the threads' code runs; None is a `MontySandbox` for this episode.
    calls, new_tokens, tokens, depth, seconds: budgets. Calls of the model an episode; new tokens a
        call; new tokens an episode; levels below the main thread; seconds an episode. None is no
        limit. The defaults are the papers' (200 calls, 1000 tokens a call).
    temperature, seed: 0 is greedy.
    path: where the trace is written while it happens (JSONL).

    Raises EngineError, ValueError or OSError at the start for what cannot work at all; afterwards
    an episode ends with a status. A session is a context manager: leaving it closes the episode.
    """

    def __init__(
        self,
        engine: Engine,
        env: Env | None = None,
        *,
        context: str | None = None,
        prompt: Prompt = EMPTY,
        main_prompt: Prompt | None = None,
        phi: exchange.Phi = exchange.phi_last_line,
        psi: exchange.Psi = exchange.psi_print,
        xi: exchange.Xi = exchange.xi_after_mark,
        abstract: exchange.Abstract = exchange.abstract_values,
        dialect: Dialect | None = None,
        scope: Literal["exported", "shared"] = "exported",
        variables: bool = True,
        sandbox: Sandbox | None = None,
        calls: int | None = 200,
        new_tokens: int = 1000,
        tokens: int | None = None,
        depth: int | None = 30,
        seconds: float | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        path: str | Path | None = None,
    ) -> None:
        limits: dict[str, float | None] = {
            "calls": calls,
            "new_tokens": new_tokens,
            "tokens": tokens,
            "seconds": seconds,
            "depth": depth,
        }
        sampling = {"temperature": temperature, "seed": seed}
        must_be_sound(engine, env, context, [prompt, main_prompt], dialect)
        must_be_numbers({**limits, **sampling})
        self.engine = engine
        self.env = env
        self._calls, self._new_tokens, self._tokens = calls, new_tokens, tokens
        self._depth, self._seconds = depth, seconds
        self.temperature, self.seed = temperature, seed
        self._prompt, self._main_prompt = prompt, main_prompt or prompt
        self._dialect = dialect or prompt.dialect
        self._context = context if env is None else env.reset()
        self._own_sandbox: Sandbox | None = None
        self._namespace: Namespace = LiteralNamespace()
        if variables:
            if sandbox is None:
                sandbox = self._own_sandbox = MontySandbox()
            given = env.variables if env else {}
            self._namespace = PythonNamespace(sandbox, scope=scope, variables=given)
        self._thread = partial(
            thread,
            phi=phi,
            psi=psi,
            xi=xi,
            abstract=abstract,
            dialect=self._dialect,
            tokenize=engine.tokenize,
        )
        exchanged = {"phi": phi, "psi": psi, "xi": xi, "abstract": abstract}
        header = {
            "model": engine.describe(),
            "environment": env.name if env else None,
            "task": env.task if env else None,
            "prompts": self._prompts(),
            "dialect": {name: getattr(self._dialect, name) for name in Dialect.__slots__},
            "exchange": {name: _name(function) for name, function in exchanged.items()},
            "scope": scope if variables else "none",
            "limits": limits,
            "sampling": sampling,
            "versions": versions(),
        }
        self.episode = Episode(header)
        self._recorder = Recorder(path, self.episode.header) if path else None
        self._stack: list[_Running] = []
        self._done = False  # the environment's task is over
        self._spent = 0.0  # seconds in which this session worked; a pause does not count
        self._entered = 0.0
        self._stopping = threading.Event()
        self._events: Generator[Event, None, None] = self._guarded()

    def _prompts(self) -> dict[str, Any]:
        return {
            one.sha256: {
                "name": one.name,
                "text": one.text,
                "tokens": self.engine.tokenize(one.text, first=True) if one.examples else (),
            }
            for one in (self._main_prompt, self._prompt)
        }

    # The drive

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        """The next event. It is in the trace, and on disk, before it is handed out."""
        self._must_not_run_elsewhere()
        self._entered = time.perf_counter()
        try:
            return next(self._events)
        finally:
            self._spent, self._entered = self._seconds_spent(), 0.0

    def _must_not_run_elsewhere(self) -> None:
        if inspect.getgeneratorstate(self._events) == inspect.GEN_RUNNING:
            raise RuntimeError("this session is running in a worker thread; use stop() or wait()")

    def _seconds_spent(self) -> float:
        now = time.perf_counter() - self._entered if self._entered else 0.0
        return self._spent + now

    def _guarded(self) -> Generator[Event, None, None]:
        """All events; however the episode ends, its threads, its trace and its cells are closed."""
        over = _Over(Status.STOPPED, "the session was closed")
        try:
            for event in self._drive():
                yield self._record(event)
            main = self.episode.threads[0]
            over = _Over(main.status, main.detail)
        except _Over as reason:
            over = reason
        except (GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            over = _Over(Status.FAILED, f"{type(error).__name__}: {error}")
            raise
        finally:
            ending = self._end_all(over)
        yield from ending

    def _record(self, event: Event) -> Event:
        self.episode.add(event)
        if self._recorder:
            try:
                self._recorder.add(event)
            except OSError:  # a full disk: what is written stays, the rest stays in memory
                self._recorder = None
                raise
        return event

    def _end_all(self, over: _Over) -> list[Event]:
        """End what is alive and close the episode; raises OSError, but only when all is done."""
        events: list[Event] = []
        for one in self._stack:
            if (call := self.engine.cancel(one.key)) and call.tokens:
                events.append(_generated(one, call))
            self.engine.release(one.key)
        self._stack.clear()
        if self._own_sandbox:
            self._own_sandbox.close()
        live = [one.id for one in self.episode.threads.values() if one.status.is_live]
        events += [Ended(one, over.status, over.detail) for one in reversed(live)]
        seconds = self._seconds_spent()
        events.append(Closed(over.status, self.episode.reward, over.detail, seconds))
        full: OSError | None = None
        for event in events:
            try:
                self._record(event)
            except OSError as error:
                full = error
        if full is not None:
            raise full
        return events

    def _drive(self) -> Iterator[Event]:
        """Meet the requests of the thread on top of the stack until the main thread is over."""
        yield from self._prefill()
        yield from self._spawn(None, self._context or "")
        while self._stack:
            self._check()
            one = self._stack[-1]
            try:
                request = one.steps.send(one.reply)
            except StopIteration as stop:
                yield from self._end(one, stop.value)
                continue
            one.reply = None
            match request:
                case Generate(sequence):
                    yield from self._show(one, sequence)
                    yield from self._generate(one, sequence)
                case Execute(lines):
                    yield from self._execute(one, lines)
                case Act(action):
                    yield from self._act(one, action)
                case Spawn(context):
                    yield from self._spawn(one, context)
                case Define(variables):
                    ran = one.namespace.define(variables)
                    one.defined = ran.changed
                    if ran.error:
                        yield ExecutedLine(one.id, "(what the child named)", None, ran.error, {})

    # Requests

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

    def _spawn(self, parent: _Running | None, context: str) -> Iterator[Event]:
        prompt = self._prompt if parent else self._main_prompt
        text = self._dialect.context(context)
        span = Span(Provenance.CONTEXT, text, self.engine.tokenize(text, first=not prompt.examples))
        child = _Running(
            id=len(self.episode.threads),
            depth=parent.depth + 1 if parent else 0,
            context=span,
            prompt=prompt,
            namespace=parent.namespace.child() if parent else self._namespace,
            steps=self._thread(),
        )
        at = len(self.episode.threads[parent.id].sequence) if parent else 0
        yield Spawned(child.id, parent.id if parent else None, at, span, prompt.sha256)
        if parent:
            parent.child = child.id
        if parent and self._depth is not None and child.depth > self._depth:
            detail = f"a thread may be at most {self._depth} levels below the main thread"
            yield Ended(child.id, Status.OUT_OF_DEPTH, detail)
            parent.reply = Finished(Sequence(), Status.OUT_OF_DEPTH, {})
        else:
            self._stack.append(child)

    def _generate(self, one: _Running, sequence: Sequence) -> Iterator[Event]:
        used = self.episode.usage
        if self._calls is not None and used.calls >= self._calls:
            raise _Over(Status.OUT_OF_CALLS, f"{used.calls} calls of the model are used up")
        room, spent = self._new_tokens, Status.TRUNCATED
        if self._tokens is not None and self._tokens - used.generated <= room:
            room, spent = self._tokens - used.generated, Status.OUT_OF_TOKENS
        if room <= 0:
            raise _Over(spent, f"{used.generated} new tokens are used up")
        prompt = self.episode.header["prompts"][one.prompt.sha256]["tokens"]
        self.engine.begin(
            one.key,
            [*prompt, *one.context.tokens, *sequence.tokens],
            stops=self._dialect.stops,
            max_tokens=room,
            temperature=self.temperature,
            seed=(self.seed, one.id),
        )
        call = yield from self._follow(one)
        event = _generated(one, call)
        yield event
        one.shown += 1
        if call.stop is Stop.LENGTH and spent is Status.OUT_OF_TOKENS:
            raise _Over(spent, f"{used.generated + len(event.span)} new tokens are used up")
        one.reply = Generated(event.span, call.stop)

    def _follow(self, one: _Running) -> Generator[Event, None, Call]:
        """The events of a call while it runs; the call when it is over."""
        while True:
            for news in self.engine.advance(one.key):
                match news:
                    case Prefilled(_, done, total):
                        yield Prefilling(one.id, done, total)
                    case Sampled(_, token, text):
                        yield Token(one.id, token, text)
                    case Call():
                        return news
            self._check()

    def _check(self) -> None:
        """Has somebody stopped the session, or is its time over?"""
        if self._stopping.is_set():
            raise _Over(Status.STOPPED, "stopped by the user")
        if self._seconds is not None and self._seconds_spent() > self._seconds:
            raise _Over(Status.OUT_OF_TIME, f"{self._seconds:g} seconds are used up")

    def _show(self, one: _Running, sequence: Sequence) -> Iterator[Event]:
        """The spans that the thread added itself: what was observed, what a child returned."""
        for span in sequence.spans[one.shown :]:
            if span.provenance is Provenance.OBSERVED:
                yield Observed(one.id, span)
            else:
                yield Returned(one.id, one.child, span, plain(one.defined))
        one.shown = len(sequence.spans)

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
        elif self._done:
            one.reply = "The task is over."
        else:
            observation, reward, terminated, truncated, info = self.env.step(action)
            self._done = terminated or truncated
            yield Acted(one.id, action, observation, reward, terminated, truncated, plain(info))
            one.reply = observation

    def _end(self, one: _Running, finished: Finished) -> Iterator[Event]:
        self.engine.release(one.key)
        self._stack.pop()
        details = {
            Status.END_OF_STREAM: "the model ended its text without the end mark",
            Status.TRUNCATED: f"cut after {self._new_tokens} new tokens in one call",
            Status.OUT_OF_CONTEXT: f"a thread sees at most {self.engine.context_size} tokens",
        }
        yield Ended(one.id, finished.status, details.get(finished.status, ""))
        if self._stack:
            self._stack[-1].reply = finished

    # For people

    def run(self, *, progress: bool = True) -> Episode:
        """Run to the end (here, in this thread); the episode.

        An interrupt (Ctrl-C, the notebook's stop button) ends the episode as stopped. Raises what
        went wrong, after the trace has been closed.
        """
        with interrupt_stops(self.stop), Progress(self._calls, hidden=not progress) as bar:
            for event in self:
                bar.show(event)
        return self.episode

    def close(self) -> None:
        """Give the episode up where it is; its trace is closed, its cells are freed."""
        self._must_not_run_elsewhere()
        begun = inspect.getgeneratorstate(self._events) != inspect.GEN_CREATED
        self._events.close()
        if not begun:
            self._end_all(_Over(Status.STOPPED, "closed before it began"))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the episode as soon as the model has finished its step; from any thread."""
        self._stopping.set()

    def __repr__(self) -> str:
        return f"Session({self.engine!r}, {self.env!r}, {self.episode!r})"


def _generated(one: _Running, call: Call) -> GeneratedSpan:
    span = Span(Provenance.GENERATED, call.text, call.tokens)
    return GeneratedSpan(one.id, span, call.stop, call.reused, call.evaluated, call.seconds)


def _name(function: Any) -> str:
    return getattr(function, "__name__", repr(function))


__all__ = ["Session"]
