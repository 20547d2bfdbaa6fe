"""ALFChat: what the executor takes, when the grounding agent speaks, when the talk is over."""

from __future__ import annotations

from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import play
from helpers.shown_games import ShownGame

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.alfchat import HINTS, alfchat
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import load_prompt
from thread_kit.requests import Status
from thread_kit.trace.events import Acted

HINT = "Hint: take it first."


class Room(Env):
    """`go to desk 1` shows the desk, `use lamp 1` wins; all else does nothing."""

    name = "room"

    def __init__(self) -> None:
        self.task = {}

    def reset(self) -> str:
        return "A room.\nYour task is to: switch on the lamp."

    def step(self, action: str) -> Step:
        seen = {"go to desk 1": "A desk.", "use lamp 1": "Light."}.get(action, "Nothing happens.")
        won = action == "use lamp 1"
        return Step(seen, float(won), won, False, {})

    def find_nearest(self, action: str) -> str:
        return (
            "use lamp 1"
            if "lamp" in action
            else "go to desk 1"
            if "desk" in action and "2" not in action
            else action
        )

    def again(self) -> Room:
        return Room()

    def oracle(self) -> list[str]:
        return ["use lamp 1"]


def chat(replies, **options):
    return play(partial(alfchat, **options), replies, env=Room())


def test_the_executor_takes_the_valid_action_that_is_most_like_the_last_line():
    episode = chat(["think: I see.\n> go to desk 1 =>", "I switch on the lamp =>"])
    assert [event.action for event in of_kind(episode, Acted)] == [
        "go to desk 1",
        "I switch on the lamp",
    ]
    assert episode.reward == 1
    assert episode.status is Status.ENDED


def test_the_same_action_is_the_same_in_whatever_words_it_is_asked_for():
    """AutoGen's code compares what the executor did."""
    words = ["go to the desk", "walk to desk 1", "go to desk 1 now"]
    episode = chat([f"> {said} =>" for said in words] * 3)
    assert episode.usage.calls == 3


def test_two_agents_give_up_when_the_same_action_comes_three_times_in_a_row():
    episode = chat(["> go to desk 1 =>"] * 9)
    assert episode.usage.calls == 3
    assert episode.threads[0].sequence.text.endswith("A desk.<=\n")
    assert (episode.status, episode.reward) == (Status.ENDED, 0)


def test_two_agents_give_up_after_four_actions_that_do_nothing():
    assert chat([f"> jump {n} =>" for n in range(9)]).usage.calls == 4
    broken = [*(f"> jump {n} =>" for n in range(3)), "> go to desk 1 =>"] * 2
    assert chat([*broken, "> use lamp 1 =>"]).reward == 1


def test_the_grounding_agent_speaks_at_the_start_and_when_the_assistant_is_stuck():
    episode = chat(["> go to desk 1 =>"] * 3 + ["> use lamp 1 =>"], hint=HINT)
    text = episode.threads[0].sequence.text
    assert text.startswith(f"{HINT}\n> go to desk 1 =>A desk.<=\n")
    assert text.count(HINT) == 2
    assert text.endswith(f"A desk.<=\n{HINT}\n> use lamp 1 =>Light.<=\n")
    assert episode.reward == 1
    lost = chat([f"> jump {n} =>" for n in range(3)] + ["> use lamp 1 =>"], hint=HINT)
    assert lost.threads[0].sequence.text.count(HINT) == 2


def test_actions_that_were_alike_are_no_reason_for_a_hint_when_nothing_is_taken():
    empty = chat(["> go to desk 1 =>"] * 3 + ["=>"] * 2 + ["> use lamp 1 =>"], hint=HINT)
    assert empty.threads[0].sequence.text.count(HINT) == 2
    assert empty.reward == 1


def test_after_ten_hints_the_task_has_failed():
    episode = chat(["> go to desk 1 =>"] * 99, hint=HINT)
    assert episode.threads[0].sequence.text.count(HINT) == HINTS + 1  # and the one of the start
    assert episode.usage.calls == HINTS + 2
    assert episode.status is Status.ENDED


def test_the_talk_ends_with_the_rounds_or_when_the_assistant_says_so():
    turns = [f"> go to desk {1 + n % 2} =>" for n in range(9)]
    assert chat(turns, rounds=5).status is Status.OUT_OF_CALLS
    assert chat(["think: no. Task failed!\n#END#"] * 9).usage.calls == 1
    assert chat(["=>"] * 9).usage.calls == 4  # an empty line is nothing that could be taken


def test_an_end_mark_ends_no_talk():
    """In AutoGen's code "TERMINATE" alone does; ReAct's examples end with the mark."""
    said = ["think: It is on. Task completed! =>", "#END#", "> use lamp 1 =>"]
    episode = chat(said)
    assert (episode.usage.calls, episode.reward) == (3, 1)
    assert chat(["#END#"] * 9).usage.calls == 4
    assert chat(["> use lamp 1 #END#"]).reward == 1  # what the message asks for is done
    assert chat(["> use lamp 1\n =>"]).reward == 1


@pytest.mark.alfworld
@pytest.mark.usefixtures("alfworld_process")
@pytest.mark.parametrize("agents", [2, 3])
def test_its_examples_are_reacts_and_win_their_games(agents):
    method = load_method(f"alfchat, {agents} agents", "alfworld-heat")
    react = load_prompt("react/alfworld-heat")
    assert method.prompt.examples == react.examples
    assert method.prompt.instructions.startswith("You act in a household")
    examples, hint = speak_examples([method.prompt]), method.fixed["program"].keywords["hint"]

    def speak(text):
        return examples(text.replace(f"{hint}\n", "", 1) if hint else text)

    env = ShownGame("heat-108")
    episode = method(ScriptedEngine(speak), env, seed=0, path=None).run(progress=False)
    assert env.won
    assert episode.reward == 1
    assert episode.header["program"]["name"] == "alfchat"


@pytest.mark.parametrize("kind", ["pick", "clean", "heat", "cool", "look", "pick2"])
def test_each_type_of_task_has_its_hint(kind):
    two, three = (load_method(f"alfchat, {n} agents", f"alfworld-{kind}") for n in (2, 3))
    assert two.fixed["program"].keywords["hint"] == ""
    assert three.fixed["program"].keywords["hint"].startswith("Hint: ")
    assert two.fixed["program"].keywords["rounds"] == 50


@pytest.mark.parametrize("agents", [2, 3])
def test_without_a_type_of_task_the_prompt_is_missed(agents):
    names = "'react/alfworld'; known: react/alfworld-clean, .*react/alfworld-pick2. Or"
    with pytest.raises(FileNotFoundError, match=f"there is no prompt {names}"):  # of no other
        load_method(f"alfchat, {agents} agents", "alfworld")
