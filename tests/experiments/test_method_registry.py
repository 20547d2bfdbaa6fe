"""Methods by name."""

from __future__ import annotations

import pytest
from helpers.question_prompts import make_questions, make_rules

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.method_registry import find_base, load_method


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("plan-and-execute-by-type", "plan-and-execute"),
        ("plan-and-solve", "plan-and-solve"),
        ("try again, visible reward", "try again"),
        ("try-again-by-type", "try again"),
        ("adapt-d2", "adapt"),
        ("react+reflexion", "react"),
        ("stateflow, 10 states, no_observe", "stateflow"),
        ("thread, no variables", "thread"),
        ("reflexion", "reflexion"),
    ],
)
def test_a_variant_is_of_the_method_whose_name_it_begins_with(name, base):
    assert find_base(name) == base


@pytest.mark.jail
@pytest.mark.parametrize("name", ["thread", "thread, depth 2"])
def test_threads_of_a_taught_model_speak_as_its_benchmark_does(name):
    env = make_questions("icu")[0]
    method = load_method(name, "icu", taught=True)
    episode = method(ScriptedEngine(make_rules(env)), env, seed=0, path=None).run(progress=False)
    assert episode.reward == 1
