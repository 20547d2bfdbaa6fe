"""ALFWorld's few-shot prompts: every line of every example is true in a generated game."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from thread_kit.envs.alfworld import AlfWorld
from thread_kit.envs.alfworld_games import KINDS
from thread_kit.exchange import REFERENCE
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import Prompt, load_prompt
from thread_kit.resources import resource

SHOWN = {
    "pick": ("pick-105", "pick-100"),
    "clean": ("clean-101", "clean-105"),
    "heat": ("heat-108", "heat-101"),
    "cool": ("cool-103", "cool-102"),
    "look": ("look-107", "look-102"),
    "pick2": ("pick2-100", "pick2-101"),
}
"""The games that the examples are from: the first of each type for THREAD, both for ReAct."""

needs_engine = pytest.mark.alfworld


pytestmark = pytest.mark.usefixtures("alfworld_process")


@cache
def thread_prompt(name: str) -> Prompt:
    return load_prompt(f"alfworld-{name}")


def check_place(context: str, env: AlfWorld) -> dict[str, object]:
    """What a thread with this context would do: look there, and take what it is asked for."""
    asked = re.fullmatch(r"I need to check the (.+) for (?:the|another) (.+)\. =>", context)
    assert asked, context
    place, obj = asked.groups()
    seen = env.step(f"go to {place}").observation
    if seen == f"The {place} is closed.":
        seen = env.step(f"open {place}").observation
    if not (there := re.search(rf"\ba ({obj} \d+)", seen)):
        return {}
    env.step(f"take {there[1]} from {place}")
    return {"item": there[1], "place": place}


# THREAD


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
def test_a_thread_prompt_is_proved_in_a_generated_game(kind):
    prompt = thread_prompt(kind)
    env = AlfWorld("generated", SHOWN[kind][0])
    assert prompt.examples[0].context == env.reset()
    assert check_prompt(prompt, env, check_place) == []
    assert env.won


@needs_engine
def test_the_check_finds_what_is_not_true_in_the_game():
    prompt = thread_prompt("clean")
    wrong = [
        type(one)(one.context, one.response.replace("a candle 1, and", "a candle 2, and"))
        for one in prompt.examples
    ]
    env = AlfWorld("generated", SHOWN["clean"][0])
    env.reset()
    assert "a candle 1, and a {obj} 1" in check_prompt(Prompt("p", tuple(wrong)), env)[0]


def test_the_task_general_pair_shows_nothing_that_is_not_proved_with_a_type():
    proved = {example for kind in KINDS for example in thread_prompt(kind).examples}
    main, others = thread_prompt("main"), thread_prompt("others")
    assert main.examples == tuple(thread_prompt(kind).examples[0] for kind in KINDS)
    assert set(others.examples) <= proved - set(main.examples)
    assert len(set(others.examples)) == len(others.examples)


def forms(prompt: Prompt) -> set[str]:
    """What the threads of a prompt ask of a child, as patterns of its context."""
    text = "\n".join(example.response for example in prompt.examples)
    asked = re.findall(r"^(?!>)\w+, (.+?=>)", text, re.MULTILINE)
    return {"(.+)".join(map(re.escape, REFERENCE.split(form)[::2])) for form in asked}


def test_the_task_general_pair_asks_for_what_the_others_show_and_for_nothing_else():
    main, others = thread_prompt("main"), thread_prompt("others")
    contexts = [example.context for example in others.examples]
    asked = forms(main) | forms(others)
    assert len(asked) == 10
    for form in asked:
        assert any(re.fullmatch(form, context) for context in contexts), form
    for context in contexts:
        assert any(re.fullmatch(form, context) for form in asked), context


# ReAct


def transcripts(kind: str) -> list[str]:
    """The examples of a prompt, without the line above them."""
    text = resource(f"prompts/react/alfworld-{kind}.txt").read_text(encoding="utf-8")
    return text.strip().split("\n\n")[1:]


def turns(transcript: str) -> Iterator[tuple[str, str]]:
    """(what the agent wrote behind its mark, what it read then)."""
    for turn in transcript.split("\n> ")[1:]:
        written, _, read = turn.partition("\n")
        yield written, read


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
def test_both_examples_of_a_react_prompt_are_won_games(kind):
    examples = transcripts(kind)
    assert len(examples) == 2
    for name, transcript in zip(SHOWN[kind], examples, strict=True):
        env = AlfWorld("generated", name)
        assert transcript.partition("\n> ")[0] == env.reset()
        for written, read in turns(transcript):
            thinks = written.startswith("think: ")
            assert read == ("OK." if thinks else env.step(written).observation), (name, written)
        assert env.won, name
