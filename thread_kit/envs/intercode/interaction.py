"""One task of InterCode: at most ten rounds of interaction, then what there is is submitted.

After each command the reward is that of submitting now, so an episode that ends in whatever way has
been submitted as it was left (InterCode's scripts do it at the end). What was executed stays, and
its rounds are spent, also where an executor has failed. A method of several trials has the ten in
each, and no other trial once the model has submitted. Models do not see the reward,
but by the method that is made for it (`Script`; StateFlow paper, appendix A.3, "Try Again").
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

from thread_kit.dialect import COMMANDS
from thread_kit.envs.env import Env, Step
from thread_kit.envs.intercode.tasks import Task

TURNS = 10
"""Rounds of interaction at most (StateFlow paper, section 4.1)."""

SUBMIT = "submit"


class Script(NamedTuple):
    """In what InterCode's scripts differ, each of which plays one method.

    shows_reward: after each command the observation has its reward, the first full one ends the
        task, and the reward of the episode is the best; a reply without a command has none.
    counts_submission: the one at the end is a command of the error rate, too.
    counts_empty: so is a reply without a command, which failed; if not, it is a turn alone.
    characters, rows: where a text, or a table, that a model observes is cut.
    """

    shows_reward: bool = False
    counts_submission: bool = True
    counts_empty: bool = True
    characters: int = 350
    rows: int = 25


REACT = Script()
"""`eval_react.py`, for all methods without a script of their own."""

STATEFLOW = Script(counts_empty=False)
"""`eval_stateflow_sql.py` and `eval_stateflow_bash.py` of the StateFlow paper's code."""

PLAN_AND_SOLVE = Script(counts_submission=False, characters=1_000)
"""`eval_plan_solve.py`."""

TRY_AGAIN = Script(shows_reward=True, counts_submission=False, characters=1_000, rows=50)
"""`eval_n_turn.py`, with the cuts of `policies.py`."""


class CommandResult(NamedTuple):
    """What a command gave. text: as the model observes it. failed: counts for the error rate."""

    text: str
    failed: bool


class InterCodeEnv(Env):
    """A question and its gold command, for one episode.

    turns: rounds of interaction at most, `submit` among them; also `max_actions`.
    script: what a method sees, and how its errors are counted.
    """

    can_undo = False
    dialect = COMMANDS
    chosen: Task

    def __init__(self, turns: int | None = TURNS) -> None:
        if turns is not None and turns < 1:
            raise ValueError(f"turns is {turns}; give 1 or more, or None for no limit")
        self.max_actions = turns
        self.script = REACT
        self._begin()

    def __repr__(self) -> str:
        task = self.chosen
        return f"{type(self).__name__}({task.split} {task.number}: {task.question})"

    def reset(self) -> str:
        """The question, the context of the main thread."""
        self.close()
        self._begin()
        return f"Question: {self.chosen.question}"

    def again(self) -> Self:
        """See Env."""
        env = type(self)(**self.task, turns=self.max_actions)
        env.script = self.script
        return env

    def oracle(self) -> list[str]:
        """See Env: the gold command."""
        return [self.chosen.gold, SUBMIT]

    def _begin(self) -> None:
        self._taken = self._empty = self._errors = 0
        self._reward = 0.0
        self._submitted = self._is_over = False

    @abstractmethod
    def execute(self, command: str) -> CommandResult:
        """Execute a command; never raises, whatever the text."""

    @abstractmethod
    def grade(self) -> float:
        """The official reward, 0.0 to 1.0, if the task were submitted now; also of no command."""

    def step(self, action: str) -> Step:
        """Execute a command, or `submit`. After the end an action has no effect.

        An empty one stands for a reply without a command: a round that fails, as in InterCode.

        info: whether the command `failed`, whether it is `solved`, the `measures` so far.
        """
        action, failed = action.strip(), False
        if self._is_over:
            return self._make_step("The task is over.", failed=False)
        self._taken += 1
        if self._taken == 1 and action in (SUBMIT, "") and not self.script.shows_reward:
            self._reward = self.grade()
        if action == SUBMIT:
            self._submitted, text = True, "Submitted."
        elif not action:
            text, failed = "Error: this is no command.", True
            self._empty += 1
        else:
            text, failed = self.execute(action)
            self._errors += failed
            reward = self.grade()
            self._reward = max(reward, self._reward) if self.script.shows_reward else reward
            if self.script.shows_reward:
                text = f"{text}\nReward: {reward:.2f}"
                self._submitted = reward == 1
        self._is_over = self._submitted or self._taken == self.max_actions
        return self._make_step(text, failed=failed)

    @property
    def announces_success(self) -> bool:  # type: ignore[override]
        """See Env: a model learns it from the reward alone."""
        return self.script.shows_reward

    @property
    def untouched_reward(self) -> float:  # type: ignore[override]
        """See Env: that of submitting at once, as InterCode's scripts do at the end.

        Of the best execution where none was: nothing.
        """
        return 0.0 if self.script.shows_reward else self.grade()

    @property
    def is_handed_in(self) -> bool:
        """See Env: the model has submitted."""
        return self._submitted

    def answer(self, text: str) -> str | None:
        """See Env: `submit`, where that is the last word."""
        last = text.strip().rpartition("\n")[2]
        return SUBMIT if last.strip() == SUBMIT else None

    def _make_step(self, text: str, *, failed: bool) -> Step:
        info = {
            "failed": failed,
            "solved": self._reward == 1,
            "measures": self.measures,
        }
        truncated = self._is_over and not self._submitted
        return Step(text, self._reward, self._submitted, truncated, info)

    @property
    def measures(self) -> dict[str, Any]:
        """See Env, of the last trial: `turns`; `error_rate`, the share of commands that failed."""
        # Each episode is submitted once, by the model or at its end (docs/fidelity/intercode.md).
        commands = self._taken - self._empty - (self._submitted and not self.script.shows_reward)
        empty = self._empty * self.script.counts_empty
        rate = (self._errors + empty) / max(commands + empty + self.script.counts_submission, 1)
        return {"turns": self._taken, "error_rate": round(rate, 4)}
