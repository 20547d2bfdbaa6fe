"""The scheduler: meets the requests of all threads of one episode.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal

from thread_kit.dialect import Dialect
from thread_kit.engines.engine import Engine, SessionThread, ThreadKey
from thread_kit.envs.env import Env
from thread_kit.prompts import Prompt
from thread_kit.requests import (
    Act,
    Await,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    NewThread,
    Program,
    Restart,
    Restore,
    Show,
    Spawn,
    SpawnAsync,
    Status,
    Steps,
)
from thread_kit.sandbox.namespace import Namespace
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.session.calls import Calls
from thread_kit.session.effects import Effects
from thread_kit.session.failures import Failures, describe_error, describe_traceback
from thread_kit.session.limits import Limits
from thread_kit.session.live_thread import LiveThread
from thread_kit.session.replay import Edits
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    OF_CHILD,
    Ended,
    Event,
    ExecutedLine,
    Instructed,
    Observed,
    Referred,
    Resolved,
    Returned,
    Spawned,
    Waiting,
    plain,
)

KeepCells = bool | Literal["episode"]
"""Whether the cells of threads that end stay: no, until the episode is over, or for its forks."""

UNTIL_OVER: Final = "episode"
"""`KeepCells` of methods whose calls read again what ended threads have read."""

_SESSIONS = itertools.count()  # threads of several sessions may share one engine


class Scheduler:
    """The threads of one episode that are alive.

    calls: begins their calls of the model and takes the engine's steps.
    program: what the main thread runs.
    prompts: of the main thread, and of the others unless a spawn names another one.
    check: called again and again; raises `EpisodeOver` when somebody has stopped the session.
    edits: what a person changed, each handed out at its place.
    keep: whether the cells of a thread that ends are left for later threads ("episode"), or for
        forks of the episode too (True).

    serving: the thread whose request is met now; None in a step, which is for all.
    """

    def __init__(
        self,
        engine: Engine,
        env: Env | None,
        episode: Episode,
        calls: Calls,
        dialect: Dialect,
        limits: Limits,
        *,
        program: Program,
        prompts: tuple[Prompt, Prompt],
        namespace: Namespace,
        check: Callable[[], None],
        edits: Edits,
        keep: Callable[[], KeepCells],
        failures: Failures,
    ) -> None:
        self.engine = engine
        self.episode = episode
        self._calls = calls
        self._program = program
        self._dialect = dialect
        self._main_prompt, self._prompt = prompts
        self._namespace = namespace
        self.limits = limits
        self._check, self._edits, self._keep = check, edits, keep
        self._failures = failures
        self.serving: int | None = None
        self._effects = Effects(env, episode, dialect=dialect, edits=edits, check=check)
        self._session = next(_SESSIONS)
        self._threads: dict[int, LiveThread] = {}  # in the order of their numbers
        # Of these, the ones that wait for no other thread: few, where many listen.
        self._awake: dict[int, LiveThread] = {}
        self._asleep: dict[int, list[LiveThread]] = {}  # by the thread that they wait for
        self._finished: dict[int, Finished] = {}  # of threads that a future stands for
        self._kept: list[ThreadKey] = []  # whose cells the engine has, though they are over

    def events(self, context: str) -> Iterator[Event]:
        """All events until the main thread is over. Each is in the episode before the next one."""
        for sha256, prompt in self.episode.header["prompts"].items():
            if prompt["tokens"]:
                for event in self.engine.prefill_prompt(sha256, prompt["tokens"]):
                    yield event
                    self._check()
        yield from self._spawn(None, context)
        while self._threads:
            self._check()
            ready = [thread for thread in self._awake.values() if thread.is_ready]
            if ready:
                yield from self._turn(min(ready, key=lambda thread: thread.id))
                continue
            if self._edits.has_variables:
                for thread in list(self._threads.values()):
                    yield from self._effects.change_variables(thread)
            self.serving = None
            yield from self._calls.step()
            self._check()

    def thread_of(self, key: ThreadKey) -> int | None:
        """The number of the living thread that an engine knows by this key."""
        living = list(self._threads.values())
        return next((thread.id for thread in living if thread.key == key), None)

    def cancel(self) -> Iterator[Event]:
        """Give up what is alive, and free what the engine keeps for all; what was generated."""
        # What is whole comes first: of an episode that breaks off, what is cut goes on.
        for thread in sorted(self._threads.values(), key=lambda t: not self._calls.is_over(t)):
            try:
                yield from self._calls.cancel(thread)
                self._release(thread.key)
            except Exception as error:  # an engine that is broken has nothing to give up
                self._failures.end_episode(error)
        for key in self._kept if self._keep() is not True else ():
            with suppress(Exception):  # an engine that is broken frees nothing
                self.engine.release(key)
        self._kept.clear()
        self._threads.clear()
        self._awake.clear()
        self._asleep.clear()

    def _release(self, key: ThreadKey) -> None:
        """A thread is over; its cells may stay for those that begin with its tokens."""
        keep = bool(self._keep())
        self.engine.release(key, keep=keep)
        if keep:
            self._kept.append(key)

    def _turn(self, thread: LiveThread) -> Iterator[Event]:
        """What one thread does until its next request is met, or has to wait."""
        # 1. Its next request.
        self.serving = thread.id
        request, thread.request = thread.request, None
        if request is None:
            reply, thread.reply = thread.reply, None
            try:
                request = thread.steps.send(reply)
            except StopIteration as stop:
                finished = stop.value
                if not isinstance(finished, Finished) or finished.status.is_live:
                    raise TypeError(
                        f"a program returned {finished!r:.80}, and no Finished with a status of "
                        "threads that are over"
                    ) from None
                yield from self._end(thread, finished)
                return
            except Exception as error:
                self._fail(thread, error)
                return
            for raised in self._failures.pop_of_psi():
                self._failures.log("psi failed, and its error is what the parent reads", raised)
                yield ExecutedLine(thread.id, OF_CHILD, None, describe_traceback(raised), {})

        # 2. What comes of it.
        match request:
            case Generate(sequence, _):
                yield from self._show(thread, sequence)
                yield from self._effects.change_variables(thread)
                self._calls.begin(thread, request)
            case Execute(lines):
                yield from self._effects.execute(thread, lines)
            case Act(action, nearest):
                yield from self._effects.act(thread, action, nearest)
            case Spawn(context, program, prompt):
                yield from self._spawn(thread, context, program=program, prompt=prompt)
            case SpawnAsync(context, name):
                yield from self._spawn(thread, context, name)
            case Show(sequence):
                yield from self._show(thread, sequence)
            case Restart(text):
                yield from self._effects.restart(thread, text)
            case Restore(actions):
                yield from self._effects.restore(thread, actions)
            case Await(name):
                yield from self._await(thread, name)
            case Define(variables):
                yield from self._define(thread, variables)
            case _:
                raise TypeError(f"a program asked for {request!r:.80}, which is no request")

    def _show(self, thread: LiveThread, sequence: Sequence) -> Iterator[Event]:
        """The spans that the model did not write: observed, returned, instructions ..."""
        for span in sequence.spans[thread.shown :]:
            match span.provenance:
                case Provenance.OBSERVED:
                    yield Observed(thread.id, span)
                case Provenance.REFERENCE:
                    yield Referred(thread.id, thread.child, span)
                case Provenance.INSTRUCTION:
                    yield Instructed(thread.id, span)
                case _:
                    yield Returned(thread.id, thread.child, span, plain(thread.defined))
        thread.shown = len(sequence.spans)

    # Parents and children

    def _spawn(
        self,
        parent: LiveThread | None,
        context: str,
        future: str | None = None,
        *,
        program: Program | None = None,
        prompt: Prompt | None = None,
    ) -> Iterator[Event]:
        # 1. What the child runs, and what it sees: q and c.
        program = program or (parent.program if parent else self._program)
        prompt = prompt or self._prompt_of_child(parent)
        number = len(self.episode.threads)
        if parent and (edit := self._edits.find("context", parent.id, number)):
            yield replace(edit, was=context)
            context = edit.now
        text = self._dialect.context(context)
        key = SessionThread(self._session, number)
        self.engine.assign(key, prompt.sha256)
        tokenize = self.engine.tokenizer(prompt.sha256)
        span = Span(Provenance.CONTEXT, text, tokenize(text, first=not prompt.text))

        # 2. The thread, with what it inherits: variables, futures, and whether it may act.
        futures = dict(parent.futures) if parent else {}
        namespace = parent.namespace.child() if parent else self._namespace
        if parent:
            parent.children += 1
        child = LiveThread(
            id=number,
            key=key,
            depth=parent.depth + 1 if parent else 0,
            path=(*parent.path, parent.children) if parent else (),
            context=span,
            program=program,
            prompt=prompt,
            namespace=namespace,
            lost=parent.lost if parent and namespace is parent.namespace else {},
            acts=parent.acts and future is None if parent else True,
            futures=futures,
            is_future=future is not None,
            steps=program(NewThread(context, self._dialect, tokenize, tuple(futures))),
        )
        at = len(self.episode.threads[parent.id].sequence) if parent else 0
        first = {} if parent else plain(namespace.at_first)
        above = parent.id if parent else None
        yield Spawned(child.id, above, at, span, prompt.sha256, future, first)

        # 3. The parent listens, or goes on with a name that stands for the child.
        if parent:
            parent.child = child.id
            if future is None:
                self._sleep(parent, child.id)
            else:
                parent.futures[future] = child.id

        # 4. The child lives, unless it lies too deep.
        if refusal := self.limits.refuse_depth(child.depth):
            self.engine.release(key)
            yield Ended(child.id, Status.OUT_OF_DEPTH, refusal)
            self._hand_over(child, Finished(Sequence(), Status.OUT_OF_DEPTH, {}))
        else:
            self._threads[child.id] = self._awake[child.id] = child

    def _prompt_of_child(self, parent: LiveThread | None) -> Prompt:
        """The same as its parent's; the main thread may have one of its own."""
        if parent is None:
            return self._main_prompt
        return self._prompt if parent.prompt is self._main_prompt else parent.prompt

    def _await(self, thread: LiveThread, name: str) -> Iterator[Event]:
        child = thread.futures.pop(name, None)
        if child is None:
            names = ", ".join(thread.futures) or "none"
            raise ValueError(f"a program waits for {name!r:.80}, and its futures are: {names}")
        thread.taken = name, child
        if child in self._finished:
            thread.reply = self._read(thread, child, self._finished[child])
        else:
            self._sleep(thread, child)
            yield Waiting(thread.id, child)

    def _define(self, thread: LiveThread, variables: dict[str, Any]) -> Iterator[Event]:
        child = thread.taken[1] if thread.taken else thread.child
        if edit := self._edits.find("returned", thread.id, child):
            yield edit
        ran = self._effects.define(thread, variables)
        if thread.taken:
            (name, child), thread.taken = thread.taken, None
            at = len(self.episode.threads[thread.id].sequence)
            yield Resolved(thread.id, child, name, at, variables[name], plain(ran.changed))
        else:
            thread.defined = ran.changed
        if ran.error:
            yield ExecutedLine(thread.id, OF_CHILD, None, ran.error, {})
        thread.reply = Executed(thread.namespace.variables, None, None, dict(thread.lost))

    def _fail(self, thread: LiveThread, error: Exception) -> None:
        """Its program has raised: the thread waits for its own children, and is over."""
        self._failures.end_thread(thread.id, error)
        threads = self.episode.threads
        sequence, why = threads[thread.id].sequence, describe_error(error)
        own = [name for name, n in thread.futures.items() if threads[n].parent == thread.id]
        thread.steps = _wait_for(own, Finished(sequence, Status.FAILED, {}, error=why))

    def _end(self, thread: LiveThread, finished: Finished) -> Iterator[Event]:
        yield from self._show(thread, finished.sequence)
        if thread.id == 0:
            yield from self._effects.hand_in(thread, finished)
        self._release(thread.key)
        del self._threads[thread.id], self._awake[thread.id]
        details = {
            Status.END_OF_STREAM: "the model ended its text without the end mark",
            Status.TRUNCATED: f"cut after {self.limits.new_tokens} new tokens in one call",
            Status.OUT_OF_CONTEXT: self._describe_context(thread, finished.sequence),
            Status.OUT_OF_CALLS: "the thread's own calls of the model are used up",
            Status.FAILED: finished.error or "",
        }
        detail, traceback = details.get(finished.status, ""), self._failures.tracebacks
        yield Ended(thread.id, finished.status, detail, traceback.get(thread.id, ""))
        self._hand_over(thread, finished)

    def _describe_context(self, thread: LiveThread, sequence: Sequence) -> str:
        """Why there was no room: of its own, or in the cells that all threads share."""
        header, sha256 = self.episode.header, thread.prompt.sha256
        most = self.engine.context_of(sha256)
        seen = len(header["prompts"][sha256]["tokens"]) + len(thread.context) + len(sequence)
        if seen < most and "cells" in header["model"]:
            return (
                f"at {seen} tokens no cell of the cache was left, since others that write at the "
                "same time have them; give context= more, or play fewer at once"
            )
        return f"a thread sees at most {most} tokens"

    def _hand_over(self, thread: LiveThread, finished: Finished) -> None:
        """To the parent that listens; or to whoever waits for the future, now or later."""
        if thread.is_future:
            self._finished[thread.id] = finished
        for waiting in self._asleep.pop(thread.id, ()):
            self._awake[waiting.id] = waiting
            waiting.reply = self._read(waiting, thread.id, finished)

    def _sleep(self, thread: LiveThread, child: int) -> None:
        """Nothing happens in a thread until another one is over."""
        del self._awake[thread.id]
        self._asleep.setdefault(child, []).append(thread)

    def _read(self, thread: LiveThread, child: int, finished: Finished) -> Finished:
        """A child as this thread reads it: a person may have changed what it returns."""
        edit = self._edits.find("returned", thread.id, child)
        return replace(finished, instead=edit.now) if edit else finished


def _wait_for(futures: Iterable[str], finished: Finished) -> Steps:
    """The rest of a thread that is over: nothing runs below it when it ends."""
    for name in futures:
        yield Await(name)
    return finished
