"""The teacher of threads for DataCommons QA and ICU QA: from a thread's context to what it writes.

Like `oracle.speak_thread` for TextCraft it knows nothing but the text: it reads the question by the
templates of the generator, and never sees a value, which the interpreter compares. So whatever it
does, a model that reads the same text can learn to do.

The form of the threads (what is distilled; there is no few-shot prompt):

    Question: From 1982 to 1986, was the minimum of the murder rate lower in Ohio or in Iowa?
                       one, other = 'Ohio', 'Iowa'
                       The minimum of the murder rate from 1982 to 1986 in {one} is =>{figure_1}<=
                       and in {other} is =>{figure_2}<=
                       answer = one if figure_1 < figure_2 else other
                       print(f'Final Answer: {answer}')
    The minimum of the murder rate from 1982 to 1986 in Ohio is =>
                       place = find_places('Ohio')[0]['ID'] ... values = table['value']
                       # > print(len(values)) =>5<=
                       figure_1 = round(float(values.min()), 6)
                       print('{figure_1}')
    The correlation of the murder rate from 1982 to 1986 in Ohio and Iowa is =>
                       The values of the murder rate from 1982 to 1986 in Ohio are =>{path_1}<=
                       and in Iowa are =>{path_2}<=
                       ... stats.pearsonr(...) of the two tables, which are handed over by path
    The minimum of the heart rate from hour 0 to hour 48 of patient 10018 is =>
                       table = pd.DataFrame(measurements('10018', 'heart rate')) ...
    The mean of the heart rate of all patients who survived is =>
                       means = group_means('survived', 'heart rate') ... print('{others}')

The model decides what to compare, and copies names, years and hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from thread_kit.dialect import QA
from thread_kit.distill.oracle import OracleError
from thread_kit.envs import datacommons_questions, datacommons_script, mimic_questions, mimic_script
from thread_kit.envs.qa_script import Script, Segments
from thread_kit.envs.stays import GROUPS

LISTEN = QA.listen

OUTERMOST = {mimic_questions.HIGHEST: "max", mimic_questions.LOWEST: "min"}

_OPPOSITES = {
    "higher": "higher or lower",
    "increase": "increase or decrease",
    "increasing": "increasing or decreasing",
    "positive": "positive or negative",
    "above": "above or below",
}
"""The two answers, where they are no names: as the templates say them."""

_SAY = "print(f'Final Answer: {answer}')\n"


class QuestionsTeacher(Script):
    """A function of a thread's text to what comes next; see `Script`.

    Raises OracleError for a text that is not of the form that it teaches.
    """

    def __init__(self) -> None:
        super().__init__(QA)

    def threads(self, context: str, written: str) -> Segments:
        for form, reply in _FORMS:
            if found := re.fullmatch(form, context):
                return reply(**found.groupdict())
        if context.startswith("Question: "):
            return _question(context.removeprefix("Question: "))
        raise OracleError(f"not a request of this form: {context!r}")


def _question(text: str) -> Segments:
    for kind, form, main in _templates():
        if found := re.fullmatch(form, text):
            return main(kind, **found.groupdict())
    raise OracleError(f"not a question of these kinds: {text!r}")


@cache
def _templates() -> list[tuple[str, str, Callable[..., Segments]]]:
    """The generators' kinds: name, the form of the question, and who answers it."""
    icu = (*mimic_questions.KINDS, *mimic_questions.OF_PHENOTYPES)
    return [
        *((kind.name, _form(kind.text), _on_places) for kind in datacommons_questions.KINDS),
        *((kind.name, _form(kind.text), _on_group if kind.group else _on_patients) for kind in icu),
    ]


def _form(template: str) -> str:
    """A regular expression of a template: each of its fields is a group of that name."""
    parts = re.split(r"\{(\w+)\}", template)
    texts = [re.escape(part) for part in parts[::2]]
    fields = [rf"(?P<{name}>{_NUMBER if name in _NUMBERS else '.+?'})" for name in parts[1::2]]
    return "".join(text + field for text, field in zip(texts, [*fields, ""], strict=True))


_NUMBER = r"\d+"
_NUMBERS = {"time1", "time2", "time3", "first", "last", "later", "patient1", "patient2"}


def _on_places(
    kind: str,
    variable: str,
    place1: str,
    time1: str,
    place2: str = "",
    time2: str = "",
    time3: str = "",
) -> Segments:
    measure = datacommons_script.measure_of(kind, time3)
    other = "United States" if kind == "national" else place2
    head = f"one, other = {place1!r}, {other!r}\n" if other else f"one = {place1!r}\n"
    head += f"The {measure} of {variable} from {time1} to {time2 or time1} in {{one}}"
    if measure == "correlation":
        return [f"{head} and {{other}} is {LISTEN}", _end(kind, "0")]
    more = [f" and in {{other}} is {LISTEN}"] if other else []
    return [f"{head} is {LISTEN}", *more, _end(kind, "figure_2" if other else "0")]


def _on_patients(
    kind: str,
    variable: str,
    patient1: str,
    patient2: str = "",
    first: str = "0",
    last: str = "48",
) -> Segments:
    measure = mimic_script.measure_of(kind, 0)
    asked = f"The {measure} of the {variable} from hour {first} to hour {last} of patient {{one}}"
    if not patient2:  # an hour is asked for, and is what the child returns
        end = f"\nanswer = round(figure_1, 2)\n{_SAY}"
        return [f"one = {patient1!r}\n{asked} is {LISTEN}", end]
    head = f"one, other = {patient1!r}, {patient2!r}\n{asked} is {LISTEN}"
    return [head, f" and of patient {{other}} is {LISTEN}", _end(kind, "figure_2")]


def _on_group(
    kind: str,
    variable: str,
    patient1: str,
    first: str,
    last: str,
    group: str = "",
    later: str = "0",
) -> Segments:
    measure = mimic_script.measure_of(kind, int(later))
    group = group or kind.partition("against ")[2].removeprefix("those who ")
    if group in OUTERMOST:
        whom = f"{group.removeprefix('the ')} of the means of the {variable} of all phenotypes"
    else:
        who = "who" if group in GROUPS else "with"
        whom = f"mean of the {variable} of all patients {who} {group}"
    asked = f"The {measure} of the {variable} from hour {first} to hour {last} of patient {{one}}"
    return [
        f"one = {patient1!r}\n{asked} is {LISTEN}",
        f"\nThe {whom} is {LISTEN}",
        _end(kind, "others"),
    ]


def _end(kind: str, other: str) -> str:
    """The comparison that answers a kind of question."""
    yes, no = _answers(kind)
    sign = "<" if kind.endswith("lower") or kind == "decreasing faster" else ">"
    return f"\nanswer = {yes} if figure_1 {sign} {other} else {no}\n{_SAY}"


def _answers(kind: str) -> tuple[str, str]:
    if kind.endswith(("higher", "lower", "faster")):
        return "one", "other"
    if kind == "forecast compared" or kind.startswith("expected against"):
        said = "above"
    else:
        said = {"trend": "increasing", "forecast trend": "increase", "correlation": "positive"}.get(
            kind, "higher"
        )
    yes, no = _OPPOSITES[said].split(" or ")
    return repr(yes), repr(no)


def _number(earlier: str | None) -> int:
    """The first child of a line, or the second, which reads what the first was asked."""
    return 2 if earlier else 1


def _series(variable: str, first: str, last: str, place: str) -> str:
    return (
        f"place = find_places({place!r})[0]['ID']\n"
        f"variable = find_variables({variable!r})[0]['ID']\n"
        "table = pd.DataFrame(observations(place, variable)).astype({'date': int})\n"
        f"table = table[table['date'].between({first}, {last})]\n"
    )


def _of_place(
    measure: str, variable: str, first: str, last: str, earlier: str | None, place: str
) -> Segments:
    more = "\nrows, values = table, table['value']\n"
    if found := datacommons_script.EXPECTED.fullmatch(measure):
        figure = f"line.intercept + line.slope * {found[1]}"
        more += "line = stats.linregress(rows['date'], values)\n"
    else:
        figure = datacommons_script.MEASURES[measure]
    seen = f"# > print(len(table)) {LISTEN}"
    return [
        _series(variable, first, last, place) + seen,
        more + _returned(f"figure_{_number(earlier)}", figure),
    ]


def _correlation(variable: str, first: str, last: str, place: str, other: str) -> Segments:
    return [
        f"The values of {variable} from {first} to {last} in {place} are {LISTEN}",
        f" and in {other} are {LISTEN}",
        "\nboth = pd.read_csv(path_1).merge(pd.read_csv(path_2), on='date')\n"
        + _returned("figure_1", "stats.pearsonr(both['value_x'], both['value_y']).statistic"),
    ]


def _values(variable: str, first: str, last: str, earlier: str | None, place: str) -> Segments:
    path = f"path_{_number(earlier)}"
    return [
        f"{_series(variable, first, last, place)}# > print(len(table)) {LISTEN}",
        f"\n{path} = save(table)\nprint('{{{path}}}')\n",
    ]


def _of_patient(
    measure: str, variable: str, first: str, last: str, earlier: str | None, patient: str
) -> Segments:
    more = "\nvalues = table['value']\n"
    if found := mimic_script.EXPECTED.fullmatch(measure):
        figure = f"line.intercept + line.slope * {found[1]}"
        more += "line = stats.linregress(table['hour'], values)\n"
    else:
        figure = mimic_script.MEASURES[measure]
    return [
        f"table = pd.DataFrame(measurements({patient!r}, {variable!r}))\n"
        f"table = table[table['hour'].between({first}, {last})]\n"
        f"# > print(len(table)) {LISTEN}",
        more + _returned(f"figure_{_number(earlier)}", figure),
    ]


def _of_group(variable: str, group: str) -> Segments:
    return [
        f"means = group_means({group!r}, {variable!r})\n# > print(len(means)) {LISTEN}",
        "\n" + _returned("others", "np.mean(means)"),
    ]


def _of_phenotypes(which: str, variable: str) -> Segments:
    return [
        f"phenotypes = groups()[{len(GROUPS)}:]\n"
        f"means = [group_means(one, {variable!r}) for one in phenotypes]\n"
        f"# > print(len(means)) {LISTEN}",
        "\n"
        + _returned("others", f"{OUTERMOST[f'the {which}']}(np.mean(one) for one in means if one)"),
    ]


def _returned(name: str, figure: str) -> str:
    return f"{name} = round(float({figure}), 6)\nprint('{{{name}}}')\n"


_YEARS = r"of (?P<variable>.+?) from (?P<first>\d+) to (?P<last>\d+) in "
_HOURS = r"of the (?P<variable>.+?) from hour (?P<first>\d+) to hour (?P<last>\d+) of "
_FORMS: list[tuple[str, Callable[..., Segments]]] = [
    (rf"The correlation {_YEARS}(?P<place>.+) and (?P<other>.+) is", _correlation),
    (rf"The values {_YEARS}(?P<earlier>.+ \.\.\. and in )?(?P<place>.+) are", _values),
    (
        rf"The (?P<measure>.+?) {_YEARS}(?P<earlier>.+ is \.\.\. and in )?(?P<place>.+) is",
        _of_place,
    ),
    (
        rf"The (?P<measure>.+) {_HOURS}(?P<earlier>patient \d+ is \.\.\. and of )?"
        r"patient (?P<patient>\d+) is",
        _of_patient,
    ),
    (r"The mean of the (?P<variable>.+) of all patients (?:who|with) (?P<group>.+) is", _of_group),
    (
        r"The (?P<which>highest|lowest) of the means of the (?P<variable>.+) of all phenotypes is",
        _of_phenotypes,
    ),
]

__all__ = ["QuestionsTeacher"]
