"""ICU QA (THREAD paper, section 4.5 and appendix F): questions about patients in intensive care.

The questions are made from the stays that the user has (`stays.py`): none is ever stored. Nothing
of a patient leaves the machine, and nothing is written outside the trace of the run, which holds
what the threads saw: keep the traces of MIMIC-III where MIMIC-III may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import pandas as pd

from thread_kit.envs.mimic_questions import KINDS, generate
from thread_kit.envs.question import QuestionEnv
from thread_kit.envs.stays import VARIABLES, Stays, rows


@final
class IcuQA(QuestionEnv):
    """One question about the patients of `stays`.

    number: counts from 0, without end. Raises ValueError for a number below, or too few stays.
    """

    name = "icu"

    def __init__(self, stays: Stays, number: int = 0, *, weaker_sandbox: bool = False) -> None:
        super().__init__(weaker_sandbox=weaker_sandbox)
        if number < 0:
            raise ValueError(f"no question {number}; questions are counted from 0")
        self.stays = stays
        self.number = number
        self._groups: dict[tuple[str, str], pd.Series] = {}
        self.question = generate(stays, number, self._groups)
        self.task = {"stays": type(stays).__name__, "number": number}

    def __repr__(self) -> str:
        return f"IcuQA({self.stays!r}, {self.number}: {self.question.text})"

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """`variables()`, `measurements(patient_ID, variable)`, `group_means(group, variable)`."""
        return {
            "variables": lambda: list(VARIABLES),
            "measurements": self._measurements,
            "group_means": self._group_means,
        }

    def _measurements(self, patient_ID: Any, variable: str) -> list[dict[str, Any]]:
        self.asked.append((str(patient_ID), variable))
        found = rows(self.stays.values(str(patient_ID), variable))
        if not found:
            raise LookupError(f"The {variable} of patient {patient_ID} was not measured.")
        return found

    def _group_means(self, group: str, variable: str) -> list[float]:
        self.asked.append((group, variable))
        if (group, variable) not in self._groups:
            self._groups[group, variable] = self.stays.group_means(group, variable)
        return [float(one) for one in self._groups[group, variable]]

    def again(self) -> IcuQA:
        """See Env."""
        return IcuQA(self.stays, self.number, weaker_sandbox=self.weaker_sandbox)


__all__ = ["KINDS", "IcuQA"]
