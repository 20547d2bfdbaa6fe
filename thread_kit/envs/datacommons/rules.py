"""Plays the threads of a generated DataCommons question by rule; the form is the prompt's.

Four kinds of threads, as in the paper's example (000, G.1): the question asks for a table and for
measures of it; the table asks for the values of each place; each of those is looked up. A thread
binds the names of what it is about first; a second one has the first place's, too, and says what it
is to find, as in the prompts that the authors released.
"""

from __future__ import annotations

import re
from typing import Any, final

from thread_kit.dialect import QA, Dialect
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.questions import KINDS
from thread_kit.envs.datacommons.statistics import ListedStatistics
from thread_kit.envs.qa.kinds import measure_code, read_question
from thread_kit.envs.qa.rules import Script, Segments, read_subjects

_TABLE = re.compile(r"Here is a table of (.+) from (\d+) to (\d+) in (.+?)(?: and in (.+))?:")
_VALUES = re.compile(r"Series (\d), the values of (.+) from (\d+) to (\d+) in (.+), is")
_MEASURE = re.compile(r"By the data in (\S+) the (.+?) of (.+?) (in .+) is")


@final
class DataCommonsScript(Script):
    """Answers this question; see `Script`. Raises ValueError for one that was not generated."""

    def __init__(self, env: DataCommonsQA, dialect: Dialect = QA, **form: bool) -> None:
        super().__init__(dialect, **form)
        if not isinstance(env.source, ListedStatistics):
            raise ValueError(f"only generated questions are answered by rule, not {env!r}")
        self.kind, self.fields = read_question(env.question.text, KINDS)
        self.names = [env.source.places[place] for place, _ in env.question.needs]
        self.source = env.source

    def write(self, context: str, written: str) -> Segments:
        if match := _TABLE.fullmatch(context):
            return self._write_table(written, *match.groups())
        if match := _VALUES.fullmatch(context):
            return self._write_values(*match.groups())
        if match := _MEASURE.fullmatch(context):
            path, measure, variable, places = match.groups()
            named = [place.removeprefix("in ") for place in read_subjects(places, self.dialect)]
            return self._write_measure(path, measure, variable, named)
        return self._write_question(written)

    def _write_question(self, written: str) -> Segments:
        # 1. The table.
        names, variable, first = self.names, self.fields["variable"], self.fields["first"]
        last, later = self.fields.get("last", first), self.fields.get("later")
        table = f"Here is a table of {variable} from {first} to {last} in {' and in '.join(names)}:"
        path = self.refer("table_path", "".join(self.read_paths(written)))
        # 2. The measures.
        measure = self.kind.measure.format(later=later)
        start = f"\nBy the data in {path} the {measure} of {variable}"
        if measure == "correlation":
            asked = [f"{start} in {' and '.join(names)} is {self.dialect.listen}"]
            needed = 1
        else:
            asked = self.ask(start, *(f"in {name}" for name in names))
            needed = len(names)
        # 3. The answer.
        figures, end = self.read_figures(written), ""
        if len(figures) == needed:
            answer = self.kind.answer(figures, names)
            end = self.conclude(self.kind, figures, answer, self.fields, names)
        return [f"{table} {self.dialect.listen}", *asked, end]

    def _write_table(
        self, written: str, variable: str, first: str, last: str, place: str, other: str | None
    ) -> Segments:
        places = {f"place_{n}": name for n, name in enumerate(filter(None, [place, other]), 1)}
        years = f"{first} to {last}"
        names = self.bind(years=years, variable=variable, **places)
        what, when = self.refer("variable", variable), self.refer("years", years)
        request = f"Series [number], the values of {what} from {when} in [subject], is"
        join = "table.merge({}, on='date', how='outer')"
        return self.write_table(names, places, request, join, written)

    def _write_values(
        self, number: str, variable: str, first: str, last: str, name: str
    ) -> Segments:
        places, variables = self.source.find_places(name), self.source.find_variables(variable)
        place_ID = next(place["ID"] for place in places if place["name"] == name)
        variable_ID = next(row["ID"] for row in variables if row["name"] == variable)
        use = self.use
        start, end = use("first", int(first)), use("last", int(last))
        asked = f"{use('place_ID', place_ID)}, {use('variable_ID', variable_ID)}"
        rows = f"[row for row in rows if {start} <= int(row['date']) <= {end}]"
        refer = self.refer
        years = f"from {refer('first', first)} to {refer('last', last)}"
        wanted = f"# I need {refer('variable', variable)} {years} in {refer('place', name)}.\n"
        return [
            self.bind(first=int(first), last=int(last), variable=variable, place=name)
            + wanted * (number == "2")
            + self.show(f"find_variables({use('variable', variable)})"),
            f"\n{self.bind(variable_ID=variable_ID)}"
            + self.show(f"find_places({use('place', name)})"),
            f"\n{self.bind(place_ID=place_ID)}rows = observations({asked})\n"
            f"series_{number} = {rows}\n" + self.show(f"series_{number}[:2]"),
            self.return_series(number),
        ]

    def _write_measure(self, path: str, measure: str, variable: str, places: list[str]) -> Segments:
        # 1. The names: of a correlation both, of a second place the first one's, too.
        names: dict[str, Any] = {"table_path": path, "variable": variable}
        wanted = ""
        if measure == "correlation":
            bound = dict(zip(("place", "other"), places[0].split(" and "), strict=True))
        elif len(places) == 1:
            bound = {"place": places[0]}
        else:
            bound = {f"place_{number}": place for number, place in enumerate(places, 1)}
            of = self.refer("variable", variable)
            wanted = f"# I need the {measure} of {of} in {self.refer('place_2', places[1])}.\n"
        # 2. The table, looked at.
        read = (
            self.bind(**names, **bound)
            + wanted
            + f"table = pd.read_csv({self.use('table_path', path)})\n"
            + self.show("table.head(3)")
        )
        # 3. The measure.
        columns = [self.use(*named) for named in bound.items()]
        if measure == "correlation":
            code = f"rows = table[[{', '.join(columns)}]].dropna()\n"
            figure = f"stats.pearsonr(rows[{columns[0]}], rows[{columns[1]}]).statistic"
        else:
            before, figure = measure_code(measure, "rows['date']")
            code = f"rows = table[['date', {columns[-1]}]].dropna()\nvalues = rows[{columns[-1]}]\n"
            code += before
        return [read, f"\n{code}print(round(float({figure}), 6))\n"]
