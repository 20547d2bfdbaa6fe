"""SF_Chat: the same machines, whose instructions stay in the history of one model."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from helpers.programs import run, world

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.machine import MACHINES
from thread_kit.envs.textcraft.machine import MACHINE
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.sf_chat import THOUGHT, Instruct, as_chat, respond
from thread_kit.methods.state_outputs import Agent, list_agents
from thread_kit.methods.stateflow import stateflow
from thread_kit.prompts import load_instructions
from thread_kit.requests import Status
from thread_kit.session.session import Session

REPLIES = (
    "It takes 9 bone meal, 3 of a bone. #END#",
    *("> get 3 bone =>",),
    *("> craft 3 bone meal using 1 bone =>", "I have 3 of 9. #END#") * 3,
    "> craft 1 bone block using 9 bone meal =>",
)


def read_history() -> tuple[list[str], str]:
    """What the model read at each call of a won game, and the history at its end."""
    read = []
    left = iter(REPLIES)

    def speak(text: str) -> str:
        read.append(text)
        return next(left)

    episode = run("sf_chat", speak, "bone block")
    assert (episode.reward, episode.status) == (1, Status.ENDED)
    assert len(episode.threads) == 1
    return read, episode.threads[0].sequence.text


def test_the_instructions_of_the_agents_stay_in_the_history_of_one_model():
    """StateFlow paper, appendix A.3: appended to the history, imitating a user's reply."""
    read, history = read_history()
    sections = load_instructions("stateflow/textcraft")
    for state, times in {"Observe": 1, "Solve": 5, "Verify": 3, "Error": 0}.items():
        body = sections[state].instructions.strip()
        message = f"[{state}]\nPrompt:\n{body}\n\nResponse:\n#START#\n"
        assert history.count(message) == times, state
    for earlier, later in itertools.pairwise(read):
        assert later.startswith(earlier)  # nothing is evaluated twice
    first = read[0]
    assert "\nthink: I look at what there is.\n> inventory =>" in first  # the form of a reply
    assert first.startswith(sections["Solve"].opening)
    assert first.count(sections["Solve"].opening) == 1


def test_no_examples_of_whole_episodes_are_read():
    method = load_method("sf_chat", "textcraft")
    assert method.prompt.examples == ()
    stateflow_agents = load_method("stateflow", "textcraft").fixed["prompts"]
    assert method.fixed["prompts"] == stateflow_agents


def test_a_machine_is_described_in_the_trace_by_what_it_says():
    program = partial(stateflow, machine=as_chat(MACHINE))
    session = Session(ScriptedEngine([]), world(), program=program, scope="none")
    states = session.episode.header["program"]["machine"]["states"]
    assert states["Init"]["outputs"] == [
        {"name": "Prompter", "text": THOUGHT.text},
        {"name": "ToolCall", "action": "inventory"},
    ]
    assert states["Verify"]["next"]["otherwise"] == "Solve"


@pytest.mark.parametrize("machine", [MACHINE, *MACHINES.values()])
def test_the_machine_is_the_same_but_for_its_agents(machine):
    chat = as_chat(machine)
    assert chat.states.keys() == machine.states.keys()
    assert list_agents(chat) == ()
    for name, state in machine.states.items():
        outputs = iter(chat.states[name].outputs)
        if name == machine.start:
            assert next(outputs) is THOUGHT
        assert chat.states[name].next is state.next
        for output in state.outputs:
            if isinstance(output, Agent):
                own = Agent(output.prompt, output.is_heard)  # what it reads is the one model's
                assert next(outputs) == Instruct(own)
                assert next(outputs) is respond
            else:
                assert next(outputs) is output
        assert next(outputs, None) is None
