"""DecomP and TDAG: handlers of a fixed set, and agents made for each sub-task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import EXECUTOR, GOALS, NO, YES, play, run, titles

from thread_kit.dialect import AGENT, Stop
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.decomp import NO_CALL, decomp
from thread_kit.methods.tdag import NO_SUBTASK, REMAINING, tdag
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import Example, Prompt
from thread_kit.requests import Finished, Generate, Generated, NewThread, Spawn, Status
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.trace.events import Acted

TURN, PULL = (Prompt(name, (Example(name, "#END#"),)) for name in ("turn", "pull"))
HANDLERS = {"turn": TURN, "pull": PULL}


def decomposed(replies, **options):
    program = partial(decomp, handlers=HANDLERS, **options)
    return play(program, replies, prompts=[TURN, PULL])


# DecomP


def test_a_handler_reads_the_world_and_its_own_sub_task():
    replies = ["I need a key.\n[turn] the key, twice =>", "It turned.\n#END#", "Open.#END#"]
    episode = decomposed(replies)
    child = episode.threads[1]
    assert child.prompt == TURN.sha256
    assert "A lock.\nTask: turn the key, twice.\n" in child.context.text
    assert "I need a key" not in child.context.text
    assert "[turn] the key, twice =>It turned.<=\n" in episode.threads[0].sequence.text


def test_handlers_call_handlers_and_act():
    replies = ["[turn] it =>", "[pull] it =>", "> open =>", "Pulled.#END#", "Turned.#END#", "#END#"]
    episode = decomposed(replies)
    assert titles(episode) == ["Task: open it.", "Task: turn it.", "Task: pull it."]
    assert episode.depth == 2
    assert of_kind(episode, Acted)[0].thread == 2
    assert episode.reward == 1


@pytest.mark.parametrize(
    ("replies", "given"),
    [
        (["[turn] it =>", "[pull] it =>", "Pulled.#END#", "#END#", "#END#"], "Pulled."),
        (["[turn] it =>", "> push =>", "#END#", "#END#"], "Nothing happens."),
    ],
)
def test_a_handler_that_ends_behind_an_answer_returns_it(replies, given):
    """DecomP's code: at the end mark the last answer goes to the caller."""
    text = decomposed(replies).threads[0].sequence.text
    assert f"[turn] it =>{given}<=" in text


def test_the_set_of_handlers_is_fixed():
    episode = decomposed(["[push] it =>", "push it =>", "#END#"])
    assert len(episode.threads) == 1
    text = episode.threads[0].sequence.text
    assert "No handler push; there are: turn, pull." in text
    assert NO_CALL.format(listen="=>") in text


@pytest.mark.parametrize("end", ["\n#END#", ""])
def test_what_a_reply_asks_for_at_its_end_is_done(end):
    episode = decomposed([f"[turn] it{end}", f"> open{end}", "#END#", "#END#"])
    assert titles(episode) == ["Task: open it.", "Task: turn it."]
    assert episode.reward == 1
    assert f"[turn] it{end} =>It opens.<=\n" in episode.threads[0].sequence.text


def test_an_answer_in_brackets_is_no_call():
    """As an inventory says it, and the shop."""
    episode = decomposed(["[turn] it =>", "[stick] (1) is there.\n#END#", "#END#"])
    assert "[turn] it =>[stick] (1) is there.<=\n" in episode.threads[0].sequence.text


def test_a_handler_that_calls_itself_for_ever_is_stopped_by_depth():
    engine_calls = iter(range(1000))

    def speak(text: str) -> str:
        next(engine_calls)
        return "#END#" if text.endswith("<=\n") else "[turn] it =>"

    episode = play(partial(decomp, handlers=HANDLERS), speak, prompts=[TURN, PULL], depth=3)
    assert episode.depth == 4
    assert "out of depth" in episode.threads[3].sequence.text


def test_a_decomposer_has_only_so_many_calls():
    episode = decomposed(["> push =>"] * 2, iterations=2)
    assert episode.status is Status.OUT_OF_CALLS


def test_the_examples_of_all_handlers_craft_the_goals_together():
    method = load_method("decomp", "textcraft")
    prompts = [method.prompt, *method.fixed["prompts"]]
    goals = [*GOALS, "white dye"]
    episodes = [run("decomp", speak_examples(prompts), goal) for goal in goals]
    assert [episode.reward for episode in episodes] == [1, 1, 1]
    shown = {example.response for prompt in prompts for example in prompt.examples}
    played = [one.sequence.text for episode in episodes for one in episode.threads.values()]
    assert shown == set(played)


# TDAG


def agents(replies, **options):
    program = partial(tdag, generator=PULL, executor=EXECUTOR, **options)
    return play(program, replies, prompts=[PULL, EXECUTOR])


def test_the_first_sub_task_that_remains_gets_an_agent_of_its_own():
    episode = agents(
        [
            "1. oil the lock\n2. open it =>",
            "You know about oil.#END#",
            "It squeaks.\n" + NO,
            "There is no oil.\n1. open it =>",
            "You open locks.#END#",
            "> open =>",
        ]
    )
    asked = [one.context.text for one in episode.threads.values()]
    assert titles(episode)[1:] == ["Task: oil the lock."] * 2 + ["Task: open it."] * 2
    assert "You know about oil.\nWhole task: open it.\nA lock.\nTask: oil the lock." in asked[2]
    assert asked[4].rpartition("\n\nResponse")[0].endswith("\nA lock.\nTask: open it.")
    roles = [one.prompt for one in episode.threads.values()][1:]
    assert roles == [PULL.sha256, EXECUTOR.sha256] * 2
    text = episode.threads[0].sequence.text
    assert (
        "2. open it =>oil the lock<=\nagent =>You know about oil.<=\nresult =>It squeaks." in text
    )
    assert text.endswith("result =>Task completed!<=\n")  # the lock is open: nothing remains
    assert episode.reward == 1


def test_an_agent_and_its_generator_read_the_whole_task_and_what_was_done_before():
    two = "It squeaks.\nNow it is quiet.\n" + YES
    episode = agents(
        [
            *("1. oil the lock =>", "Oil.#END#", two),
            *("1. turn the key =>", "#END#", NO),
            *("1. open it =>", "Locks.#END#", "> open =>"),
        ]
    )
    asked = [one.context.text for one in episode.threads.values()]
    first = "Done: oil the lock: It squeaks. Now it is quiet. Task completed!\n"
    for before, threads in enumerate(([1, 2], [3, 4], [5, 6])):
        done = [first, "Done: turn the key: Task failed!\n"][:before]
        for thread in threads:
            whole = "Whole task: open it.\n" + "".join(done) + "A lock.\nTask: "
            assert whole in asked[thread]
    assert "Locks.\nWhole task: open it.\n" in asked[6]


@pytest.mark.parametrize("mark", ["1.", "3)", "-", "*", "Step 1:", "**1.**", "1:", "1.\n2."])
def test_sub_tasks_are_lines_of_a_list(mark):
    episode = agents([f"First:\n{mark} open it =>", "#END#", YES, "#END#"])
    assert titles(episode)[1] == "Task: open it."


def test_an_agent_does_without_a_description_that_was_cut():
    program = partial(tdag, generator=PULL, executor=EXECUTOR)
    replies = ["1. open it =>", "Locks " * 40, "> open =>"]
    episode = play(program, replies, prompts=[PULL, EXECUTOR], new_tokens=60)
    asked = [one.context.text for one in episode.threads.values()]
    assert "A lock.\nTask: open it." in asked[2]
    assert "did not finish" not in asked[2]


def test_a_reply_without_a_list_is_told_so():
    episode = agents(["open it =>", "#END#"])
    assert NO_SUBTASK in episode.threads[0].sequence.text


@pytest.mark.parametrize("end", ["\n#END#", ""])
def test_a_list_that_ends_its_reply_is_one(end):
    """TDAG's code: a reply is always a message that is over."""
    episode = agents([f"1. oil it\n2. open it{end}", "#END#", YES, "#END#"])
    assert titles(episode)[2] == "Task: oil it."
    assert f"open it{end} =>oil it<=\n" in episode.threads[0].sequence.text


def test_a_list_of_what_was_done_is_no_list_of_sub_tasks():
    episode = agents(["Done so far:\n1. oil it: done\nIt is open.\n#END#"])
    assert (len(episode.threads), episode.status) == (1, Status.ENDED)


def test_two_replies_in_a_row_without_a_list_are_its_end_as_in_its_code():
    episode = agents(["open it =>", "1. oil =>", "#END#", NO, "hm =>", "open it =>"])
    assert (episode.status, episode.usage.calls) == (Status.ENDED, 6)


def test_only_so_many_sub_tasks_are_done():
    episode = agents(["1. a =>", "#END#", NO] * 2, subtasks=2)
    assert episode.status is Status.OUT_OF_CALLS
    assert len(episode.threads) == 5


AGENT_STEPS = {
    "fetch 9 bone meal": ["> get 9 bone meal =>", "think: 9 bone meal cannot be fetched.\n" + NO],
    "fetch 3 bone": ["> get 3 bone =>", "think: I have 3 bone.\n" + YES],
    "craft 3 bone meal using 1 bone, 3 times": [
        *["> craft 3 bone meal using 1 bone =>"] * 3,
        "think: I have crafted it 3 times.\n" + YES,
    ],
    "craft 1 bone block using 9 bone meal": ["> craft 1 bone block using 9 bone meal =>"],
    "fetch 8 planks": ["> get 8 planks =>", "think: 8 planks cannot be fetched.\n" + NO],
    "fetch 2 oak logs": ["> get 2 oak logs =>", "think: I have 2 oak logs.\n" + YES],
    "craft 4 oak planks using 1 oak logs, 2 times": [
        *["> craft 4 oak planks using 1 oak logs =>"] * 2,
        "think: I have crafted it 2 times.\n" + YES,
    ],
    "fetch 1 redstone": ["> get 1 redstone =>", "think: I have 1 redstone.\n" + YES],
    "craft 1 note block using 8 oak planks, 1 redstone": [
        "> craft 1 note block using 8 oak planks, 1 redstone =>",
    ],
}
"""What the agents do; they share ReAct's prompt, which shows no agent's task."""


@pytest.mark.parametrize(("goal", "threads"), [("note block", 11), ("bone block", 9)])
def test_the_examples_of_decomposer_and_generator_lead_to_the_goal(goal, threads):
    method = load_method("tdag", "textcraft")
    generator, executor = method.fixed["prompts"]
    examples = speak_examples([method.prompt, generator])
    left = {task: list(steps) for task, steps in AGENT_STEPS.items()}

    def speak(text: str) -> str:
        if not text.startswith(executor.text):
            return examples(text)
        task = text.rpartition("\n\nResponse:")[0].rpartition("Goal: ")[2].rstrip(".")
        return left[task].pop(0)

    episode = run("tdag", speak, goal)
    assert episode.reward == 1
    assert not any(left[task] for task in left if goal in task)
    assert len(episode.threads) == threads


@pytest.mark.parametrize("benchmark", ["textcraft", "alfworld-pick2", "webshop"])
def test_the_decomposer_is_shown_how_a_sub_task_that_failed_is_taken_apart(benchmark):
    """THREAD paper (v2), section 5: further steps for the step at which an agent failed."""
    shown = "".join(one.response for one in load_method("tdag", benchmark).prompt.examples)
    before, failed, behind = shown.partition("Task failed!<=\n")
    assert failed
    lists = ["1. " + before.rpartition("\n1. ")[2], behind]
    old, new = (REMAINING.findall(one.partition(" =>")[0]) for one in lists)
    assert old[0] not in new
    assert len(new) > len(old)


def test_what_a_handler_returned_is_no_request_of_the_decomposer():
    """Behind an answer of several lines the last line begins with somebody else's text."""
    returned, dialect = "found\n> open", replace(AGENT, after_close="")
    steps = decomp(NewThread("c", dialect, lambda text: (1,)), handlers=HANDLERS)
    assert isinstance(next(steps), Generate)

    def say(text: str):
        return steps.send(Generated(Span(Provenance.GENERATED, text, (1,)), Stop.LISTEN))

    request = say("[turn] it =>")
    while not isinstance(request, Spawn):
        request = steps.send(None)
    request = steps.send(Finished(Sequence(), Status.ENDED, {}, returned))
    while not isinstance(request, Generate):
        request = steps.send(None)
    request = say(" so it is =>")
    assert isinstance(request, Generate)
    assert NO_CALL.format(listen="=>") in request.sequence.text
