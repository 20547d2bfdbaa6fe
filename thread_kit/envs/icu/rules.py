"""Plays the threads of an ICU question by rule; the form is the prompt's (THREAD paper, G.2)."""

from __future__ import annotations

import re
from typing import final

from thread_kit.dialect import QA, Dialect
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import KINDS, OF_PHENOTYPES, OUTERMOST, describe_members
from thread_kit.envs.qa.kinds import measure_code, read_question
from thread_kit.envs.qa.rules import Script, Segments

_PATIENT = re.compile(
    r"The (.+) of the (.+?) from hour (\d+) to hour (\d+) of (?:.* )?patient (\d+) is"
)
_GROUP = re.compile(
    r"The mean of the (.+?) of all patients (?:who (?=survived|expired)|with )(.+) is"
)


@final
class IcuScript(Script):
    """Answers this question; see `Script`."""

    def __init__(self, env: IcuQA, dialect: Dialect = QA) -> None:
        super().__init__(dialect)
        self.kind, self.fields = read_question(env.question.text, (*KINDS, *OF_PHENOTYPES))
        names = [name for name, _ in env.question.needs]
        self.patients, self.groups = names[: self.kind.subjects], names[self.kind.subjects :]

    def write(self, context: str, written: str) -> Segments:
        if match := _PATIENT.fullmatch(context):
            return self._write_patient(*match.groups())
        if match := _GROUP.fullmatch(context):
            return self._write_group(*match.groups())
        return self._write_question(self.read_figures(written))

    def _write_question(self, figures: tuple[float, ...]) -> Segments:
        fields, variable = self.fields, self.fields["variable"]
        first, last = fields.get("first", 0), fields.get("last", 48)
        measure = self.kind.measure.format(later=fields.get("later"))
        request = f"The {measure} of the {variable} from hour {first} to hour {last} of"
        requests = [f"{request} patient {self.patients[0]} is"]
        requests += [f" and of patient {patient} is" for patient in self.patients[1:]]
        requests += [
            f".\nThe mean of the {variable} of all patients {describe_members(group)} is"
            for group in self.groups
        ]
        answer = ""
        if len(figures) >= len(requests):
            compared = OUTERMOST.get(self.kind.group, max)(figures[1:], default=0.0)
            answer = self.kind.answer((figures[0], compared), self.patients)
        end = f"{'' if self.is_async else '.'}\nFinal Answer: {answer}\n"
        return [*self.ask(*requests), end]

    def _write_patient(
        self, measure: str, variable: str, first: str, last: str, who: str
    ) -> Segments:
        code = [
            f"table = pd.DataFrame(measurements({who!r}, {variable!r}))",
            f"table = table[(table['hour'] >= {first}) & (table['hour'] <= {last})]",
            self.show("table.head(3)"),
        ]
        before, figure = measure_code(measure, "table['hour']")
        more = f"\nvalues = table['value']\n{before}print(round(float({figure}), 6))\n"
        return ["\n".join(code), more]

    def _write_group(self, variable: str, group: str) -> Segments:
        code = f"means = group_means({group!r}, {variable!r})\n" + self.show("len(means)")
        return [code, "\nprint(round(float(np.mean(means)), 6))\n"]
