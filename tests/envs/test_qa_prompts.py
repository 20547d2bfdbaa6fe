"""The prompts of both QA benchmarks, proved in the real environment: jail, data, grading."""

from __future__ import annotations

import pytest

from thread_kit.dialect import QA, QA_ASYNC
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.stays import write_synthetic_stays
from thread_kit.paths import resource
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import Prompt, load_prompt, parse_prompt

# The questions of the examples: of the training split, and about patients who never were.
DATACOMMONS, ICU = (15, 13, 20), (3, 6, 9, 12)

pytestmark = [pytest.mark.jail, pytest.mark.statistics]


@pytest.fixture(scope="module")
def envs(tmp_path_factory):
    stays = write_synthetic_stays(tmp_path_factory.mktemp("stays"))
    return {
        "datacommons": [DataCommonsQA("train", number) for number in DATACOMMONS],
        "icu": [IcuQA(stays, number) for number in ICU],
    }


def load(kind: str, name: str) -> Prompt:
    dialect = QA_ASYNC if name.endswith("-async") else QA
    if kind == "thread":
        return load_prompt(name, dialect)
    text = resource(f"prompts/{kind}/{name}.txt").read_text("utf-8")
    return parse_prompt(text, f"{kind}/{name}", dialect)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("thread", "datacommons"),
        ("thread", "datacommons-async"),
        ("thread", "datacommons-lines"),
        ("thread", "icu"),
        ("thread", "icu-async"),
        ("thread", "icu-lines"),
        ("nlep", "datacommons"),
        ("nlep", "icu"),
        ("nlep-react", "datacommons"),
        ("nlep-react", "icu"),
    ],
)
def test_what_a_prompt_shows_is_what_happens_and_its_answers_are_right(envs, kind, name):
    prompt = load(kind, name)
    some = envs[name.partition("-")[0]]
    assert check_prompt(prompt, some[0]) == []
    questions = {env.reset(): env for env in some}
    asked = [example for example in prompt.examples if example.context in questions]
    assert len(asked) >= 2
    for example in asked:
        env = questions[example.context]
        if kind != "nlep":  # there the answer is printed, and not in the text
            assert env.step(env.answer(example.response)).reward == 1.0


def test_a_prompt_that_shows_another_value_is_found_out(envs):
    text = load("nlep-react", "icu").text.replace("=>14 21.0714", "=>15 21.0714")
    (problem,) = check_prompt(parse_prompt(text, "wrong", QA), envs["icu"][0])
    assert "what comes back is '14 21.0714<='" in problem
