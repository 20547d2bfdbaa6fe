"""ICU QA (THREAD paper, section 4.5 and appendix F): questions about patients in intensive care.

The questions are made from the stays that the user has (`envs/icu/stays.py`), or are those of the
released program, from a file of the user's: none is ever stored.
Nothing of a patient leaves the machine, and nothing is written outside the trace of the run, which
holds what the threads saw: keep the traces of MIMIC-III where MIMIC-III may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from thread_kit.envs.icu.official_questions import QUESTIONS
from thread_kit.envs.icu.questions import generate
from thread_kit.envs.icu.stays import STAYS_VARIABLE, Stays, load_stays
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.envs.qa.kinds import SPLITS


@final
class IcuQA(QuestionEnv):
    """One question about the patients of `stays`.

    stays: None takes those of this machine (`load_stays`); a name, too, where they are those that
    the name says: so a task can be named, and no stay is stored with it. number: counts from 0;
    of generated questions there is no end. split: "test" or "train", which have no patient and no
    variable in common; None asks about all. questions: the path of the released program's file, all
    of which is "test"; of that of THREAD_KIT_ICU_QUESTIONS the name is enough; None: they are made.
    Raises ValueError for an unknown number or split, other stays than those named, or too few;
    FileNotFoundError.
    """

    name = "icu"

    def __init__(
        self,
        stays: Stays | str | None = None,
        number: int = 0,
        *,
        split: str | None = None,
        questions: str | Path | None = None,
        weaker_sandbox: bool = False,
    ) -> None:
        super().__init__(weaker_sandbox=weaker_sandbox)
        if number < 0:
            raise ValueError(f"no question {number}; questions are counted from 0")
        if isinstance(stays, str) and stays in SPLITS:
            raise ValueError(f"{stays!r} is a split: IcuQA(split={stays!r}, number={number})")
        self.stays = stays if isinstance(stays, Stays) else load_stays()
        if isinstance(stays, str) and stays != self.stays.name:
            raise ValueError(
                f"the question is about the stays {stays!r}, and here are {self.stays.name!r}; set "
                f"{STAYS_VARIABLE} to the path of those"
            )
        self.number = int(number)
        self.split = split
        self.task = {"stays": self.stays.name, "split": split, "number": self.number}
        self._path: Path | None = None
        if not questions:
            self.question = generate(self.stays, number, split)
            return
        self._path = path = QUESTIONS.locate(questions)
        self.question = QUESTIONS.choose_question(path, number, split)
        self.task["questions"] = path.name

    def __repr__(self) -> str:
        return f"IcuQA({self.stays!r}, {self.number}: {self.question.text})"

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """`variables()`, `groups()`, `measurements(patient_ID, variable)`, `group_means(...)`.

        group_means: of a group and a variable, the mean of each patient who has one.
        """
        return {
            "variables": lambda: list(self.stays.variables),
            "groups": lambda: list(self.stays.groups),
            "measurements": self._measurements,
            "group_means": self._group_means,
        }

    def _measurements(self, patient_ID: Any, variable: Any) -> list[dict[str, Any]]:
        patient, variable = str(patient_ID).strip(), str(variable).strip()
        values = self.stays.values(patient, variable)
        if values.empty:
            raise LookupError(f"The {variable} of patient {patient} was not measured.")
        self.lookups[patient, variable] = None
        return [{"hour": round(float(h), 4), "value": float(v)} for h, v in values.items()]

    def _group_means(self, group: Any, variable: Any) -> list[float]:
        group, variable = str(group).strip(), str(variable).strip()
        means = self.stays.group_means(group, variable)
        self.lookups[group, variable] = None
        return [float(mean) for mean in means]

    def again(self) -> IcuQA:
        """See Env."""
        return IcuQA(
            self.stays,
            self.number,
            split=self.split,
            questions=self._path,
            weaker_sandbox=self.weaker_sandbox,
        )
