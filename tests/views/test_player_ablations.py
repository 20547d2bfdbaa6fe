"""Switches in the player: the episode once more from its start, and both trees side by side."""

from __future__ import annotations

import pytest
from helpers.clerk import clerk_player
from helpers.episodes import Shed

import thread_kit as tk
from thread_kit.dialect import QA
from thread_kit.exchange import phi_full_sequence
from thread_kit.experiments.ablations import adapt_to_prompts
from thread_kit.prompts import EMPTY
from thread_kit.views.player.widget import watch


def test_an_episode_is_played_again_from_its_start_without_variables():
    player = clerk_player()
    session = player.ablate(scope="none", phi=phi_full_sequence)
    fork = player.wait(of=1)
    assert fork.header["fork"]["event"] == 0
    assert fork.header["scope"] == "none"
    assert fork.header["exchange"]["phi"] == "phi_full_sequence"
    assert fork.threads[0].variables == {}
    assert "{drink}" in fork.threads[1].context.text
    assert "euros" in fork.threads[1].context.text
    assert session.episode is fork
    assert player.episode.threads[0].variables == {"drink": "tea"}


def test_in_its_middle_an_episode_keeps_its_variables():
    player = clerk_player()
    with pytest.raises(ValueError, match="scope cannot change in the middle"):
        player.fork(1, scope="none")


def test_a_few_shot_prompt_without_the_part_is_read_instead():
    prompt = tk.load_prompt("textcraft")
    env = tk.TextCraft("dev", 47)
    session = tk.Session(tk.ScriptedEngine(["#END#"]), env, prompt=prompt)
    changes = adapt_to_prompts(session.run(progress=False), {"scope": "none"})
    assert changes["prompt"].name == changes["main_prompt"].name == "textcraft-no-variables"
    changes = adapt_to_prompts(session.episode, {"phi": phi_full_sequence})
    assert changes["prompt"].name == "textcraft-whole-sequence"
    assert "prompt" not in adapt_to_prompts(session.episode, {"temperature": 1.0})
    fork = session.fork(0, **changes).run(progress=False)
    assert [p["name"] for p in fork.header["prompts"].values()] == ["textcraft-whole-sequence"]


def test_threads_that_compute_have_variables_of_their_own_and_none_of_others():
    session = tk.Session(tk.ScriptedEngine(["#END#"]), context="go", prompt=EMPTY, dialect=QA)
    episode = session.run(progress=False)
    assert adapt_to_prompts(episode, {"scope": "none"}) == {"scope": "own"}


def test_an_episode_of_a_task_is_played_on_the_same_task():
    session = tk.Session(tk.ScriptedEngine(["> open shed =>", "#END#"] * 2), Shed())
    player = watch(session)
    player.wait()
    player.ablate(scope="none")
    fork = player.wait(of=1)
    assert fork.header["task"] == player.episode.header["task"]
    assert [action.action for action in fork.threads[0].actions] == ["open shed"]
