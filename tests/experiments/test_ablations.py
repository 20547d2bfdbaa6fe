"""Ablations: each takes its part away and nothing else, and its examples are true without it."""

from __future__ import annotations

import pickle

import pytest
from helpers.programs import world

from thread_kit.__main__ import main
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.experiments.ablations import (
    ABLATIONS,
    SEPARATE,
    load_ablation,
    make_taught_ablation,
    split_prompt,
)
from thread_kit.experiments.method_registry import TAUGHT, load_method
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import load_prompt
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Observed

ONE = "I need to get 2 oak logs. =>"
REDSTONE = "I need to get 1 redstone. =>"


def speak_with_redstone(prompts):
    """The examples; the redstone, which THREAD's prompt shows to nobody, is got like the logs."""
    examples = speak_examples(prompts)

    def speak(text: str) -> str:
        context, mark, said = text.rpartition("\n\nResponse:\n")
        if REDSTONE not in context[-len(REDSTONE) :]:
            return examples(text)
        text = (
            context.removesuffix(REDSTONE) + ONE + mark + said.replace("1 redstone", "2 oak logs")
        )
        return examples(text).replace("2 oak logs", "1 redstone")

    return speak


def run(name: str) -> Episode:
    method = load_method(name, "textcraft")
    shown = [method.fixed.get("main_prompt", method.prompt), method.prompt]
    whole = method.prompt.name.endswith(("whole-sequence", "no-variables", "as-observed"))
    speak = (speak_examples if whole else speak_with_redstone)(shown)
    env = world()
    return method(ScriptedEngine(speak), env, seed=0, path=None).run(progress=False)


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


def test_with_the_whole_sequence_a_child_reads_all_that_its_parent_wrote():
    episode = run("thread, whole sequence")
    assert "items = [c.split(" in episode.threads[1].context.text
    assert "items = [c.split(" not in run("thread, as observed").threads[1].context.text


def test_with_a_separate_prompt_the_main_thread_reads_others_examples_than_its_children():
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
        make_taught_ablation(SEPARATE)
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
