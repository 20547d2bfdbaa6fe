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
from thread_kit.envs.qa.rules import Script, Segments, figure_of

_TABLE = re.compile(r"Here is a table of (.+) from (\d+) to (\d+) in (.+?)(?: and in (.+))?:")
_VALUES = re.compile(r"The values of (.+) from (\d+) to (\d+) in .*place number (\d), (.+), are")
_MEASURE = re.compile(r"By the data in (\S+) the (.+?) of (.+?) in (.+) is")

MEASURES = {
    "minimum": "values.min()",
    "maximum": "values.max()",
    "average": "values.mean()",
    "median": "values.median()",
    "value": "values.iloc[0]",
    "slope": "stats.linregress(rows['date'], values).slope",
}


@final
class DataCommonsScript(Script):
    """Answers this question; see `Script`. Raises ValueError for one that was not generated."""

    def __init__(self, env: DataCommonsQA, dialect: Dialect = QA) -> None:
        super().__init__(dialect)
        if not isinstance(env.source, ListedStatistics):
            raise ValueError(f"only generated questions are answered by rule, not {env!r}")
        self.question = env.question
        self.source = env.source

    def threads(self, context: str, written: str) -> Segments:
        if found := _TABLE.fullmatch(context):
            return self._table(*found.groups())
        if found := _VALUES.fullmatch(context):
            return self._values(*found.groups())
        if found := _MEASURE.fullmatch(context):
            where = found[4].rpartition(" and in ")[2] if " ... " in found[4] else found[4]
            return self._measure(found[2], where)
        return self._question(self.figures(written))

    def _question(self, figures: tuple[float, ...]) -> Segments:
        question = self.question
        names = [self._name(one) for one, _ in question.needs]
        variable = self._variable(question.needs[0][1])
        years = re.findall(r"\b(?:19|20)\d\d\b", question.text)
        first, last, later = years[0], years[-1], years[-1]
        if question.kind.startswith("forecast"):
            first, last = (year for year in years if year != max(years))
            later = max(years)
        table = f"Here is a table of {variable} from {first} to {last} in {' and in '.join(names)}:"
        measure = measure_of(question.kind, later)
        asked = f"By the data in {{table_path}} the {measure} of {variable} in"
        parts = [f"{table} {self.dialect.listen}"]
        if question.kind == "correlation":
            parts += [f"\n{asked} {' and '.join(names)} is {self.dialect.listen}"]
        else:
            heads = [f"\n{asked} {names[0]} is", *(f" and in {one} is" for one in names[1:])]
            parts += [f"{head} {self.mark}" for head in heads]
            if self.is_async:
                shown = ", ".join(f"t{n}" for n, _ in enumerate(names, 1))
                parts += [f".\n{self.seen(shown)}"]
        needed = 1 if question.kind == "correlation" else len(names)
        kind = next(one for one in KINDS if one.name == question.kind)
        answer = kind.choose(figures, names) if len(figures) == needed else ""
        return [*parts, f"\nFinal Answer: {answer}\n"]

    def _name(self, place: str) -> str:
        return self.source.places[place]

    def _variable(self, variable: str) -> str:
        return self.source.variables[variable]

    def _table(self, variable: str, first: str, last: str, one: str, other: str | None) -> Segments:
        names = [one, other] if other else [one]
        asked = f"The values of {variable} from {first} to {last} in"
        heads = [f"{asked} place number 1, {one}, are", f" and in place number 2, {other}, are"]
        paths = [f"t{n}" if self.is_async else f"path_{n}" for n, _ in enumerate(names, 1)]
        parts = [f"{head} {self.mark}" for head in heads[: len(names)]]
        reads = [
            f"pd.read_csv({path}).rename(columns={{'value': {name!r}}})"
            for path, name in zip(paths, names, strict=True)
        ]
        code = [f"table = {reads[0]}"]
        if other:
            code += [f"table = table.merge({reads[1]}, on='date', how='outer')"]
        code += ["table_path = save(table)", "print('{table_path}')"]
        return [*parts, "\n" + "\n".join(code) + "\n"]

    def _values(self, variable: str, first: str, last: str, number: str, name: str) -> Segments:
        source = self.source
        place = next(one for one in source.find_places(name) if one["name"] == name)["ID"]
        wanted = next(
            one["ID"] for one in source.find_variables(variable) if one["name"] == variable
        )
        return [
            self.seen(f"find_places({name!r})"),
            "\n" + self.seen(f"find_variables({variable!r})"),
            f"\ndata = observations({place!r}, {wanted!r})\n"
            f"data = [one for one in data if {first} <= int(one['date']) <= {last}]\n"
            + self.seen("data[:2]"),
            f"\npath_{number} = save(pd.DataFrame(data))\nprint('{{path_{number}}}')\n",
        ]

    def _measure(self, measure: str, where: str) -> Segments:
        read = "table = pd.read_csv(table_path)\n" + self.seen("table.head(3)")
        if measure == "correlation":
            one, other = where.split(" and ")
            code = [
                f"rows = table[[{one!r}, {other!r}]].dropna()",
                f"r = stats.pearsonr(rows[{one!r}], rows[{other!r}]).statistic",
                "print(round(r, 6))",
            ]
            return [read, "\n" + "\n".join(code) + "\n"]
        code = [f"rows = table[['date', {where!r}]].dropna()", f"values = rows[{where!r}]"]
        before, figure = figure_of(measure, MEASURES, "rows['date']")
        lines = "\n".join(code)
        return [read, f"\n{lines}\n{before}print(round({figure}, 6))\n"]


def measure_of(kind: str, later: str) -> str:
    """What a kind of question compares, in words: one of `MEASURES`, or what is expected."""
    first = kind.split()[0]
    if first in MEASURES:
        return first
    if kind in ("trend", "faster", "forecast trend"):
        return "slope"
    if first == "forecast":
        return f"value expected for {later}"
    return "correlation" if kind == "correlation" else "value"
