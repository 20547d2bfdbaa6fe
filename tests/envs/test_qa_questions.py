"""The kinds of questions: one table for generators, rules and teacher, and the same questions."""

from __future__ import annotations

import hashlib
import itertools
import json

import pytest

from thread_kit.dialect import QA, QA_ASYNC
from thread_kit.distill.question_tasks import training_questions
from thread_kit.distill.questions_teacher import QuestionsTeacher
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.questions import KINDS as ABOUT_PLACES
from thread_kit.envs.datacommons.rules import DataCommonsScript
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import KINDS, OF_PHENOTYPES
from thread_kit.envs.icu.rules import IcuScript
from thread_kit.envs.icu.stays import write_synthetic_stays
from thread_kit.envs.qa.kinds import read_question

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
    """The question, its answer, and what the rules and the teacher write about it."""
    question = env.question
    figures = [f"{figure:.6g}" for figure in question.figures]
    rules = DataCommonsScript if env.name == "datacommons" else IcuScript
    returned = figures if env.name == "datacommons" else figures + [figures[-1]] * 2
    threads = [teach(QuestionsTeacher(), f"Question: {question.text}")]
    for dialect in (QA, QA_ASYNC):
        for written in ("", "".join(f"=>{figure}<=" for figure in returned)):
            threads.append(rules(env, dialect).write(question.text, written))
    return [env.reset(), question.answer, question.kind, question.needs, figures, threads]


SAME = [
    (make_places, {"split": "test"}, "01eae46fc717cbe7"),
    (make_places, {"split": "train"}, "72aac57b126e1d75"),
    (make_patients, {"split": None}, "9cb80fb9819279c5"),
    (make_patients, {"split": "test"}, "cc732fa437f073b8"),
    (make_patients, {"split": "train", "phenotypes": True}, "ac1d9881a1dd289f"),
    (make_training, {}, "1efa525a78c88707"),
]


@pytest.mark.statistics
@pytest.mark.parametrize(("make", "arguments", "digest"), SAME)
def test_questions_are_those_that_saved_results_are_about(make, arguments, digest, tmp_path):
    described = json.dumps([describe(env) for env in make(tmp_path, **arguments)])
    assert hashlib.sha256(described.encode()).hexdigest()[:16] == digest


@pytest.mark.statistics
def test_a_question_is_read_as_the_kind_and_the_fields_that_it_was_made_of(tmp_path):
    for env in (*make_training(tmp_path), *make_patients(tmp_path, None, phenotypes=True)):
        kind, fields = read_question(env.question.text, ALL_KINDS)
        assert kind.name == env.question.kind
        assert kind.text.format(**fields) == env.question.text
    assert len({kind.text for kind in ALL_KINDS}) == len(ALL_KINDS) == 41
    with pytest.raises(ValueError, match="not a question of these kinds"):
        read_question("Who are you?", ALL_KINDS)
