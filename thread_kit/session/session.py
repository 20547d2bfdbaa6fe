"""A session drives the threads of one episode over an engine and an environment.

It is a generator of events: a Step button calls `next()`, `run` drains it, a `Worker` drains it
beside a notebook that stays alive, tests iterate over it. The threads themselves are the generators
of `thread.py`, and `session/scheduler.py` meets their requests; here is what surrounds them: what a
person can set, the trace, time, and an end for everything, however the episode ends.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Generator, Iterator
from collections.abc import Sequence as SequenceOf
from functools import partial
from pathlib import Path
from typing import Any, Literal

from thread_kit import exchange
from thread_kit.dialect import Dialect
from thread_kit.engines.engine import Engine, ThreadKey
from thread_kit.engines.lock import when_free
from thread_kit.envs.env import Env
from thread_kit.interrupt import hold_interrupts, stop_on_interrupt
from thread_kit.program import thread_program
from thread_kit.prompts import EMPTY, Prompt
from thread_kit.requests import Program, Status
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.namespace import LiteralNamespace, Namespace, PythonNamespace
from thread_kit.sandbox.sandbox import Sandbox
from thread_kit.session.calls import Calls
from thread_kit.session.checks import (
    check_exchange,
    check_futures,
    check_numbers,
    check_parts,
    check_program,
    check_replay,
    warn_of_no_teacher,
    warn_of_two_teachers,
)
from thread_kit.session.effects import must_be_text
from thread_kit.session.failures import Failures, describe_error
from thread_kit.session.fork import plan_fork
from thread_kit.session.limits import EpisodeOver, Limits
from thread_kit.session.progress import Progress
from thread_kit.session.replay import Replay, unwrap
from thread_kit.session.scheduler import KeepCells, Scheduler
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Closed, Ended, Event
from thread_kit.trace.header import make_header
from thread_kit.trace.writer import TraceWriter


class Session:
    """One episode, from its first token to its end.

    engine: the model.
    env: the environment, whose reset gives the context of the main thread; or give `context`.
    prompt: the few-shot prompt of every thread; `main_prompt`: another one for the main thread
        (ablation 3 of THREAD paper, E.2; task-general prompts, appendix D).
    program: what the main thread runs (`methods/`); None is THREAD.
    prompts: further few-shot prompts, which threads of the program are spawned with.
    phi, psi, xi, abstract: the exchange (`exchange.py`) of THREAD; None takes those of the dialect.
    dialect: the marks; None takes those of the prompt. With `ASYNC` a thread can go on while its
        child runs (THREAD paper, section 2.2).
    scope: "exported" gives a child a copy of the variables and brings back those that it names;
        "shared" is one namespace for all threads; "own" gives each thread its own, from and to
        which nothing is handed; "none" executes nothing (the last two: ablation 1 of THREAD paper,
        E.2, where threads compute and where they do not).
    sandbox: where the threads' code runs; None is the environment's own for this episode, or a
        `MontySandbox`.
    calls, new_tokens, tokens, depth, seconds: budgets. Calls of the model an episode; new tokens a
        call; new tokens an episode; levels below the main thread; seconds an episode. None is no
        limit. The defaults are those of THREAD's released code (200 calls, 1000 tokens a call).
        Threads that run at the same time share them; where `tokens` does not cover new_tokens
        for each, they take turns.
    temperature, seed: 0 is greedy.
    path: where the trace is written while it happens (JSONL); an older file of that name is kept
        beside it, with a number in its name.
    logprobs: tell for each token what the model weighed: the chances of the dialect's marks, and
        the likeliest tokens (`engines/token_probs.py`). It costs some time; a llama.cpp model in
        this process only.
    replay: what it repeats before it goes on by itself, as `fork` and a suite's resumed episodes
        do.

    A session has one switch beside these: `session.keep_cells = True` leaves the cells of threads
    that end in the cache as long as nobody needs the room, so that a fork finds them; "episode"
    until the episode is over, for threads that begin with the tokens of earlier ones. It makes the
    model slower, since attention passes over them: by 10 to 17% beside 1,000 to 4,000 kept cells
    (data/bench). Over a `ReplayEngine`, or with a replay, a session repeats what was recorded;
    where that happens otherwise the episode ends as failed, and `session.error` is the ReplayError.

    Raises EngineError, ValueError, TypeError (an environment's text is none) or OSError at the
    start for what cannot work at all. Afterwards
    an episode ends with a status, whatever fails: model, environment, sandbox, disk, or a function
    of a person's (`session/failures.py`); nothing but KeyboardInterrupt is raised. A session is a
    context manager: leaving it closes the episode.
    """

    def __init__(
        self,
        engine: Engine,
        env: Env | None = None,
        *,
        context: str | None = None,
        prompt: Prompt = EMPTY,
        main_prompt: Prompt | None = None,
        program: Program | None = None,
        prompts: SequenceOf[Prompt] = (),
        phi: exchange.Phi | None = None,
        psi: exchange.Psi | None = None,
        xi: exchange.Xi | None = None,
        abstract: exchange.Abstract | None = None,
        dialect: Dialect | None = None,
        scope: Literal["exported", "shared", "own", "none"] = "exported",
        sandbox: Sandbox | None = None,
        calls: int | None = 200,
        new_tokens: int = 1000,
        tokens: int | None = None,
        depth: int | None = 30,
        seconds: float | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        path: str | Path | None = None,
        logprobs: bool = False,
        replay: Replay | None = None,
    ) -> None:
        # 1. What cannot work is said before anything begins.
        limits = Limits(calls, new_tokens, tokens, depth, seconds)
        sampling = {"temperature": temperature, "seed": seed}
        check_replay(replay)
        check_parts(engine, env, context, [prompt, main_prompt, *prompts], dialect, sandbox)
        own = {"phi": phi, "psi": psi, "xi": xi, "abstract": abstract}
        check_program(program, main_prompt, prompts, own)
        check_numbers({**limits.facts, **sampling})
        shown = [one for one in (prompt, main_prompt, *prompts) if one is not None and one.text]
        without = prompt.dialect if prompt != EMPTY or env is None else env.dialect
        self._dialect = dialect or (shown[0].dialect if shown else without)
        check_futures(self._dialect, scope)

        # 2. The parts: model, environment, exchange, variables.
        self.engine, self.env = unwrap(engine), env
        self.replay = replay or Replay.of(engine)
        self._forked: tuple[Episode, int | None, dict[str, Any]] | None = None
        if replay:
            engine = replay.engine(engine)
        self.keep_cells: KeepCells = False
        self._seconds = seconds
        self._functions: dict[str, Any] = exchange.exchange_of(
            self._dialect, without_examples=not prompt.examples, **own
        )
        self._program, self._sandbox = program, sandbox
        self._context = context if env is None else must_be_text("reset", env.reset())

        # 3. The record: a header, and the file.
        main_prompt = main_prompt or prompt
        header = make_header(
            model=engine.describe(),
            others=engine.describe_other,
            environment=env.name if env else None,
            task=env.task if env else None,
            prompts=[(p, self._tokens_of(p)) for p in (main_prompt, prompt, *prompts)],
            dialect=self._dialect,
            exchange=self._functions,
            scope=scope,
            limits=limits.facts,
            sampling=sampling,
            program=program,
            fork=self.replay.origin,
            logprobs=logprobs,
            packages=env.packages if env else (),
        )
        warn_of_two_teachers(header["model"], shown)
        if env is not None and program is None and prompt == EMPTY and not shown:
            warn_of_no_teacher(header["model"], env.name)
        self.episode = Episode(header)
        self._own_sandbox: Sandbox | None = None
        namespace = self._namespace(scope)
        try:
            self._writer = TraceWriter(path, self.episode.header) if path else None
        except BaseException:
            if self._own_sandbox is not None:
                self._own_sandbox.close()
            raise

        # 4. The threads, and time.
        limits = self.replay.limits(limits)
        marks = (*self._dialect.stops, self._dialect.close) if logprobs else ()
        self._failures = Failures()
        calls_of_model = Calls(
            *(engine, self.episode, self._dialect, limits), sampling=sampling, logprobs=marks
        )
        self._scheduler = Scheduler(
            *(engine, env, self.episode, calls_of_model, self._dialect, limits),
            program=program or partial(thread_program, **self._failures.guard(self._functions)),
            prompts=(main_prompt, prompt),
            namespace=namespace,
            check=self._check,
            edits=self.replay.edits,
            keep=lambda: self.keep_cells,
            failures=self._failures,
        )
        self._spent = 0.0  # seconds in which this session worked; a pause does not count
        self._entered = 0.0
        self._stopping = threading.Event()
        self._events: Generator[Event, None, None] = self._guarded()

    def _namespace(self, scope: Literal["exported", "shared", "own", "none"]) -> Namespace:
        """The variables of the main thread, in the sandbox that was given, or one of their own."""
        if scope == "none":
            return LiteralNamespace()
        sandbox = self._sandbox
        if sandbox is None:
            sandbox = (self.env.sandbox() if self.env else None) or MontySandbox()
            self._own_sandbox = sandbox
        return PythonNamespace(
            sandbox,
            scope=scope,
            variables=self.env.variables if self.env else {},
            blocks=self._dialect.code,
        )

    def _tokens_of(self, prompt: Prompt) -> tuple[int, ...]:
        tokenize = self.engine.tokenizer(prompt.sha256)
        return tokenize(prompt.text, first=True) if prompt.text else ()

    # One event after the other

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        """The next event. It is in the trace, and on disk, before it is handed out."""
        self._must_not_run_elsewhere()
        self._entered = time.perf_counter()
        try:
            return next(self._events)
        finally:
            self._spent, self._entered = self._worked(), 0.0

    def _must_not_run_elsewhere(self) -> None:
        if inspect.getgeneratorstate(self._events) == inspect.GEN_RUNNING:
            raise RuntimeError("this session is running in a worker thread; use stop() or wait()")

    def _seconds_spent(self) -> float:
        """Of work: this session's, and what was repeated had taken."""
        return self._worked() + self.replay.seconds

    def _worked(self) -> float:
        now = time.perf_counter() - self._entered if self._entered else 0.0
        return self._spent + now

    def _guarded(self) -> Generator[Event, None, None]:
        """All events; however the episode ends, its threads, its trace and its cells are closed."""
        over = EpisodeOver(Status.STOPPED, "the session was closed")
        ending: list[Event] = []
        try:
            for event in self._scheduler.events(self._context or ""):
                yield self._record(event)
            main = self.episode.threads[0]
            over = EpisodeOver(main.status, main.detail)
        except EpisodeOver as reason:
            over = reason
        except Exception as error:
            self._failures.end_episode(error, self._scheduler.serving)
            over = EpisodeOver(Status.FAILED, describe_error(error))
        finally:  # also when the session is closed or interrupted
            # The garbage collector closes a session anywhere, also in another one's step.
            when_free(lambda: ending.extend(self._end_all(over)))
        yield from ending
        if self.error:
            self._failures.log("the episode failed", self.error)

    @property
    def error(self) -> Exception | None:
        """What failed and so ended the episode; None if it ended otherwise, or has not ended."""
        return self._failures.error

    @property
    def failures(self) -> int:
        """Exceptions of its own functions without which it goes on: threads that they have ended,
        but for the main one, and results that psi failed to make.
        """
        return self._failures.count

    def _record(self, event: Event) -> Event:
        self.replay.check(event)
        return self._write(event)

    def _write(self, event: Event) -> Event:
        if event.passing:
            return event
        with hold_interrupts():
            self.episode.add(event)
            if self._writer:
                try:
                    self._writer.add(event)
                except OSError:  # a full disk: what is written stays, the rest stays in memory
                    self._writer = None
                    raise
        return event

    def _end_all(self, over: EpisodeOver) -> list[Event]:
        """End what is alive and close the episode; interrupts wait until that is done."""
        with hold_interrupts():
            return self._end_everything(over)

    def _end_everything(self, over: EpisodeOver) -> list[Event]:
        # 1. The threads' calls, and the sandbox.
        events = list(self._scheduler.cancel())
        try:
            if self._own_sandbox:
                self._own_sandbox.close()
        except Exception as error:
            self._failures.end_episode(error)

        # 2. The last events; what no disk takes any more stays in memory.
        tracebacks = self._failures.tracebacks
        live = [thread.id for thread in self.episode.threads.values() if thread.status.is_live]
        events += [
            Ended(thread, over.status, over.detail, tracebacks.get(thread, ""))
            for thread in reversed(live)
        ]
        reward, given_up = self.episode.reward, over.status in (Status.FAILED, Status.STOPPED)
        if reward is None and self.env is not None and not given_up:
            reward = self.env.untouched_reward
        events.append(Closed(over.status, reward, over.detail, self._seconds_spent()))
        for event in events:  # none of the past's, where a past broke off
            try:
                self._write(event)
            except OSError as error:
                self._failures.end_episode(error)
        return events

    def _check(self) -> None:
        """Has somebody stopped the session, or is its time over?"""
        if self._stopping.is_set():
            raise EpisodeOver(Status.STOPPED, "stopped by the user")
        if self._seconds is not None and self._seconds_spent() > self._seconds:
            raise EpisodeOver(Status.OUT_OF_TIME, f"{self._seconds:g} seconds are used up")

    # For people

    def run(self, *, progress: bool = True) -> Episode:
        """Run to the end (here, in this thread); the episode.

        An interrupt (Ctrl-C, the notebook's stop button) ends the episode as stopped. What failed
        is in its status, in its events and on the console, and is `session.error`.
        """
        with (
            stop_on_interrupt(self.stop),
            Progress(hidden=not progress) as bar,
        ):
            for event in self:
                bar.show(event)
        return self.episode

    def close(self) -> None:
        """Give the episode up where it is; its trace is closed, its cells are freed."""
        self._must_not_run_elsewhere()
        begun = inspect.getgeneratorstate(self._events) != inspect.GEN_CREATED
        self._events.close()
        if not begun:
            self._end_all(EpisodeOver(Status.STOPPED, "closed before it began"))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the episode as soon as the model has finished its step; from any thread."""
        self._stopping.set()

    @property
    def functions(self) -> dict[str, Any]:
        """phi, psi, xi and abstract, by these names."""
        return self._functions

    def thread_of(self, key: ThreadKey) -> int | None:
        """The number of the living thread that the engine knows by this key; None: not of here."""
        return self._scheduler.thread_of(key)

    def fork(self, at: int | None = None, **changes: Any) -> Session:
        """A new session that has this one's past up to event `at`, and goes on from there.

        changes: as of the function `fork`, to which this session's engine, environment (from its
        start) and functions are given. A paused session can be forked as well as one that is over.
        """
        own: dict[str, Any] = {"engine": self.engine, "sandbox": self._sandbox}
        if self.env is not None and "env" not in changes:
            own["env"] = self.env.again()
        recorded = {**self._functions, "program": self._program}
        episode = self.episode
        if at is None and self._forked and self.replay.owes(episode):
            # It was stopped before it had come to its change: the same once more, and the new ones.
            episode, at, before = self._forked
            own = {**before, **own}
        session = fork(episode, at, **{"recorded": recorded, **own, **changes})
        session.keep_cells = self.keep_cells
        return session

    def __repr__(self) -> str:
        return f"Session({self.engine!r}, {self.env!r}, {self.episode!r})"


def fork(episode: Episode, at: int | None = None, **changes: Any) -> Session:
    """A session that repeats an episode's events before `at` and goes on from there.

    episode: recorded, running and paused, or over.
    at: the number of an event, from 0; None is where the episode broke off, in mid-call maybe.
    changes:
        engine: the same model or another one, which then reads the same texts; it must be given.
        env: the same task from its start; it is played up to the fork.
        token, text, forbid_spawn: where event `at` is a call of the model: keep so many of its
            tokens, write this text next (with a mark such as "=>", the call ends there), and do
            not let it listen before the line ends.
        context: where it is a spawn: what the child sees instead.
        observation: where it is an observation or the action before it: what is observed instead.
        returned: where a child returns: what the parent reads instead; its names still come up.
        variables: names and values that the thread of event `at` gets before it; where that is
            what a child returned or what was observed, behind it, before the next call.
        prompt, main_prompt, scope: at 0, before anything has happened.
        recorded: the functions (phi, psi, xi, abstract) of the past, where they are not this kit's
            own; and its program, where it is another method's than THREAD.
        Everything else that `Session` takes holds from the fork on: another phi, temperature, seed,
        budgets, path ... What is not given stays as it was.

    Raises ValueError for what cannot be changed there. If the past does not happen again the
    episode ends as failed, and `session.error` is the ReplayError.
    """
    if "engine" not in changes:
        raise TypeError("fork() wants an engine, which goes on: engine=tk.load_model(), say")
    check_exchange(changes)
    check_exchange(changes.get("recorded") or {})
    session = Session(**plan_fork(episode, at, **changes))
    again = {name: value for name, value in changes.items() if name != "path"}
    session._forked = episode, at, again
    return session
