"""Plays the threads of a generated DataCommons question by rule; the form is the prompt's.

Four kinds of threads, as in the paper's example (000, G.1): the question asks for a table and for
measures of it; the table asks for the values of each place; each of those is looked up.
"""

from __future__ import annotations

import re
from typing import final

from thread_kit.dialect import QA, Dialect
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.questions import KINDS
from thread_kit.envs.datacommons.statistics import ListedStatistics
from thread_kit.envs.qa.kinds import measure_code, read_question
from thread_kit.envs.qa.rules import Script, Segments

_TABLE = re.compile(r"Here is a table of (.+) from (\d+) to (\d+) in (.+?)(?: and in (.+))?:")
_VALUES = re.compile(r"The values of (.+) from (\d+) to (\d+) in .*place number (\d), (.+), are")
_MEASURE = re.compile(r"By the data in (\S+) the (.+?) of (.+?) in (.+) is")


@final
class DataCommonsScript(Script):
    """Answers this question; see `Script`. Raises ValueError for one that was not generated."""

    def __init__(self, env: DataCommonsQA, dialect: Dialect = QA) -> None:
        super().__init__(dialect)
        if not isinstance(env.source, ListedStatistics):
            raise ValueError(f"only generated questions are answered by rule, not {env!r}")
        self.kind, self.fields = read_question(env.question.text, KINDS)
        self.names = [env.source.places[place] for place, _ in env.question.needs]
        self.source = env.source

    def write(self, context: str, written: str) -> Segments:
        if match := _TABLE.fullmatch(context):
            return self._write_table(*match.groups())
        if match := _VALUES.fullmatch(context):
            return self._write_values(*match.groups())
        if match := _MEASURE.fullmatch(context):
            place = match[4].rpartition(" and in ")[2] if " ... " in match[4] else match[4]
            return self._write_measure(match[2], place)
        return self._write_question(self.read_figures(written))

    def _write_question(self, figures: tuple[float, ...]) -> Segments:
        names, variable, first = self.names, self.fields["variable"], self.fields["first"]
        last, later = self.fields.get("last", first), self.fields.get("later")
        table = f"Here is a table of {variable} from {first} to {last} in {' and in '.join(names)}:"
        measure = self.kind.measure.format(later=later)
        request = f"\nBy the data in {{table_path}} the {measure} of {variable} in"
        if measure == "correlation":
            asked = [f"{request} {' and '.join(names)} is {self.dialect.listen}"]
            needed = 1
        else:
            asked = self.ask(f"{request} {names[0]} is", *(f" and in {n} is" for n in names[1:]))
            needed = len(names)
        answer = self.kind.answer(figures, names) if len(figures) == needed else ""
        return [f"{table} {self.dialect.listen}", *asked, f"\nFinal Answer: {answer}\n"]

    def _write_table(
        self, variable: str, first: str, last: str, place: str, other: str | None
    ) -> Segments:
        names = [place, other] if other else [place]
        request = f"The values of {variable} from {first} to {last} in"
        requests = [f"{request} place number 1, {place}, are"]
        requests += [f" and in place number 2, {other}, are"] if other else []
        paths = [f"t{n}" if self.is_async else f"path_{n}" for n, _ in enumerate(names, 1)]
        reads = [
            f"pd.read_csv({path}).rename(columns={{'value': {name!r}}})"
            for path, name in zip(paths, names, strict=True)
        ]
        code = [f"table = {reads[0]}"]
        if other:
            code += [f"table = table.merge({reads[1]}, on='date', how='outer')"]
        code += ["table_path = save(table)", "print('{table_path}')"]
        return [*(f"{text} {self.mark}" for text in requests), "\n" + "\n".join(code) + "\n"]

    def _write_values(
        self, variable: str, first: str, last: str, number: str, name: str
    ) -> Segments:
        places, variables = self.source.find_places(name), self.source.find_variables(variable)
        place_ID = next(place["ID"] for place in places if place["name"] == name)
        variable_ID = next(row["ID"] for row in variables if row["name"] == variable)
        return [
            self.show(f"find_places({name!r})"),
            "\n" + self.show(f"find_variables({variable!r})"),
            f"\ndata = observations({place_ID!r}, {variable_ID!r})\n"
            f"data = [one for one in data if {first} <= int(one['date']) <= {last}]\n"
            + self.show("data[:2]"),
            f"\npath_{number} = save(pd.DataFrame(data))\nprint('{{path_{number}}}')\n",
        ]

    def _write_measure(self, measure: str, place: str) -> Segments:
        read = "table = pd.read_csv(table_path)\n" + self.show("table.head(3)")
        if measure == "correlation":
            name, other = place.split(" and ")
            code = [
                f"rows = table[[{name!r}, {other!r}]].dropna()",
                f"r = stats.pearsonr(rows[{name!r}], rows[{other!r}]).statistic",
                "print(round(r, 6))",
            ]
            return [read, "\n" + "\n".join(code) + "\n"]
        code = [f"rows = table[['date', {place!r}]].dropna()", f"values = rows[{place!r}]"]
        before, figure = measure_code(measure, "rows['date']")
        lines = "\n".join(code)
        return [read, f"\n{lines}\n{before}print(round({figure}, 6))\n"]
