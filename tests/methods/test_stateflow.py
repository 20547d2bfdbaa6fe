"""StateFlow: states, output functions, transitions by string and by model, its end."""

from __future__ import annotations

from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import GOALS, Lock, play, run, world

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.methods.react import NO_ACTION
from thread_kit.methods.state_machines import MACHINES
from thread_kit.methods.stateflow import (
    Agent,
    Machine,
    ModelCheck,
    Prompter,
    State,
    StringMatching,
    ToolCall,
    acknowledge,
    execute,
    go_to,
    respond,
    stateflow,
)
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import Example, Prompt, load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.events import Acted, Instructed

JUDGE = Prompt("judge", (Example("judge", "#END#"),))

OPENING = Machine(
    {
        "Init": State((ToolCall("look"),), go_to("Try")),
        "Try": State(
            (Prompter("[Try] Open it."), respond, execute),
            StringMatching({"opens": "End", "Nothing": "Error"}, "Try"),
        ),
        "Error": State((Prompter("[Error] Why?"), respond, acknowledge), go_to("Try")),
    }
)


def played(machine, replies, *, turns=60, prompts=(), env=None):
    program = partial(stateflow, machine=machine, turns=turns)
    return play(program, replies, prompts=prompts, env=env or Lock())


def test_a_machine_goes_by_strings_from_state_to_state():
    episode = played(OPENING, ["> push =>", "It wants to be opened. =>", "> open =>"])
    assert episode.threads[0].sequence.text == (
        "> look =>Nothing happens.<=\n"
        "[Try] Open it.\n> push =>Nothing happens.<=\n"
        "[Error] Why?\nIt wants to be opened. =>OK.<=\n"
        "[Try] Open it.\n> open =>It opens.<=\n"
    )
    assert episode.status is Status.ENDED
    assert episode.reward == 1
    texts = [event.span.text for event in of_kind(episode, Instructed)]
    assert texts == [
        "> look =>",
        "[Try] Open it.\n",
        "[Error] Why?\n",
        "OK.<=\n",
        "[Try] Open it.\n",
    ]


def test_the_first_pattern_that_the_last_message_has_decides():
    machine = Machine(
        {
            "Init": State((respond,), StringMatching({"b": "B", "a": "A"}, "C")),
            "A": State((Prompter("in A"),), go_to("End")),
            "B": State((Prompter("in B"),), go_to("End")),
            "C": State((Prompter("in C"),), go_to("End")),
        }
    )
    for said, state in (("ab =>", "B"), ("a =>", "A"), ("else =>", "C")):
        assert f"in {state}" in played(machine, [said]).threads[0].sequence.text


def test_instructions_of_the_machine_are_no_message():
    """Else the pattern would be found in what the machine itself said."""
    machine = Machine(
        {"Init": State((respond, Prompter("an Error?")), StringMatching({"Error": "Init"}, "End"))}
    )
    assert played(machine, ["fine =>"]).usage.calls == 1


def test_a_machine_ends_after_its_turns():
    episode = played(OPENING, ["> push =>", "Hm. =>"] * 2, turns=4)
    assert episode.status is Status.OUT_OF_CALLS
    assert episode.usage.calls == 3


@pytest.mark.parametrize(("turns", "status"), [(2, Status.ENDED), (1, Status.OUT_OF_CALLS)])
def test_the_last_turn_may_still_end_the_machine(turns, status):
    assert played(OPENING, ["> open =>"], turns=turns).status is status


def test_a_model_with_a_prompt_of_its_own_decides_where_to_go():
    asks = ModelCheck("Is it open?", {"yes": "End", "no": "Try"}, "Try", JUDGE)
    machine = Machine({"Try": State((respond, execute), asks)}, start="Try")
    replies = ["> push =>", "No, it is not.#END#", "> open =>", "YES.#END#"]
    episode = played(machine, replies, prompts=[JUDGE])
    assert [one.prompt == JUDGE.sha256 for one in episode.threads.values()] == [False, True, True]
    assert "> push =>Nothing happens.<=\nIs it open?" in episode.threads[1].context.text
    assert "Is it open? =>No, it is not.<=" in episode.threads[0].sequence.text
    assert episode.reward == 1


def test_an_agent_reads_the_history_with_a_prompt_that_nobody_else_sees():
    machine = Machine(
        {
            "Init": State(
                (ToolCall("look"), Agent(JUDGE), execute), StringMatching({"opens": "End"}, "Init")
            )
        }
    )
    episode = played(machine, ["think: locked.\n> open =>"], prompts=[JUDGE])
    assert "Task: open it.\n> look =>Nothing happens.<=" in episode.threads[1].context.text
    assert [acted.action for acted in of_kind(episode, Acted)] == ["look", "open"]
    assert episode.status is Status.ENDED


def test_what_is_no_action_is_not_executed():
    episode = played(OPENING, ["open it, please =>", "> open =>"])
    assert NO_ACTION in episode.threads[0].sequence.text
    assert [acted.action for acted in of_kind(episode, Acted)] == ["look", "open"]


def test_a_reply_that_is_cut_ends_the_machine_with_its_reason():
    program = partial(stateflow, machine=OPENING)
    session = Session(
        ScriptedEngine(["so long"]), Lock(), program=program, scope="none", new_tokens=3
    )
    assert session.run(progress=False).status is Status.TRUNCATED


def test_a_machine_names_the_state_that_it_lacks():
    with pytest.raises(ValueError, match="'Start', which is none"):
        Machine({"Init": State((), go_to("End"))}, start="Start")
    episode = played(Machine({"Init": State((), go_to("Elsewhere"))}), [])
    assert episode.status is Status.FAILED
    assert "went to 'Elsewhere'" in episode.detail


# TextCraft


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", ["stateflow", "stateflow+reflexion"])
def test_the_examples_are_what_the_machine_and_the_game_make_of_them(name, goal):
    episode = run(name, speak_examples([load_prompt("stateflow/textcraft")]), goal)
    assert episode.reward == 1
    assert episode.status is Status.ENDED


def test_the_examples_visit_every_state():
    shown = load_prompt("stateflow/textcraft").text
    texts = [
        output.text
        for state in MACHINES["textcraft"].states.values()
        for output in state.outputs
        if isinstance(output, Prompter)
    ]
    assert len(texts) == 4
    assert all(text in shown for text in texts)


def test_a_machine_is_described_in_the_trace_by_what_it_says():
    program = partial(stateflow, machine=MACHINES["textcraft"])
    session = Session(ScriptedEngine([]), world(), program=program, scope="none")
    states = session.episode.header["program"]["machine"]["states"]
    assert states["Init"]["outputs"] == [{"name": "ToolCall", "action": "inventory"}]
    assert states["Verify"]["next"]["otherwise"] == "Solve"
