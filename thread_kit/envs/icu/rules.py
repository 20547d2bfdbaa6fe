"""Plays the threads of an ICU question by rule; the form is the prompt's (THREAD paper, G.2)."""

from __future__ import annotations

import re
from typing import final

from thread_kit.dialect import QA, Dialect
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import LOWEST
from thread_kit.envs.icu.stays import GROUPS
from thread_kit.envs.qa.rules import Script, Segments, figure_of

_PATIENT = re.compile(
    r"The (.+) of the (.+?) from hour (\d+) to hour (\d+) of (?:.* )?patient (\d+) is"
)
_GROUP = re.compile(
    r"The mean of the (.+?) of all patients (?:who (?=survived|expired)|with )(.+) is"
)

MEASURES = {
    "maximum": "values.max()",
    "minimum": "values.min()",
    "average": "values.mean()",
    "slope": "stats.linregress(table['hour'], values).slope",
    "hour of the highest": "table['hour'][values.idxmax()]",
    "hour of the lowest": "table['hour'][values.idxmin()]",
    "hour of the largest increase": "table['hour'][values.diff().idxmax()]",
    "hour of the largest decrease": "table['hour'][values.diff().idxmin()]",
}


@final
class IcuScript(Script):
    """Answers this question; see `Script`."""

    def __init__(self, env: IcuQA, dialect: Dialect = QA) -> None:
        super().__init__(dialect)
        self.question = env.question

    def threads(self, context: str, written: str) -> Segments:
        if found := _PATIENT.fullmatch(context):
            return self._patient(*found.groups())
        if found := _GROUP.fullmatch(context):
            return self._group(*found.groups())
        return self._question(self.figures(written))

    def _question(self, figures: tuple[float, ...]) -> Segments:
        kind, needs = self.question.kind, self.question.needs
        hours = [int(one) for one in re.findall(r"hour (\d+)", self.question.text)] or [0, 48]
        if early := re.search(r"first (\d+) hours", self.question.text):
            hours = [0, int(early[1])]
        measure = measure_of(kind, hours[-1])
        who = [f"patient {one}" for one, _ in needs if one.isdecimal()]
        asked = f"The {measure} of the {needs[0][1]} from hour {hours[0]} to hour {hours[1]} of"
        heads = [f"{asked} {who[0]} is", *(f" and of {one} is" for one in who[1:])]
        heads += [
            f".\nThe mean of the {variable} of all patients "
            f"{'who' if group in GROUPS else 'with'} {group} is"
            for group, variable in needs
            if not group.isdecimal()
        ]
        parts = [f"{head} {self.mark}" for head in heads]
        if self.is_async:
            shown = ", ".join(f"t{n}" for n, _ in enumerate(heads, 1))
            parts += [f".\n{self.seen(shown)}"]
        answer = self._answer(figures, len(heads))
        return [*parts, f"{'' if self.is_async else '.'}\nFinal Answer: {answer}\n"]

    def _answer(self, figures: tuple[float, ...], needed: int) -> str:
        if len(figures) < needed:
            return ""
        kind, patients = self.question.kind, [one for one, _ in self.question.needs]
        if kind.startswith("hour"):
            return str(round(figures[0], 2))
        other = min(figures[1:]) if kind.endswith(LOWEST) else max(figures[1:])
        larger = figures[0] > other
        if "against" in kind:
            more, less = ("above", "below") if kind.startswith("expected") else ("higher", "lower")
            return more if larger else less
        is_first = larger is (kind.endswith("higher") or kind.startswith("increasing"))
        return patients[0] if is_first else patients[1]

    def _patient(self, measure: str, variable: str, first: str, last: str, who: str) -> Segments:
        code = [
            f"table = pd.DataFrame(measurements({who!r}, {variable!r}))",
            f"table = table[(table['hour'] >= {first}) & (table['hour'] <= {last})]",
            self.seen("table.head(3)"),
        ]
        before, figure = figure_of(measure, MEASURES, "table['hour']")
        more = f"\nvalues = table['value']\n{before}print(round(float({figure}), 6))\n"
        return ["\n".join(code), more]

    def _group(self, variable: str, group: str) -> Segments:
        code = f"means = group_means({group!r}, {variable!r})\n" + self.seen("len(means)")
        return [code, "\nprint(round(float(np.mean(means)), 6))\n"]


def measure_of(kind: str, later: int) -> str:
    """What a kind of question compares, in words: one of `MEASURES`, or what is expected."""
    if kind.startswith("expected"):
        return f"value expected at hour {later}"
    if kind.endswith("faster"):
        return "slope"
    return kind if kind.startswith("hour") else kind.split()[0]
