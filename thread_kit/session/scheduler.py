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

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from thread_kit.dialect import Dialect, Stop
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineBusyError,
    Prefilled,
    Sampled,
    ThreadKey,
)
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
    Generated,
    Given,
    Program,
    Restart,
    Show,
    Spawn,
    SpawnAsync,
    Status,
)
from thread_kit.sandbox.namespace import Namespace
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.session.effects import Effects
from thread_kit.session.limits import EpisodeOver, Limits
from thread_kit.session.live_thread import Asked, LiveThread, generated_span
from thread_kit.session.replay import Past, ReplayError
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    OF_CHILD,
    UNKNOWN,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Instructed,
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


class Scheduler:
    """The threads of one episode that are alive.

    program: what the main thread runs.
    prompts: of the main thread, and of the others unless a spawn names another one.
    check: called again and again; raises `EpisodeOver` when somebody has stopped the session.
    past: what a fork repeats first.
    keep: whether the cells of a thread that ends are left for a fork.
    logprobs: marks whose chances each token tells.
    """

    def __init__(
        self,
        engine: Engine,
        env: Env | None,
        episode: Episode,
        *,
        program: Program,
        dialect: Dialect,
        prompts: tuple[Prompt, Prompt],
        namespace: Namespace,
        limits: Limits,
        sampling: Mapping[str, Any],
        check: Callable[[], None],
        past: Past,
        keep: Callable[[], bool],
        logprobs: tuple[str, ...] = (),
    ) -> None:
        self.engine = engine
        self.episode = episode
        self._program = program
        self._dialect = dialect
        self._main_prompt, self._prompt = prompts
        self._namespace = namespace
        self._limits = limits
        self._temperature, self._seed = sampling["temperature"], sampling["seed"]
        self._check = check
        self._world = Effects(env, episode, dialect=dialect, past=past, check=check)
        self._past, self._keep, self._logprobs = past, keep, logprobs
        self._prefilled = False
        self._threads: dict[int, LiveThread] = {}  # in the order of their numbers
        # Of these, the ones that wait for no other thread: few, where many listen.
        self._awake: dict[int, LiveThread] = {}
        self._asleep: dict[int, list[LiveThread]] = {}  # by the thread that they wait for
        self._finished: dict[int, Finished] = {}  # of threads that a future stands for

    def events(self, context: str) -> Iterator[Event]:
        """All events until the main thread is over. Each is in the episode before the next one."""
        if not self._past.next_prompted:
            yield from self._prefill()
        yield from self._prompted()
        yield from self._spawn(None, context)
        while self._threads:
            self._check()
            ready = [one for one in self._awake.values() if one.is_ready]
            if ready:
                yield from self._turn(min(ready, key=lambda one: one.id))
            elif self._past.next_prompted:
                yield from self._prompted()
            elif self._past.holds_calls:
                yield from self._repeat()
            elif any(one.request for one in self._calling):
                yield from self._go_on()
            else:
                yield from self._step()

    def thread_of(self, key: ThreadKey) -> int | None:
        """The number of the living thread that an engine knows by this key."""
        living = list(self._threads.values())
        return next((one.id for one in living if one.key == key), None)

    def cancel(self) -> Iterator[Event]:
        """Give up what is alive, and free what the engine keeps for it; what was generated."""
        for one in self._threads.values():
            call = self.engine.cancel(one.key)
            call = one.call.over if one.call and one.call.over else call
            if call and call.tokens:
                yield generated_span(one, call)
            self.engine.release(one.key, keep=self._keep())
        self._threads.clear()
        self._awake.clear()
        self._asleep.clear()

    @property
    def _calling(self) -> list[LiveThread]:
        """The threads that generate, in the order of their numbers."""
        calling = (one for one in self._awake.values() if one.call)
        return sorted(calling, key=lambda one: one.id)

    def _all_wait_but(self, this: LiveThread) -> bool:
        """No other thread has anything to do before the model says something."""
        return not any(one.is_ready for one in self._awake.values() if one is not this)

    def _prefill(self) -> Iterator[Event]:
        again, self._prefilled = bool(self._past.done), True
        for sha, prompt in self.episode.header["prompts"].items():
            if not prompt["tokens"]:
                continue
            begun, first = time.perf_counter(), 0
            for number, done in enumerate(self.engine.prefill(prompt["tokens"])):
                first = first if number else done.done
                yield Prefilling(None, done.done, done.total)
                self._check()
            evaluated = len(prompt["tokens"]) - first
            if evaluated or not again:
                yield Prompted(sha, first, evaluated, time.perf_counter() - begun)

    def _prompted(self) -> Iterator[Event]:
        """What prompts cost, where the past says so next: there it went on with another engine."""
        while event := self._past.next_prompted:
            yield event

    # Requests

    def _turn(self, one: LiveThread) -> Iterator[Event]:
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
            case Generate(sequence, _):
                yield from self._show(one, sequence)
                yield from self._world.change(one)
                yield from self._begin(one, request)
            case Execute(lines):
                yield from self._world.execute(one, lines)
            case Act(action):
                yield from self._world.act(one, action)
            case Spawn(context, program, prompt):
                yield from self._spawn(one, context, program=program, prompt=prompt)
            case SpawnAsync(context, name):
                yield from self._spawn(one, context, name)
            case Show(sequence):
                yield from self._show(one, sequence)
            case Restart(said):
                yield from self._world.restart(one, said)
            case Await(name):
                yield from self._await(one, name)
            case Define(variables):
                yield from self._define(one, variables)

    def _spawn(
        self,
        parent: LiveThread | None,
        context: str,
        future: str | None = None,
        *,
        program: Program | None = None,
        prompt: Prompt | None = None,
    ) -> Iterator[Event]:
        program = program or (parent.program if parent else self._program)
        prompt = prompt or self._prompt_of_child(parent)
        number = len(self.episode.threads)
        if parent and (edit := self._past.edit("context", parent.id, number)):
            yield replace(edit, was=context)
            context = edit.now
        text = self._dialect.context(context)
        span = Span(Provenance.CONTEXT, text, self.engine.tokenize(text, first=not prompt.examples))
        futures = dict(parent.futures) if parent else {}
        if parent:
            parent.children += 1
        child = LiveThread(
            id=number,
            depth=parent.depth + 1 if parent else 0,
            path=(*parent.path, parent.children) if parent else (),
            context=span,
            program=program,
            prompt=prompt,
            namespace=parent.namespace.child() if parent else self._namespace,
            acts=parent.acts and future is None if parent else True,
            futures=futures,
            is_future=future is not None,
            steps=program(Given(context, self._dialect, self.engine.tokenize, tuple(futures))),
        )
        at = len(self.episode.threads[parent.id].sequence) if parent else 0
        yield Spawned(child.id, parent.id if parent else None, at, span, prompt.sha256, future)
        if parent:
            parent.child = child.id
            if future is None:
                self._sleep(parent, child.id)
            else:
                parent.futures[future] = child.id
        depth = self._limits.depth
        if depth is not None and child.depth > depth:
            detail = f"a thread may be at most {depth} levels below the main thread"
            yield Ended(child.id, Status.OUT_OF_DEPTH, detail)
            self._hand_over(child, Finished(Sequence(), Status.OUT_OF_DEPTH, {}))
        else:
            self._threads[child.id] = self._awake[child.id] = child

    def _prompt_of_child(self, parent: LiveThread | None) -> Prompt:
        """The same as its parent's; the main thread may have one of its own."""
        if parent is None:
            return self._main_prompt
        return self._prompt if parent.prompt is self._main_prompt else parent.prompt

    def _await(self, one: LiveThread, name: str) -> Iterator[Event]:
        child = one.futures.pop(name)
        one.taken = name, child
        if child in self._finished:
            one.reply = self._read(one, child, self._finished[child])
        else:
            self._sleep(one, child)
            yield Waiting(one.id, child)

    def _define(self, one: LiveThread, variables: dict[str, Any]) -> Iterator[Event]:
        edit = self._past.edit("returned", one.id, one.taken[1] if one.taken else one.child)
        if edit:
            yield edit
        ran = one.namespace.define(variables)
        if one.taken:
            (name, child), one.taken = one.taken, None
            at = len(self.episode.threads[one.id].sequence)
            yield Resolved(one.id, child, name, at, variables[name], plain(ran.changed))
        else:
            one.defined = ran.changed
        if ran.error:
            yield ExecutedLine(one.id, OF_CHILD, None, ran.error, {})
        one.reply = Executed(one.namespace.variables, None)

    def _end(self, one: LiveThread, finished: Finished) -> Iterator[Event]:
        yield from self._show(one, finished.sequence)
        if one.id == 0:
            yield from self._world.hand_in(one, finished)
        self.engine.release(one.key, keep=self._keep())
        del self._threads[one.id], self._awake[one.id]
        details = {
            Status.END_OF_STREAM: "the model ended its text without the end mark",
            Status.TRUNCATED: f"cut after {self._limits.new_tokens} new tokens in one call",
            Status.OUT_OF_CONTEXT: f"a thread sees at most {self.engine.context_size} tokens",
            Status.OUT_OF_CALLS: "the thread's own calls of the model are used up",
        }
        yield Ended(one.id, finished.status, details.get(finished.status, ""))
        self._hand_over(one, finished)

    def _hand_over(self, one: LiveThread, finished: Finished) -> None:
        """To the parent that listens; or to whoever waits for the future, now or later."""
        if one.is_future:
            self._finished[one.id] = finished
        for waiting in self._asleep.pop(one.id, ()):
            self._awake[waiting.id] = waiting
            waiting.reply = self._read(waiting, one.id, finished)

    def _sleep(self, one: LiveThread, child: int) -> None:
        """Nothing happens in a thread until another one is over."""
        del self._awake[one.id]
        self._asleep.setdefault(child, []).append(one)

    def _read(self, one: LiveThread, child: int, finished: Finished) -> Finished:
        """A child as this thread reads it: a person may have changed what it returns."""
        edit = self._past.edit("returned", one.id, child)
        return replace(finished, instead=edit.now) if edit else finished

    # Calls of the model

    def _show(self, one: LiveThread, sequence: Sequence) -> Iterator[Event]:
        """The spans that the model did not write: observed, returned, instructions ..."""
        for span in sequence.spans[one.shown :]:
            match span.provenance:
                case Provenance.OBSERVED:
                    yield Observed(one.id, span)
                case Provenance.REFERENCE:
                    yield Referred(one.id, one.child, span)
                case Provenance.INSTRUCTION:
                    yield Instructed(one.id, span)
                case _:
                    yield Returned(one.id, one.child, span, plain(one.defined))
        one.shown = len(sequence.spans)

    def _begin(self, one: LiveThread, request: Generate) -> Iterator[Event]:
        """Begin a call, or hold the thread back until there is room for one more."""
        yield from self._prompted()
        in_past = self._past.holds_calls or not (self._past.is_over or self._all_wait_but(one))
        if not self._prefilled and not in_past:
            yield from self._prefill()
        others = [other.call.room for other in self._calling if other.call]
        allowed = self._limits.room(self.episode.usage, others)
        if allowed is None:
            self._hold(one, request)
            return
        room, spent = allowed
        if in_past:
            one.call, one.request = Asked(room, spent), request
            return
        number = self.episode.threads[one.id].usage.calls
        start = self._past.starts.get((one.id, number))
        if start and (found := self._stopped(start.given)):
            yield from self._called(
                one, GeneratedSpan(one.id, start.given, found, 0, 0, 0.0, start.lengths)
            )
            return
        prompt = self._tokens_of(one.prompt)
        # A number can depend on who was faster; a draw must not.
        seed = (one.id,) if self._dialect.spawn is None else one.path
        try:
            self.engine.begin(
                one.key,
                [*prompt, *one.context.tokens, *request.sequence.tokens],
                stops=self._dialect.stops,
                max_tokens=room,
                temperature=self._temperature
                if request.temperature is None
                else request.temperature,
                seed=(self._seed, *seed),
                given=start.given if start and start.given else None,
                forbid=self._dialect.listens if start and start.forbids else (),
                logprobs=self._logprobs,
            )
        except EngineBusyError:
            if not others:
                raise
            self._hold(one, request)
        else:
            one.call = Asked(room, spent)
            one.lengths = list(start.lengths) if start else []
            one.logprobs = [UNKNOWN] * len(one.lengths) if self._logprobs else []
            if start:
                at = 0
                for token, length in zip(start.given.tokens, start.lengths, strict=True):
                    yield Token(one.id, token, start.given.text[at : at + length])
                    at += length

    def _tokens_of(self, prompt: Prompt) -> list[int]:
        prompts = self.episode.header["prompts"]
        if prompt.sha256 not in prompts:
            raise ValueError(
                f"a thread was spawned with {prompt!r}, which the session was not given; name it "
                "among its prompts: Session(..., prompts=[...])"
            )
        return prompts[prompt.sha256]["tokens"]

    def _stopped(self, span: Span) -> Stop | None:
        """What a text ends with that stops a call."""
        return next(
            (s for mark, s in self._dialect.stops.items() if span.text.endswith(mark)), None
        )

    def _hold(self, one: LiveThread, request: Generate) -> None:
        one.is_held, one.request = True, request

    def _repeat(self) -> Iterator[Event]:
        """The recorded calls that come next; several that ended in one step go together."""
        if not self._past.call_is_next:
            raise ReplayError(
                f"at event {self._past.done} every thread waits for the model, and none did when "
                "the episode was recorded; fork before this event"
            )
        while self._past.call_is_next:
            event = self._past.next_call(self.engine)
            one = self._threads.get(event.thread)
            if one is None:
                raise ReplayError(
                    f"thread {event.thread} wrote when the episode was recorded, and is over now; "
                    f"fork before event {self._past.done}"
                )
            one.request, one.is_held = None, False
            for other in list(self._threads.values()):
                yield from self._world.change(other)
            yield from self._called(one, event)

    def _go_on(self) -> Iterator[Event]:
        """Begin the calls that the past has left open."""
        for one in self._calling:
            if isinstance(one.request, Generate):
                request, one.call, one.request = one.request, None, None
                yield from self._world.change(one)
                yield from self._begin(one, request)

    def _step(self) -> Iterator[Event]:
        """One step of the engine, for all threads that generate."""
        calling: dict[ThreadKey, LiveThread] = {one.key: one for one in self._calling}
        if not calling:
            raise RuntimeError("every thread waits for another one; this must not happen")
        found = self.engine.advance(*calling)
        for news in found:  # first of all: whoever closes the session now must not lose a call
            if isinstance(news, Completion) and (asked := calling[news.thread].call):
                asked.over = news
        for news in found:
            match news:
                case Prefilled(key, done, total) if key is not None:
                    yield Prefilling(calling[key].id, done, total)
                case Sampled(key, token, text, logprobs):
                    calling[key].lengths.append(len(text))
                    if logprobs:
                        calling[key].logprobs.append(logprobs)
                    yield Token(calling[key].id, token, text, logprobs)
                case Completion():
                    one = calling[news.thread]
                    yield from self._called(one, generated_span(one, news))
        self._check()

    def _called(self, one: LiveThread, event: GeneratedSpan) -> Iterator[Event]:
        asked, one.call = one.call, None
        number = self.episode.threads[one.id].usage.calls
        for what in ("text", "forbidden"):
            if edit := self._past.edit(what, one.id, number):
                yield edit
        yield event
        one.shown += 1
        if asked and event.stop is Stop.LENGTH and asked.spent is Status.OUT_OF_TOKENS:
            raise EpisodeOver(asked.spent, f"{self.episode.usage.generated} new tokens are used up")
        one.reply = Generated(event.span, event.stop)
        for other in self._awake.values():
            other.is_held = False
