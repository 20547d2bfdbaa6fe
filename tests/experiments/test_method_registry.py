"""Methods by name."""

from __future__ import annotations

import pytest
from helpers.question_prompts import make_questions, make_rules

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.method_registry import find_base, load_method
from thread_kit.experiments.recorded_method import find_recorded_method
from thread_kit.trace.shipped import open_episode


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


@pytest.mark.parametrize(
    "name",
    [
        *("blue-ice-lats", "blue-ice-reflexion", "prismarine-plan", "prismarine-tdag"),
        *("acacia-fence-gate-taught-react", "books-never-lent", "shop-on-harbour-street"),
    ],
)
def test_the_gallerys_episodes_can_go_on(name):
    """A program that does what it did is described as it was: a default is not named."""
    header = open_episode(name).header
    assert find_recorded_method(header, header["environment"])
