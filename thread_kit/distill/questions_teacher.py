"""The teacher of threads for DataCommons QA and ICU QA: from a thread's context to what it writes.

Like `textcraft_teacher.speak_thread` it knows nothing but the text: it reads the question by the
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
comes out right. What ends in an error is asked once more, with the names read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from thread_kit.dialect import QA
from thread_kit.distill.textcraft_teacher import TeacherError
from thread_kit.envs.datacommons import questions as datacommons
from thread_kit.envs.icu import questions as icu
from thread_kit.envs.qa.kinds import Kind, measure_code, read_question
from thread_kit.envs.qa.rules import Script, Segments

LISTEN = QA.listen
TRIES = 2
"""So often what failed is tried again."""


class QuestionsTeacher(Script):
    """A function of a thread's text to what comes next; see `Script`.

    Raises TeacherError for a text that is not of the form that it teaches.
    """

    def __init__(self) -> None:
        super().__init__(QA)

    def __call__(self, seen: str) -> str:
        try:
            return super().__call__(seen)
        except IndexError:
            raise TeacherError("more has been asked for than there is to ask") from None

    def write(self, context: str, written: str) -> Segments:
        return _try_again(self._plan(context), written)

    def _plan(self, context: str) -> Segments:
        """What a thread writes where nothing fails."""
        for form, reply in _FORMS:
            if match := re.fullmatch(form, context):
                return reply(**match.groupdict())
        if context.startswith("Question: "):
            return _write_question(context.removeprefix("Question: "))
        raise TeacherError(f"not a request of this form: {context!r}")


def _try_again(segments: Segments, written: str) -> Segments:
    """The segments, with what came back as an error once more behind itself."""
    names, _, _ = segments[0].partition("\n")
    tried: Segments = []
    waiting = list(segments)
    for reply in re.findall(rf"{LISTEN}(.*?){QA.close}", written):
        tried.append(waiting.pop(0))
        failed = re.sub(r"^\n(first = (figure|path)\n)?", "", tried[-1])
        failures = sum(segment.endswith(failed) for segment in tried)
        if re.match(r"\w+Error: ", reply) and failures <= TRIES:
            # The names of a question are read again, too.
            is_main = names.startswith("one") and not failed.startswith(names)
            again = f"{names}\n{failed}" if is_main else failed
            waiting.insert(0, f"\n{again}")
    return [*tried, *waiting]


def _write_question(text: str) -> Segments:
    try:
        kind, fields = read_question(text, (*datacommons.KINDS, *icu.KINDS, *icu.OF_PHENOTYPES))
    except ValueError as error:
        raise TeacherError(str(error)) from None
    return (_ask_places if kind in datacommons.KINDS else _ask_patients)(kind, **fields)


def _ask_places(
    kind: Kind,
    variable: str,
    subject: str,
    first: str,
    last: str = "",
    other: str = "",
    later: str = "",
) -> Segments:
    measure = kind.measure.format(later=later)
    other = "United States" if kind.group else other
    names = [_with_blank(name) for name in (subject, other) if name]
    asked = f"the {measure} of {variable} from {first} to {last or first} in"
    if measure == "correlation":
        return _write_main(kind, names, f"Places: {asked}{{one}} and{{other}} is")
    requests = [f"Place: {asked}{{one}} is", f"Place: {asked}{{other}} is"]
    return _write_main(kind, names, *requests[: len(names)])


def _ask_patients(
    kind: Kind,
    variable: str,
    subject: str,
    other: str = "",
    first: str = "0",
    last: str = "48",
    later: str = "",
    group: str = "",
) -> Segments:
    measure = kind.measure.format(later=later)
    asked = f"Patient: the {measure} of the {variable} from hour {first} to hour {last} of patient"
    requests = [f"{asked} {{one}} is"]
    if other:
        requests.append(f"{asked} {{other}} is")
    elif kind.group:
        whom = icu.describe_members(group or kind.group)
        requests.append(
            f"Group: the {icu.name_reference(kind)} of the {variable} of all patients {whom} is"
        )
    return _write_main(kind, [name for name in (subject, other) if name], *requests)


def _write_main(kind: Kind, names: list[str], *requests: str) -> Segments:
    """The thread of a question: what it asks for, one behind the other, and the comparison."""
    variables = ", ".join(("one", "other")[: len(names)])
    start = f"{variables} = {', '.join(map(repr, names))}\n"
    asked = [f"{request} {LISTEN}" for request in requests]
    yes, no = map(repr, kind.answers) if kind.answers else ("one", "other")
    compared = f"first {kind.sign} figure" if len(requests) > 1 else f"figure {kind.sign} 0"
    answer = "round(figure, 2)" if kind.asks_when else f"{yes} if {compared} else {no}"
    end = f"\nanswer = {answer}\nprint(f'Final Answer: {{answer}}')\n"
    return [start + asked[0], *(f"\nfirst = figure\n{text}" for text in asked[1:]), end]


def _write_series(variable: str, first: str, last: str, place: str) -> str:
    return (
        f"place = find_places({_with_blank(place)!r})[0]['ID']\n"
        f"variable = find_variables({_with_blank(variable)!r})[0]['ID']\n"
        "table = pd.DataFrame(observations(place, variable)).astype({'date': int})\n"
        f"table = table[table['date'].between({first}, {last})]\n"
    )


def _measure_place(measure: str, variable: str, first: str, last: str, place: str) -> Segments:
    return [
        f"{_write_series(variable, first, last, place)}# > print(len(table)) {LISTEN}",
        "\nrows, values = table, table['value']\n" + _write_measure(measure, "rows['date']"),
    ]


def _correlate(variable: str, first: str, last: str, place: str, other: str) -> Segments:
    asked = f"Values of {variable} from {first} to {last} in"
    return [
        f"{asked} {place} are {LISTEN}",
        f"\nfirst = path\n{asked} {other} are {LISTEN}",
        "\nboth = pd.read_csv(first).merge(pd.read_csv(path), on='date')\n"
        + _write_return("stats.pearsonr(both['value_x'], both['value_y']).statistic"),
    ]


def _look_up_values(variable: str, first: str, last: str, place: str) -> Segments:
    return [
        f"{_write_series(variable, first, last, place)}# > print(len(table)) {LISTEN}",
        "\npath = save(table)\nprint('{path}')\n",
    ]


def _measure_patient(measure: str, variable: str, first: str, last: str, patient: str) -> Segments:
    return [
        f"table = pd.DataFrame(measurements({patient!r}, {_with_blank(variable)!r}))\n"
        f"table = table[table['hour'].between({first}, {last})]\n"
        f"# > print(len(table)) {LISTEN}",
        "\nvalues = table['value']\n" + _write_measure(measure, "table['hour']"),
    ]


def _average_group(which: str, variable: str, group: str) -> Segments:
    asked = f"{_with_blank(group)!r}, {_with_blank(variable)!r}"
    return [
        f"means = group_means({asked})\n# > print(len(means)) {LISTEN}",
        "\n" + _write_return(f"{icu.REFERENCE_CODE[which]}(means)"),
    ]


def _write_measure(measure: str, times: str) -> str:
    try:
        before, figure = measure_code(measure, times)
    except KeyError:
        raise TeacherError(f"not a measure of this form: {measure!r}") from None
    return before + _write_return(figure)


def _with_blank(name: str) -> str:
    return f" {name}"


def _write_return(figure: str) -> str:
    return f"figure = round(float({figure}), 6)\nprint('{{figure}}')\n"


_YEARS = r"of (?P<variable>.+?) from (?P<first>\d+) to (?P<last>\d+) in "
_HOURS = r"of the (?P<variable>.+?) from hour (?P<first>\d+) to hour (?P<last>\d+) of "
_FORMS: list[tuple[str, Callable[..., Segments]]] = [
    (rf"Places: the correlation {_YEARS}(?P<place>.+) and (?P<other>.+) is", _correlate),
    (rf"Values {_YEARS}(?P<place>.+) are", _look_up_values),
    (rf"Place: the (?P<measure>.+?) {_YEARS}(?P<place>.+) is", _measure_place),
    (rf"Patient: the (?P<measure>.+) {_HOURS}patient (?P<patient>\d+) is", _measure_patient),
    (
        r"Group: the (?P<which>(?:highest |lowest )?mean) of the (?P<variable>.+) of all patients "
        r"(?:who|with) (?P<group>.+) is",
        _average_group,
    ),
]
