"""The kinds of questions: one table for generators, rules and teacher, and the same questions."""

from __future__ import annotations

import hashlib
import itertools
import json

import pytest

from thread_kit.dialect import QA
from thread_kit.distill.question_tasks import training_questions
from thread_kit.distill.questions_teacher import QuestionsTeacher
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.questions import KINDS as ABOUT_PLACES
from thread_kit.envs.datacommons.rules import DataCommonsScript
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import KINDS, OF_PHENOTYPES
from thread_kit.envs.icu.rules import IcuScript
from thread_kit.envs.icu.stays import write_synthetic_stays
from thread_kit.envs.qa.grading import is_right
from thread_kit.envs.qa.kinds import read_question
from thread_kit.exchange import phi_own_line, phi_whole_line
from thread_kit.sequence import Provenance, Sequence, Span

ALL_KINDS = (*ABOUT_PLACES, *KINDS, *OF_PHENOTYPES)


def make_places(folder, split):
    return [DataCommonsQA(split, number) for number in range(63)]


def make_patients(folder, split, phenotypes=False):
    stays = write_synthetic_stays(folder, 30, 3, phenotypes=phenotypes)
    return [IcuQA(stays, number, split=split) for number in range(60)]


def make_training(folder):
    return list(itertools.islice(training_questions(0), 84))


def teach(teacher, context):
    """What the thread of a context writes, and all threads that it asks."""
    segments, names = teacher.write(context, ""), {}
    texts = [segments]
    for segment in segments[:-1]:
        *lines, request = segment.removesuffix(" =>").split("\n")
        for line in lines:
            if line.startswith("one"):
                exec(line, {}, names)
        if not request.startswith("#"):
            for name, value in names.items():
                request = request.replace(f"{{{name}}}", value)
            texts.append(teach(teacher, request))
    return texts


def describe(env):
    """The question, its answer, and what the teacher writes about it."""
    question = env.question
    figures = [f"{figure:.6g}" for figure in question.figures]
    threads = [teach(QuestionsTeacher(), f"Question: {question.text}")]
    return [env.reset(), question.answer, question.kind, question.needs, figures, threads]


SAME = [
    (make_places, {"split": "test"}, "4663c73ebbb78ea5"),
    (make_places, {"split": "train"}, "5f0f5e05baee896c"),
    (make_patients, {"split": None}, "fd2baeb4c525607f"),
    (make_patients, {"split": "test"}, "b43d34a96858a968"),
    (make_patients, {"split": "train", "phenotypes": True}, "8ab8a21793515515"),
    (make_training, {}, "e1920355a3d5b0ec"),
]


@pytest.mark.statistics
@pytest.mark.parametrize(("make", "arguments", "digest"), SAME)
def test_questions_are_those_that_saved_results_are_about(make, arguments, digest, tmp_path):
    described = json.dumps([describe(env) for env in make(tmp_path, **arguments)])
    assert hashlib.sha256(described.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("kinds", "name", "figures", "holds"),
    [
        (ABOUT_PLACES, "faster", (1.0, -2.0), True),
        (ABOUT_PLACES, "faster", (-1.0, -2.0), False),
        (KINDS, "decreasing faster", (0.2, 0.1), False),
        (KINDS, "decreasing faster", (0.2, -0.1), True),
        (ABOUT_PLACES, "trend", (-1.0,), True),
    ],
)
def test_who_increases_faster_is_asked_where_one_increases(kinds, name, figures, holds):
    """As in the released generators of both benchmarks."""
    (kind,) = (kind for kind in kinds if kind.name == name)
    assert kind.holds(figures) is holds


def test_an_hour_is_never_rounded_up_to_the_next_one():
    """The grading compares whole hours, so the right one has to count as right."""
    kind = next(kind for kind in KINDS if kind.asks_when)
    for hour, written in ((23.9989, "23.99"), (23.4561, "23.46"), (24.0, "24.0"), (0.999, "0.99")):
        assert kind.answer([hour], []) == written
        assert is_right(str(hour), written)


@pytest.mark.statistics
def test_a_conclusion_says_what_the_figures_say_and_the_answer(tmp_path):
    for env in (*make_places(tmp_path, "train"), *make_patients(tmp_path, None)):
        rules = (DataCommonsScript if env.name == "datacommons" else IcuScript)(env)
        question = env.question
        figures = question.figures[: 1 if rules.kind.asks_when else 2]
        sentence = rules.kind.conclude(figures, question.answer, rules.fields)
        assert f" {question.answer}" in sentence
        assert "{" not in sentence
        if not rules.kind.asks_when:
            first, second = (*figures, 0)[:2]
            assert (" above " in sentence.partition(", so ")[0]) is (first > second)


@pytest.mark.statistics
def test_the_form_that_is_taught_asks_one_thing_a_line_so_both_phi_give_the_same(tmp_path):
    """The adapters were taught when `phi_own_line` was the dialect's: they see what they saw."""
    for env in (*make_training(tmp_path), *make_patients(tmp_path, "test")):
        for segments in (t for t in flatten(teach(QuestionsTeacher(), env.reset())) if t):
            sequence = Sequence()
            for segment in segments[:-1]:
                sequence += Span(Provenance.GENERATED, segment, ())
                if not QA.is_action(sequence.last_line):
                    whole, own = (
                        phi(sequence, {"figure": 1}, QA) for phi in (phi_whole_line, phi_own_line)
                    )
                    assert whole == own
                sequence += Span(Provenance.RETURNED, "{figure}<=", ())


def flatten(threads):
    """The segments of each thread, from what `teach` gives."""
    segments, *children = threads
    yield segments
    for child in children:
        yield from flatten(child)


@pytest.mark.statistics
def test_a_question_is_read_as_the_kind_and_the_fields_that_it_was_made_of(tmp_path):
    for env in (*make_training(tmp_path), *make_patients(tmp_path, None, phenotypes=True)):
        kind, fields = read_question(env.question.text, ALL_KINDS)
        assert kind.name == env.question.kind
        assert kind.text.format(**fields) == env.question.text
    assert len({kind.text for kind in ALL_KINDS}) == len(ALL_KINDS) == 41
    with pytest.raises(ValueError, match="not a question of these kinds"):
        read_question("Who are you?", ALL_KINDS)
