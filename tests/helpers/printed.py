"""An environment that answers as a paper prints it."""

from __future__ import annotations

from collections.abc import Iterable

from thread_kit.envs.env import Env, Step
from thread_kit.envs.intercode.interaction import REACT


class Printed(Env):
    """Answers the actions that a paper prints, in their order, as the paper prints it.

    wins: whether the last of them solves the task.
    """

    name = "printed"
    script = REACT  # as an environment of InterCode has one

    def __init__(
        self, context: str, answers: Iterable[tuple[str, str]], *, wins: bool = False
    ) -> None:
        self.task = {}
        self.context = context
        self.left = list(answers)
        self.wins = wins

    def reset(self) -> str:
        return self.context

    def step(self, action: str) -> Step:
        expected, observation = self.left.pop(0)
        assert action == expected
        won = self.wins and not self.left
        return Step(observation, float(won), won, False, {})

    def again(self) -> Env:
        raise NotImplementedError

    def oracle(self) -> None:
        return None
