"""What the threads of an episode do outside their texts: lines that are executed, and actions.

Here a thread's code meets the interpreter, and its actions the environment. What a person changed
for a fork (`session/replay.py`) takes the place of what is there.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from thread_kit.code_lines import find_read, note_lost
from thread_kit.dialect import Dialect
from thread_kit.envs.env import Env, Step
from thread_kit.requests import Executed, Finished, Observation, Status
from thread_kit.sandbox.jail.limits import shorten_error
from thread_kit.sandbox.namespace import LineResult, Namespace
from thread_kit.sequence import Provenance
from thread_kit.session.failures import describe_error
from thread_kit.session.limits import EpisodeOver
from thread_kit.session.live_thread import LiveThread
from thread_kit.session.replay import Edits
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    Acted,
    Event,
    ExecutedLine,
    Pictured,
    Restarted,
    plain,
    to_json,
)
from thread_kit.trace.jsonl import to_line

LINES_BYTES = 32 * 2**20
"""What the lines of an episode may write into its trace, with the values that come up from children
(the last of them may go beyond it, as far as the sandbox lets it). A name that is bound to its
value again (`y = y`) is written again, since a trace says what each line has bound; so without this
a few hundred tokens of a model could fill memory and disk."""

REFUSAL = (
    f"MemoryError: what the lines of this episode have printed, bound and drawn takes more than "
    f"{LINES_BYTES / 2**20:.0f} MiB, so no further line is run"
)

STATES_BYTES = 512 * 2**20
"""What the variables of all threads that are alive may take in their sandbox's form, at most (one
line may go beyond it): each has a bound of its own, and 200 may wait at once."""

TOO_MUCH = (
    f"MemoryError: the variables of all threads that are alive take more than "
    f"{STATES_BYTES / 2**20:.0f} MiB, so no line is run until one has ended"
)


class Effects:
    """The environment and the interpreter, as the threads of one episode reach them.

    check: called before each line; raises `EpisodeOver` when somebody has stopped the session.
    """

    def __init__(
        self,
        env: Env | None,
        episode: Episode,
        *,
        dialect: Dialect,
        edits: Edits,
        check: Callable[[], None],
    ) -> None:
        self._env = env
        self._episode = episode
        self._dialect = dialect
        self._edits = edits
        self._check = check
        self._written = 0  # bytes of the trace, by lines: a replay comes to the same number
        self._namespaces: WeakSet[Namespace] = WeakSet()  # that have run a line
        self._done = False  # the environment's task is over
        self._actions: tuple[str, ...] = ()  # since the environment's start
        self._seen: dict[tuple[str, ...], str] = {}  # observations, by all actions up to them

    def execute(self, thread: LiveThread, lines: tuple[str, ...]) -> Iterator[Event]:
        """Run the lines that a thread wrote; it replies with its variables and what they print."""
        printed = error = None
        for line in lines:
            self._check()
            yield from self.change_variables(thread)
            ran = self._run(thread, line)
            if not ran.executed:
                continue
            if ran.answer is not None:
                # What a lost name meant before is no answer; the error is.
                stale = find_read(ran.line, thread.lost)
                printed = thread.lost[stale[0]] if stale and not ran.error else ran.answer
            error = error or ran.error
            note_lost(thread.lost, ran.line, ran.error, ran.changed)
            yield from self._tell(thread, ran)
        yield from self.change_variables(thread)
        thread.reply = Executed(thread.namespace.variables, printed, error, dict(thread.lost))

    def change_variables(self, thread: LiveThread) -> Iterator[Event]:
        """Give a thread the variables that a person has set here."""
        while edit := self._edits.pop_variables(thread.id):
            # As a trace will hold them, so that a fork of this fork is given the same.
            ran = self._edit(thread, plain(edit.variables))
            for name in edit.variables:
                thread.lost.pop(name, None)
            yield replace(edit, variables=plain(ran.changed))

    def _edit(self, thread: LiveThread, variables: dict[str, Any]) -> LineResult:
        return _shield("", lambda: thread.namespace.edit(variables))

    def define(self, thread: LiveThread, variables: dict[str, Any]) -> LineResult:
        """Bind variables of a thread; whatever becomes of the sandbox is an error of the result."""
        for name in variables:
            thread.lost.pop(name, None)
        if variables and self._written > LINES_BYTES:
            return LineResult("", error=REFUSAL)
        ran = _shield("", lambda: thread.namespace.define(variables))
        self._written += len(to_line(ran.changed))
        return ran

    def act(self, thread: LiveThread, action: str, nearest: bool = False) -> Iterator[Event]:
        """Do what a thread wants done; it replies with what the thread observes.

        nearest: what is no valid action is taken for the one that is most like it. Raises
        EpisodeOver where the environment's task is over: no action counts any more.
        """
        done, error = action, None
        recorded = self._episode.threads[thread.id]
        observed = sum(span.provenance is Provenance.OBSERVED for span in recorded.sequence)
        number = max(observed, len(recorded.actions))  # not every action is shown
        if self._dialect.code:
            error = yield from self._act_in_code(thread, action)
        elif self._env is None:
            thread.reply = "There is no environment to act in."
        elif not thread.acts:  # else what it finds would depend on who was faster
            thread.reply = "There is no environment to act in for a thread that nobody waits for."
        elif self._done:
            raise EpisodeOver(Status.TASK_OVER, "an action after the end of the task")
        else:
            yield from self._step(thread, self._env, action, nearest)
            done = self._actions[-1]
        if edit := self._edits.find("observation", thread.id, number):
            yield replace(edit, was=thread.reply)
            thread.reply = edit.now
        reward = self._episode.reward or 0.0
        announced = self._done and self._env is not None and self._env.announces_success
        won = reward == 1 if announced else None
        thread.reply = Observation(
            thread.reply, is_over=self._done, won=won, reward=reward, action=done, error=error
        )

    def hand_in(self, thread: LiveThread, finished: Finished) -> Iterator[Event]:
        """Hand in the answer of the main thread, where the environment waits for one."""
        if not finished.status.is_end or self._env is None or self._done:
            return
        texts = [finished.printed or ""]
        if not finished.is_program:
            texts.append(self._without_end(finished.sequence.text))
        answers = [answer for text in texts if (answer := self._env.answer(text)) is not None]
        if answers:
            yield from self._step(thread, self._env, answers[0])

    def _without_end(self, text: str) -> str:
        return text.strip().removesuffix(self._dialect.end)

    def restart(self, thread: LiveThread, text: str) -> Iterator[Event]:
        """Begin the task anew; the reply is the environment's first text.

        None where nothing is left to try: it is solved, or `text` answers it rightly. False where
        it was handed in for good.
        """
        text = self._without_end(text)
        if self._env is None or self._episode.solved or self._env.judge(text):
            thread.reply = None
            return
        if self._env.is_handed_in:
            thread.reply = False
            return
        thread.reply = self._reset(self._env)
        yield Restarted(thread.id, thread.reply)

    def restore(self, thread: LiveThread, actions: tuple[str, ...]) -> Iterator[Event]:
        """Bring the environment to where these actions, which it knows, lead from its start.

        One where nothing can be undone (`Env.can_undo`) stays as it is; the thread is told whether
        it is there. Raises RuntimeError where they lead elsewhere than before: its task is not
        deterministic.
        """
        thread.reply = True
        if self._env is None or self._actions == actions:
            return
        if not self._env.can_undo:
            thread.reply = False
            return
        context, reward = self._reset(self._env), 0.0
        for action in actions:
            observation, reward, *_ = self._do(self._env, action)
            if observation != (before := self._seen.get(self._actions)):
                raise RuntimeError(
                    f"{action!r} was done again, and what was {before!r} is {observation!r} now; "
                    "a method that restores its environment needs one that is deterministic"
                )
        yield Restarted(thread.id, context, actions, reward, restored=True)

    def _reset(self, env: Env) -> str:
        self._done, self._actions = False, ()
        return must_be_text("reset", env.reset())

    def _do(self, env: Env, action: str) -> Step:
        step = env.step(action)
        if not isinstance(step, tuple) or len(step) != len(Step._fields):
            fields = ", ".join(Step._fields)
            raise TypeError(f"step gave {step!r:.80}; return tk.Step({fields})")
        observation, reward, terminated, truncated, info = step
        must_be_text("step", observation)
        if not isinstance(info, Mapping):
            raise TypeError(f"step gave the info {info!r:.80}; return a dict, {{}} for none")
        try:
            reward = reward if type(reward) in (int, float) else float(reward)
        except (TypeError, ValueError):
            raise TypeError(f"step gave the reward {reward!r:.80}; return a number") from None
        if reward != 1 and math.isclose(reward, 1):  # ten times a tenth, say
            reward = 1.0
        if not 0 <= reward <= 1:
            raise ValueError(
                f"step of the environment gave the reward {reward!r}; a reward is from 0 to 1, and "
                "1 says that the task is solved"
            )
        ends = bool(terminated), bool(truncated)
        self._done = any(ends)
        self._actions += (action,)
        return Step(observation, reward, *ends, plain(dict(info)))

    def _step(
        self, thread: LiveThread, env: Env, action: str, nearest: bool = False
    ) -> Iterator[Event]:
        valid = env.find_nearest(action) if nearest else action
        observation, reward, terminated, truncated, info = self._do(env, valid)
        self._seen[self._actions] = observation
        if valid != action:
            info = {**info, "done": valid}
        yield Acted(thread.id, action, observation, reward, terminated, truncated, info)
        thread.reply = observation

    def _act_in_code(self, thread: LiveThread, action: str) -> Generator[Event, None, str | None]:
        """An action that is a line of code: the thread observes what it printed, or its error.

        Returns the error.
        """
        ran = self._run(thread, action)
        if not ran.executed:
            thread.reply = "Not a line of code that prints; an action is one, such as print(x)."
            return None
        note_lost(thread.lost, ran.line, ran.error, ran.changed)
        yield from self._tell(thread, ran)
        seen = [text for text in (ran.printed, ran.error) if text]
        thread.reply = "\n".join(seen) or "Nothing was printed."
        return ran.error

    def _run(self, thread: LiveThread, line: str) -> LineResult:
        """Run a line of a thread; whatever becomes of the sandbox is the line's error."""
        refusal = REFUSAL if self._written > LINES_BYTES else ""
        self._namespaces.add(thread.namespace)
        states = {id(state): len(state) for state in (one.state for one in self._namespaces)}
        if sum(states.values()) > STATES_BYTES:
            refusal = refusal or TOO_MUCH
        return _shield(line, lambda: thread.namespace.run(line, refusal=refusal))

    def _tell(self, thread: LiveThread, ran: LineResult) -> Iterator[Event]:
        """The events of a line that was executed."""
        events: list[Event] = [
            ExecutedLine(thread.id, ran.line, ran.printed, ran.error, plain(ran.changed), ran.gone),
            *(
                Pictured(thread.id, path, base64.b64encode(png).decode())
                for path, png in ran.pictures.items()
            ),
        ]
        self._written += sum(len(to_line(to_json(event))) for event in events)
        yield from events


def must_be_text(method: str, value: Any) -> str:
    """What an environment's method gave; raises TypeError if it is no text."""
    if not isinstance(value, str):
        raise TypeError(
            f"{method} of the environment gave {value!r:.80}, which is no text; return what a "
            "model is to read"
        )
    return value


def _shield(line: str, execute: Callable[[], LineResult]) -> LineResult:
    try:
        return execute()
    except Exception as error:
        told = shorten_error(f"the sandbox failed ({describe_error(error)})")
        return LineResult(line, executed=True, error=told)
