"""The few-shot prompts of DataCommons QA and ICU QA, played by rule in the real environment.

`python tests/helpers/question_prompts.py` writes prompts/*/{datacommons,icu}*.txt, but for the
instruction behind Reflexion's examples; a test compares those of programs. All methods answer the
same questions, one of each kind: of the training split of DataCommons QA, beyond those that a suite
lists, and about variables of the training split of ICU QA, of patients who never were.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from thread_kit.dialect import QA, QA_ASYNC
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.rules import DataCommonsScript
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.rules import IcuScript
from thread_kit.envs.icu.stays import write_synthetic_stays
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.envs.qa.kinds import MEASURES, Kind, measure_code
from thread_kit.envs.registry import find_benchmark
from thread_kit.exchange import phi_full_sequence
from thread_kit.methods.decomp import decomp
from thread_kit.methods.nlep import nlep
from thread_kit.methods.react import react
from thread_kit.paths import resource
from thread_kit.prompts import Prompt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

QUESTIONS = {
    "datacommons": (
        *(231, 232, 443, 297, 235, 425, 216, 217, 239, 408, 262),
        *(242, 243, 265, 308, 477, 310, 626, 312, 271, 1028),
    ),
    "icu": (0, 33, 18, 83, 180, 5, 582, 343, 568, 553, 282, 43, 156, 45, 702, 751),
}
"""By their numbers, one of each kind; the directions and the places of the answer alternate."""

THREADS: dict[str, dict] = {
    "": {},
    "-lines": {"lines": True},
    "-async": {"dialect": QA_ASYNC},
    "-no-variables": {"variables": False, "scope": "own"},
    "-whole-sequence": {"phi": phi_full_sequence},
}
"""What the names of THREAD's prompts mean: of the rules, and of the session."""


EMPTY_QA = Prompt("none", (), QA)


def make_questions(benchmark: str) -> list[QuestionEnv]:
    """The questions of the examples."""
    numbers = QUESTIONS[benchmark]
    if benchmark == "datacommons":
        return [DataCommonsQA("train", number) for number in numbers]
    stays = write_synthetic_stays(tempfile.mkdtemp())
    return [IcuQA(stays, number, split="train") for number in numbers]


def make_rules(env: QuestionEnv, **form) -> DataCommonsScript | IcuScript:
    """What plays the threads of a question."""
    return (DataCommonsScript if env.name == "datacommons" else IcuScript)(env, **form)


# THREAD


def play_threads(env: QuestionEnv, dialect=QA, lines=False, variables=True, **options) -> Episode:
    """The threads of a question, by rule."""
    engine = ScriptedEngine(make_rules(env, dialect=dialect, lines=lines, variables=variables))
    session = Session(engine, env.again(), dialect=dialect, **options)
    return session.run(progress=False)


class Shapes:
    """Which threads are shown: all main threads, and of each other shape the first.

    Of a measure that is asked of two in turn the first child or the second; of the first measure
    both.
    """

    def __init__(self) -> None:
        self.shown: set[tuple[str, ...]] = set()
        self.measures: list[str] = []

    def is_new(self, line: str, subjects: int) -> bool:
        """Whether a thread that is asked this by a question about so many shows anything more."""
        shape = self._describe(line, subjects)
        is_new = shape not in self.shown and shape != ()
        self.shown.add(shape)
        return is_new

    def _describe(self, line: str, subjects: int) -> tuple[str, ...]:
        if line.startswith("Here is a table"):
            return "table", str(subjects)
        if number := re.match(r"Series (\d)", line):
            return "values", number[1]
        if line.startswith("The mean of"):
            return "mean", line.partition(" of all ")[2]
        # A measure.
        known = (*MEASURES, "correlation", "value expected")
        measure = max((m for m in known if f" the {m}" in line), key=len)
        if measure not in self.measures:
            self.measures.append(measure)
        number = self.measures.index(measure)
        is_second = "<= and " in line or "... and " in line
        wanted = subjects == 2 and measure != "correlation" and bool(number % 2)
        return (measure, str(is_second)) if number == 0 or is_second == wanted else ()


def write_thread_prompt(questions: list[QuestionEnv], **form) -> str:
    """A prompt of THREAD."""
    return format_examples(list_thread_examples(questions, **form))


def list_thread_examples(questions: list[QuestionEnv], **form) -> Iterator[tuple[str, str]]:
    """Contexts and responses: each main thread, and below it the children that show more."""
    shapes = Shapes()
    for env in questions:
        episode = play_threads(env, **form)
        assert episode.reward == 1, (env, episode)
        subjects = len(describe_question(env)[2])
        for thread in episode.threads.values():
            line = thread.title.rpartition("\n")[2]
            if thread.id == 0 or shapes.is_new(line, subjects):
                yield QA.asked(thread.context.text), thread.sequence.text


def format_examples(examples: Iterable[tuple[str, str]]) -> str:
    """The text of a prompt file."""
    return "\n\n".join(f"{QA.context(c)}{response.strip()}\n" for c, response in examples)


# Programs


def describe_question(env: QuestionEnv) -> tuple[Kind, dict[str, str], list[str], str, str, str]:
    """The kind, the fields, the names of the compared, variable, first and last."""
    rules = make_rules(env)
    kind, fields = rules.kind, rules.fields
    names = rules.names if env.name == "datacommons" else rules.patients
    first = fields.get("first", "0")
    last = fields.get("last", "48" if env.name == "icu" else first)
    return kind, fields, names, fields["variable"], first, last


def write_read(env: QuestionEnv, name: str, ID: str) -> str:
    """The lines that make a table of a place's or a patient's values."""
    if env.name == "icu":
        rows = f"[row for row in measurements({name}, variable) if first <= row['hour'] <= last]"
        return f"table = pd.DataFrame({rows})\n"
    rows = f"[row for row in observations({ID}, variable_ID) if first <= int(row['date']) <= last]"
    return f"table = pd.DataFrame({rows}).astype({{'date': int}})\n"


def write_program(env: QuestionEnv, looks: bool) -> list[str]:
    """A program's segments: NLEP, or with looks NLEP+ReAct."""
    kind, fields, names, variable, first, last = describe_question(env)
    places, time = env.name == "datacommons", "date" if env.name == "datacommons" else "hour"
    whom = "places" if places else "patients"
    one = whom.removesuffix("s")
    show = "# > print({}) =>".format
    measure = kind.measure.format(later=fields.get("later"))
    what = re.sub(r"value expected.*", "expected value", measure)
    segments: list[str] = []
    text = f"variable = {variable!r}\n{whom} = {names!r}\nfirst, last = {first}, {last}\n"
    # 1. The look-ups.
    if places and looks:
        text += "First, I look up the variable and the places.\n"
        segments += [text + show("find_variables(variable)")]
        ID = env.question.needs[0][1]
        segments += [f"\nvariable_ID = {ID!r}\n" + show("[find_places(place) for place in places]")]
        text = f"\nplace_IDs = {[place for place, _ in env.question.needs]!r}\n"
        text += f"Then, I take the values of these years and compute the {what}.\n"
    elif places:
        text += "variable_ID = find_variables(variable)[0]['ID']\n"
        text += "place_IDs = [find_places(place)[0]['ID'] for place in places]\n"
    elif looks:
        text += f"First, I take the values of these hours and compute the {what}.\n"
    # 2. The figures.
    loop = "for place_ID in place_IDs:\n" if places else f"for {one} in {whom}:\n"
    if kind.measure == "correlation":
        body = write_read(env, "place", "place_ID") + "tables.append(table)\n"
        text += "tables = []\n" + loop + indent(body)
        text += "both = tables[0].merge(tables[1], on='date')\n"
        r = "stats.pearsonr(both['value_x'], both['value_y']).statistic"
        text += f"figures = [round(float({r}), 6)]\n"
    else:
        before, figure = measure_code(measure, f"table['{time}']")
        body = write_read(env, one, "place_ID") + "values = table['value']\n" + before
        body += f"figures.append(round(float({figure}), 6))\n"
        text += "figures = []\n" + loop + indent(body)
    if not places and kind.group:
        if looks:
            segments.append(text + show("figures"))
            text = f"\nThen, I take the means of all patients who {kind.group}.\n"
        text += f"means = group_means({kind.group!r}, variable)\n"
        text += "figures.append(round(float(np.mean(means)), 6))\n"
    # 3. The conclusion.
    if looks:
        segments.append(text + show("figures"))
        text = "\n"
    end = kind.conclusion.format(answer="{answer}", **fields)
    if kind.asks_when:
        text += "answer = round(figures[0], 2)\n"
    else:
        yes, no = map(repr, kind.answers) if kind.answers else (f"{whom}[0]", f"{whom}[1]")
        figures = 1 if kind.measure == "correlation" else len(env.question.needs)
        reference = "figures[1]" if figures > 1 else "0"
        text += f"answer = {yes} if figures[0] {kind.sign} {reference} else {no}\n"
    return [*segments, text + f"print(f'So {end}.')\nprint(f'Final Answer: {{answer}}')\n#END#"]


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def write_end(env: QuestionEnv, figures: Sequence[float]) -> str:
    """The concluding sentence and the answer, from figures that have been seen."""
    kind, fields, names, *_ = describe_question(env)
    answer = kind.answer(figures, names)
    places = names if env.name == "datacommons" else ()
    return f"\n{kind.conclude(figures, answer, fields, places)}\nFinal Answer: {answer}\n#END#"


def play_program(env: QuestionEnv, *, looks: bool) -> Episode:
    segments = write_program(env, looks)

    def speak(seen: str) -> str:
        return segments[seen[seen.rindex("#START#\n") :].count("=>")]

    program = react if looks else nlep
    return Session(ScriptedEngine(speak), env.again(), dialect=QA, program=program).run(
        progress=False
    )


def write_program_prompt(questions: list[QuestionEnv], looks: bool) -> str:
    episodes = [play_program(env, looks=looks) for env in questions]
    assert all(episode.reward == 1 for episode in episodes), [e.reward for e in episodes]
    mains = [episode.threads[0] for episode in episodes]
    return format_examples((QA.asked(t.context.text), t.sequence.text) for t in mains)


# DecomP


CALCULATIONS = {
    "minimum": "calc_min",
    "maximum": "calc_max",
    "average": "calc_avg",
    "median": "calc_median",
    "value": "calc_value",
    "slope": "calc_slope",
    "value expected": "calc_expected_value",
    "correlation": "calc_corr",
    "hour of the highest": "calc_timepoint_max",
    "hour of the lowest": "calc_timepoint_min",
    "hour of the largest increase": "calc_timepoint_incr",
    "hour of the largest decrease": "calc_timepoint_decr",
}
"""The handler of each measure: the released names, and others like them."""


def write_handler(env: QuestionEnv, context: str, written: str) -> list[str]:
    """The segments of a handler, from its sub-task: the code is that of THREAD's threads."""
    handler, _, task = context.removeprefix("Question: ").removesuffix(".").partition(" ")
    if handler == "create_table":
        return write_create_table(env, written)
    if handler == "get_variable":
        *segments, _ = make_rules(env).write(f"Series 1, the values of {task}, is", "")
        segments = [text.replace("series_1", "series") for text in segments]
        return [*segments, "\nprint(save(pd.DataFrame(series)))\n#END#"]
    *segments, end = make_rules(env).write(f"{task[0].upper()}{task[1:]} is", "")
    return [*segments, f"{end}#END#"]


def write_create_table(env: QuestionEnv, written: str) -> list[str]:
    """The segments of the handler that has the values of each subject got: text alone passes."""
    _, _, names, variable, *_ = describe_question(env)
    one = "place" if env.name == "datacommons" else "patient"
    bound = {f"{one}_{number}": name for number, name in enumerate(names, 1)}
    head = "".join(f"{key} = {value!r}\n" for key, value in {"variable": variable, **bound}.items())
    calls = [f"[get_variable] {describe_values(env, [name])} =>" for name in names]
    paths = re.findall(r"=>(/\S+?)<=", written) + [""] * len(names)
    tables = [
        f"pd.read_csv({path!r}).rename(columns={{'value': {key}}})"
        for path, key in zip(paths, bound, strict=False)
    ]
    join = "table.merge({}, on='date', how='outer')" if one == "place" else "pd.concat([table, {}])"
    code = f"\ntable = {tables[0]}\n"
    code += "".join(f"table = {join.format(table)}\n" for table in tables[1:])
    return [
        head + calls[0],
        *(f"\n{call}" for call in calls[1:]),
        f"{code}print(save(table))\n#END#",
    ]


def describe_values(env: QuestionEnv, names: list[str]) -> str:
    """The values of a question's variable, of these places or patients, in words."""
    _, _, _, variable, first, last = describe_question(env)
    if env.name == "datacommons":
        return f"{variable} from {first} to {last} in {' and in '.join(names)}"
    patients = " and ".join(f"of patient {name}" for name in names)
    return f"the {variable} from hour {first} to hour {last} {patients}"


def write_decomposer(env: QuestionEnv, written: str) -> str:
    """What the decomposer writes next."""
    kind, fields, names, variable, *_ = describe_question(env)
    returned = re.findall(r"=>(\S+)<=", written)
    # 1. A table, the measures of its columns, and that of a group.
    measure = kind.measure.format(later=fields.get("later"))
    handler = CALCULATIONS[re.sub(r"value expected .*", "value expected", measure)]
    what = variable if env.name == "datacommons" else f"the {variable}"
    of = "in" if env.name == "datacommons" else "of patient"
    whom = [" and ".join(names)] if measure == "correlation" else names
    start = f"[{handler}] by the data in {''.join(returned[:1])} the {measure} of {what} {of}"
    calls = [f"[create_table] {describe_values(env, names)}", *(f"{start} {one}" for one in whom)]
    if env.name == "icu" and kind.group:
        calls.append(f"[calc_avg] the mean of the {variable} of all patients who {kind.group}")
    # 2. The conclusion, from what all of them returned.
    if len(returned) < len(calls):
        return "\n" * bool(returned) + f"{calls[len(returned)]} =>"
    return write_end(env, [float(figure) for figure in returned[1:]])


def play_decomp(env: QuestionEnv) -> Episode:
    def speak(seen: str) -> str:
        head, _, written = seen.rpartition("#START#\n")
        context = QA.asked(f"{head}#START#\n")
        if context == env.again().reset():
            return write_decomposer(env, written)
        return write_handler(env, context, written)[written.count("=>")]

    handlers = dict.fromkeys(find_benchmark(env.name).handlers, EMPTY_QA)
    program = partial(decomp, handlers=handlers)
    session = Session(
        ScriptedEngine(speak), env.again(), dialect=QA, program=program, prompts=[EMPTY_QA]
    )
    return session.run(progress=False)


def write_decomp_prompts(questions: list[QuestionEnv]) -> dict[str, str]:
    """The prompts of the decomposer ("") and of the handlers: one example or two of each."""
    examples: dict[str, list[tuple[str, str]]] = {}
    shown: set[tuple[str, str | int | None]] = set()
    for env in questions:
        episode = play_decomp(env)
        assert episode.reward == 1, (env, episode)
        kind, _, names, *_ = describe_question(env)
        for thread in episode.threads.values():
            context = QA.asked(thread.context.text)
            name = "" if thread.id == 0 else context.removeprefix("Question: ").split(" ")[0]
            of_all = kind.group if " of all " in context else None
            what = {"": context, "create_table": len(names)}.get(name, of_all)
            if (name, what) not in shown:
                examples.setdefault(name, []).append((context, thread.sequence.text))
            shown.add((name, what))
    return {name: format_examples(some) for name, some in examples.items()}


# Reflexion

TRIALS: dict[str, tuple[tuple[int, list[str], str], ...]] = {
    "datacommons": (
        (
            297,
            [
                "variable = 'the income per person'\nplaces = ['Nevada', 'Kansas']\n"
                "first, last = 1984, 1987\nFirst, I look up the variable and the places.\n"
                "# > print(find_variables(variable)) =>",
                "\nvariable_ID = 'Income_PerPerson'\n"
                "# > print([find_places(place) for place in places]) =>",
                "\nplace_IDs = ['geoId/32', 'geoId/20']\n"
                "Then, I take the values of these years and compute the maximum.\nfigures = []\n"
                "for place_ID in place_IDs:\n"
                "    rows = [row for row in observations(place_ID, variable_ID) if first <= "
                "int(row['date']) <= last]\n"
                "    figures.append(round(float(pd.DataFrame(rows)['value'].max()), 6))\n"
                "# > print(figures) =>",
                "\nanswer = places[0] if figures[0] > figures[1] else places[1]\n"
                "print(f'So the maximum of the income per person was lower in {answer}.')\n"
                "print(f'Final Answer: {answer}')\n#END#",
            ],
            "Both figures were right, but I compared them with > and so answered with the place of "
            "the larger one, where the question asks where the maximum was lower. Next time I read "
            "that word again before I compare, and write figures[0] < figures[1]: 13666.29 is the "
            "smaller number, and it is that of Kansas.\n#END#",
        ),
        (
            477,
            [
                "variable = 'the rate of polio cases'\nplaces = ['North Dakota', 'Utah']\n"
                "first, last = 1941, 1944\nFirst, I take the values of these years.\n"
                "# > print(observations(places[0], variable)[:2]) =>",
                "\nThere are no values.\n#END#",
            ],
            "I asked observations for names, and it knows only IDs, so I got no values and gave no "
            "answer. Next time I look up find_variables(variable) and find_places(place), hand "
            "over the IDs that they print, keep the years from 1941 to 1944, and compare the "
            "slopes. I end with the line Final Answer: and the place.\n#END#",
        ),
    ),
    "icu": (
        (
            83,
            [
                "variable = 'heart rate'\npatients = ['10015', '10009']\nfirst, last = 0, 48\n"
                "First, I take the values of these hours.\nfigures = []\n"
                "for patient in patients:\n"
                "    rows = [row['value'] for row in measurements(patient, variable)]\n"
                "    figures.append(min(rows))\n"
                "# > print(figures) =>",
                "\nanswer = patients[0] if figures[0] > figures[1] else patients[1]\n"
                "print(f'So the minimum of the heart rate was lower for patient {answer}.')\n"
                "print(f'Final Answer: {answer}')\n#END#",
            ],
            "Both figures were right, but I compared them with > and so answered with the patient "
            "of the larger one, where the question asks for whom the minimum was lower. Next time "
            "I read that word again before I compare, and write figures[0] < figures[1]: 44.0 is "
            "the smaller number, and it is that of patient 10009.\n#END#",
        ),
        (
            33,
            [
                "variable = 'temp'\npatients = ['10015', '10017']\nfirst, last = 0, 48\n"
                "First, I take the values of these hours.\n"
                "# > print(measurements(patients[0], variable)[:2]) =>",
                "\nThe temperature was not measured.\n#END#",
            ],
            "I asked for temp, and the variable is called temperature, so I got no values and gave "
            "no answer. Next time I write variable = 'temperature', take the maximum of both "
            "patients, and compare them. I end with the line Final Answer: and the patient's "
            "number.\n#END#",
        ),
    ),
}
"""Trials that failed, with a wrong answer or none: the question, what was written, the lesson."""


def write_reflexion_prompt(benchmark: str, questions: list[QuestionEnv]) -> str:
    examples = []
    for number, segments, lesson in TRIALS[benchmark]:
        env = questions[QUESTIONS[benchmark].index(number)].again()
        session = Session(ScriptedEngine(segments), env, dialect=QA, program=react)
        episode = session.run(progress=False)
        assert episode.reward != 1
        main = episode.threads[0]
        examples.append((f"{QA.asked(main.context.text)}\n{main.sequence.text}", lesson))
    return format_examples(examples)


# Files


def write_all(benchmark: str) -> Iterator[tuple[str, str]]:
    """The prompts of a benchmark: the names of their files, and the texts."""
    questions = make_questions(benchmark)
    for name, form in THREADS.items():
        yield f"thread/{benchmark}{name}", write_thread_prompt(questions, **form)
    yield f"nlep/{benchmark}", write_program_prompt(questions, looks=False)
    yield f"nlep-react/{benchmark}", write_program_prompt(questions, looks=True)
    for name, text in write_decomp_prompts(questions).items():
        yield f"decomp/{benchmark}" + f"-{name}" * bool(name), text
    yield f"reflexion/{benchmark}", write_reflexion_prompt(benchmark, questions)


if __name__ == "__main__":
    for name in QUESTIONS:
        for path, text in write_all(name):
            (resource("prompts") / f"{path}.txt").write_text(text, "utf-8")
