"""The methods that THREAD is compared with: their logic, and their prompts in the real game."""

from __future__ import annotations

import pickle
import re
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import (
    EXECUTOR,
    GOALS,
    NO,
    PLANNER,
    YES,
    Lock,
    by_title,
    play,
    run,
    titles,
    world,
)

from thread_kit.dialect import Dialect
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.envs.textcraft.planner import solve
from thread_kit.experiments.episode_facts import claims_success, count_trials, find_k_max
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_registry import BUILDERS, load_method
from thread_kit.experiments.results import Results
from thread_kit.experiments.suite import Suite
from thread_kit.methods.adapt import adapt
from thread_kit.methods.common import NO_ACTION, REPLY_CALLS, completed, subtask
from thread_kit.methods.plan_and_execute import plan_and_execute
from thread_kit.methods.plans import combine, parse_plan
from thread_kit.methods.react import react
from thread_kit.methods.reflexion import reflexion
from thread_kit.methods.try_again import try_again
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import Example, load_prompt
from thread_kit.requests import Status
from thread_kit.sequence import Provenance
from thread_kit.session.session import Session, fork
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted, GeneratedSpan, Restarted, Returned

# ReAct


def test_react_acts_and_observes_until_its_text_ends():
    episode = play(react, ["think: try.\n> push =>", "> pull =>", NO], env=Lock())
    assert episode.threads[0].sequence.text == (
        "think: try.\n> push =>Nothing happens.<=\n> pull =>Nothing happens.<=\nTask failed!\n#END#"
    )
    assert [acted.action for acted in of_kind(episode, Acted)] == ["push", "pull"]
    assert episode.status is Status.ENDED
    assert episode.reward == 0
    assert episode.header["program"] == "react"


def test_react_is_over_when_the_environment_is():
    episode = play(react, ["> push =>", "> open =>"], env=Lock())
    assert episode.threads[0].sequence.text.endswith("> open =>It opens.<=\n")
    assert (episode.status, episode.reward, episode.usage.calls) == (Status.ENDED, 1, 2)


def test_who_judges_nothing_claims_nothing():
    """ADaPT paper, section 3.1: a claim is the model's, and ReAct's end is the environment's."""
    assert claims_success(play(react, ["> push =>", "> open =>"])) is True
    alone = partial(react, judges=False)
    assert claims_success(play(alone, ["> push =>", "> open =>"])) is None
    tried = partial(reflexion, actor=alone, reflect=PLANNER, trials=1)
    assert claims_success(play(tried, ["> push =>", "> open =>"], env=Lock())) is None
    unasked = partial(react, is_asked=False)
    assert claims_success(play(unasked, ["> push =>", "> open =>"])) is None


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("think: it is open. Task completed!\n> push =>", YES),
        ("think: no way. Task failed!\nthink: or pull.\n> pull =>", NO),
        ("task completed\nTask failed!\n#END#", YES),
    ],
)
def test_an_executor_is_over_where_it_judges_itself(said, verdict):
    episode = play(an_adapt(max_depth=1), [said])
    assert of_kind(episode, Acted) == []
    assert episode.threads[0].sequence.text == said  # nothing is cut from what the model wrote
    assert claims_success(episode) is (verdict is YES)


@pytest.mark.parametrize(
    ("said", "is_over"),
    [
        ("think: Task completed! The lock is open.\n> push =>", True),
        ("think: I say Task completed, when it is open.\n> open =>", False),
    ],
)
def test_a_verdict_ends_an_executor_wherever_it_stands(said, is_over):
    """With its exclamation mark, as in the released code; behind it nothing is done."""
    episode = play(react, [said])
    assert bool(of_kind(episode, Acted)) is not is_over
    assert claims_success(episode) is True


def test_a_thought_is_an_iteration_as_an_action_is():
    replies = ["think: a.\nthink: b.\n> push =>", "\n> push =>", "> push =>"]
    episode = play(partial(react, iterations=5), replies)
    assert (episode.usage.calls, episode.status) == (3, Status.OUT_OF_CALLS)
    episode = play(partial(react, iterations=4), replies)
    assert (episode.usage.calls, episode.status) == (2, Status.OUT_OF_CALLS)


def test_react_takes_the_actions_of_its_start_by_itself():
    episode = play(partial(react, start=("push",)), [NO])
    kinds = [span.provenance for span in episode.threads[0].sequence]
    assert kinds == [Provenance.INSTRUCTION, Provenance.OBSERVED, Provenance.GENERATED]
    assert episode.header["program"] == {"name": "react", "start": ["push"]}


def test_react_says_what_no_action_is_and_acts_on_nothing():
    episode = play(react, ["I need a key. =>", YES])
    assert NO_ACTION in episode.threads[0].sequence.text
    assert not of_kind(episode, Acted)


def test_what_a_method_itself_writes_has_the_dialects_own_marks():
    own = Dialect(listen="@@", close="%%", actions=("!",))
    program = partial(react, start=("push",), judges=False)
    replies = ["I need a key. @@", "! open @@"]
    session = Session(ScriptedEngine(replies), Lock(), program=program, dialect=own)
    text = session.run(progress=False).threads[0].sequence.text
    assert text == (
        "! push @@Nothing happens.%%\nI need a key. @@"
        "This is no action; an action is a line that starts with '! '.%%\n! open @@It opens.%%\n"
    )


def test_react_ends_when_its_iterations_are_used_up():
    episode = play(partial(react, iterations=2), ["> push =>", "> push =>"])
    assert episode.status is Status.OUT_OF_CALLS
    assert episode.usage.calls == 2
    assert "own calls" in episode.detail


# Judging, sub-tasks, plans


@pytest.mark.parametrize(
    ("text", "success"),
    [
        ("think: done.\nTask completed!", True),
        ("TASK COMPLETED", True),
        ("Task failed!", False),
        ("", False),
        ("Task completed, I thought.\nTask failed!", False),
        ("Is the task completed? Task failed!", False),
        ("Task failed! No: task completed!", True),
        ("think: I cannot say that the task completed, so I stop.", False),
        ("Has the task completed? No, it has not.", False),
        ("Error: the thread did not finish (truncated).", False),
    ],
)
def test_a_task_is_completed_only_if_the_last_line_says_so(text, success):
    assert completed(text) is success


def test_a_subtask_keeps_the_world_and_asks_for_something_else():
    world = "Crafting commands:\ncraft 1 x using 1 y\nGoal: craft x."
    assert subtask(world, "fetch 1 y").endswith("using 1 y\nGoal: fetch 1 y.")
    house = "You are in a room.\nYour task is to: put a mug on the desk."
    assert subtask(house, "find a mug.") == "You are in a room.\nYour task is to: find a mug."
    assert subtask("go on", "stop") == "stop."


def plan(order: str | None, steps: int = 5) -> str:
    lines = [f"Step {n}: task {n}" for n in range(1, steps + 1)]
    return "\n".join(["think: hm.", *lines, *([f"Execution order: {order}"] if order else [])])


def tried(order: str | None, good: set[int]) -> tuple[bool, list[int]]:
    """What comes of a plan whose good steps succeed, and the steps that were tried."""
    found = parse_plan(plan(order))
    assert found
    done: list[int] = []

    def attempt(step):
        done.append(step)
        return step in good
        yield

    steps = combine(found.logic, attempt)
    with pytest.raises(StopIteration) as over:
        next(steps)
    return over.value.value, done


@pytest.mark.parametrize(
    ("order", "good", "success", "done"),
    [
        ("(Step 1 AND Step 2)", {1, 2}, True, [1, 2]),
        ("(Step 1 AND Step 2)", {2}, False, [1]),
        ("(Step 1 OR Step 2 OR Step 3)", {2, 3}, True, [1, 2]),
        ("(Step 1 OR Step 2)", set(), False, [1, 2]),
        # Figure 8 of ADaPT paper: what is combined is a task of its own
        ("((Step 1 OR Step 2 OR Step 3) AND Step 4 AND Step 5)", {3, 4, 5}, True, [1, 2, 3, 4, 5]),
        (
            "((Step 1 OR Step 2) AND (Step 3 OR (Step 4 AND Step 5)))",
            {2, 4},
            False,
            [1, 2, 3, 4, 5],
        ),
        ("Step 1 OR Step 2 AND Step 3", {1}, True, [1]),
        ("step 1 and step 2.", {1, 2}, True, [1, 2]),
        ("Step 3", {3}, True, [3]),
        # No expression of these steps: all are needed
        (None, {1, 2, 3, 4, 5}, True, [1, 2, 3, 4, 5]),
        # As in the code of ADaPT, words between the steps and what is not closed do not count
        ("(Step 1 OR Step 2 OR Step 3", {3}, True, [1, 2, 3]),
        ("(Step 1 OR Step 2), and only one of them must succeed.", {2}, True, [1, 2]),
        ("**[Step 1 OR Step 2 OR Step 3]**; ", {2}, True, [1, 2]),
        ("Step 1 OR Step 2, Step 3", {3}, True, [1, 2, 3]),
        ("Step 1, then Step 2", {1}, False, [1, 2]),
        ("(() OR Step 2) AND AND (Step 3)", {2, 3}, True, [2, 3]),
        ("(Step 1 AND Step 9)", {1}, False, [1, 2]),
        ("(Step 1 AND Step 2))", {1}, False, [1, 2]),
        ("OR", {1}, False, [1, 2]),
        ("__import__('os')", set(), False, [1]),
        ("(" * 5000 + "Step 1", set(), False, [1]),
    ],
)
def test_a_plan_combines_its_steps_with_any_nesting(order, good, success, done):
    assert tried(order, good) == (success, done)


def test_a_text_without_steps_is_no_plan():
    assert parse_plan("I would fetch it.\nExecution order: (Step 1)") is None


@pytest.mark.parametrize(
    "text",
    [
        "Step 1: SELECT *\nStep 2: /a_*\n**Execution Order:** (Step 1 OR Step 2)",
        "**Step 1:** SELECT *\n**Step 2**: /a_*\n**Execution Order: (Step 1 OR Step 2)**",
        "- __Step 1:__ SELECT *\n- ***Step 2: /a_****\n*Execution order*: Step 1 OR Step 2.",
    ],
)
def test_a_plan_may_be_written_in_markdown(text):
    found = parse_plan(text)
    assert found
    assert (found.steps, found.logic) == ({1: "SELECT *", 2: "/a_*"}, ("OR", (1, 2)))


@pytest.mark.parametrize(
    "plan",
    [
        ["Step 1: > push =>", "\nExecution order: Step 1#END#"],
        ["Step 1: fetch it.\nExecution order: Step 1 =>", "#END#"],
        ["Step 1: fetch it. =>"] * REPLY_CALLS,  # nobody knows what would have come
    ],
)
def test_a_listen_mark_ends_no_plan(plan):
    """ADaPT paper, Algorithm 1: P and logic, and a planner that waits for nothing."""
    is_plan = plan[-1].endswith("#END#")
    said = [*plan, YES] if is_plan else plan
    episode = play(partial(plan_and_execute, executor=EXECUTOR), said, prompts=[EXECUTOR])
    assert claims_success(episode) is is_plan
    episode = play(partial(adapt, planner=PLANNER, max_depth=2), [NO, *said])
    assert claims_success(episode) is is_plan


def test_a_plan_with_its_order_counts_also_where_its_tokens_end():
    """ADaPT's code: whatever came is parsed."""
    plan = "Step 1: > push\nExecution order: (Step 1)\n\n" + "and so on " * 9
    said = [plan[:100], YES]
    options = {"prompts": [EXECUTOR], "new_tokens": 99}
    assert claims_success(play(partial(plan_and_execute, executor=EXECUTOR), said, **options))
    options = {"prompts": [PLANNER], "new_tokens": 99}
    program = partial(adapt, planner=PLANNER, max_depth=2)
    assert claims_success(play(program, [NO, *said], **options))


@pytest.mark.parametrize("end", [" =>", "\n#END#", ""])
def test_what_is_handed_on_is_the_action_however_its_reply_ended(end):
    said = [plan("(Step 1 AND Step 2)", 2) + "\n#END#", f"> push{end}", YES, YES]
    program = partial(plan_and_execute, executor=EXECUTOR, carry=True)
    episode = play(program, said, prompts=[EXECUTOR])
    assert episode.threads[2].sequence.text.startswith("> push =>Nothing happens.<=\n")


class Table(Lock):
    """Takes what the household takes: "put X in/on Y"."""

    name = "alfworld"

    def step(self, action: str) -> Step:
        return super().step("open" if action == "put mug 1 in/on desk 1" else action)


@pytest.mark.parametrize("name", ["adapt", "try again", "plan-and-execute", "react-hybrid"])
@pytest.mark.parametrize("word", ["on", "in", "in/on"])
def test_adapts_executors_may_say_on_for_in_on_as_in_its_code(name, word):
    method = load_method(name, "alfworld-pick")
    replies = [f"> put mug 1 {word} desk 1 =>"]
    if name == "plan-and-execute":
        replies.insert(0, "Step 1: put it there.\nExecution order: Step 1\n#END#")
    run = method(ScriptedEngine([*replies, YES]), Table(), seed=0, path=None)
    assert run.run(progress=False).reward == 1


@pytest.mark.parametrize("name", ["adapt", "try again", "plan-and-execute", "react-hybrid"])
def test_an_end_mark_without_a_verdict_ends_no_executor_in_a_household(name):
    """In ADaPT's code every reply begins behind ">"; nothing ends an executor but its verdict."""
    method = load_method(name, "alfworld-pick")
    replies = ["#END#", " put mug 1 on desk 1 =>"]
    if name == "plan-and-execute":
        replies.insert(0, "Step 1: put it there.\nExecution order: Step 1\n#END#")
    episode = method(ScriptedEngine([*replies, YES]), Table(), seed=0, path=None)
    assert episode.run(progress=False).reward == 1
    # Its verdict does, of each of the trials where there are several: the reward says that it lost.
    trials = 3 if name == "try again" else 1
    claimed = method(ScriptedEngine([*replies[:-1], *[YES] * 9]), Table(), seed=0, path=None)
    episode = claimed.run(progress=False)
    assert (episode.status, episode.usage.calls) == (Status.ENDED, len(replies) + trials - 1)


@pytest.mark.parametrize("name", ["adapt", "reflexion", "react-hybrid", "tdag"])
def test_executors_have_the_rules_of_their_benchmark(name):
    """`ends`: in the household and the shop; `in_on`: in the household."""
    for examples, rules in (
        ("alfworld-pick", {"in_on": True, "ends": False}),
        ("webshop", {"ends": False}),
        ("textcraft", {}),
    ):
        if (name, examples) == ("react-hybrid", "textcraft"):
            continue
        program = load_method(name, examples).fixed["program"].keywords
        known = program.get("actor", partial(dict, **program)).keywords
        assert {key: known[key] for key in ("in_on", "ends") if key in known} == rules


def test_react_itself_says_it_as_the_household_does():
    method = load_method("react", "alfworld-pick")
    replies = ["> put mug 1 on desk 1 =>", *["#END#"] * 60]
    run = method(ScriptedEngine(replies), Table(), seed=0, path=None)
    assert run.run(progress=False).reward == 0


LONG = f"Step {'9' * 5000}: open it."


def test_a_step_with_a_number_of_thousands_of_digits_is_none():
    assert parse_plan(LONG) is None
    found = parse_plan(f"{LONG}\nStep 1: push.\nExecution order: (Step 1 AND {LONG[:5005]})")
    assert found
    assert (found.steps, found.logic) == ({1: "push."}, ("AND", (1,)))


@pytest.mark.parametrize(
    ("program", "replies"),
    [
        (partial(plan_and_execute, executor=EXECUTOR), [f"{LONG}\n#END#"]),
        (partial(adapt, planner=PLANNER), [NO, f"{LONG}\n#END#"]),
    ],
)
def test_a_plan_of_such_a_step_ends_the_episode_without_an_error(program, replies):
    episode = play(program, replies, prompts=[PLANNER, EXECUTOR], new_tokens=6000)
    assert episode.status is Status.ENDED
    assert len(episode.threads) == len(replies)


# Plan-and-Execute


def test_plan_and_execute_gives_each_step_to_an_executor():
    program = partial(plan_and_execute, executor=EXECUTOR)
    said = {
        "Task: open it.": [plan("(Step 1 AND Step 2)", 2) + "\n#END#"],
        "Task: task 1.": ["> push =>", YES],
        "Task: task 2.": [NO],
    }
    episode = play(program, by_title(said), prompts=[EXECUTOR])
    assert titles(episode) == ["Task: open it.", "Task: task 1.", "Task: task 2."]
    assert [one.prompt for one in episode.threads.values()][1:] == [EXECUTOR.sha256] * 2
    assert episode.threads[0].sequence.text.endswith("task 2 =>Task failed!<=\n")


def test_plan_and_execute_without_a_plan_has_nothing_to_execute():
    program = partial(plan_and_execute, executor=EXECUTOR)
    episode = play(program, ["No idea.#END#"], prompts=[EXECUTOR])
    assert len(episode.threads) == 1
    assert episode.status is Status.ENDED


# Try Again


def test_try_again_starts_anew_until_a_trial_is_rewarded():
    env = Lock(3)
    episode = play(partial(try_again, trials=5), ["> open =>", YES] * 3, env=env)
    assert episode.reward == 1
    assert len(episode.threads) == 4
    assert len(of_kind(episode, Restarted)) == 2
    assert "Task completed" in episode.threads[0].sequence.text


def test_try_again_gives_up_after_its_trials():
    episode = play(partial(try_again, trials=2), ["> push =>", NO] * 2)
    assert episode.reward == 0
    assert [one.parent for one in episode.threads.values()] == [None, 0, 0]


class Noting(ScriptedEngine):
    """Notes the temperature of each call."""

    def __init__(self, replies):
        super().__init__(replies)
        self.temperatures = []

    def begin(self, *arguments, **options):
        self.temperatures.append(options["temperature"])
        super().begin(*arguments, **options)


def test_only_the_first_trial_is_greedy():
    engine = Noting([NO] * 3)
    program = partial(try_again, trials=3, temperature=0.7)
    Session(engine, Lock(), program=program, scope="none").run(progress=False)
    assert engine.temperatures == [0.0, 0.7, 0.7]


# ADaPT


def an_adapt(**options):
    return partial(adapt, planner=PLANNER, **options)


def test_adapt_plans_nothing_where_the_executor_succeeds():
    episode = play(an_adapt(), ["> push =>", YES])
    assert len(episode.threads) == 1
    assert episode.usage.calls == 2


def test_adapt_decomposes_only_what_fails():
    said = {
        "Task: open it.": [NO],
        "plan Task: open it.": [plan("(Step 1 AND Step 2)", 2) + "\n#END#"],
        "Task: task 1.": [YES],
        "Task: task 2.": [NO],
        "plan Task: task 2.": [
            "Step 1: push\nStep 2: open\nExecution order: Step 1 OR Step 2#END#"
        ],
        "Task: push.": [NO],
        "plan Task: push.": ["I do not know.#END#"],
        "Task: open.": ["> open =>", YES],
    }
    episode = play(an_adapt(max_depth=3), by_title({**said, "plan Task: push.": []}))
    assert titles(episode) == [
        "Task: open it.",
        "Task: open it.",
        "Task: task 1.",
        "Task: task 2.",
        "Task: task 2.",
        "Task: push.",
        "Task: open.",
    ]
    assert [one.depth for one in episode.threads.values()] == [0, 1, 1, 1, 2, 2, 2]
    assert episode.threads[3].sequence.text.endswith(
        "push =>Task failed!<=\nopen =>Task completed!<=\n"
    )
    assert episode.threads[0].sequence.text.endswith("task 2 =>Task completed!<=\n")
    assert episode.reward == 1
    assert episode.header["program"]["planner"] == "planner"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_adapt_goes_no_deeper_than_d_max(depth):
    def speak(text: str) -> str:
        return "Step 1: again#END#" if text.startswith(PLANNER.text) else NO

    episode = play(an_adapt(max_depth=depth), speak)
    assert episode.depth == depth - 1
    planned = [one for one in episode.threads.values() if one.prompt == PLANNER.sha256]
    assert len(planned) == depth - 1
    assert episode.status is Status.ENDED


def test_adapt_with_d_max_1_is_its_executor():
    replies = ["> push =>", "> open =>", NO]
    alone, adapted = play(react, replies), play(an_adapt(max_depth=1), replies)
    assert alone.threads[0].sequence == adapted.threads[0].sequence


@pytest.mark.parametrize("end", ["#END#", "\n#END#", ""])
def test_the_end_of_a_reply_is_the_end_of_its_action(end):
    """ReAct's and ADaPT's code: an action ends with its line, or with the message."""
    episode = play(react, [f"think: it is shut.\n> push{end}", f"> open{end}"])
    assert [acted.action for acted in of_kind(episode, Acted)] == ["push", "open"]
    assert f"> push{end} =>Nothing happens.<=\n" in episode.threads[0].sequence.text
    program = partial(react, judges=False)
    episode = play(program, [f"> think: it is shut.{end}", f"> open{end}"])
    assert [acted.action for acted in of_kind(episode, Acted)] == ["open"]
    assert f"> think: it is shut.{end} =>OK.<=\n" in episode.threads[0].sequence.text


def test_an_executor_that_is_cut_has_failed():
    said = {
        "Task: open it.": ["> push =>"] * 3,
        "plan Task: open it.": ["Step 1: wait\n#END#"],
        "Task: wait.": [YES],
    }
    episode = play(an_adapt(iterations=3), by_title(said))
    assert titles(episode)[2] == "Task: wait."
    assert episode.status is Status.ENDED


def test_adapt_hands_the_last_action_of_a_success_on_and_of_a_failure_not():
    said = {
        "Task: open it.": [NO],
        "plan Task: open it.": [plan("Step 1 AND (Step 2 OR Step 3)", 3) + "#END#"],
        "Task: task 1.": ["> push =>", "> pull =>", YES],
        "Task: task 2.": ["> kick =>", NO],
        "Task: task 3.": [YES],
    }
    episode = play(an_adapt(max_depth=2, carry=True), by_title(said))
    starts = {one.title: one.sequence.text.partition("\n")[0] for one in episode.threads.values()}
    assert starts["Task: task 2."] == starts["Task: task 3."] == "> pull =>Nothing happens.<="
    assert starts["Task: task 1."] == "> push =>Nothing happens.<="


class House(Env):
    """Things that are where they were put: an action is remembered until the house begins anew."""

    name = "house"

    def __init__(self, wins: str = "win") -> None:
        self.task = {"wins": wins}
        self.done: list[str] = []
        self.resets = 0

    def reset(self) -> str:
        self.done = []
        self.resets += 1
        return "A house.\nTask: tidy up."

    def step(self, action: str) -> Step:
        self.done.append(action)
        won = self.done == self.task["wins"].split(", ")
        return Step(f"Done: {', '.join(self.done)}.", float(won), won, False, {})

    def again(self) -> House:
        return House(self.task["wins"])

    def oracle(self) -> list[str]:
        return self.task["wins"].split(", ")


SCATTERED = {
    "Task: tidy up.": ["> scatter =>", NO],
    "plan Task: tidy up.": [plan("Step 1 AND (Step 2 OR Step 3)", 3) + "#END#"],
    "Task: task 1.": ["> take =>", YES],
    "Task: task 2.": ["> break =>", NO],
    "Task: task 3.": ["> put =>"],
}
"""What the executors do where two of them fail."""


def test_what_a_failed_executor_did_is_undone_before_the_next():
    env = House("take, put")
    episode = play(an_adapt(max_depth=2, carry=True), by_title(SCATTERED), env=env)
    assert episode.reward == 1
    assert [restarted.actions for restarted in of_kind(episode, Restarted)] == [(), ("take",)]
    assert count_trials(episode) == 1  # nothing was tried anew
    assert [acted.observation for acted in of_kind(episode, Acted)] == [
        "Done: scatter.",
        "Done: take.",
        "Done: take, break.",
        "Done: take, put.",
    ]


def test_an_environment_that_is_as_the_last_success_left_it_is_left_alone():
    env = House("a, b")
    said = {
        "Task: tidy up.": [NO],
        "plan Task: tidy up.": [plan(None, 2) + "#END#"],
        "Task: task 1.": ["> a =>", YES],
        "Task: task 2.": ["> b =>"],
    }
    episode = play(an_adapt(max_depth=2, carry=True), by_title(said), env=env)
    assert (episode.reward, env.resets) == (1, 1)


def test_plan_and_execute_undoes_what_failed_as_adapt_does():
    program = partial(plan_and_execute, executor=EXECUTOR, carry=True)
    said = {
        "Task: tidy up.": SCATTERED["plan Task: tidy up."],
        **{f"Task: task {n}.": SCATTERED[f"Task: task {n}."] for n in (1, 2, 3)},
    }
    episode = play(program, by_title(said), env=House("take, put"), prompts=[EXECUTOR])
    assert episode.reward == 1


def test_a_restored_episode_is_on_disk_and_can_be_forked(tmp_path):
    program = an_adapt(max_depth=2, carry=True)
    session = Session(
        *(ScriptedEngine(by_title(SCATTERED)), House("take, put")),
        program=program,
        prompts=[PLANNER],
        scope="none",
        path=tmp_path / "a.jsonl",
    )
    episode = session.run(progress=False)
    assert Episode.load(tmp_path / "a.jsonl").events == episode.events
    assert any(isinstance(event, Restarted) for event in episode.events)
    assert count_trials(episode) == 1
    at = max(n for n, e in enumerate(episode.events) if isinstance(e, Acted))
    again = session.fork(at).run(progress=False)
    assert (again.events[at], again.reward) == (episode.events[at], 1)


class Dice(House):
    def step(self, action: str) -> Step:
        return super().step(f"{action} {self.resets}")


def test_an_environment_that_does_not_repeat_itself_is_named():
    episode = play(an_adapt(max_depth=2, carry=True), by_title(SCATTERED), env=Dice())
    assert episode.status is Status.FAILED
    assert "deterministic" in episode.detail


def test_where_the_environment_is_over_no_planner_and_no_other_step_is_asked():
    said = {
        "Task: open it.": [NO],
        "plan Task: open it.": [plan("(Step 1 AND Step 2) OR Step 3", 3) + "#END#"],
        "Task: task 1.": ["> open =>"],
    }
    episode = play(an_adapt(), by_title(said))
    assert (len(episode.threads), episode.reward) == (3, 1)
    assert claims_success(episode)
    assert find_k_max(episode) == 2


class Short(Lock):
    """Is over with the first action, and not won."""

    def step(self, action: str) -> Step:
        return Step("Too late.", 0.0, False, True, {})


def test_where_the_environment_is_over_and_lost_nothing_is_tried_either():
    episode = play(an_adapt(), ["> push =>"], env=Short())
    assert (len(episode.threads), claims_success(episode)) == (1, False)
    assert episode.status is Status.ENDED


class Shop(Lock):
    """Is over with the first action, and does not say whether it was the right one."""

    announces_success = False

    def __init__(self, reward: float) -> None:
        super().__init__()
        self.reward = reward

    def step(self, action: str) -> Step:
        return Step("Bought.", self.reward, True, False, {})


@pytest.mark.parametrize("reward", [1.0, 0.5])
@pytest.mark.parametrize("verdict", [YES, NO])
@pytest.mark.parametrize("depth", [1, 2])
def test_where_the_environment_says_nothing_of_success_the_executor_does(reward, verdict, depth):
    """Over- and under-estimation (appendix F) can both be seen."""
    said = {
        "Task: open it.": [NO] if depth == 2 else ["> buy =>", verdict],
        "plan Task: open it.": [plan("Step 1 OR Step 2", 2) + "#END#"],
        "Task: task 1.": ["> buy =>", verdict],
    }
    episode = play(an_adapt(iterations=1), by_title(said), env=Shop(reward))
    assert (episode.reward, claims_success(episode)) == (reward, verdict is YES)
    assert len(episode.threads) == (3 if depth == 2 else 1), "nothing else can be tried"
    assert find_k_max(episode) == depth


def test_what_goes_on_after_such_an_end_claims_nothing():
    episode = play(an_adapt(), ["> buy =>", "> buy =>"], env=Shop(1.0))
    assert (episode.status, claims_success(episode)) == (Status.ENDED, False)


def test_methods_without_executors_claim_nothing():
    assert claims_success(play(None, ["print('Task completed!')\n#END#"], prompts=[])) is None


def test_each_executor_has_its_own_iterations():
    said = {
        "Task: open it.": ["> push =>"] * 3,
        "plan Task: open it.": [plan("Step 1 OR Step 2", 2) + "#END#"],
        "Task: task 1.": ["> push =>"] * 3,
        "Task: task 2.": ["> push =>", "> push =>", "> open =>"],
    }
    assert play(an_adapt(iterations=3, max_depth=2), by_title(said)).reward == 1


# What a trace of these methods says


def test_k_max_counts_the_levels_of_executors_and_no_planner():
    alone = play(an_adapt(), [YES])
    failed = play(an_adapt(max_depth=3), lambda text: "#END#" if "plan" in text[:20] else NO)
    assert (find_k_max(alone), find_k_max(failed)) == (1, 1)
    assert find_k_max(play(react, [YES])) == 1
    assert find_k_max(play(partial(try_again, trials=1), [YES])) is None


@pytest.mark.parametrize(
    ("order", "good", "success"),
    [
        ("Step 1 AND Step 2", "12", True),
        ("Step 1 AND Step 2", "1", False),
        ("Step 1 OR Step 2", "2", True),
        ("(Step 1 OR Step 2) AND Step 3", "23", True),
        ("(Step 1 AND Step 2) OR Step 3", "1", False),
        ("(Step 1 AND Step 2) OR (Step 3 AND Step 4)", "34", True),
    ],
)
def test_what_a_method_says_of_itself_is_in_its_trace(order, good, success, tmp_path):
    said = {f"Task: task {n}.": [YES if str(n) in good else NO] for n in range(1, 6)}
    said |= {"Task: open it.": [NO], "plan Task: open it.": [plan(order) + "#END#"]}
    play(an_adapt(max_depth=2), by_title(said), path=tmp_path / "a.jsonl")
    assert claims_success(Episode.load(tmp_path / "a.jsonl")) is success
    program = partial(plan_and_execute, executor=EXECUTOR)
    said["Task: open it."] = said["plan Task: open it."]
    assert claims_success(play(program, by_title(said), prompts=[EXECUTOR])) is success


# What a session gives to every program


def test_a_program_is_on_disk_and_can_be_repeated_and_forked(tmp_path):
    said = {
        "Task: open it.": ["> push =>", NO],
        "plan Task: open it.": ["Step 1: open\n#END#"],
        "Task: open.": ["> pull =>", YES],
    }
    program = an_adapt(start=("look",), max_depth=2)
    episode = play(program, by_title(said), path=tmp_path / "a.jsonl")
    saved = Episode.load(tmp_path / "a.jsonl")
    assert saved.events == episode.events
    assert str(saved) == str(episode)
    at = next(
        n for n, e in enumerate(saved.events) if isinstance(e, GeneratedSpan) and e.thread == 2
    )
    given = {"engine": ScriptedEngine(["> kick =>", NO]), "env": Lock()}
    with pytest.raises(ValueError, match="recorded="):
        fork(saved, at, **given)
    other = fork(saved, at, recorded={"program": program}, **given).run(progress=False)
    assert other.events[:at] == saved.events[:at]
    assert other.threads[0].sequence.text.endswith("open =>Task failed!<=\n")


def test_a_person_can_change_what_a_child_returns_to_a_program():
    said = {
        "Task: open it.": [NO],
        "plan Task: open it.": ["Step 1: a\nStep 2: b\n#END#"],
        "Task: a.": [YES],
        "Task: b.": [YES],
    }
    session = Session(
        ScriptedEngine(by_title(said)),
        Lock(),
        program=an_adapt(max_depth=2),
        prompts=[PLANNER],
        scope="none",
    )
    episode = session.run(progress=False)
    at = [n for n, e in enumerate(episode.events) if isinstance(e, Returned)][1]
    forked = session.fork(at, returned="Task failed!").run(progress=False)
    assert titles(forked) == ["Task: open it.", "Task: open it.", "Task: a."]
    assert forked.threads[0].sequence.text.endswith("a =>Task failed!<=\n")


def test_a_person_can_give_the_plan_that_was_cut():
    said = [NO, "Step 1: push it, and " + "so on " * 40]
    options = {"program": an_adapt(max_depth=2), "prompts": [PLANNER], "scope": "none"}
    session = Session(ScriptedEngine(said), Lock(), new_tokens=60, **options)
    episode = session.run(progress=False)
    at = max(n for n, event in enumerate(episode.events) if isinstance(event, Returned))
    engine = ScriptedEngine(["> open =>"])
    forked = session.fork(at, returned="Step 1: open it", engine=engine).run(progress=False)
    assert forked.reward == 1


def test_a_prompt_that_the_session_was_not_given_is_named():
    episode = play(an_adapt(), [NO, NO], prompts=[])
    assert episode.status is Status.FAILED
    assert re.match("ValueError: a thread was spawned with .*planner", episode.detail)


def test_a_program_and_the_parameters_of_thread_exclude_each_other():
    with pytest.raises(ValueError, match="main_prompt"):
        play(react, [YES], main_prompt=EXECUTOR)
    with pytest.raises(ValueError, match="prompts"):
        Session(ScriptedEngine([]), Lock(), prompts=[EXECUTOR])
    with pytest.raises(ValueError, match="no program"):
        play("react", [YES])


def test_a_suite_plays_a_method_again_if_what_it_was_made_with_has_changed(tmp_path):
    for iterations in (1, 2, 2):
        fixed = {"program": partial(react, iterations=iterations), "scope": "none"}
        suite = Suite(
            tmp_path / "r.jsonl",
            methods=[SessionMethod("react", fixed=fixed)],
            models={"script": ScriptedEngine(lambda text: "> inventory =>")},
            environment=TextCraft,
            tasks=[{"split": "dev", "number": 47}],
        )
        suite.run(progress=False)
    assert [row["calls"] for row in Results.load(tmp_path / "r.jsonl")] == [1, 2]


def test_a_second_plan_in_one_reply_is_not_mixed_with_the_first():
    first = "Step 1: get X\nStep 2: make Y\nExecution Order: (Step 1 AND Step 2)\n"
    plan = parse_plan(first + "Step 1: other\nStep 3: Z\nExecution Order: Step 3")
    assert plan == parse_plan(first)
    assert parse_plan("Step 1: a\nStep 2: b\nStep 1: c\nStep 3: d").steps == {1: "a", 2: "b"}


# In the real game


@pytest.mark.parametrize("name", BUILDERS)
def test_a_method_travels_to_other_processes(name, tmp_path, monkeypatch):
    if name == "adaplanner, skills":  # its memory is what it has solved: nothing so far
        monkeypatch.setenv("THREAD_KIT_MEMORIES", str(tmp_path))
        (tmp_path / "adaplanner-textcraft.jsonl").touch()
    method = load_method(name, "webshop" if name in ("rap", "autoguide") else "textcraft")
    assert pickle.loads(pickle.dumps(method)).name == name
    header = method(ScriptedEngine([]), world(), seed=0, path=None).episode.header
    assert " at 0x" not in str(header)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", ["react", "try again", "reflexion"])
def test_the_executors_whole_examples_craft_their_goals(name, goal):
    episode = run(name, speak_examples([load_prompt("react/textcraft")]), goal)
    assert episode.reward == 1


class Prepared(Env):
    """A game in which the items of an example's inventory have been got or crafted already."""

    name = "prepared"

    def __init__(self, game: TextCraft, example: Example) -> None:
        self.task = {}
        self.game, self.example = game, example

    def reset(self) -> str:
        self.game.reset()
        held = re.search(r"Inventory: (.*?)<=", self.example.response)[1]
        for item, count in re.findall(r"\[(.+?)\] \((\d+)\)", held):
            while f"[{item}] ({count})" not in self.game.step("inventory").observation:
                for action in solve(item, self.game.commands) or [f"get {count} {item}"]:
                    self.game.step(action)
        return self.example.context

    def step(self, action: str) -> Step:
        return self.game.step(action)

    def again(self) -> Prepared:
        return Prepared(self.game.again(), self.example)

    def oracle(self) -> None:
        return None


def test_the_executors_examples_are_true_in_the_game():
    for example in load_prompt("react/textcraft").examples:
        goal = next(goal for goal in GOALS if GOALS[goal][-1] in example.context)

        def speak(text: str, example=example) -> str:
            said = text.partition("#START#\n")[2]
            assert example.response.startswith(said)
            return example.response.removeprefix(said)

        program = partial(react, start=("inventory",))
        game = Prepared(world(goal), example)
        session = Session(ScriptedEngine(speak), game, program=program, scope="none")
        episode = session.run(progress=False)
        text, words = episode.threads[0].sequence.text, "Task completed!\n#END#"
        if episode.reward:  # the goal is crafted, and nobody is asked for a verdict
            assert example.response.startswith(text)
            assert re.fullmatch(rf"think: .+\n{words}", example.response.removeprefix(text))
        else:
            assert text == example.response


def fetch_and_craft(text: str) -> str:
    """An executor that can fetch and craft, and plans nothing."""
    task = text.rpartition("\n\nResponse:")[0].rpartition("Goal: ")[2].rstrip(".")
    lately = text.rpartition("=>")[2]
    if task in ("craft note block", "craft bone block"):
        return NO
    if lately.startswith(("Got", "Crafted")):
        times = int((re.search(r", (\d+) times", task) or [0, 1])[1])
        done = text.rpartition("Response:")[2].count("Crafted")
        if lately.startswith("Got") or done >= times:
            return YES
    if lately.startswith("Could not"):
        return NO
    if task.startswith("fetch"):
        return f"> get {task.removeprefix('fetch ')} =>"
    command = re.sub(r", \d+ times$", "", task).replace("8 planks", "8 oak planks")
    return f"> {command} =>"


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("adapt", "note block"),
        ("plan-and-execute", "note block"),
        ("plan-and-execute", "bone block"),
    ],
)
def test_the_planners_examples_lead_to_the_goal(name, goal):
    method = load_method(name, "textcraft")
    planner = method.prompt if name == "plan-and-execute" else method.fixed["prompts"][0]
    examples = speak_examples([planner])

    def speak(text: str) -> str:
        return (examples if text.startswith(planner.text) else fetch_and_craft)(text)

    assert run(name, speak, goal).reward == 1
