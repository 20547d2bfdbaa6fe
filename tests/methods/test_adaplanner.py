"""AdaPlanner: what the sandbox runs is the plan, what fails is revised, and where it goes on."""

from __future__ import annotations

import re
import threading
from functools import partial
from itertools import pairwise

import pytest
from helpers.episodes import of_kind
from helpers.programs import Lock, play, world
from helpers.shown_games import SHOWN

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import AlfWorld
from thread_kit.errors.error_types import ErrorType
from thread_kit.errors.first_error import find_first_error
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.adaplanner import DIFFER, adaplanner, parse_steps
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import Example, Prompt, load_prompt
from thread_kit.requests import Status
from thread_kit.trace.events import Acted

ASK = Prompt("ask", (Example("ask", "#END#"),))


def plan(*steps: str) -> str:
    return "\n".join(f"# [Step {n}] do\n{step}" for n, step in enumerate(steps, 1)) + "\n#END#"


def plan_and_run(plans, answers=(), env=None, **options):
    """An episode of these plans, and of these answers to what they ask."""
    plans, answers = list(plans), list(answers)

    def speak(text):
        return (answers if text.startswith(ASK.text) else plans).pop(0)

    program = partial(adaplanner, questions=ASK, **options)
    env = env or Lock(tries=3)
    return play(program, speak, env=env, prompts=[ASK], scope="exported", new_tokens=10**6)


def acts(episode) -> list[str]:
    return [event.action for event in of_kind(episode, Acted)]


def test_the_code_of_a_plan_acts_and_asks_as_if_it_waited():
    body = (
        "n = 0\nfor word in literal_eval(ask('Which?')):\n    n += 1\n    seen = act(f'{word} {n}')"
    )
    last = "assert n == 2\nseen = act('open')\nseen = act('open')\nseen = act('open')"
    episode = plan_and_run([plan(body, last)], ["['push', 'pull']#END#"])
    assert acts(episode) == ["push 1", "pull 2", "open", "open", "open"]
    assert (episode.reward, episode.usage.calls) == (1, 2)
    assert episode.threads[0].variables["n"] == 2
    text = episode.threads[0].sequence.text
    assert "ask =>['push', 'pull']<=\n> push 1 =>Nothing happens.<=\n> pull 2 =>" in text


def test_a_plan_that_breaks_off_for_an_action_has_made_no_error():
    episode = plan_and_run([plan("act('open')", "assert False")] * 2, ["1#END#"], executions=2)
    assert find_first_error(episode).type is ErrorType.RUNTIME_ERROR
    assert find_first_error(episode).why.startswith("AssertionError")


@pytest.mark.parametrize(
    "around",
    [
        "```python\n{}```\n#END#",
        "Here is the plan:\n```\n{}\n```#END#",
        "from ast import literal_eval\n{}#END#",
        "import ast\n# [Step 0] none\nassert ast.literal_eval('[1]') == [1]\n{}#END#",
    ],
)
def test_what_stands_around_the_code_of_a_plan_is_none(around):
    code = plan("for n in range(3):\n    act('open')").removesuffix("#END#")
    episode = plan_and_run([around.format(code)], executions=1)
    assert acts(episode) == ["open"] * 3
    assert episode.reward == 1


def test_of_a_plan_that_is_cut_runs_what_there_is():
    whole = plan("act('open')", "act('open')", "act('open')").removesuffix("#END#")
    program = partial(adaplanner, questions=ASK, executions=1)
    options = {"env": Lock(tries=3), "prompts": [ASK], "scope": "exported"}
    episode = play(program, lambda text: f"{whole}act('never')", new_tokens=len(whole), **options)
    assert acts(episode) == ["open"] * 3
    assert episode.reward == 1


def test_a_step_that_there_is_not_is_the_first_one():
    plans = [plan("act('open')"), plan("act('open')\nact('open')")]
    assert plan_and_run(plans, ["9#END#"]).reward == 1


def test_a_failed_assertion_is_read_by_the_planner_which_goes_on_from_the_step_that_it_changed():
    first = plan(
        "seen = act('open')", "act('push')\nassert 'opens' in seen, 'Error in [Step 2]: no'"
    )
    second = plan("seen = act('never')", "act('open')\nact('open')")
    episode = plan_and_run([first, second], ["Step 2.#END#"])
    assert acts(episode) == ["open", "push", "open", "open"]
    assert episode.reward == 1
    assert episode.threads[1].context.text == (
        "Prompt:\nA lock.\nThe plan before has failed. AssertionError: Error in [Step 2]: no\n"
        "The last actions were:\n> open =>Nothing happens.<=\n> push =>Nothing happens.<=\n"
        "Task: open it.\n\nResponse:\n#START#\n"
    )
    asked = episode.threads[2].context.text
    assert DIFFER in asked
    assert first.removesuffix("#END#").strip() in asked


def test_the_variables_of_the_plan_that_failed_stay_for_the_one_that_is_revised():
    first = plan("kept = act('push')", "assert False, 'Error in [Step 2]: no'")
    second = plan("kept = 'gone'", "act(kept)")
    episode = plan_and_run([first, second], ["2#END#"], executions=2)
    assert acts(episode) == ["push", "Nothing happens."]


def test_after_three_executions_each_begins_with_the_first_step():
    failing = plan("act('push')", "assert False, 'Error in [Step 2]: no'")
    episode = plan_and_run([failing] * 6, ["2#END#"] * 2)
    assert acts(episode) == ["push"] * 4  # the first, and the fourth to the sixth
    assert episode.usage.calls == 6 + 2
    assert (episode.status, episode.reward) == (Status.OUT_OF_CALLS, 0)


def test_a_plan_that_runs_to_its_end_without_solving_the_task_is_revised():
    episode = plan_and_run([plan("x = 1"), plan("for n in range(3):\n    act('open')")], ["1#END#"])
    assert "All steps are done, and the task is not solved." in episode.threads[1].context.text
    assert episode.reward == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("x = (", "SyntaxError"),
        ("missing + 1", "NameError"),
        ("x = '" + "a" * 20_000 + "'", "longer than 20,000 characters"),
        ("while True: pass", "TimeoutError"),
    ],
)
def test_what_is_wrong_with_the_code_is_an_error_of_its_step(code, error):
    episode = plan_and_run([plan(code), plan("act('open')")], ["1#END#"], executions=2)
    assert "The plan before has failed. Error in [Step 1]: " in episode.threads[1].context.text
    assert error in episode.threads[1].context.text


def test_a_plan_that_acts_for_ever_ends_with_its_actions():
    episode = plan_and_run([plan("while True:\n    act('push')")], iterations=7)
    assert acts(episode) == ["push"] * 7
    assert episode.status is Status.OUT_OF_CALLS


@pytest.mark.parametrize(
    "answer",
    [
        *("act('push')", "places", "[p for p in ['push']]", "f'{act(1)}'", "'push'.upper()"),
        *("_answers", '"""x"\'"""+act("push")+"""\'"""', "[1, # '\nact('push'), # '\n]"),
        *("1if 0else\" ' \"+act('push')+\" ' \"", "[1] * 3", "'a", "b'x'"),
    ],
)
def test_an_answer_that_is_no_literal_is_an_error_of_its_step(answer):
    """As of Python's own literal_eval, which evaluates no name and calls nothing."""
    plans = [plan("places = ['a']\nx = literal_eval(ask('Which?'))"), plan("act('open')")]
    episode = plan_and_run(plans, [f"{answer}#END#", "1#END#"], executions=2)
    assert acts(episode) == ["open"]
    assert "ValueError: malformed node or string" in episode.threads[2].context.text


def test_an_answer_may_tell_of_an_action():
    """It is the model's reply to a question, as in the released code, and waits for nothing."""
    plans = [plan("act(ask('Which?').splitlines()[1])"), plan("act('open')")]
    episode = plan_and_run(plans, ["By > open =>", "\npush#END#", "1 =>", "#END#"], executions=2)
    assert acts(episode) == ["push", "open"]


def test_an_answer_that_is_cut_counts_as_far_as_it_goes():
    said = [plan("act(ask('Which?').splitlines()[0])"), "push\nbecause " + "it is so " * 9]
    program = partial(adaplanner, questions=ASK, executions=1)
    episode = play(program, said, prompts=[ASK], scope="exported", new_tokens=70)
    assert acts(episode) == ["push"]


def test_an_answer_that_is_a_literal_is_its_value():
    literal = "{'a': [1, -2.5e3, True, None], \"it's\": ('x\\'y',), 'act(1)': 0x1F}"
    body = f"x = literal_eval(ask('Which?'))\nact(str(x == {literal}))"
    for answer in (f" {literal}", f"{literal}  # likeliest first"):
        assert acts(plan_and_run([plan(body)], [f"{answer}#END#"], executions=1)) == ["True"]


def test_a_listen_mark_in_a_comment_of_a_plan_means_nothing():
    first = "# [Step 1] Before, > push =>", " it was, so I open.\nact('push')\nassert 0\n#END#"
    second = "# [Step 1] Before, > push =>", "Nothing<= came.\nact('open')\n#END#"
    episode = plan_and_run([*first, *second], ["1#END#"], executions=2)
    assert acts(episode) == ["push", "open"]


def test_a_long_plan_without_marks_of_steps_is_run_whole():
    code = "act('push')\n" + "x = 1  # and so on\n" * 300 + "act('open')\n#END#"
    assert acts(plan_and_run([code], executions=1)) == ["push", "open"]


def test_what_a_step_did_before_it_broke_off_is_not_done_twice():
    body = "seen = []\nfor n in range(2):\n    seen.append(n)\n    act(str(seen))\nact(str(total))"
    episode = plan_and_run([plan("total = []", f"total.append(1)\n{body}")], executions=1)
    assert acts(episode) == ["[0]", "[0, 1]", "[1]"]


def test_long_variables_are_given_back_and_long_answers_told():
    """A line of code has 4,000 characters at most; some take four of them, or ten."""
    body = "seen.append(1)\nact('push')\ntold = ask('Which?')\nact(f'{len(seen)} {len(told)}')"
    episode = plan_and_run([plan("seen = ['y' * 600] * 9", body)], ["\x01" * 999 + "#END#"])
    assert acts(episode) == ["push", "10 999"]


@pytest.mark.parametrize(
    ("plans", "answers", "kept"),
    [
        ([plan("act('open')\n" * 3)], [], plan("act('open')\n" * 3)),
        (
            ["I open it:\n```\n" + plan("act('open')\n" * 3).replace("#END#", "```\n#END#")],
            [],
            plan("act('open')\n" * 3),
        ),
        (
            [plan("act('open')", "assert 0"), plan("assert 0", "act('open')\nact('open')")],
            ["2#END#"],
            "",
        ),
    ],
)
def test_a_skill_is_what_solves_its_task_from_the_first_step_on(plans, answers, kept):
    found = {}

    def program(thread):
        finished = yield from adaplanner(thread, questions=ASK)
        found.update(finished.variables)
        return finished

    replies = [*plans, *answers]
    episode = play(
        program, replies, env=Lock(tries=3), prompts=[ASK], scope="exported", new_tokens=10**6
    )
    assert episode.reward == 1
    assert found["plan"].strip() == kept.removesuffix("#END#").strip()


def test_what_stands_before_the_first_step_is_parsed_within_limits():
    threads = [
        threading.Thread(target=parse_steps, args=(f"{'-' * length}\n# [Step 1] a\nx = 1",))
        for length in (3_900, 9_000)
    ]
    before = threading.stack_size(512 * 1024)  # as on macOS, where 9,000 signs overflow it
    try:
        for thread in threads:
            thread.start()
    finally:
        threading.stack_size(before)
    for thread in threads:
        thread.join()
    assert parse_steps(f"{'-' * 3_900}\n# [Step 1] a\nx = 1") == {0: "", 1: "x = 1"}


def test_steps_are_told_by_their_marks():
    assert parse_steps("a\n# [Step 2] x\nb\n# [Step 1] y\nc\n# [Step 2] z\nd") == {
        0: "a\n",
        1: "c\n",
        2: "b\nd",
    }
    assert parse_steps("no steps") == {0: "no steps"}


# The prompts


def test_its_examples_craft_what_they_plan_to():
    method = load_method("adaplanner", "textcraft")
    examples = speak_examples([method.prompt, *method.fixed["prompts"]])
    options = {"seed": 0, "path": None, "new_tokens": 10**6}
    assert method(ScriptedEngine(examples), world(), **options).run(progress=False).reward == 1

    failing = "# [Step 1] I fetch.\ngot = act('get 9 bone meal')\nassert 'Got' in got, "
    plans = [failing + "'Error in [Step 1]: I cannot fetch bone meal.'\n#END#"]

    def speak(text):
        if DIFFER in text.rpartition("Prompt:\n")[2]:
            return "1\n#END#"
        return plans.pop(0) if plans else examples(text)

    episode = method(ScriptedEngine(speak), world("bone block"), **options).run(progress=False)
    assert episode.reward == 1
    asked = method.prompt.examples[1].context
    assert asked in episode.threads[1].context.text


def forget_the_way(good: str) -> str:
    """A plan whose last step does not go where it acts; or takes another lamp."""
    head, mark, last = good.rpartition("# [Step")
    if "desklamp" in last:
        return head + mark + re.sub(r"number = ask\(.*\)", "number = 7", last)
    way = r"seen = act\('go to .*\n(?:if 'closed' in seen:\n    .*\n)?"
    return head + mark + re.sub(way, "", last, count=1)


@pytest.mark.alfworld
@pytest.mark.usefixtures("alfworld_process")
@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("number", [0, 1])
def test_its_examples_win_their_games_and_mend_what_they_show(kind, number):
    prompt = load_prompt(f"adaplanner/alfworld-{kind}")
    good = prompt.examples[number].response
    env = AlfWorld("generated", SHOWN[kind][number])
    way = env.oracle()
    takes = [act.split(" from ") for act in way if act.startswith("take")]
    lamp = [a.removeprefix("go to ") for a, b in pairwise(way) if b.startswith("use")]
    plans = [good] if number == 0 else [forget_the_way(good), good]
    method = load_method("adaplanner", f"alfworld-{kind}")
    asked = []

    def speak(text):
        question = text.rpartition("Prompt:\n")[2].partition("\n\nResponse:\n")[0]
        if text.startswith(prompt.text):
            asked.append(question)
            return plans.pop(0)
        if question.endswith(DIFFER):
            return f"{max(parse_steps(good))}#END#"
        if question.startswith("Sort") and "desklamp" in question.partition(":")[0]:
            return f"{lamp}#END#"
        if question.startswith("Sort"):
            return f"{[place for _, place in takes]}#END#"
        thing = re.search(r"number of the (\w+)\?", question)[1]
        return re.search(rf"{thing} (\d+)", question)[1] + "#END#"

    options = {"seed": 0, "path": None, "new_tokens": 10**6}
    episode = method(ScriptedEngine(speak), env, **options).run(progress=False)
    assert env.won
    assert episode.reward == 1
    assert asked[-1] == prompt.examples[number].context
