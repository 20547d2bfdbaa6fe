"""The prompt checker, and the proof of the prompts that the project ships."""

import re
from dataclasses import replace

import pytest

from thread_kit.envs.textcraft.env import TextCraft, tasks
from thread_kit.envs.textcraft.planner import solve
from thread_kit.paths import resource
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import Example, Prompt, load_prompt


def gather(context: str, env: TextCraft) -> dict[str, object]:
    """What a thread with this context would do: get the items, by the oracle's own way."""
    count, item = re.fullmatch(r"I need to get (\d+) (.+)\. =>", context).groups()
    if env.step(f"get {count} {item}").observation.startswith("Got"):
        return {"count": int(count), "item": item}
    names = [re.match(r"craft \d+ (.+) using", c)[1] for c in env.commands]
    item = min([name for name in names if item in name], key=len)
    for _ in range(int(count)):  # each run of the oracle's way makes at least one
        for action in solve(item, env.commands):
            env.step(action)
    return {"count": int(count), "item": item}


def test_the_textcraft_prompt_is_proved_in_the_real_environment():
    number = next(t.number for t in tasks("train") if t.goal == "note block")
    env = TextCraft("train", number)
    env.reset()
    assert check_prompt(load_prompt("textcraft"), env, gather) == []


def test_the_small_textcraft_prompt_is_proved_in_the_real_environment():
    env = TextCraft("train", 0)  # the engine knows every recipe, whichever commands are listed
    env.reset()
    assert check_prompt(load_prompt("textcraft-small"), env, gather) == []


TEXTCRAFT = sorted(
    f"{file.parent.name}/{file.stem}" for file in resource("prompts").glob("*/textcraft*.txt")
)


def read(name: str) -> str:
    return resource(f"prompts/{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEXTCRAFT)
def test_the_examples_of_a_textcraft_prompt_are_goals_to_learn_from(name):
    kept_apart = {task.goal for split in ("test", "dev") for task in tasks(split)}
    shown = re.findall(r"Goal: craft ([a-z].+)\.", read(name))
    assert not kept_apart & set(shown)


@pytest.mark.parametrize("name", TEXTCRAFT)
def test_the_commands_of_a_textcraft_prompt_are_real_recipes(name):
    real = {c for split in ("test", "dev", "train") for t in tasks(split) for c in t.commands}
    shown = re.findall(r"^craft .+$", read(name), re.MULTILINE)
    assert shown
    assert set(shown) <= real


MAIN = Example("Goal: x.", "n = 2\nFirst, I need {n} cups. =>Found {n} cups.<=\n#END#")
CHILD = Example("I need 2 cups. =>", "n = 2\nprint('Found {n} cups.')\n#END#")


def test_a_sound_prompt_has_no_problems():
    assert check_prompt(Prompt("p", (MAIN, CHILD))) == []


@pytest.mark.parametrize(
    ("examples", "problem"),
    [
        ((replace(MAIN, response="n = 1/0\n#END#"),), "fails: ZeroDivisionError"),
        ((MAIN,), "no example has a context of this form"),
        ((MAIN, replace(CHILD, response="print('No.')\n#END#")), "but what comes back is 'No.<="),
        ((MAIN, CHILD, Example("I need tea. =>", "print('x')\n#END#")), "no example spawns"),
        (
            (MAIN, replace(CHILD, context="I need 3 cups. =>")),
            "no example spawns a thread with this context",
        ),
        (
            (
                replace(MAIN, response="First, I need 9 cups. =>Yes.<=\n" + MAIN.response),
                CHILD,
                replace(CHILD, context="I need {n} cups. =>"),
            ),
            "no example",
        ),
    ],
)
def test_an_unsound_prompt_is_told_why(examples, problem):
    assert problem in " / ".join(check_prompt(Prompt("p", examples)))


def test_observations_are_compared_with_the_environment():
    env = TextCraft("train", 0)
    env.reset()
    right = Example("Goal: x.", "> get 2 bamboo =>Got 2 bamboo<=\n#END#")
    wrong = Example("Goal: x.", "> get 2 bamboo =>Got 3 bamboo<=\n#END#")
    assert check_prompt(Prompt("p", (right,)), env) == []
    assert "Got 2 bamboo" in check_prompt(Prompt("p", (wrong,)), env)[0]
