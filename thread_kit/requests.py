"""Requests of a program and the replies to them, and the statuses of a thread.

A program is a generator: it yields requests and is sent the replies, and what it returns is a
`Finished`. It knows no model, no environment, no other thread and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from thread_kit.dialect import Dialect, Stop, as_comment
from thread_kit.sequence import Provenance, Sequence, Span

if TYPE_CHECKING:
    from thread_kit.prompts import Prompt


class Status(StrEnum):
    """What a thread is doing, or how it ended; never guessed from its text afterwards."""

    GENERATING = "generating"
    LISTENING = "listening"
    WAITING = "waiting"
    ACTING = "acting"
    ENDED = "ended"
    END_OF_STREAM = "end of stream"
    TRUNCATED = "truncated"
    OUT_OF_CONTEXT = "out of context"
    OUT_OF_CALLS = "out of calls"
    OUT_OF_TOKENS = "out of tokens"
    OUT_OF_TIME = "out of time"
    OUT_OF_DEPTH = "out of depth"
    TASK_OVER = "task over"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_live(self) -> bool:
        return self in (Status.GENERATING, Status.LISTENING, Status.WAITING, Status.ACTING)

    @property
    def is_broken_off(self) -> bool:
        """Ended from outside, by a person, a failure or a budget of the whole episode."""
        return self in (
            *(Status.STOPPED, Status.FAILED),
            *(Status.OUT_OF_CALLS, Status.OUT_OF_TOKENS, Status.OUT_OF_TIME),
        )

    @property
    def is_end(self) -> bool:
        """The thread ended by itself, so that its last print is its answer."""
        return self in (Status.ENDED, Status.END_OF_STREAM)

    @property
    def is_cut_short(self) -> bool:
        """The thread is over, and did not end by itself."""
        return not (self.is_live or self.is_end)


@dataclass(frozen=True, slots=True)
class Generate:
    """Request: Y + G(q + c + Y). The reply is a `Generated`.

    temperature: of this call; None is the episode's.
    """

    sequence: Sequence
    temperature: float | None = None


_ENDS = {
    Stop.END: Status.ENDED,
    Stop.END_OF_STREAM: Status.END_OF_STREAM,
    Stop.LENGTH: Status.TRUNCATED,
    Stop.CONTEXT: Status.OUT_OF_CONTEXT,
    Stop.CANCELLED: Status.STOPPED,
}


@dataclass(frozen=True, slots=True)
class Generated:
    """Reply: the new span, and why the model stopped.

    ended: how a thread ends with it; None where it listens, or spawns.
    """

    span: Span
    stop: Stop

    @property
    def ended(self) -> Status | None:
        return _ENDS.get(self.stop)


@dataclass(frozen=True, slots=True)
class Execute:
    """Request: run these lines of the thread's own text, each once. The reply is an `Executed`."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Executed:
    """Reply: the variables now, what the last print among the lines printed, the first error.

    lost: names that lines of the thread should have bound that failed, and none since has, each
        with the error.
    """

    variables: Mapping[str, Any]
    printed: str | None
    error: str | None = None
    lost: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Act:
    """Request: E(a). The reply is an `Observation`.

    nearest: the environment takes what is no valid action for the one most like it
    (`Env.find_nearest`).
    """

    action: str
    nearest: bool = False


class Observation(str):
    """Reply: the text of what was observed.

    is_over: the environment says that the task is solved, or over without that. won: which of the
    two, where it says it (`Env.announces_success`); None before, and where it does not. reward: its
    last. action: what was done, which with `nearest` may be other words than what was asked for.
    error: of an action that is a line of code.
    """

    is_over: bool
    won: bool | None
    reward: float
    action: str
    error: str | None

    def __new__(
        cls,
        text: str,
        *,
        is_over: bool = False,
        won: bool | None = None,
        reward: float = 0.0,
        action: str = "",
        error: str | None = None,
    ) -> Observation:
        """A text with its marks."""
        observation = super().__new__(cls, text)
        observation.is_over, observation.won, observation.reward = is_over, won, reward
        observation.action, observation.error = action, error
        return observation


@dataclass(frozen=True, slots=True)
class Spawn:
    """Request: THREAD(phi(Y), []). The reply is the child's `Finished`.

    program, prompt: what the child runs, and its q; None is the same as its parent's.
    """

    context: str
    program: Program | None = None
    prompt: Prompt | None = None


@dataclass(frozen=True, slots=True)
class SpawnAsync:
    """Request: THREAD(phi(Y), []), and the thread goes on at once; `name` stands for the child.

    The reply is None.
    """

    context: str
    name: str


@dataclass(frozen=True, slots=True)
class Await:
    """Request: wait for the child that a name stands for. The reply is its `Finished`."""

    name: str


@dataclass(frozen=True, slots=True)
class Define:
    """Request: variables that came up with what a child returned become this thread's own.

    The reply is an `Executed`, which the thread needs only where it has waited.
    """

    variables: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Show:
    """Request: Y has become this, and nothing is generated now. The reply is None."""

    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Restart:
    """Request: the environment from its start, for another trial.

    text: what the trial has said. The reply is the context of the task; None where the task is
    solved, also by the answer in `text`, or where there is no environment; False where it was
    handed in for good (`Env.is_handed_in`).
    """

    text: str = ""


@dataclass(frozen=True, slots=True)
class Restore:
    """Request: the environment as these actions leave it from its start.

    They were done in this order before; where they are all that was done, nothing happens. Nor does
    it where the environment cannot undo (`Env.can_undo`): the reply is whether it is there now.
    """

    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """A thread that is over: all that psi may look at. `futures`: the names of its futures.

    instead: a text that a person has put in the place of what psi would take; None if nobody did.
    error: of the first line of code that failed. lost: names that have no value of the thread's
        own, or an older one, because the line failed that should have bound them, with its error.
    is_program: its text is a program, so that its answer is in what that printed and nowhere else.
    """

    sequence: Sequence
    status: Status
    variables: Mapping[str, Any]
    printed: str | None = None
    futures: tuple[str, ...] = ()
    instead: str | None = None
    error: str | None = None
    lost: Mapping[str, str] = field(default_factory=dict)
    is_program: bool = False


Request = Generate | Execute | Act | Spawn | SpawnAsync | Await | Define | Show | Restart | Restore


Steps = Generator[Request, Any, Finished]


@dataclass(frozen=True, slots=True)
class NewThread:
    """What a thread has at its start.

    context: c, as it was asked for. tokenize: spells what the program itself writes. futures: the
    names of those that the thread inherits (`thread.py`).
    """

    context: str
    dialect: Dialect
    tokenize: Callable[[str], tuple[int, ...]]
    futures: tuple[str, ...] = ()

    def instruction(self, text: str) -> Span:
        """A text of the program's own, as it stands."""
        return Span(Provenance.INSTRUCTION, text, self.tokenize(text))

    def observed(self, text: str) -> Span:
        """An observation, behind an action that listens."""
        text = self.dialect.observed(as_comment(text, {}) if self.dialect.code else text)
        return Span(Provenance.OBSERVED, text, self.tokenize(text))

    def returned(self, text: str) -> Span:
        """What a child gave, behind a line that listens."""
        text = self.dialect.closed(text)
        return Span(Provenance.RETURNED, text, self.tokenize(text))


Program = Callable[[NewThread], Steps]
