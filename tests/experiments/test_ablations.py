"""Ablations: each takes its part away and nothing else, and its examples are true without it."""

from __future__ import annotations

import pickle

import pytest
from helpers.programs import world
from helpers.proofs import speak_with_ingot

from thread_kit.__main__ import main
from thread_kit.cli.methods import build_methods
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.registry import find_benchmark
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.ablations import (
    ABLATIONS,
    SEPARATE,
    load_ablation,
    make_taught_ablation,
    split_prompt,
)
from thread_kit.experiments.method_registry import TAUGHT, load_method
from thread_kit.prompts import load_prompt
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Observed


def shield() -> TextCraft:
    """The task of the few-shot examples."""
    commands = load_prompt("textcraft").examples[0].context.split("\n")[1:-1]
    return TextCraft.custom("shield", commands)


def run(name: str) -> Episode:
    method = load_method(name, "textcraft")
    speak = speak_with_ingot([method.fixed.get("main_prompt", method.prompt), method.prompt])
    return method(ScriptedEngine(speak), shield(), seed=0, path=None).run(progress=False)


PLAYABLE = [name for name in ABLATIONS if name not in ("thread, depth 2", "thread, shared scope")]


@pytest.mark.parametrize("name", PLAYABLE)
def test_the_examples_of_an_ablation_craft_their_goal_without_the_part(name):
    assert run(name).reward == 1


def observed(episode: Episode) -> str:
    return "".join(event.span.text for event in episode.events if isinstance(event, Observed))


def test_without_variables_nothing_is_executed():
    episode = run("thread, no variables")
    assert episode.header["scope"] == "none"
    assert not any(one.variables for one in episode.threads.values())
    assert "{" not in "".join(one.sequence.text for one in episode.threads.values())


def test_without_variables_the_threads_are_those_of_thread():
    """The paper takes the variables away (E.2) and leaves the recursion."""
    whole, without = run("thread, as observed"), run("thread, no variables")
    assert [t.parent for t in whole.threads.values()] == [
        t.parent for t in without.threads.values()
    ]
    assert max(thread.depth for thread in without.threads.values()) == 3
    actions = [[a.action for t in e.threads.values() for a in t.actions] for e in (whole, without)]
    assert actions[0] == actions[1]


@pytest.mark.parametrize("name", ABLATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_ablation_is_there_for_every_type_of_alfworld(name, kind):
    method = load_method(name, f"alfworld-{kind}")
    shown = load_method("thread", f"alfworld-{kind}").prompt.examples
    main = method.fixed["main_prompt"].examples if name == SEPARATE else ()
    assert len((*main, *method.prompt.examples)) == len(shown)
    mains = [e.context for e in shown if e.context.startswith("You are in")]
    assert [e.context for e in (main or method.prompt.examples)][:2] == mains


@pytest.mark.parametrize("examples", ["textcraft", "alfworld-heat", "webshop"])
def test_the_command_line_knows_the_ablations(examples):
    benchmark = find_benchmark(examples)
    there = [
        n for n in ABLATIONS if n != "thread, as observed" or not benchmark.dialect.as_observed
    ]
    made = build_methods(there, benchmark, examples)
    assert [method.name for method in made] == there


def test_with_the_whole_sequence_a_child_reads_all_that_its_parent_wrote():
    episode = run("thread, whole sequence")
    assert "items = [c.split(" in episode.threads[1].context.text
    assert "items = [c.split(" not in run("thread, as observed").threads[1].context.text


def test_with_a_separate_prompt_the_main_thread_reads_other_examples():
    episode = run(SEPARATE)
    main, others = split_prompt(load_prompt("textcraft"))
    prompts = [one.prompt for one in episode.threads.values()]
    assert prompts == [main.sha256] + [others.sha256] * (len(prompts) - 1)
    assert len(main.examples) == 1
    assert set(main.examples + others.examples) == set(load_prompt("textcraft").examples)


def test_as_observed_no_name_stands_for_a_value():
    assert "{" in observed(run(SEPARATE))
    assert "{" not in observed(run("thread, as observed"))


OVERWRITING = [
    "n = 1\nFirst, I need a child. =>",
    "n = 2\nprint('Done.')\n#END#",
    "> get {n} bone =>",
]


@pytest.mark.parametrize(("name", "got"), [("thread, shared scope", 2), (SEPARATE, 1)])
def test_with_a_shared_scope_a_child_overwrites_what_its_parent_needs(name, got):
    method = load_method(name, "textcraft")
    engine = ScriptedEngine([*OVERWRITING, "#END#"])
    episode = method(engine, world(), seed=0, path=None).run(progress=False)
    assert episode.threads[0].actions[0].action == f"get {got} bone"


def test_a_depth_limit_stops_what_lies_deeper():
    words = iter(["I need a child. =>"] * 3 + ["#END#"] * 3)
    method = load_method("thread, depth 2", "textcraft")
    engine = ScriptedEngine(lambda text: next(words))
    episode = method(engine, world(), seed=0, path=None).run(progress=False)
    assert [str(one.status) for one in episode.threads.values()][2:] == ["ended", "out of depth"]


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_differs_from_thread_in_one_thing(name):
    method = load_method(name, "textcraft")
    assert pickle.loads(pickle.dumps(method)) == method
    assert len(method.fixed) == 1
    if name in TAUGHT:
        assert load_method(name, "textcraft", taught=True).fixed == method.fixed


def test_a_name_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="no ablation 'thread, no hands'"):
        load_ablation("thread, no hands", TEXTCRAFT, "textcraft")
    with pytest.raises(ValueError, match="no method 'cot' on textcraft; known: thread, react"):
        load_method("cot", "textcraft")
    with pytest.raises(ValueError, match="teaches 'adapt'"):
        load_method("adapt", "textcraft", taught=True)
    with pytest.raises(ValueError, match="reads none"):
        make_taught_ablation(SEPARATE, TEXTCRAFT)
    with pytest.raises(ValueError, match="state machine for 'chess'"):
        load_method("stateflow", "chess")


@pytest.mark.parametrize(
    "methods", [["react"], ["thread", "adapt"], ["thread, no variables", "stateflow"]]
)
def test_the_command_line_plays_nothing_by_an_adapter_that_does_not_teach_it(
    tmp_path, capsys, methods
):
    out = tmp_path / "r.jsonl"
    assert main(["suite", "--tasks", "1", "--out", str(out), "--methods", *methods]) == 2
    assert "--adapter none" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("examples", ["sql", "bash", "webshop"])
def test_where_observations_keep_their_words_anyway_that_is_no_ablation(examples):
    name = "thread, as observed"
    with pytest.raises(ValueError, match=f"on {examples} keep their words: {name!r} is 'thread'"):
        load_method(name, examples)


@pytest.mark.parametrize("examples", ["datacommons", "icu"])
def test_a_taught_model_loses_the_same_on_questions_as_one_that_reads_examples(examples):
    name = "thread, no variables"
    shown, taught = (load_method(name, examples, taught=taught) for taught in (False, True))
    assert shown.fixed == taught.fixed == {"scope": "own"}
    assert load_method(name, "textcraft", taught=True).fixed == {"scope": "none"}
