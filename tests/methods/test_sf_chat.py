"""SF_Chat: the same machines, whose instructions stay in the history of one model."""

from __future__ import annotations

from functools import partial

import pytest
from helpers.programs import GOALS, run, world

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.machine import MACHINES
from thread_kit.envs.textcraft.machine import MACHINE
from thread_kit.methods.sf_chat import as_chat
from thread_kit.methods.state_outputs import Agent, Prompter
from thread_kit.methods.stateflow import stateflow
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session


@pytest.mark.parametrize("goal", GOALS)
def test_the_examples_are_what_the_machine_and_the_game_make_of_them(goal):
    prompt = load_prompt("sf_chat/textcraft")
    episode = run("sf_chat", speak_examples([prompt]), goal)
    assert episode.reward == 1
    assert episode.status is Status.ENDED
    example = next(e for e in prompt.examples if e.context.endswith(f"craft {goal}."))
    assert episode.threads[0].sequence.text + "#END#" == example.response


def test_the_examples_visit_every_state():
    shown = load_prompt("sf_chat/textcraft").text
    texts = [
        output.text
        for state in as_chat(MACHINE).states.values()
        for output in state.outputs
        if isinstance(output, Prompter)
    ]
    assert len(texts) == 4
    assert all(text in shown for text in texts)


def test_a_machine_is_described_in_the_trace_by_what_it_says():
    program = partial(stateflow, machine=as_chat(MACHINE))
    session = Session(ScriptedEngine([]), world(), program=program, scope="none")
    states = session.episode.header["program"]["machine"]["states"]
    assert states["Init"]["outputs"] == [{"name": "ToolCall", "action": "inventory"}]
    assert states["Verify"]["next"]["otherwise"] == "Solve"


@pytest.mark.parametrize("machine", [MACHINE, *MACHINES.values()])
def test_no_agent_is_left_and_every_instruction_is_there(machine):
    for state in as_chat(machine).states.values():
        assert not any(isinstance(output, Agent) for output in state.outputs)
        assert not any(getattr(output, "nearest", False) for output in state.outputs)
        prompters = [output for output in state.outputs if isinstance(output, Prompter)]
        assert all(not output.text.endswith("] ") for output in prompters)
