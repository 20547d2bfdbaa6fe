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

from thread_kit.envs.env import Env, Step
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox

FINAL = re.compile(r"^Final Answer:[ \t]*(.*)", re.MULTILINE)
HANDED_IN = "Final Answer:"


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


def graded(given: str, answer: str) -> bool:
    """Whether an answer is right, as the benchmarks grade it (THREAD's released code).

    Two numbers must agree in their whole part (hours, patients' numbers); of two texts one must
    hold the other, in lower case. Unlike there an empty answer is wrong.
    """
    given, answer = given.strip().lower(), answer.strip().lower()
    try:
        return int(float(given)) == int(float(answer))
    except (ValueError, OverflowError):
        return bool(given) and (given in answer or answer in given)


class QuestionEnv(Env):
    """One question, for one episode.

    question: with its answer. asked: the look-ups that the threads have made.
    """

    question: Question

    def __init__(self, *, weaker_sandbox: bool = False) -> None:
        self.weaker_sandbox = weaker_sandbox
        self.asked: list[tuple[str, ...]] = []
        self._given: str | None = None

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """What the threads' code can call, by name."""

    def sandbox(self) -> BubblewrapSandbox:
        """See Env. Raises RuntimeError where bubblewrap is missing (`weaker_sandbox` if so)."""
        return BubblewrapSandbox(self.functions, weaker=self.weaker_sandbox)

    def reset(self) -> str:
        """The question, the context of the main thread."""
        self.asked.clear()
        self._given = None
        return f"Question: {self.question.text}"

    def answer(self, text: str) -> str | None:
        """See Env: the last line with a final answer."""
        found = FINAL.findall(text)
        return f"{HANDED_IN} {found[-1].removesuffix('#END#').strip()}" if found else None

    def step(self, action: str) -> Step:
        """Hand in `Final Answer: ...`; reward 1.0 if it is right. After that nothing has an effect.

        info: the answer that was given, and whether it is right; of an answer also what a reviewer
        asks: the right answer, the look-ups that it takes (`needs`) and those that were made
        (`asked`), the numbers that decide (`figures`).
        """
        if self._given is not None:
            return self._answered("The question is answered.", 0.0)
        found = FINAL.fullmatch(action.strip())
        if found is None:
            text = f"There is no such action; hand an answer in: {HANDED_IN} ..."
            return Step(text, 0.0, False, False, {"answer": None, "solved": False})
        self._given = found[1]
        right = graded(self._given, self.question.answer)
        return self._answered("That is right." if right else "That is wrong.", float(right))

    def oracle(self) -> list[str] | None:
        """See Env."""
        return [f"{HANDED_IN} {self.question.answer}"]

    def _answered(self, observation: str, reward: float) -> Step:
        question = self.question
        info = {
            "answer": self._given,
            "solved": graded(self._given or "", question.answer),
            "right": question.answer,
            "needs": [list(one) for one in question.needs],
            "asked": [list(one) for one in dict.fromkeys(self.asked)],
            "figures": list(question.figures),
        }
        return Step(observation, reward, True, False, info)
