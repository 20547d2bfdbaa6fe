"""TextCraft's state machine: its transitions, and the prompts of its agents in the real game."""

from __future__ import annotations

import re

import pytest
from helpers.episodes import of_kind
from helpers.programs import GOALS, run, world

from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.episode_facts import list_states
from thread_kit.experiments.method_registry import load_method
from thread_kit.prompts import load_instructions
from thread_kit.requests import Status
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted, Restarted

STEPS = {
    "note block": [
        ("Observe", "It needs 8 planks and 1 redstone.", ""),
        ("Solve", "> get 8 planks", "Could not find planks"),
        ("Error", "> get 2 oak logs", "Got 2 oak logs"),
        ("Solve", "> craft 4 oak planks using 1 oak logs", "Crafted 4 minecraft:oak_planks"),
        ("Verify", "I have 4 of the 8 planks, and no redstone.", ""),
        ("Solve", "> craft 4 oak planks using 1 oak logs", "Crafted 4 minecraft:oak_planks"),
        ("Verify", "I have the planks.", ""),
        ("Solve", "> get 1 redstone", "Got 1 redstone"),
        (
            "Solve",
            "> craft 1 note block using 8 planks, 1 redstone",
            "Could not find enough items to craft minecraft:note_block",
        ),
        (
            "Error",
            "> craft 1 note block using 8 oak planks, 1 redstone",
            "Crafted 1 minecraft:note_block",
        ),
    ],
    "bone block": [
        ("Observe", "It needs 9 bone meal.", ""),
        ("Solve", "> get 3 bone", "Got 3 bone"),
        *[
            ("Solve", "> craft 3 bone meal using 1 bone", "Crafted 3 minecraft:bone_meal"),
            ("Verify", "Not yet.", ""),
        ]
        * 3,
        (
            "Solve",
            "> craft 1 bone block using 9 bone meal",
            "Crafted 1 minecraft:bone_block",
        ),
    ],
}
"""The states of a game, what their agents say, and what the game answers."""


def states(episode: Episode) -> list[str]:
    text = episode.threads[0].sequence.text
    return re.findall(r"^\[(\w+)\]", text, re.MULTILINE)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", ["stateflow", "stateflow+reflexion"])
def test_the_machine_goes_by_what_the_game_answers(name, goal):
    steps = STEPS[goal]
    replies = iter([f"{text} #END#" for _, text, _ in steps])
    episode = run(name, lambda text: next(replies), goal)
    actor = 1 if "reflexion" in name else 0
    visited = re.findall(r"^\[(\w+)\]", episode.threads[actor].sequence.text, re.MULTILINE)
    assert visited == [state for state, _, _ in steps]
    answers = [event.observation for event in of_kind(episode, Acted)[1:]]
    assert answers == [answer for _, _, answer in steps if answer]
    assert (episode.reward, episode.status) == (1, Status.ENDED)


def test_every_action_that_an_instruction_shows_was_taken_there_in_a_game():
    taken = {text for steps in STEPS.values() for _, text, _ in steps}
    for name, prompt in load_instructions("stateflow/textcraft").items():
        for shown in re.findall(r"^(> [a-z].+?) =>$", prompt.text, re.MULTILINE):
            assert shown in taken, name


def test_what_the_error_agent_reads_is_what_the_game_says():
    answers = {answer for steps in STEPS.values() for _, _, answer in steps}
    text = load_instructions("stateflow/textcraft")["Error"].text
    shown = re.findall(r"^Could not .+$", text, re.MULTILINE)
    assert len(shown) == 2
    env: TextCraft = world("bone block")
    env.reset()
    assert set(shown) <= answers | {env.step("get 9 bone meal").observation}


@pytest.mark.parametrize(
    ("name", "visited"),
    [
        ("stateflow", ["Observe", "Solve", "Error", "Solve", "Verify"]),
        ("stateflow, no_observe", ["Solve", "Error", "Solve", "Verify"]),
        ("stateflow, no_error", ["Observe", "Solve", "Solve", "Solve", "Verify"]),
        ("stateflow, no_verify", ["Observe", "Solve", "Error", "Solve", "Solve"]),
        ("stateflow, no_error, no_verify", ["Observe", "Solve", "Solve", "Solve", "Solve"]),
    ],
)
def test_states_are_left_out_by_name(name, visited):
    actions = ["get 9 bone meal", "get 3 bone", "craft 3 bone meal using 1 bone"]
    said = [f"> {action} #END#" for action in actions] + ["enough. #END#"]
    replies = iter((["So. #END#"] if "Observe" in visited else []) + said)
    method = load_method(name, "textcraft")
    assert method.name == name

    episode = run(name, lambda text: next(replies, "again #END#"), "bone block")
    assert states(episode)[: len(visited)] == visited


@pytest.mark.parametrize("state", ["solve", "init", "plan"])
def test_a_state_that_is_needed_is_not_left_out(state):
    with pytest.raises(ValueError, match="cannot be left out; those that can: Observe, Error, Ver"):
        load_method(f"stateflow, no_{state}", "textcraft")


@pytest.mark.parametrize("name", ["react", "sf_chat", "stateflow+reflexion"])
def test_only_stateflow_has_states_to_leave_out(name):
    with pytest.raises(ValueError, match="there is no method"):
        load_method(f"{name}, no_error", "textcraft")


def test_a_file_without_the_section_of_a_state_is_named_with_those_it_has(tmp_path):
    from dataclasses import replace

    from thread_kit.envs.textcraft.benchmark import TEXTCRAFT

    own = replace(TEXTCRAFT, prompts={"stateflow/textcraft": "[Solve]\nDo it."})
    with pytest.raises(ValueError, match="no section for the state 'Observe'; it has: Solve"):
        load_method("stateflow", own)
    own = replace(
        TEXTCRAFT,
        prompts={"stateflow/textcraft": "[Solve]\nDo.\n[Solve without Verify]\nDo all.\n"},
    )
    name = "stateflow, no_verify, no_observe, no_error"
    (agent,) = load_method(name, own).fixed["prompts"]
    assert agent.text == "Do all.\n\n\n"


# Reflexion on it


def test_reflexion_on_stateflow_has_six_trials():
    episode = run("stateflow+reflexion", lambda text: "no idea #END#")
    assert len(of_kind(episode, Restarted)) == 5
    assert list_states(episode)[-1] == "Error"


@pytest.mark.parametrize("name", ["stateflow+reflexion", "reflexion", "thread+reflexion"])
def test_the_number_of_trials_is_an_option(name):
    method = load_method(name, "textcraft", trials=2)
    assert method.name == name
    assert method.fixed["program"].keywords["trials"] == 2
    own = load_method(name, "textcraft").fixed["program"].keywords["trials"]
    assert own == (6 if name.startswith("stateflow") else 4)


@pytest.mark.parametrize(("name", "trials"), [("react", 2), ("stateflow", 6), ("reflexion", 0)])
def test_a_method_of_one_trial_has_no_number_of_them(name, trials):
    with pytest.raises(ValueError, match=f"'{name}' cannot have {trials} trials"):
        load_method(name, "textcraft", trials=trials)
