"""The calls of the model that the threads of one episode make, in the engine's shared steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from thread_kit.dialect import Dialect, Stop
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineBusyError,
    Postponed,
    Prefilled,
    Sampled,
    ThreadKey,
)
from thread_kit.prompts import Prompt
from thread_kit.requests import Generate, Generated, Status
from thread_kit.session.limits import EpisodeOver, Limits
from thread_kit.session.live_thread import LiveThread
from thread_kit.session.running_call import RunningCall
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import UNKNOWN, Edited, Event, Idle, Prefilling, Prompted, Token

MOMENT, PATIENCE = 1e-4, 60.0
"""Seconds until a session asks again for room that others' calls take, and until it gives up where
none of them goes on (another session that nobody runs has begun them, say)."""


class Calls:
    """Begins calls as far as there is room, and takes the engine's steps.

    sampling: temperature and seed.
    logprobs: marks whose probabilities each token tells.
    """

    def __init__(
        self,
        engine: Engine,
        episode: Episode,
        dialect: Dialect,
        limits: Limits,
        *,
        sampling: Mapping[str, Any],
        logprobs: tuple[str, ...] = (),
    ) -> None:
        self._engine = engine
        self._episode = episode
        self._dialect = dialect
        self._limits = limits
        self._temperature, self._seed = sampling["temperature"], sampling["seed"]
        self._logprobs = logprobs
        self._running: dict[ThreadKey, RunningCall] = {}
        self._held: list[LiveThread] = []  # until there is room for one more call
        self._busy = EngineBusyError("")  # why they are held
        self._steps_seen, self._waits_since = -1, 0.0

    def begin(self, thread: LiveThread, request: Generate) -> None:
        """Begin a call, or hold the thread back until there is room for one more."""
        # 1. The tokens that the budgets leave for it, beside those that are running.
        others = [call.room for call in self._running.values()]
        allowed = self._limits.room(self._episode.usage, others)
        if allowed is None:
            self._hold(thread, request)
            return
        room, spent = allowed

        # 2. All that the thread sees, and what decides the answer.
        prompt = self._tokens_of(thread.prompt)
        # A number can depend on who was faster; a draw must not.
        place = (thread.id,) if self._dialect.spawn is None else thread.path
        own = request.temperature
        try:
            self._engine.begin(
                thread.key,
                [*prompt, *thread.context.tokens, *request.sequence.tokens],
                stops=self._dialect.stops,
                max_tokens=room,
                temperature=self._temperature if own is None else own,
                seed=(self._seed, *place),
                logprobs=self._logprobs,
            )
        except EngineBusyError as error:
            self._busy = error
            self._hold(thread, request)
            return

        # 3. It runs.
        thread.is_calling = True
        self._running[thread.key] = RunningCall(thread, room, spent, request)

    def _tokens_of(self, prompt: Prompt) -> list[int]:
        prompts = self._episode.header["prompts"]
        if prompt.sha256 not in prompts:
            raise ValueError(
                f"a thread was spawned with {prompt!r}, which the session was not given; name it "
                "among its prompts: Session(..., prompts=[...])"
            )
        return prompts[prompt.sha256]["tokens"]

    def _hold(self, thread: LiveThread, request: Generate) -> None:
        thread.is_held, thread.request = True, request
        self._held.append(thread)

    def step(self) -> Iterator[Event]:
        """One step of the engine, for all threads that generate."""
        calls = sorted(self._running.values(), key=lambda call: call.thread.id)
        if not calls and self._held:
            yield self._wait_for_others()
            return
        if not calls:
            raise RuntimeError("every thread waits for another one; this must not happen")
        news = self._engine.advance(*(call.thread.key for call in calls))
        edits: list[Edited] = []
        for item in news:  # first of all: whoever closes the session now must not lose a call
            if isinstance(item, Edited):
                edits.append(item)
            elif isinstance(item, Completion):
                self._running[item.thread].over, self._running[item.thread].edits = item, edits
                edits = []
        for item in news:
            match item:
                case Prefilled(key, done, total):
                    yield Prefilling(self._running[key].thread.id, done, total)
                case Sampled(key, token, text, logprobs):
                    call = self._running[key]
                    call.lengths.append(len(text))
                    if logprobs and self._logprobs:
                        call.logprobs.append(logprobs)
                    told = None if logprobs == UNKNOWN else logprobs
                    yield Token(call.thread.id, token, text, told)
                case Postponed(key):
                    call = self._running.pop(key)
                    call.thread.request, call.thread.is_calling = call.request, False
                case Completion(key):
                    yield from self._finish(self._running.pop(key), item)
                case Edited():  # a replay's
                    for call in self._running.values():
                        call.edits = [edit for edit in call.edits if edit != item]
                    yield item
                case Idle() | Prefilling() | Prompted():  # a server's; a replay's
                    yield item

    def _finish(self, call: RunningCall, completion: Completion) -> Iterator[Event]:
        thread = call.thread
        thread.is_calling = False
        event = call.to_event(completion)
        yield event
        thread.shown += 1
        if event.stop is Stop.LENGTH and call.spent is Status.OUT_OF_TOKENS:
            used = self._episode.usage.generated
            raise EpisodeOver(call.spent, f"{used} new tokens are used up")
        thread.reply = Generated(event.span, event.stop)
        self._try_held()

    def _wait_for_others(self) -> Idle:
        """Where the calls of other sessions take all the room; raises what the engine said of it if
        they do not go on.
        """
        steps, now = self._engine.steps_taken, time.monotonic()
        if steps != self._steps_seen:
            self._steps_seen, self._waits_since = steps, now
        elif now - self._waits_since > PATIENCE:
            raise self._busy
        time.sleep(MOMENT)
        self._try_held()
        return Idle()

    def _try_held(self) -> None:
        for held in self._held:
            held.is_held = False
        self._held.clear()

    def is_over(self, thread: LiveThread) -> bool:
        """Whether the call of a thread has come to its end, which the thread does not know yet."""
        call = self._running.get(thread.key)
        return call is not None and call.over is not None

    def cancel(self, thread: LiveThread) -> Iterator[Event]:
        """Give up the call of a thread, if it has one; what it has written stays."""
        edits = self._engine.edits_of(thread.key)  # of a call that is given up nobody knows them
        completion = self._engine.cancel(thread.key)
        call = self._running.pop(thread.key, None)
        if call and (ended := call.over or completion) and ended.tokens:
            yield from call.edits or edits
            yield call.to_event(ended)
