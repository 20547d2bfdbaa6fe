"""StateFlow: states, agents, output functions, transitions by string and by model, its end."""

from __future__ import annotations

import re
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import Lock, play

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.episode_facts import list_states
from thread_kit.methods.common import NO_ACTION
from thread_kit.methods.react import react
from thread_kit.methods.sf_chat import respond
from thread_kit.methods.state_outputs import (
    Agent,
    Execute,
    Naming,
    Prompter,
    ToolCall,
    execute,
)
from thread_kit.methods.state_transitions import ModelCheck, StringMatching, go_to
from thread_kit.methods.stateflow import History, Machine, State, stateflow
from thread_kit.prompts import Example, Prompt, parse_instructions
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.events import Acted, GeneratedSpan, Instructed, Returned

JUDGE = Prompt("judge", (Example("judge", "#END#"),))

OPENING = Machine(
    {
        "Init": State((ToolCall("look"),), go_to("Try")),
        "Try": State(
            (Prompter("[Try] Open it."), respond, execute),
            StringMatching({"opens": "End", "Nothing": "Error"}, "Try"),
        ),
        "Error": State((Prompter("[Error] Why?"), respond), go_to("Try")),
    }
)


class SilentLock(Lock):
    """Never says that the task is over."""

    def step(self, action):
        return super().step(action)._replace(terminated=False)


def played(machine, replies, *, turns=60, prompts=(), env=None):
    program = partial(stateflow, machine=machine, turns=turns)
    return play(program, replies, prompts=prompts, env=env or Lock())


def test_a_machine_goes_by_strings_from_state_to_state():
    episode = played(OPENING, ["> push =>", "It wants to be opened. =>", "> open =>"])
    assert episode.threads[0].sequence.text == (
        "> look =>Nothing happens.<=\n"
        "[Try] Open it.\n> push =>Nothing happens.<=\n"
        "[Error] Why?\nIt wants to be opened. =>\n"
        "[Try] Open it.\n> open =>It opens.<=\n"
    )
    assert episode.status is Status.ENDED
    assert episode.reward == 1
    texts = [event.span.text for event in of_kind(episode, Instructed)]
    assert texts == [
        "> look =>",
        "[Try] Open it.\n",
        "[Error] Why?\n",
        "\n[Try] Open it.\n",
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
    episode = played(machine, ["fine =>"])
    assert (episode.status, episode.usage.calls) == (Status.ENDED, 1)


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
    episode = played(machine, replies, prompts=[JUDGE], env=SilentLock())
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
    with pytest.raises(ValueError, match="starts in 'Start'; give one of its states: Init"):
        Machine({"Init": State((), go_to("End"))}, start="Start")
    episode = played(Machine({"Init": State((), go_to("Elsewhere"))}), [])
    assert episode.status is Status.FAILED
    assert "leads to 'Elsewhere'; it is neither a state" in episode.detail


# Agents, each with the prompt of its state

PROMPTS = parse_instructions("Open it.\n\n[Look]\nLook at it.\n\n[Try]\nTry something.\n")

LOOKING = Machine(
    {
        "Look": State((Agent(),), go_to("Try"), instead="Try"),
        "Try": State((Agent(), execute), StringMatching({"opens": "End"}, "Try")),
    },
    start="Look",
    repeats=3,
)


def play_agents(machine, replies, *, agents=PROMPTS, **options):
    program = partial(stateflow, machine=machine, agents=agents)
    prompts = list(agents.values())
    return play(program, replies, prompts=prompts, env=options.pop("env", None) or SilentLock())


def test_each_state_speaks_by_its_own_prompt_and_hears_what_all_have_said():
    read = []
    replies = iter(["It is a lock. #END#", "think: hm.\n> push =>", "> open =>"])

    def speak(text):
        read.append(text)
        return next(replies)

    episode = play_agents(LOOKING, speak)
    task = "Prompt:\nA lock.\nTask: open it."
    end = "\n\nResponse:\n#START#\n"
    tried = "It is a lock.\nthink: hm.\n> push =>Nothing happens.<="
    assert read == [
        f"Open it.\nLook at it.\n\n\n{task}{end}",
        f"Open it.\nTry something.\n\n\n{task}\nIt is a lock.{end}",
        f"Open it.\nTry something.\n\n\n{task}\n{tried}{end}",
    ]
    assert episode.threads[0].sequence.text == (
        "[Look] It is a lock.\n"
        "[Try] think: hm.\n> push =>Nothing happens.<=\n"
        "[Try] > open =>It opens.<=\n"
    )
    assert episode.status is Status.ENDED


def test_the_main_thread_of_a_machine_calls_no_model():
    episode = play_agents(LOOKING, ["a lock #END#", "> open #END#"])
    assert episode.threads[0].usage.calls == 0
    assert episode.usage.calls == 2
    assert [thread.depth for thread in episode.threads.values()] == [0, 1, 1]


def test_what_an_agent_is_asked_for_alone_is_heard_by_nobody():
    hidden = State((Agent(is_heard=False), Naming("word")), go_to("Try"))
    machine = Machine({**LOOKING.states, "Look": hidden}, start="Look")
    episode = play_agents(machine, ["Object: a secret. #END#", "> open =>"])
    assert "secret" in episode.threads[0].sequence.text
    assert "secret" not in episode.threads[2].context.text


def test_a_state_without_a_prompt_is_named():
    episode = play_agents(LOOKING, [], agents={})
    assert episode.status is Status.FAILED
    assert "the state 'Look' has no prompt" in episode.detail


def test_a_reply_of_an_agent_that_is_cut_ends_the_machine_with_its_reason():
    program = partial(stateflow, machine=LOOKING, agents=PROMPTS)
    session = Session(
        *(ScriptedEngine(["a long story"]), SilentLock()),
        program=program,
        prompts=list(PROMPTS.values()),
        scope="none",
        new_tokens=3,
    )
    assert session.run(progress=False).status is Status.TRUNCATED


def test_an_episode_of_agents_is_forked_at_any_event():
    replies = ["It is a lock. #END#", "> push =>", "> open =>"]
    program = partial(stateflow, machine=LOOKING, agents=PROMPTS)
    made = {"program": program, "prompts": list(PROMPTS.values()), "scope": "none"}
    session = Session(ScriptedEngine(replies), Lock(), **made)
    episode = session.run(progress=False)
    for at in range(len(episode.events) - 1):
        again = session.fork(at, engine=ScriptedEngine(replies[episode_calls(episode, at) :]))
        assert again.run(progress=False).threads[0].sequence == episode.threads[0].sequence


def episode_calls(episode, at):
    return sum(isinstance(event, GeneratedSpan) for event in episode.events[:at])


def test_a_person_can_change_what_an_agent_has_replied():
    replies = ["It is a lock. #END#", "> push =>", "> push =>", "> push =>"]
    program = partial(stateflow, machine=LOOKING, agents=PROMPTS)
    made = {"program": program, "prompts": list(PROMPTS.values()), "scope": "none"}
    session = Session(ScriptedEngine(replies), Lock(), **made)
    episode = session.run(progress=False)
    at = [i for i, event in enumerate(episode.events) if isinstance(event, Returned)][1]
    forked = session.fork(at, returned="> open", engine=ScriptedEngine([]))
    assert forked.run(progress=False).reward == 1


# The end


def test_the_environment_ends_the_machine_whatever_the_state_waits_for():
    machine = Machine({"Try": State((Agent(), execute), go_to("Try"))}, start="Try")
    assert play_agents(machine, ["> push =>", "> open =>"], env=Lock()).status is Status.ENDED


def test_an_episode_that_the_environment_has_cut_short_is_over_as_well():
    class Short(SilentLock):
        def step(self, action):
            return super().step(action)._replace(truncated=True)

    machine = Machine({"Try": State((Agent(), execute), go_to("Try"))}, start="Try")
    episode = play_agents(machine, ["> push =>"], env=Short())
    assert episode.status is Status.ENDED
    assert episode.usage.calls == 1


def test_the_same_reply_three_times_in_a_row_ends_the_machine():
    same = ["look #END#", "> push =>", "> pull =>", *["> push =>"] * 3]
    episode = play_agents(LOOKING, same)
    assert episode.status is Status.ENDED
    assert len(of_kind(episode, Acted)) == 5


def test_the_same_reply_may_come_again_where_the_machine_does_not_mind():
    machine = Machine(LOOKING.states, start="Look")
    same = ["look #END#", *["> push =>"] * 5, "> open =>"]
    assert len(of_kind(play_agents(machine, same), Acted)) == 6


def test_the_trace_tells_the_last_state():
    assert list_states(play_agents(LOOKING, ["> push #END#"] * 3))[-1] == "Try"
    assert list_states(play_agents(LOOKING, ["[End] #END#"] * 3))[-1] == "Try"
    assert list_states(played(OPENING, ["> push =>", "[Nowhere] =>"], turns=3))[-1] == "Error"
    assert list_states(play(react, ["[Try] #END#"], prompts=[])) is None


# Transitions


def decide(transition, replies, *, env=None):
    """The states that a machine visits which tries until the transition goes elsewhere."""
    states = {"Try": State((Agent(), Execute(nearest=False)), transition)}
    states |= {name: State((Prompter(f"[{name}]"),), go_to("End")) for name in ("A", "B")}
    machine = Machine(states, start="Try")
    text = play_agents(machine, replies, env=env).threads[0].sequence.text
    return re.findall(r"^\[(\w+)\]", text, re.MULTILINE)


def test_what_a_model_writes_moves_no_state_that_acts():
    transition = StringMatching({"opens|Nothing": "A"}, "Try")
    assert decide(transition, ["It opens. =>", "> push =>"]) == ["Try", "Try", "A"]


def test_an_older_observation_moves_nothing_either():
    transition = StringMatching({"Nothing": "A"}, "B")
    states = {
        "Look": State((ToolCall("look"),), go_to("Try")),
        "Try": State((Agent(), execute), transition),
        **{name: State((Prompter(f"[{name}]"),), go_to("End")) for name in ("A", "B")},
    }
    text = play_agents(Machine(states, start="Look"), ["no action #END#"])
    assert "[B]" in text.threads[0].sequence.text


def test_the_action_decides_where_the_observation_does_not():
    transition = StringMatching({"opens": "A"}, "Try", actions={"(?i)^PULL": "B"})
    assert decide(transition, ["> pull it =>"]) == ["Try", "B"]
    assert decide(transition, ["pull it =>", "> open =>"]) == ["Try", "Try", "A"]


def test_an_empty_observation_is_one_and_no_action_has_none():
    class Silent(SilentLock):
        def step(self, action):
            return super().step(action)._replace(observation="")

    transition = StringMatching({"^$": "A"}, "B")
    assert decide(transition, ["> touch it =>"], env=Silent()) == ["Try", "A"]
    assert decide(transition, ["touch it =>"], env=Silent()) == ["Try", "B"]


def test_a_function_of_ones_own_decides_as_well():
    def by_length(history):
        yield from ()
        return "A" if len(history.action) > 4 else "Try"

    assert decide(by_length, ["> pull =>", "> push it =>"]) == ["Try", "Try", "A"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("mug", "mug"),
        ("Object: mug", "mug"),
        ("Object of interest: Mug.", "mug"),
        ("It is about a mug.", "mug"),
        ("think: of this\nObject: the mug", "mug"),
        ("", ""),
        ("...", ""),
    ],
)
def test_a_name_is_the_last_word_that_was_said(said, name):
    history = History(None, {}, "Init")
    history.add_reply(said)
    assert list(Naming("object")(history)) == []
    assert history.names == {"object": name}


def test_patterns_call_names_and_one_that_nobody_knows_matches_nothing():
    transition = StringMatching({r"take the {object} \d{1}": "A", "take the": "B"}, "Try")
    for names, state in (({"object": "mug"}, "A"), ({"object": "m.g"}, "B"), ({}, "B")):
        history = History(None, {}, "Try", message="You take the mug 1.", names=names)
        with pytest.raises(StopIteration) as stop:
            next(transition(history))
        assert stop.value.value == state


# States that are left out


def test_a_state_that_is_left_out_is_gone_and_transitions_to_it_lead_elsewhere():
    machine = LOOKING.without("Look")
    assert list(machine.states) == ["Try"]
    assert play_agents(machine, ["> open =>"]).usage.calls == 1
    assert list(LOOKING.states) == ["Look", "Try"]


def test_several_states_can_be_left_out_of_which_one_leads_to_the_other():
    a = State((Prompter("a"),), go_to("B"), instead="B")
    b = State((Prompter("b"),), go_to("C"), instead="C")
    c = State((Prompter("c"),), go_to("End"))
    machine = Machine({"Init": State((), go_to("A")), "A": a, "B": b, "C": c})
    for names in (("A", "B"), ("B", "A")):
        assert played(machine.without(*names), []).threads[0].sequence.text == "c\n"
    assert machine.without("A").without("B") == machine.without("A", "B")


@pytest.mark.parametrize("name", ["Try", "Nowhere", "End"])
def test_a_state_that_cannot_be_left_out_is_named_with_those_that_can(name):
    with pytest.raises(ValueError, match=f"'{name}' cannot be left out; those that can: Look"):
        LOOKING.without(name)
