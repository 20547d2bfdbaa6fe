"""Plays the threads of an ICU question by rule; the form is the prompt's (THREAD paper, G.2).

The question asks for a table of its patients' values, for measures of it and for the mean of a
group; the table asks for the values of each patient. A thread binds the names of what it is about
first; a measure of a second patient has the first one's number, too, as in the released prompts.
"""

from __future__ import annotations

import re
from typing import final

from thread_kit.dialect import QA, Dialect
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import (
    KINDS,
    OF_PHENOTYPES,
    REFERENCE_CODE,
    describe_members,
    name_reference,
)
from thread_kit.envs.qa.kinds import measure_code, read_question
from thread_kit.envs.qa.rules import Script, Segments, read_subjects

_TABLE = re.compile(
    r"Here is a table of the (.+) from hour (\d+) to hour (\d+) of patient (\d+)"
    r"(?: and of patient (\d+))?:"
)
_VALUES = re.compile(
    r"Series (\d), the values of the (.+) from hour (\d+) to hour (\d+) of patient (\d+), is"
)
_MEASURE = re.compile(r"By the data in (\S+) the (.+) of the (.+?) (of patient .+) is")
_GROUP = re.compile(
    r"The ((?:highest |lowest )?mean) of the (.+?) of all patients "
    r"(?:who (?=survived|expired)|with )(.+) is"
)


@final
class IcuScript(Script):
    """Answers this question; see `Script`."""

    def __init__(self, env: IcuQA, dialect: Dialect = QA, **form: bool) -> None:
        super().__init__(dialect, **form)
        self.kind, self.fields = read_question(env.question.text, (*KINDS, *OF_PHENOTYPES))
        names = [name for name, _ in env.question.needs]
        self.patients, self.groups = names[: self.kind.subjects], names[self.kind.subjects :]

    def write(self, context: str, written: str) -> Segments:
        if match := _TABLE.fullmatch(context):
            return self._write_table(written, *match.groups())
        if match := _VALUES.fullmatch(context):
            return self._write_values(*match.groups())
        if match := _MEASURE.fullmatch(context):
            path, measure, variable, patients = match.groups()
            named = read_subjects(patients, self.dialect)
            numbers = [patient.removeprefix("of patient ") for patient in named]
            return self._write_measure(path, measure, variable, numbers)
        if match := _GROUP.fullmatch(context):
            return self._write_group(*match.groups())
        return self._write_question(written)

    def _write_question(self, written: str) -> Segments:
        # 1. The table.
        fields, variable = self.fields, self.fields["variable"]
        hours = f"from hour {fields.get('first', 0)} to hour {fields.get('last', 48)}"
        patients = [f"of patient {patient}" for patient in self.patients]
        table = f"Here is a table of the {variable} {hours} {' and '.join(patients)}:"
        path = self.refer("table_path", "".join(self.read_paths(written)))
        # 2. The measures.
        measure = self.kind.measure.format(later=fields.get("later"))
        asked = f"The {name_reference(self.kind)} of the {variable} of all patients"
        groups = [f"{asked} {describe_members(group)} is" for group in self.groups]
        start = f"\nBy the data in {path} the {measure} of the {variable}"
        children = self.ask(start, *patients, others=groups)
        # 3. The answer.
        figures, end = self.read_figures(written), ""
        if len(figures) == len(patients) + len(groups):
            answer = self.kind.answer(figures, self.patients)
            end = self.conclude(self.kind, figures, answer, fields)
        return [f"{table} {self.dialect.listen}", *children, end]

    def _write_table(
        self, written: str, variable: str, first: str, last: str, one: str, other: str | None
    ) -> Segments:
        patients = {f"patient_{n}": name for n, name in enumerate(filter(None, [one, other]), 1)}
        hours = f"hour {first} to hour {last}"
        names = self.bind(hours=hours, variable=variable, **patients)
        what, when = self.refer("variable", variable), self.refer("hours", hours)
        request = f"Series [number], the values of the {what} from {when} of patient [subject], is"
        return self.write_table(names, patients, request, "pd.concat([table, {}])", written)

    def _write_values(
        self, number: str, variable: str, first: str, last: str, patient: str
    ) -> Segments:
        use = self.use
        start, end = use("first", int(first)), use("last", int(last))
        return [
            self.bind(first=int(first), last=int(last), variable=variable, patient=patient)
            + f"rows = measurements({use('patient', patient)}, {use('variable', variable)})\n"
            + f"series_{number} = [row for row in rows if {start} <= row['hour'] <= {end}]\n"
            + self.show(f"series_{number}[:2]"),
            self.return_series(number),
        ]

    def _write_measure(
        self, path: str, measure: str, variable: str, patients: list[str]
    ) -> Segments:
        keys = ["patient"] if len(patients) == 1 else ["patient_1", "patient_2"]
        bound = dict(zip(keys, patients, strict=True))
        column = self.use(keys[-1], patients[-1])
        read = (
            self.bind(table_path=path, variable=variable, **bound)
            + f"table = pd.read_csv({self.use('table_path', path)})\n"
            + self.show("table.head(3)")
        )
        before, figure = measure_code(measure, "rows['hour']")
        code = f"rows = table[['hour', {column}]].dropna()\nvalues = rows[{column}]\n{before}"
        return [read, f"\n{code}print(round(float({figure}), 6))\n"]

    def _write_group(self, mean: str, variable: str, group: str) -> Segments:
        means = f"group_means({self.use('group', group)}, {self.use('variable', variable)})"
        code = self.bind(group=group, variable=variable) + f"means = {means}\n"
        return [
            code + self.show("len(means)"),
            f"\nprint(round(float({REFERENCE_CODE[mean]}(means)), 6))\n",
        ]
