"""What every environment offers: the E of Algorithm 2 (THREAD paper), behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from thread_kit.dialect import AGENT, Dialect
from thread_kit.sandbox.sandbox import Sandbox


class Step(NamedTuple):
    """What one action did, in gymnasium's order.

    observation: text, as the environment returns it.
    reward: the benchmark's own reward of what is reached so far, 0.0 to 1.0; it is not summed: the
        last one is the episode's.
    terminated: the task is over (solved, or failed for good).
    truncated: the limit on actions was reached.
    info: further facts for the trace; JSON values only.
    """

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


def check_split(split: str, splits: Collection[str]) -> None:
    """Raises ValueError, naming those that there are, for a split that is none of them."""
    if split not in splits:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(splits)}")


def choose_task(choices: Sequence[Any], split: str, number: int) -> Any:
    """The task with this number, counted from 0, of a split; raises ValueError for none."""
    if not choices:
        raise ValueError(f"there are no tasks in split {split!r}")
    if not is_whole(number) or number not in range(len(choices)):
        raise ValueError(f"no task {number!r} in split {split!r}; choose 0 to {len(choices) - 1}")
    return choices[number]


def is_whole(number: object) -> bool:
    """Whether this is a whole number, be it one of numpy's."""
    return isinstance(number, Integral)


class Env(ABC):
    """One task of one environment, for one episode; make a new one for the next episode.

    name: the benchmark ("textcraft").
    max_actions: only of an environment that counts them: after so many the episode is truncated;
        None is no limit.
    task: what identifies the task within the benchmark, e.g. {"split": "test", "number": 12}.
    dialect: the marks of threads that play it without examples.
    packages: those (by their names on the package index) whose version can change what an episode
        comes to; the trace says which were installed.
    can_undo: whether `reset` and the same actions again may take the place of what was done in a
        trial. LATS needs it; without it an executor of ADaPT begins where the one before it ended.
    announces_success: whether what it says at its end tells that the task is solved.
    untouched_reward: what an episode earns that ended without an action; None where that is nothing
        which the benchmark grades.
    """

    name: str
    task: dict[str, Any]
    dialect: Dialect = AGENT
    packages: tuple[str, ...] = ()
    can_undo: bool = True
    announces_success: bool = True
    untouched_reward: float | None = None

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.task.items())
        return f"{type(self).__name__}({arguments})"

    @property
    def examples(self) -> str:
        """The name of the few-shot prompts that fit the task; where all are alike, `name`."""
        return self.name

    @property
    def variables(self) -> dict[str, Any]:
        """What the environment's text says as plain data: variables of the main thread.

        So that a thread need not copy a long text before it can compute with it.
        """
        return {}

    @property
    def measures(self) -> dict[str, Any]:
        """What the benchmark measures of an episode beside its reward: columns of a suite's row.

        What JSON can hold. One that is NaN or infinite is None there, and other objects their repr.
        """
        return {}

    def sandbox(self) -> Sandbox | None:
        """A new sandbox with what the task's code needs; None where any will do."""
        return None

    def answer(self, text: str) -> str | None:
        """The action that hands in what the main thread wrote or printed, if the task asks.

        None where a task is solved by acting, or where the text holds no answer.
        """
        return None

    def find_nearest(self, action: str) -> str:
        """The valid action that is most like this text, where the environment knows which are."""
        return action

    @property
    def is_handed_in(self) -> bool:
        """Whether the task is over for good, so that no other trial of it may begin."""
        return False

    def judge(self, text: str) -> bool:
        """Whether what a trial said solves the task, by the answer that the benchmark knows.

        For methods that try again (Reflexion). False where a task is solved by acting.
        """
        return False

    @abstractmethod
    def reset(self) -> str:
        """Start the task; returns the context of the main thread (c_0, THREAD paper, section 2)."""

    @abstractmethod
    def step(self, action: str) -> Step:
        """Execute one action (E(a) in THREAD paper, Algorithm 2)."""

    @abstractmethod
    def again(self) -> Env:
        """The same task from its start, in an environment of its own: for a fork of an episode."""

    @abstractmethod
    def oracle(self) -> list[str] | None:
        """Actions that solve the task from its start, or None if no solution is known."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Give back what the task holds, such as a process; a suite does it for each episode."""
