"""The teacher of threads for DataCommons QA and ICU QA: from a thread's context to what it writes.

Like `oracle.speak_thread` for TextCraft it knows nothing but the text: it reads the question by the
templates of the generator, and never sees a value, which the interpreter compares. So whatever it
does, a model that reads the same text can learn to do.

The form of the threads (what is distilled; there is no few-shot prompt):

    Question: From 1982 to 1986, was the minimum of the murder rate lower in Ohio or in Iowa?
                       one, other = ' Ohio', ' Iowa'
                       Place: the minimum of the murder rate from 1982 to 1986 in{one} is =>
                       first = figure
                       Place: the minimum of the murder rate from 1982 to 1986 in{other} is =>
                       answer = one if first < figure else other
                       print(f'Final Answer: {answer}')
    Place: the minimum of the murder rate from 1982 to 1986 in Ohio is =>
                       place = find_places(' Ohio')[0]['ID'] ... values = table['value']
                       # > print(len(table)) =>5<=
                       figure = round(float(values.min()), 6)
                       print('{figure}')
    Places: the correlation of the murder rate from 1982 to 1986 in Ohio and Iowa is =>
                       Values of the murder rate from 1982 to 1986 in Ohio are =>{path}<=
                       first = path
                       Values of the murder rate from 1982 to 1986 in Iowa are =>{path}<=
                       ... stats.pearsonr(...) of the two tables, which are handed over by path
    Patient: the minimum of the heart rate from hour 0 to hour 48 of patient 10018 is =>
                       table = pd.DataFrame(measurements('10018', ' heart rate')) ...
    Group: the mean of the heart rate of all patients who survived is =>
                       means = group_means(' survived', ' heart rate') ...

The model decides what to compare, and copies names, years and hours. Names keep the blank before
them, since " Missouri" is one token and "'Missouri" is others: copied so, a name that no lesson had
comes out right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from thread_kit.dialect import QA
from thread_kit.distill.textcraft_teacher import TeacherError
from thread_kit.envs.datacommons import questions as datacommons_questions
from thread_kit.envs.datacommons import rules as datacommons_script
from thread_kit.envs.icu import questions as mimic_questions
from thread_kit.envs.icu import rules as mimic_script
from thread_kit.envs.icu.stays import GROUPS
from thread_kit.envs.qa.rules import Script, Segments, figure_of

LISTEN = QA.listen

OUTERMOST = {mimic_questions.HIGHEST: "max", mimic_questions.LOWEST: "min"}

_NUMBER = r"\d+"
_NUMBERS = {"time1", "time2", "time3", "first", "last", "later", "patient1", "patient2"}

_WORDS = {
    "trend": ("increasing", "decreasing"),
    "forecast trend": ("increase", "decrease"),
    "correlation": ("positive", "negative"),
    "forecast compared": ("above", "below"),
}
"""By kind: the two answers, where they are neither names nor "higher" and "lower"."""

_SAY = "print(f'Final Answer: {answer}')\n"


class QuestionsTeacher(Script):
    """A function of a thread's text to what comes next; see `Script`.

    Raises OracleError for a text that is not of the form that it teaches.
    """

    def __init__(self) -> None:
        super().__init__(QA)

    def __call__(self, seen: str) -> str:
        try:
            return super().__call__(seen)
        except IndexError:
            raise TeacherError("more has been asked for than there is to ask") from None

    def threads(self, context: str, written: str) -> Segments:
        for form, reply in _FORMS:
            if found := re.fullmatch(form, context):
                return reply(**found.groupdict())
        if context.startswith("Question: "):
            return _question(context.removeprefix("Question: "))
        raise TeacherError(f"not a request of this form: {context!r}")


def _question(text: str) -> Segments:
    for kind, form, main in _templates():
        if found := re.fullmatch(form, text):
            return main(kind, **found.groupdict())
    raise TeacherError(f"not a question of these kinds: {text!r}")


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
    one, other = _blank(place1), other and _blank(other)
    names = f"one, other = {one!r}, {other!r}\n" if other else f"one = {one!r}\n"
    asked = f"the {measure} of {variable} from {time1} to {time2 or time1} in"
    if measure == "correlation":
        return [f"{names}Places: {asked}{{one}} and{{other}} is {LISTEN}", _end(kind, "0")]
    asked = f"Place: {asked}"
    if not other:
        return [f"{names}{asked}{{one}} is {LISTEN}", _end(kind, "0")]
    return _compared(kind, f"{names}{asked}{{one}} is", f"{asked}{{other}} is")


def _on_patients(
    kind: str,
    variable: str,
    patient1: str,
    patient2: str = "",
    first: str = "0",
    last: str = "48",
) -> Segments:
    asked = _of_one(mimic_script.measure_of(kind, 0), variable, first, last)
    if not patient2:  # an hour is asked for, and is what the child returns
        end = f"\nanswer = round(figure, 2)\n{_SAY}"
        return [f"one = {patient1!r}\n{asked} {{one}} is {LISTEN}", end]
    names = f"one, other = {patient1!r}, {patient2!r}\n"
    return _compared(kind, f"{names}{asked} {{one}} is", f"{asked} {{other}} is")


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
    asked = _of_one(measure, variable, first, last)
    return _compared(kind, f"one = {patient1!r}\n{asked} {{one}} is", f"Group: the {whom} is")


def _of_one(measure: str, variable: str, first: str, last: str) -> str:
    """What a patient's child is asked for, up to the patient."""
    return f"Patient: the {measure} of the {variable} from hour {first} to hour {last} of patient"


def _compared(kind: str, asked: str, then: str) -> Segments:
    """Two figures are asked for, one behind the other, and compared."""
    return [f"{asked} {LISTEN}", f"\nfirst = figure\n{then} {LISTEN}", _end(kind)]


def _end(kind: str, zero: str = "") -> str:
    """The comparison that answers a kind of question: of two figures, or of one with zero."""
    yes, no = _answers(kind)
    sign = "<" if kind.endswith("lower") or kind == "decreasing faster" else ">"
    compared = f"figure {sign} {zero}" if zero else f"first {sign} figure"
    return f"\nanswer = {yes} if {compared} else {no}\n{_SAY}"


def _answers(kind: str) -> tuple[str, str]:
    if kind.endswith(("higher", "lower", "faster")):
        return "one", "other"
    if kind.startswith("expected against"):
        kind = "forecast compared"
    yes, no = _WORDS.get(kind, ("higher", "lower"))
    return repr(yes), repr(no)


def _series(variable: str, first: str, last: str, place: str) -> str:
    return (
        f"place = find_places({_blank(place)!r})[0]['ID']\n"
        f"variable = find_variables({variable!r})[0]['ID']\n"
        "table = pd.DataFrame(observations(place, variable)).astype({'date': int})\n"
        f"table = table[table['date'].between({first}, {last})]\n"
    )


def _of_place(measure: str, variable: str, first: str, last: str, place: str) -> Segments:
    return [
        f"{_series(variable, first, last, place)}# > print(len(table)) {LISTEN}",
        "\nrows, values = table, table['value']\n"
        + _measured(measure, datacommons_script.MEASURES, "rows['date']"),
    ]


def _correlation(variable: str, first: str, last: str, place: str, other: str) -> Segments:
    asked = f"Values of {variable} from {first} to {last} in"
    return [
        f"{asked} {place} are {LISTEN}",
        f"\nfirst = path\n{asked} {other} are {LISTEN}",
        "\nboth = pd.read_csv(first).merge(pd.read_csv(path), on='date')\n"
        + _returned("stats.pearsonr(both['value_x'], both['value_y']).statistic"),
    ]


def _values(variable: str, first: str, last: str, place: str) -> Segments:
    return [
        f"{_series(variable, first, last, place)}# > print(len(table)) {LISTEN}",
        "\npath = save(table)\nprint('{path}')\n",
    ]


def _of_patient(measure: str, variable: str, first: str, last: str, patient: str) -> Segments:
    return [
        f"table = pd.DataFrame(measurements({patient!r}, {_blank(variable)!r}))\n"
        f"table = table[table['hour'].between({first}, {last})]\n"
        f"# > print(len(table)) {LISTEN}",
        "\nvalues = table['value']\n" + _measured(measure, mimic_script.MEASURES, "table['hour']"),
    ]


def _of_group(variable: str, group: str) -> Segments:
    asked = f"{_blank(group)!r}, {_blank(variable)!r}"
    return [
        f"means = group_means({asked})\n# > print(len(means)) {LISTEN}",
        "\n" + _returned("np.mean(means)"),
    ]


def _of_phenotypes(which: str, variable: str) -> Segments:
    outermost = OUTERMOST[f"the {which}"]
    return [
        f"phenotypes = groups()[{len(GROUPS)}:]\n"
        f"means = [group_means(one, {_blank(variable)!r}) for one in phenotypes]\n"
        f"# > print(len(means)) {LISTEN}",
        "\n" + _returned(f"{outermost}(np.mean(one) for one in means if one)"),
    ]


def _measured(measure: str, measures: Mapping[str, str], times: str) -> str:
    try:
        before, figure = figure_of(measure, measures, times)
    except KeyError:
        raise TeacherError(f"not a measure of this form: {measure!r}") from None
    return before + _returned(figure)


def _blank(name: str) -> str:
    return f" {name}"


def _returned(figure: str) -> str:
    return f"figure = round(float({figure}), 6)\nprint('{{figure}}')\n"


_YEARS = r"of (?P<variable>.+?) from (?P<first>\d+) to (?P<last>\d+) in "
_HOURS = r"of the (?P<variable>.+?) from hour (?P<first>\d+) to hour (?P<last>\d+) of "
_FORMS: list[tuple[str, Callable[..., Segments]]] = [
    (rf"Places: the correlation {_YEARS}(?P<place>.+) and (?P<other>.+) is", _correlation),
    (rf"Values {_YEARS}(?P<place>.+) are", _values),
    (rf"Place: the (?P<measure>.+?) {_YEARS}(?P<place>.+) is", _of_place),
    (rf"Patient: the (?P<measure>.+) {_HOURS}patient (?P<patient>\d+) is", _of_patient),
    (
        r"Group: the mean of the (?P<variable>.+) of all patients (?:who|with) (?P<group>.+) is",
        _of_group,
    ),
    (
        r"Group: the (?P<which>highest|lowest) of the means of the (?P<variable>.+) of all "
        r"phenotypes is",
        _of_phenotypes,
    ),
]
