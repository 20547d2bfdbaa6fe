"""The teacher of threads for questions about data, and the data that its lessons are about."""

from __future__ import annotations

from contextlib import closing
from itertools import islice

import pytest

from thread_kit.distill.evaluate import by_group, evaluate, teacher_for
from thread_kit.distill.examples import QuestionSandboxes, examples, play
from thread_kit.distill.question_tasks import (
    SyntheticStatistics,
    SyntheticStays,
    training_questions,
)
from thread_kit.distill.questions_teacher import TRIES, QuestionsTeacher
from thread_kit.distill.textcraft_teacher import TeacherError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.questions import KINDS, MIDDLE
from thread_kit.envs.datacommons.statistics import COUNTRY, OpenStatistics
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import KINDS as PATIENT_KINDS
from thread_kit.envs.icu.questions import OF_PHENOTYPES
from thread_kit.envs.icu.stays import load_stays
from thread_kit.envs.qa.grading import is_right
from thread_kit.envs.qa.kinds import SPLITS
from thread_kit.envs.registry import BENCHMARKS

PLACES = {kind.name: number for number, kind in enumerate(KINDS)}
PATIENTS = {kind.name: number for number, kind in enumerate(PATIENT_KINDS + OF_PHENOTYPES)}


def concluded(env):
    """What the teacher's main thread would answer to the figures that the generator found."""
    *asked, end = QuestionsTeacher().write(f"Question: {env.question.text}", "")
    names = dict(zip(("first", "figure"), env.question.figures, strict=False))
    names.setdefault("figure", env.question.figures[0])
    if env.question.kind.startswith("hour"):
        names["figure"] = float(env.question.answer)
    exec(asked[0].partition("\n")[0], names)
    exec(end.strip().partition("\n")[0], names)
    return str(names["answer"])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_every_kind_about_places_is_read_and_concluded(number):
    for env in (
        DataCommonsQA("test", number),
        DataCommonsQA("train", number, source=SyntheticStatistics(number)),
    ):
        assert is_right(concluded(env), env.question.answer), env


@pytest.mark.parametrize("number", PATIENTS.values())
def test_every_kind_about_patients_is_read_and_concluded(number):
    env = IcuQA(SyntheticStays(number), number, split="train")
    assert is_right(concluded(env), env.question.answer), env


@pytest.mark.jail
@pytest.mark.parametrize(
    "name", ["median higher", "national", "forecast compared", "trend", "correlation"]
)
def test_the_teacher_answers_with_the_sandboxs_own_figures_about_places(name):
    number = PLACES[name]
    episode = play("thread", DataCommonsQA("train", number, source=SyntheticStatistics(number)))
    assert len(episode.threads) == {"trend": 2, "correlation": 4}.get(name, 3)


@pytest.mark.jail
@pytest.mark.parametrize(
    "name",
    [
        "increasing faster",
        "hour of the largest decrease",
        "average against those who expired",
        *(kind.name for kind in OF_PHENOTYPES[-2:]),
    ],
)
def test_the_teacher_answers_with_the_sandboxs_own_figures_about_patients(name):
    number = PATIENTS[name]
    episode = play("thread", IcuQA(SyntheticStays(number), number, split="train"))
    assert len(episode.threads) == (2 if name.startswith("hour") else 3)


@pytest.mark.parametrize("context", ["I need 8 planks. =>", "Question: who are you?"])
def test_another_form_is_refused(context):
    with pytest.raises(TeacherError, match="not a "):
        QuestionsTeacher().write(context.removesuffix(" =>"), "")


def test_what_ends_in_an_error_is_asked_once_more():
    teacher = QuestionsTeacher()
    asked = "Patient: the average of the heart rate from hour 0 to hour 48 of patient 12 is"
    first = teacher.write(asked, "")
    error = "# > print(len(table)) =>NameError: name 'table' is not defined<="
    again = teacher.write(asked, error)
    assert (again[0], again[1], again[2]) == (first[0], f"\n{first[0]}", first[1])
    assert teacher.write(asked, f"{error} =>12<=") == again
    assert len(teacher.write(asked, error * (TRIES + 1))) == 2 + TRIES
    question = "Question: Was the maximum of the pH higher for patient 1 or for patient 2?"
    whole = teacher.write(question, "=>{figure}<= =>LookupError: There is no patient '3'.<=")
    assert whole[2] == "\none, other = '1', '2'\n" + whole[1].removeprefix("\nfirst = figure\n")


def test_only_threads_are_taught_about_questions():
    with pytest.raises(ValueError, match="plays datacommons as 'react'"):
        play("react", next(training_questions(0)))


def test_synthetic_data_are_the_same_for_the_same_seed_and_nobodys():
    one, same, other = SyntheticStatistics(3), SyntheticStatistics(3), SyntheticStatistics(4)
    assert one.places == same.places != other.places
    assert one.observations(COUNTRY, "Q0") == same.observations(COUNTRY, "Q0")
    real = OpenStatistics()
    synthetic = {name for seed in range(200) for name in SyntheticStatistics(seed).places.values()}
    asked_in_tests = sorted(set(real.places) - {COUNTRY})[SPLITS.index("test") :: 2]
    assert not synthetic & {real.places[place] for place in asked_in_tests}
    asked = {name for seed in range(200) for name in SyntheticStatistics(seed).variables.values()}
    assert not asked & set(real.variables.values())
    assert max(int(row["date"]) for row in one.observations(COUNTRY, "Q0")) < MIDDLE
    stays = SyntheticStays(3)
    assert list(stays.expired) == list(SyntheticStays(3).expired) != list(SyntheticStays(4).expired)
    patient = next(iter(stays.expired))
    assert stays.table(patient).equals(SyntheticStays(3).table(patient))
    with pytest.raises(LookupError, match="no patient '1'"):
        stays.table("1")


def test_training_questions_are_of_both_benchmarks_in_turn():
    names = [(env.name, env.question.text) for env in islice(training_questions(0), 8)]
    assert [name for name, _ in names] == ["datacommons", "icu"] * 4
    assert len({text for _, text in names}) == 8
    assert names[0] != (next(training_questions(1)).name, next(training_questions(1)).question.text)


@pytest.mark.jail
def test_examples_of_questions_learn_what_the_model_writes():
    engine = ScriptedEngine([])
    found = examples("thread", islice(training_questions(0), 2), engine, tokens=1_500, mains=1)
    assert len(found) == 6
    for example in found:
        pairs = zip(example.tokens, example.loss_mask, strict=True)
        learnt = "".join(chr(token) for token, counts in pairs if counts)
        assert learnt.endswith("#END#")
        assert "Response:" not in learnt


@pytest.mark.jail
def test_an_evaluation_counts_by_what_is_compared(tmp_path):
    chosen = BENCHMARKS["datacommons"].tasks("test")[:3]
    outcomes = evaluate("thread", ScriptedEngine(QuestionsTeacher()), chosen, tmp_path)
    assert [outcome.solved for outcome in outcomes] == [True] * 3
    assert [outcome.group for outcome in outcomes] == ["minimum", "minimum", "maximum"]
    assert by_group(outcomes)[-1]["solved"] == 3
    assert outcomes[0].goal.startswith("From ")


@pytest.mark.jail
def test_a_wrong_thread_is_named(tmp_path):
    (task,) = BENCHMARKS["icu"].tasks("test")[:1]
    assert load_stays().name == task.arguments["stays"]
    teacher = teacher_for("thread", task)
    engine = ScriptedEngine(lambda seen: teacher(seen).replace("values.max()", "-values.max()"))
    (outcome,) = evaluate("thread", engine, [task], tmp_path)
    assert not outcome.solved
    assert "-values.max()" in outcome.said
    assert outcome.expected == outcome.said.replace("-", "")


@pytest.mark.jail
def test_questions_share_a_jail_with_the_functions_of_the_one_that_is_on():
    first, second = (
        DataCommonsQA("train", number, source=SyntheticStatistics(number)) for number in (9, 10)
    )
    with closing(QuestionSandboxes()) as sandboxes:
        assert sandboxes.of(first) is sandboxes.of(second)
        place = second.question.needs[0][0]
        said = sandboxes.of(second).execute(
            None, f"print(find_places({second.source.places[place]!r}))"
        )
        assert repr(place) in said.printed
        assert sandboxes.of(IcuQA(SyntheticStays(0), 0, split="train")) is not sandboxes.of(first)


@pytest.mark.jail
def test_children_of_only_some_questions_are_kept():
    engine = ScriptedEngine([])
    lessons = examples(
        "thread", islice(training_questions(0), 2), engine, tokens=1_800, mains=1, others=2
    )
    titles = ["".join(map(chr, lesson.tokens)).splitlines()[1] for lesson in lessons]
    assert sorted(title.partition(":")[0] for title in titles) == [
        "Place",
        "Place",
        "Question",
        "Question",
    ]
