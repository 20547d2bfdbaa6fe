"""ALFWorld's state machines: what StateFlow's paper says of them, and its prompts in real games."""

from __future__ import annotations

import re
from functools import cache

import pytest
from helpers.episodes import of_kind
from helpers.printed import Printed
from helpers.shown_games import SHOWN

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import AlfWorld
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.alfworld.machine import MACHINES, TOOLS
from thread_kit.envs.env import Env, Step
from thread_kit.experiments.episode_facts import list_states
from thread_kit.experiments.method_registry import find_method, load_method, method_slug
from thread_kit.prompts import Prompt, load_instructions, load_prompt
from thread_kit.requests import Status
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted

STATEFLOW = ("stateflow", "stateflow, 10 states")
CHAT = ("sf_chat", "sf_chat, 10 states")


class Room(Env):
    """Answers actions as it is told to; one of them wins."""

    name = "alfworld"

    def __init__(self, task: str, answers: dict[str, str], wins: str = "") -> None:
        self.task = {}
        self.text, self.answers, self.wins = task, answers, wins

    def reset(self) -> str:
        return f"You are in the middle of a room.\nYour task is to: {self.text}."

    def step(self, action: str) -> Step:
        won = action == self.wins
        return Step(self.answers.get(action, "Nothing happens."), float(won), won, False, {})

    def again(self) -> Env:
        return Room(self.text, self.answers, self.wins)

    def oracle(self) -> None:
        return None


MUG = {
    "go to bed 1": "On the bed 1, you see a mug 1.",
    "take mug 1 from bed 1": "You pick up the mug 1 from the bed 1.",
    "put mug 1 in/on desk 1": "You put the mug 1 in/on the desk 1.",
    "take mug 1 from desk 1": "You pick up the mug 1 from the desk 1.",
    "put mug 1 in/on shelf 1": "You put the mug 1 in/on the shelf 1.",
}
OPENING = ("Object: mug =>", "The bed first. =>")
GIVES_UP = ("nothing =>",) * 3


def play(method: str, kind: str, env: Env, replies: tuple[str, ...]) -> Episode:
    left = iter(replies)
    made = load_method(method, f"alfworld-{kind}")
    run = made(ScriptedEngine(lambda text: next(left)), env, seed=0, path=None)
    return run.run(progress=False)


def states(episode: Episode) -> list[str]:
    """The states that a machine visited."""
    text = episode.threads[0].sequence.text
    return re.findall(r"^\[(\w+)\]", text, re.MULTILINE)


def actions(episode: Episode) -> list[str]:
    return [event.action for event in of_kind(episode, Acted)]


# Transitions match what the environment says (appendix B.1), and never the model's own words.


@pytest.mark.parametrize("method", ["stateflow", "sf_chat"])
def test_a_thought_of_a_desklamp_finds_none(method):
    replies = (*OPENING, "> take mug 1 from bed 1 =>", "think: I look for desklamp 1. =>")
    env = Room("look at mug under the desklamp", MUG)
    visited = states(play(method, "look", env, (*replies, *GIVES_UP)))
    assert visited == ["Init", "Plan", "Pick", "FindLamp", "FindLamp", "FindLamp", "FindLamp"]


@pytest.mark.parametrize("method", ["stateflow, 10 states", "sf_chat, 10 states"])
def test_the_name_of_a_sinkbasin_brings_nobody_there(method):
    replies = (*OPENING, "> go to bed 1 =>", "> take mug 1 from bed 1 =>", "go to sinkbasin 1 =>")
    env = Room("put a clean mug in shelf", MUG)
    visited = states(play(method, "clean", env, (*replies, *GIVES_UP)))
    assert visited == ["Init", "Plan", "Find", "Take", *["GoProcess"] * 4]


# The end (appendix B.1): the environment says so, or the same reply comes three times.


@pytest.mark.parametrize("method", ["stateflow", "sf_chat"])
def test_what_is_put_into_a_wrong_place_ends_nothing(method):
    replies = ("> take mug 1 from bed 1 =>", "> put mug 1 in/on desk 1 =>")
    env = Room("put a mug in shelf", MUG, wins="put mug 1 in/on shelf 1")
    mended = ("> take mug 1 from desk 1 =>", "> put mug 1 in/on shelf 1 =>")
    episode = play(method, "pick", env, (*OPENING, *replies, *mended))
    assert states(episode) == ["Init", "Plan", "Pick", "Put", "Put", "Put"]
    assert episode.reward == 1
    assert episode.status is Status.ENDED


@pytest.mark.parametrize("method", ["stateflow", "sf_chat"])
def test_a_lamp_that_does_not_solve_the_task_ends_nothing(method):
    answers = {
        **MUG,
        "go to desk 1": "On the desk 1, you see a desklamp 1.",
        "use desklamp 1": "You turn on the desklamp 1.",
    }
    replies = ("> take mug 1 from bed 1 =>", "> go to desk 1 =>", "> use desklamp 1 =>")
    env = Room("look at mug under the desklamp", answers, wins="go to bed 1")
    episode = play(method, "look", env, (*OPENING, *replies, "> go to bed 1 =>"))
    assert states(episode)[2:] == ["Pick", "FindLamp", "UseLamp", "UseLamp"]
    assert episode.reward == 1


@pytest.mark.parametrize("method", STATEFLOW)
def test_the_same_reply_three_times_ends_the_game(method):
    env = Room("put a mug in shelf", {})
    episode = play(method, "pick", env, (*OPENING, *["> go to bed 9 =>"] * 3))
    assert episode.status is Status.ENDED
    assert episode.reward == 0
    assert list_states(episode)[-1] in ("Pick", "Find")


# The object is named by a call of its own, and string-matched (section 4.2).


@pytest.mark.parametrize(
    "named", ["The object is: mug.", "It is about a mug.", "Object: Mug", "mug"]
)
@pytest.mark.parametrize("method", ["stateflow", "sf_chat"])
def test_an_object_is_known_however_it_is_named(method, named):
    env = Room("put a mug in shelf", MUG, wins="put mug 1 in/on shelf 1")
    replies = ("> take mug 1 from bed 1 =>", "> put mug 1 in/on shelf 1 =>")
    episode = play(method, "pick", env, (f"{named} =>", "The bed first. =>", *replies))
    assert states(episode) == ["Init", "Plan", "Pick", "Put"]


def test_the_call_that_names_the_object_reads_the_task_and_is_read_by_nobody():
    episode = play("stateflow", "pick", Room("put a mug in shelf", MUG), (*OPENING, *GIVES_UP))
    first, *others = list(episode.threads.values())[1:]
    assert episode.dialect.asked(first.context.text) == "Your task is to: put a mug in shelf."
    assert all("Object" not in thread.context.text for thread in others)
    assert "Object: mug" in episode.threads[0].sequence.text


# The nearest admissible action (section 4.2)


@pytest.mark.parametrize(
    ("reply", "done"),
    [
        ("> go to the bed =>", "On the bed 1, "),
        ("go to bed 1 =>", "On the bed 1, "),
        ("think: to bed.\nGo to bed 1 now =>", "On the bed 1, "),
        ("> open drawer 1 =>", "You open the drawer 1."),
    ],
)
def test_what_is_no_action_is_taken_for_the_valid_one_most_like_it(reply, done, alfworld_process):
    env = AlfWorld("generated", "pick-100")
    replies = ("Object: pen =>", "The bed. =>", "> go to drawer 1 =>", reply, *GIVES_UP)
    episode = play("stateflow", "pick", env, replies)
    acted = of_kind(episode, Acted)[1]
    assert acted.observation.startswith(done)
    assert (acted.info.get("done", acted.action) == "go to bed 1") is (" bed" in reply)
    assert "nearest" not in env.task


def test_the_settings_of_an_episode_say_that_the_nearest_action_is_taken():
    for method in (*STATEFLOW, *CHAT):
        room = Room("put a mug in shelf", {})
        header = play(method, "pick", room, (*OPENING, *GIVES_UP)).header
        outputs = [
            output
            for state in header["program"]["machine"]["states"].values()
            for output in state["outputs"]
        ]
        assert {"name": "Execute", "nearest": True} in outputs


# The paper's states, transitions and actions (Figures 5 and 8, appendix B.1, Tables 11 to 13)

SEEN = "On the {}, you see a {}."
PICK = "You pick up the {} from the {}."
PUT = "You put the {} in/on the {}."
PRINTED = {
    "heat": (
        "put a hot apple in fridge",
        "apple",
        [
            ("Pick", "go to fridge 1", "The fridge 1 is closed."),
            ("Pick", "open fridge 1", "You open the fridge 1. In it, you see nothing."),
            (
                "Pick",
                "go to diningtable 1",
                SEEN.format("diningtable 1", "tomato 1, and a apple 1"),
            ),
            ("Pick", "take tomato 1 from diningtable 1", PICK.format("tomato 1", "diningtable 1")),
            (
                "Pick_Error",
                "put tomato 1 in/on diningtable 1",
                PUT.format("tomato 1", "diningtable 1"),
            ),
            ("Pick", "take apple 1 from diningtable 1", PICK.format("apple 1", "diningtable 1")),
            ("Process", "go to microwave 1", "The microwave 1 is closed."),
            (
                "Process",
                "heat apple 1 with microwave 1",
                "You heat the apple 1 using the microwave 1.",
            ),
            ("Put", "go to fridge 1", "The fridge 1 is open. In it, you see nothing."),
            ("Put", "put apple 1 in/on fridge 1", PUT.format("apple 1", "fridge 1")),
        ],
    ),
    "cool": (
        "cool some pan and put it in stoveburner",
        "pan",
        [
            ("Pick", "go to stoveburner 1", SEEN.format("stoveburner 1", "pan 1")),
            ("Pick", "take pan 1 from stoveburner 1", PICK.format("pan 1", "stoveburner 1")),
            ("Process", "go to fridge 1", "The fridge 1 is closed."),
            ("Process", "cool pan 1 with fridge 1", "You cool the pan 1 using the fridge 1."),
            ("Put", "go to stoveburner 1", SEEN.format("stoveburner 1", "pot 1")),
            ("Put", "put pan 1 in/on stoveburner 1", PUT.format("pan 1", "stoveburner 1")),
        ],
    ),
    "clean": (
        "put a clean lettuce in diningtable",
        "lettuce",
        [
            (
                "Pick",
                "take lettuce 1 from diningtable 1",
                PICK.format("lettuce 1", "diningtable 1"),
            ),
            ("Process", "go to sinkbasin 1", SEEN.format("sinkbasin 1", "cup 1")),
            (
                "Process",
                "clean lettuce 1 with sinkbasin 1",
                "You clean the lettuce 1 using the sinkbasin 1.",
            ),
            ("Put", "go to diningtable 1", SEEN.format("diningtable 1", "fork 1")),
            ("Put", "put lettuce 1 in/on diningtable 1", PUT.format("lettuce 1", "diningtable 1")),
        ],
    ),
    "pick": (
        "put some spraybottle on toilet",
        "spraybottle",
        [
            ("Pick", "go to cabinet 1", "The cabinet 1 is closed."),
            (
                "Pick",
                "take spraybottle 2 from cabinet 2",
                PICK.format("spraybottle 2", "cabinet 2"),
            ),
            ("Put", "go to toilet 1", SEEN.format("toilet 1", "soapbottle 4")),
            ("Put", "put spraybottle 2 in/on toilet 1", PUT.format("spraybottle 2", "toilet 1")),
        ],
    ),
    "look": (
        "examine the pen with the desklamp",
        "pen",
        [
            ("Pick", "take pen 1 from drawer 1", PICK.format("pen 1", "drawer 1")),
            ("FindLamp", "go to dresser 1", SEEN.format("dresser 1", "statue 2")),
            (
                "FindLamp",
                "go to sidetable 2",
                SEEN.format("sidetable 2", "desklamp 3, a newspaper 1, and a statue 2"),
            ),
            ("UseLamp", "use desklamp 3", "You turn on the desklamp 3."),
        ],
    ),
    "pick2": (
        "put two creditcard in dresser",
        "creditcard",
        [
            ("Pick", "take creditcard 1 from drawer 1", PICK.format("creditcard 1", "drawer 1")),
            ("Put", "go to dresser 1", SEEN.format("dresser 1", "vase 1")),
            ("Put", "put creditcard 1 in/on dresser 1", PUT.format("creditcard 1", "dresser 1")),
            ("Pick", "take creditcard 2 from drawer 2", PICK.format("creditcard 2", "drawer 2")),
            ("Put", "go to dresser 1", SEEN.format("dresser 1", "creditcard 1")),
            ("Put", "put creditcard 2 in/on dresser 1", PUT.format("creditcard 2", "dresser 1")),
        ],
    ),
}
"""By task type: a task of Table 11, its object, and the states with their actions.

The actions have the forms of Tables 12 and 13, many of them to the letter (pick: spraybottle 2;
Pick_Error: tomato 1; heat: apple 1; cool: pan 1; clean: lettuce 1; look: desklamp 3), and the
states are those that are active for the type (Figure 8).
"""


def go_through(kind, task, name, steps):
    plan = "Plan: I need to 1. search around for it and take it. I can check one by one."
    replies = (f"Object: {name} #END#", f"{plan} #END#", *(f"> {a} =>" for _, a, _ in steps))
    history = Room(task, {}).reset()
    env = Printed(history, [(action, answer) for _, action, answer in steps], wins=True)
    episode = play("stateflow", kind, env, replies)
    # Each agent reads the task and what was said and seen since, and nothing of another agent; the
    # one that names the object the task's line alone.
    asked = [episode.dialect.asked(t.context.text) for t in list(episode.threads.values())[1:]]
    assert asked[:2] == [history.rpartition("\n")[2], history]
    history += f"\n{plan}"
    for context, (_, action, answer) in zip(asked[2:], steps, strict=True):
        assert context == history
        history += f"\n> {action} =>{answer}<="
    assert states(episode) == ["Init", "Plan", *(state for state, _, _ in steps)]
    assert actions(episode) == [action for _, action, _ in steps]
    assert (episode.reward, episode.status) == (1, Status.ENDED)
    prompts = [p["name"] for p in episode.header["prompts"].values() if p["text"]]
    read = [episode.header["prompts"][t.prompt]["name"] for t in list(episode.threads.values())[1:]]
    assert set(read) <= set(prompts)
    assert [name.rpartition(": ")[2].split()[0] for name in read] == states(episode)


@pytest.mark.parametrize("kind", PRINTED)
def test_the_machine_goes_through_the_papers_states(kind):
    go_through(kind, *PRINTED[kind])


def test_both_wordings_of_a_put_lead_on():
    """The engine's is "You move ...", the papers' "You put ..." (`wording` of `AlfWorld`)."""
    task, name, steps = PRINTED["heat"]
    moved = [(state, do, seen.replace("You put", "You move")) for state, do, seen in steps]
    assert moved != steps
    go_through("heat", task, name, moved)


@pytest.mark.parametrize("kind", KINDS)
def test_the_states_are_those_of_figures_7_and_8(kind):
    middle = ["Process"] if kind in TOOLS else []
    end = ["FindLamp", "UseLamp"] if kind == "look" else ["Put"]
    seven = ["Init", "Plan", "Pick", "Pick_Error", *middle, *end]
    assert list(MACHINES[f"alfworld-{kind}"].states) == seven
    divided = {
        "Pick": ["Find", "Take"],
        "Process": ["GoProcess", "Process"],
        "Put": ["GoPut", "Put"],
    }
    ten = [part for state in seven for part in divided.get(state, [state])]
    assert list(MACHINES[f"alfworld-{kind}-split"].states) == ten


# States that are left out


@pytest.mark.parametrize(
    "name", ["stateflow, no_plan", "stateflow, 10 states, no_plan, no_pick_error"]
)
def test_states_are_left_out_by_name(name):
    method = load_method(name, "alfworld-heat")
    assert method.name == name
    assert "Plan" not in method.fixed["program"].keywords["machine"].states
    slug = method_slug(name)
    assert find_method(slug) == name == load_method(slug, "alfworld-heat").name
    with pytest.raises(ValueError, match="there is no method 'stateflow-no_plan-no_such'"):
        find_method("stateflow-no_plan-no_such")


def test_without_pick_error_a_wrong_pick_stays_in_pick():
    env = Room("put a cup in shelf", MUG)
    replies = ("Object: cup =>", "The bed. =>", "> take mug 1 from bed 1 =>", *GIVES_UP)
    visited = states(play("stateflow, no_pick_error", "pick", env, replies))
    assert visited == ["Init", "Plan", *["Pick"] * 4]


# The prompts of the agents, in the real games

ACTION = re.compile(r"^> (.+?) =>$", re.MULTILINE)


@cache
def sections() -> dict[str, Prompt]:
    """All sections, those of the machine of ten states behind a star."""
    split = load_instructions("stateflow/alfworld-split")
    own = load_instructions("stateflow/alfworld")
    return own | {f"{name}*": prompt for name, prompt in split.items()}


@cache
def won() -> dict[str, list[tuple[str, list[tuple[str, str]]]]]:
    """By type, the games and steps of ReAct's examples, which are proved by the real engine."""
    step = re.compile(r"^> (.+?) =>(.*?)<=$", re.MULTILINE)
    return {
        kind: [
            (example.context, step.findall(example.response))
            for example in load_prompt(f"react/alfworld-{kind}").examples
        ]
        for kind in KINDS
    }


def test_an_agent_reads_less_than_four_hundred_tokens():
    """The longest instruction of the paper has 400 (section 4.1); a token has 3 to 4 characters."""
    assert max(len(prompt.text) for prompt in sections().values()) < 1200


def test_no_agent_reads_another_ones_instruction():
    texts = [prompt.text.partition("## Instructions\n")[2] for prompt in sections().values()]
    assert all(text for text in texts)
    for text in texts:
        assert not any(
            text.partition("\n")[0] in other for other in texts if other is not text
        ) or (text.startswith("Make a plan"))


def test_every_section_is_read_by_the_agent_of_some_type():
    read = set()
    for method in STATEFLOW:
        for kind in KINDS:
            made = load_method(method, f"alfworld-{kind}")
            read |= {prompt.text for prompt in made.fixed["prompts"]}
    assert read == {prompt.text for prompt in sections().values()}


@pytest.mark.alfworld
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", STATEFLOW)
def test_a_game_of_the_examples_is_won_by_actions_as_the_states_show_them(
    method, kind, alfworld_process
):
    """In the real game; an agent takes no action of a kind that its own prompt does not show."""
    example = STATEFLOW.index(method)
    _, steps = won()[kind][example]
    obj = next(action.split()[1] for action, _ in steps if action.startswith("take "))
    replies = (f"Object: {obj} #END#", "Plan: ... #END#", *(f"> {a} =>" for a, _ in steps))
    env = AlfWorld("generated", SHOWN[kind][example])
    episode = play(method, kind, env, replies)
    assert env.won
    assert actions(episode) == [action for action, _ in steps]
    prompts = episode.header["prompts"]
    for thread, action in zip(list(episode.threads.values())[3:], actions(episode), strict=True):
        read = prompts[thread.prompt]["text"]
        own = {shown.split()[0] for shown in ACTION.findall(read)}
        assert action.split()[0] in own, (prompts[thread.prompt]["name"], action)


def test_every_action_that_an_instruction_shows_is_one_of_a_won_game_or_of_a_wrong_pick():
    known = {action for games in won().values() for _, steps in games for action, _ in steps}
    for name, prompt in sections().items():
        examples = ACTION.findall(prompt.text)
        examples = [action for action in examples if not action.startswith("(")]
        if name != "Pick_Error":
            assert set(examples) <= known, name


@pytest.mark.alfworld
@pytest.mark.parametrize(
    ("game", "place", "thing"),
    [("clean-105", "shelf 2", "soapbar 3"), ("cool-103", "fridge 1", "pan 2")],
)
def test_what_pick_error_puts_back_can_be_taken_and_put_back(game, place, thing, alfworld_process):
    env = AlfWorld("generated", game)
    env.reset()
    env.step(f"go to {place}")
    env.step(f"open {place}")
    assert env.step(f"take {thing} from {place}").observation.startswith("You pick up")
    back = f"put {thing} in/on {place}"
    assert back in ACTION.findall(sections()["Pick_Error"].text)
    assert env.step(back).observation.startswith("You put")


def test_the_examples_of_a_name_stand_in_the_layout_that_the_agent_continues():
    layout = r"^Prompt:\nYour task is to: .*\.\n\nResponse:\n#START#\nObject: (\w+) #END#$"
    shown = re.findall(layout, sections()["Init"].text, re.MULTILINE)
    assert shown == ["mug", "cloth", "mug", "cellphone", "cloth"]
    env = Room("examine the bowl with the desklamp", {})
    episode = play("stateflow", "look", env, OPENING + GIVES_UP)
    asked = episode.threads[1].context.text
    assert asked == f"Prompt:\nYour task is to: {env.text}.\n\nResponse:\n#START#\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_plans_name_places_of_the_room_and_the_one_where_the_object_is(kind):
    text = sections()[f"Plan {kind}"].text
    plans = re.findall(
        r"^Your task is to: (.+?)\.\n\nResponse:\n#START#\n"
        r"Plan: .*Likely places of an? (\w+): (.+?)\. .* first (.+?)\. #END#",
        text,
        re.MULTILINE,
    )
    assert len(plans) == 2
    for (task, obj, places, first), (context, steps) in zip(plans, won()[kind], strict=True):
        assert context.endswith(f"Your task is to: {task}.")
        named = []
        for part in places.split(", "):
            place, numbers = part.split(" ")
            low, _, high = numbers.partition("-")
            named += [f"{place} {n}" for n in range(int(low), int(high or low) + 1)]
        room = re.findall(r"\ban? (\w+ \d+)", context)
        assert set(named) <= set(room)
        assert named[0] == first
        taken = [re.fullmatch(rf"take {obj} \d+ from (.+)", action) for action, _ in steps]
        assert {match[1] for match in taken if match} <= set(named)


def test_a_plan_names_as_many_kinds_of_places_as_the_papers():
    """StateFlow paper, Table 11: five to seven of the kinds that the room has, once four."""
    papers = {"pick": (5, 6), "clean": (5, 6), "heat": (7, 6), "cool": (6, 5), "look": (5, 4)}
    papers["pick2"] = (6, 7)
    for kind, counts in papers.items():
        plans = re.findall(
            r"Likely places of an? (\w+): (.+?)\. I", sections()[f"Plan {kind}"].text
        )
        for (thing, places), count, (room, steps) in zip(plans, counts, won()[kind], strict=True):
            named = dict(re.findall(r"(\w+) ([\d-]+)", places))
            assert len(named) == count, (kind, thing)
            assert all(f"a {place} {numbers[-1]}" in room for place, numbers in named.items())
            taken = next(action for action, _ in steps if action.startswith(f"take {thing}"))
            assert taken.rpartition(" from ")[2].split()[0] in named
