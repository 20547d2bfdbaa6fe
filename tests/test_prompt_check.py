"""The prompt checker, and the proof of the prompts that the project ships."""

import re
from dataclasses import replace

import pytest
from helpers.proofs import drop_shown_in_kind

from thread_kit.envs.textcraft.env import TextCraft, tasks
from thread_kit.experiments.method_registry import load_method
from thread_kit.paths import resource
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import Example, Prompt, load_prompt

TRYING = r"whether I can get (\d+) ([^\n]+)\. =>$"


def gather(context: str, env: TextCraft) -> dict[str, object]:
    """What a thread with this context would do: try to get what it is asked for."""
    count, item = re.search(TRYING, context).groups()
    env.step(f"get {count} {item}")
    return {}


@pytest.mark.parametrize(
    "method",
    ["thread", "thread, no variables", "thread, whole sequence", "thread, as observed"],
)
def test_a_textcraft_prompt_is_proved_in_the_real_environment(method):
    number = next(t.number for t in tasks("train") if t.goal == "shield")
    env = TextCraft("train", number)
    env.reset()
    made = load_method(method, "textcraft")
    problems = check_prompt(made.prompt, env, gather, **made.fixed)
    assert drop_shown_in_kind(problems, made.prompt, [TRYING]) == []
    assert env.step("inventory").observation == "The task is over."


def test_the_textcraft_prompt_has_the_threads_and_the_counts_of_the_paper():
    """G.5: what makes an item, and what tries to get one, are threads of their own."""
    prompt = load_prompt("textcraft")
    making = [e for e in prompt.examples if e.context.startswith("I have to run this command")]
    trying = [e for e in prompt.examples if e.context.startswith("I have to find out whether")]
    assert (len(prompt.examples), len(making), len(trying)) == (5, 2, 2)
    assert all(example.response.count("\n> get ") == 1 for example in trying)
    for example in making:
        assert "\n> get " not in example.response
        runs = int(
            re.search(r"rounded up, which is (\d+)\.\nruns = \1$", example.response, re.M)[1]
        )
        assert f"I run the command {runs} time" in example.response
        numbered = [f"Run {n} of {runs}:\n> craft " for n in range(1, runs + 1)]
        assert [example.response.count(line) for line in numbered] == [1] * runs
        assert example.response.count("\n> craft ") == runs


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
    test, dev = ({task.goal for task in tasks(split)} for split in ("test", "dev"))
    goals = re.findall(r"^Goal: (.+)", read(name), re.MULTILINE)
    # Of a part of a task ("fetch 2 oak logs", "craft 4 oak planks using 1 oak logs") the item.
    form = r"(?:craft|fetch|get) (?:\d+ )?(.+?)(?: using .+)?\.$"
    shown = {re.fullmatch(form, goal)[1] for goal in goals}
    assert shown or name == "adaplanner/textcraft-ask"  # which asks about plans, and has no goal
    assert not test & shown
    assert not dev & set(re.findall(r"Goal: craft ([a-z].+)\.", read(name))), "no whole task"


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


@pytest.mark.parametrize("context", ["", " \n"])
def test_an_example_without_a_context_is_told_why_like_any_other(context):
    empty = Example(context, "n = 1/0\n#END#")
    assert "'': the line 'n = 1/0' fails: Zero" in " / ".join(check_prompt(Prompt("p", (empty,))))


def test_observations_are_compared_with_the_environment():
    env = TextCraft("train", 0)
    env.reset()
    right = Example("Goal: x.", "> get 2 bamboo =>Got 2 bamboo<=\n#END#")
    wrong = Example("Goal: x.", "> get 2 bamboo =>Got 3 bamboo<=\n#END#")
    assert check_prompt(Prompt("p", (right,)), env) == []
    assert "Got 2 bamboo" in check_prompt(Prompt("p", (wrong,)), env)[0]
