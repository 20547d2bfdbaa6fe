"""Reflexion: what is learnt of a failed trial is read by the next one, whatever the actor is."""

from __future__ import annotations

import re
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import NO, YES, Lock, play, run

from thread_kit.distill.textcraft_teacher import speak_thread
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.methods.react import react
from thread_kit.methods.reflexion import HEADING, reflexion, with_lessons
from thread_kit.program import thread_program
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import Example, Prompt, load_prompt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Restarted

REFLECT = Prompt("reflect", (Example("reflect", "#END#"),))


def played(replies, *, tries=1, **options) -> Episode:
    program = partial(reflexion, actor=react, reflect=REFLECT, **options)
    return play(program, replies, env=Lock(tries), prompts=[REFLECT])


def contexts(episode: Episode, *, lessons: bool) -> list[str]:
    """What the actors read, or those who looked back."""
    return [
        one.context.text
        for one in list(episode.threads.values())[1:]
        if (one.prompt == REFLECT.sha256) is lessons
    ]


def test_a_trial_that_is_rewarded_is_the_last():
    episode = played(["> open =>", YES], trials=3)
    assert len(episode.threads) == 2
    assert not of_kind(episode, Restarted)
    assert episode.reward == 1


def test_lessons_come_into_the_next_trials_in_order():
    replies = ["> push =>", NO, "Pushing is no use.#END#", NO, "I gave up\ntoo early.#END#"]
    episode = played([*replies, "> open =>", YES], trials=3)
    first, second, third = contexts(episode, lessons=False)
    assert HEADING not in first
    assert f"{HEADING}\n- Pushing is no use.\nA lock.\nTask: open it." in second
    assert "- Pushing is no use.\n- I gave up too early.\nA lock." in third
    assert episode.reward == 1
    assert "trial 3 =>Task completed!<=" in episode.threads[0].sequence.text


def test_whoever_looks_back_reads_the_whole_trial():
    episode = played(["think: hm.\n> push =>", NO, "Open it.#END#", NO], trials=2)
    (seen,) = contexts(episode, lessons=True)
    assert "Task: open it.\nthink: hm.\n> push =>Nothing happens.<=\nTask failed!" in seen


def test_whoever_looks_back_is_told_of_a_trial_that_calls_itself_completed():
    """Reflexion's code: a trial ends "STATUS: FAIL", and "you were unsuccessful"."""
    for claim in (YES, "think: Task completed.\n#END#", "Task Completed!\n#END#"):
        episode = played(["> push =>", claim, "Open it.#END#", NO], trials=2)
        (seen,) = contexts(episode, lessons=True)
        assert re.search(r"> push =>Nothing happens.<=\n(think: )?Task failed!\n#END#", seen)
        assert episode.threads[1].sequence.text.endswith(claim)  # what it has written stays


@pytest.mark.parametrize(
    ("behind", "end"),
    [(" It is open.\n#END#", "\n#END#"), ("\nIt opens.#END#", "#END#"), ("\n> push =>", "")],
)
def test_what_stands_behind_a_verdict_was_never_done(behind, end):
    claim = f"think: Done. Task completed!{behind}"
    episode = played(["> push =>", claim, "Open it.#END#", NO], trials=2)
    (seen,) = contexts(episode, lessons=True)
    trial = seen.partition("\n\nResponse:")[0]
    assert trial.endswith(f"> push =>Nothing happens.<=\nthink: Done. Task failed!{end}")


def test_whoever_looks_back_reads_what_was_learnt_before():
    """Reflexion's code: "Plans from past attempts" stand before the new one."""
    replies = [NO, "Pushing is no use.#END#", NO, "Open it.#END#", NO]
    first, second = contexts(played(replies, trials=3), lessons=True)
    assert HEADING not in first
    assert f"{HEADING}\n- Pushing is no use.\nA lock.\nTask: open it.\nTask failed!" in second


def test_a_lesson_that_was_cut_counts_as_far_as_it_goes():
    """Else the next greedy trial would be this one again."""
    program = partial(reflexion, actor=react, reflect=REFLECT, trials=2)
    episode = play(program, [NO, "Open " * 40, NO], prompts=[REFLECT], new_tokens=60)
    (_, second) = contexts(episode, lessons=False)
    assert f"{HEADING}\n- {'Open ' * 11}Open\n" in second


def test_the_memory_keeps_the_last_lessons():
    replies = [text for n in range(5) for text in (NO, f"lesson {n}#END#")]
    episode = played([*replies, NO], trials=6, memory=2)
    last = contexts(episode, lessons=False)[-1]
    assert "lesson 2" not in last
    assert "- lesson 3\n- lesson 4\n" in last


def test_after_the_last_trial_nobody_looks_back():
    episode = played([NO, "lesson#END#", NO], trials=2)
    assert len(contexts(episode, lessons=True)) == 1
    assert len(of_kind(episode, Restarted)) == 1


def test_a_task_without_lessons_is_the_task():
    assert with_lessons("T", []) == "T"


def test_reflexion_stands_on_thread_as_well():
    """The first trial says nothing, the second is the oracle's: threads, variables and all."""
    lesson = "Look the recipe up.\n#END#"
    trials = iter(["#END#"])

    def speak(text: str) -> str:
        if text.startswith(REFLECT.text):
            return lesson
        return next(trials, None) or speak_thread(text)

    program = partial(reflexion, actor=thread_program, reflect=REFLECT)
    session = Session(
        ScriptedEngine(speak), TextCraft("dev", 47), program=program, prompts=[REFLECT]
    )
    episode = session.run(progress=False)
    assert episode.reward == 1
    assert "Look the recipe up." in episode.threads[3].context.text
    assert len(episode.threads) > 4
    assert episode.threads[3].variables.keys() >= {"made", "recipe"}


# TextCraft


def test_the_lessons_of_the_prompt_belong_to_trials_that_failed_like_this():
    prompt = load_prompt("reflexion/textcraft")
    for example in prompt.examples:
        context, _, trial = example.context.partition("\n> inventory")
        trial = f"> inventory{trial}"
        actor = Prompt("actor", (Example(context, trial),))
        lessons = speak_examples([prompt])
        done = []

        def speak(text: str, actor=actor, lessons=lessons, done=done) -> str:
            if text.startswith(prompt.text):
                done.append(lessons(text))
                return done[-1]
            return "#END#" if done else speak_examples([actor])(actor.text + text)

        goal = context.rpartition("Goal: craft ")[2].rstrip(".")
        env = TextCraft.custom(goal, context.split("\n")[1:-1])
        program = partial(
            reflexion, actor=partial(react, start=("inventory",)), reflect=prompt, trials=2
        )
        session = Session(
            ScriptedEngine(speak), env, program=program, prompts=[prompt], scope="none"
        )
        episode = session.run(progress=False)
        assert done == [example.response]
        assert done[0].removesuffix("\n#END#") in episode.threads[3].context.text


def test_a_named_method_has_the_variables_that_its_actor_needs():
    assert run("thread+reflexion", lambda text: "#END#").header["scope"] == "exported"
    assert run("reflexion", lambda text: "#END#").header["scope"] == "none"


@pytest.mark.parametrize(
    "name", ["alfworld", "webshop", "textcraft", "sql", "bash", "datacommons", "icu"]
)
def test_who_looks_back_is_told_what_for(name):
    """As in Reflexion's code; and no trial that it is shown calls itself completed."""
    prompt = load_prompt(f"reflexion/{name}")
    assert "trial that has failed" in prompt.closing
    assert "Task completed!" not in prompt.text
