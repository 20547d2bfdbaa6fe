"""Tasks that are questions about data: what DataCommons QA and ICU QA have in common.

The main thread writes text that ends in "Final Answer: ..."; that line is handed in when it ends,
and is graded. Threads get at the data by functions that their code calls.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from thread_kit.dialect import QA
from thread_kit.envs.env import Env, Step
from thread_kit.envs.qa.grading import is_right
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox

ANSWER_START = "Final Answer:"
_ANSWER = re.compile(rf"^[ \t]*{ANSWER_START}\s*(.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer.

    kind: the template; "" for a question that was not generated.
    needs: the look-ups without which it cannot be answered, as the functions' arguments.
    figures: the numbers that decide, such as two slopes.
    """

    text: str
    answer: str
    kind: str = ""
    needs: tuple[tuple[str, ...], ...] = ()
    figures: tuple[float, ...] = ()


class QuestionEnv(Env):
    """One question, for one episode.

    question: with its answer. lookups: those that the threads have made and that gave values.
    """

    question: Question
    dialect = QA

    def __init__(self, *, weaker_sandbox: bool = False) -> None:
        self.weaker_sandbox = weaker_sandbox
        self.lookups: dict[tuple[str, ...], None] = {}  # in their order, each once
        self._answer: str | None = None

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """What the threads' code can call, by name."""

    def sandbox(self) -> BubblewrapSandbox:
        """See Env. Raises RuntimeError where bubblewrap is missing (`weaker_sandbox` if so)."""
        # A list with a figure of each patient of MIMIC-III has some 400,000 characters.
        return BubblewrapSandbox(
            self.functions, variables_characters=2_000_000, weaker=self.weaker_sandbox
        )

    def reset(self) -> str:
        """The question, the context of the main thread."""
        self.lookups.clear()
        self._answer = None
        return f"Question: {self.question.text}"

    def answer(self, text: str) -> str | None:
        """See Env: the last final answer, on its line or on the next one with text."""
        answers = _ANSWER.findall(text)
        # Behind an empty one may stand another.
        return f"{ANSWER_START} {answers[-1].split(ANSWER_START)[-1].strip()}" if answers else None

    def judge(self, text: str) -> bool:
        """See Env: whether the answer in a text is right. Nothing is handed in."""
        match = _ANSWER.fullmatch(self.answer(text) or "")
        return match is not None and is_right(match[1], self.question.answer)

    def step(self, action: str) -> Step:
        """Hand in `Final Answer: ...`; reward 1.0 if it is right. After that nothing has an effect.

        info: the answer, and whether it is right (`solved`); of an answer also what a reviewer
        asks: the right answer, the look-ups that it takes (`needs`) and those that were made
        (`asked`), the numbers that decide (`figures`).
        """
        if self._answer is not None:
            return self._end("The question is answered.", 0.0)
        match = _ANSWER.fullmatch(action.strip())
        if match is None:
            text = f"There is no such action; hand an answer in: {ANSWER_START} ..."
            return Step(text, 0.0, False, False, {"answer": None, "solved": False})
        self._answer = match[1]
        right = is_right(self._answer, self.question.answer)
        return self._end("That is right." if right else "That is wrong.", float(right))

    def oracle(self) -> list[str] | None:
        """See Env."""
        return [f"{ANSWER_START} {self.question.answer}"]

    def _end(self, observation: str, reward: float) -> Step:
        question = self.question
        info = {
            "answer": self._answer,
            "solved": is_right(self._answer or "", question.answer),
            "right": question.answer,
            "needs": [list(lookup) for lookup in question.needs],
            "asked": [list(lookup) for lookup in self.lookups],
            "figures": list(question.figures),
        }
        return Step(observation, reward, True, False, info)
