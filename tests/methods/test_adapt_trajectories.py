"""The ADaPT paper's printed trajectories, played through the kit by a scripted model.

Figure 3 (a beehive of TextCraft), Figures 1 and 9 (a clean mug on a desk), Figure 8 (a plan of both
operators), as their captions and the text describe them, in the wording of appendix G. The
household is one of this file that has what the trajectory needs.
"""

from __future__ import annotations

from functools import partial

from helpers.episodes import of_kind
from helpers.programs import PLANNER, by_title, titles

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.episode_facts import claims_success, find_k_max
from thread_kit.methods.adapt import adapt
from thread_kit.methods.plan_and_execute import plan_and_execute
from thread_kit.methods.plans import parse_plan
from thread_kit.prompts import Example, Prompt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted, Restarted

END = "#END#"
EXECUTOR = Prompt("executor", (Example("execute", END),))


def play(program, env: Env, said: dict[str, list[str]]) -> Episode:
    given = {"prompt": EXECUTOR, "prompts": [PLANNER], "scope": "none"}
    session = Session(ScriptedEngine(by_title(said)), env, program=program, **given)
    return session.run(progress=False)


def tree(episode: Episode) -> list[tuple[int, str, str]]:
    """Of each thread its depth, P or E for planner or executor, and its task."""
    return [
        (one.depth, "P" if one.prompt == PLANNER.sha256 else "E", one.title.partition(": ")[2])
        for one in episode.threads.values()
    ]


# Appendix G: the plans as they are printed


def test_the_printed_plans_are_read_as_they_are_meant():
    find = (
        "# Think: To perform this task I need to find mug in the room.\n"
        "Step 1: Find and take mug from desk\n"
        "# Think: If mug not found so far, I will next look in the cabinet.\n"
        "Step 2: Find and take mug from cabinet\n"
        "Step 3: Find and take mug from countertop\n"
        "Step 4: Find and take mug from drawer\n"
        "Execution Order: (Step 1 OR Step 2 OR Step 3 OR Step 4)"
    )
    plan = parse_plan(find)
    assert plan.logic == ("OR", (1, 2, 3, 4))
    assert plan.steps[2] == "Find and take mug from cabinet"
    craft = (
        "Step 1: fetch 6 dark oak planks\nStep 2: fetch 1 stick\n"
        "Step 3: craft dark oak sign using 6 dark oak planks, 1 stick\n"
        'So I need to use the "AND" operator.\n'
        "Execution Order: (Step 1 AND Step 2 AND Step 3)"
    )
    assert parse_plan(craft).logic == ("AND", (1, 2, 3))


# Figures 1 and 9: put a clean mug on a desk


SEEN = {
    "go to desk 1": "On the desk 1, you see nothing.",
    "open cabinet 1": "You open the cabinet 1. In it, you see nothing.",
    "open cabinet 2": "You open the cabinet 2. In it, you see a mug 1.",
    "take mug 1 from cabinet 2": "You pick up the mug 1 from the cabinet 2.",
    "inventory": "You are carrying: a mug 1.",
    "clean mug 1 with sinkbasin 1": "You clean the mug 1 using the sinkbasin 1.",
    "put mug 1 in/on desk 1": "You put the mug 1 in/on the desk 1.",
}


class Household(Env):
    """Of Figures 1, 2 and 9: the mug is in a cabinet, and is to be cleaned and put on a desk."""

    name = "household"
    NEEDED = ("take mug 1 from cabinet 2", "clean mug 1 with sinkbasin 1", "put mug 1 in/on desk 1")

    def __init__(self) -> None:
        self.task: dict = {}
        self.done: list[str] = []

    def reset(self) -> str:
        self.done = []
        return "You are in the middle of a room.\nYour task is to: put a clean mug on desk."

    def step(self, action: str) -> Step:
        self.done.append(action)
        needed = [act for act in self.done if act in self.NEEDED]
        won = tuple(needed) == self.NEEDED
        return Step(SEEN.get(action, "OK."), float(won), won, False, {})

    def again(self) -> Household:
        return Household()

    def oracle(self) -> list[str]:
        return list(self.NEEDED)


FIND = "Find and take mug"
PLANS = {
    "put a clean mug on desk.": [FIND, "Clean mug with sinkbasin", "Put cleaned mug in/on desk"],
    f"{FIND}.": [f"{FIND} from desk", f"{FIND} from cabinet", f"{FIND} from drawer"],
}
ORDERS = {"put a clean mug on desk.": "AND", f"{FIND}.": "OR"}


def write_plan(task: str) -> str:
    steps = PLANS[task]
    order = f" {ORDERS[task]} ".join(f"Step {n}" for n in range(1, len(steps) + 1))
    listed = "".join(f"Step {n}: {step}\n" for n, step in enumerate(steps, 1))
    return f"# Think: I will focus on finding mug.\n{listed}Execution Order: ({order})\n{END}"


ASK = "Your task is to: "
SAID = {
    f"{ASK}put a clean mug on desk.": ["> go to desk 1 =>", "think: Task failed!\n"],
    f"plan {ASK}put a clean mug on desk.": [write_plan("put a clean mug on desk.")],
    f"{ASK}{FIND}.": ["think: I cannot find it. Task failed!\n"],
    f"plan {ASK}{FIND}.": [write_plan(f"{FIND}.")],
    f"{ASK}{FIND} from desk.": ["> go to desk 1 =>", "think: There is no mug. Task failed!\n"],
    f"{ASK}{FIND} from cabinet.": [
        *("> open cabinet 1 =>", "> open cabinet 2 =>", "> take mug 1 from cabinet 2 =>"),
        "think: End state: Now I take a mug (1) from cabinet (2). Task completed!\n",
    ],
    f"{ASK}Clean mug with sinkbasin.": [
        "think: Input assumption: I am carrying a mug. Now I need to verify this.\n> inventory =>",
        "> clean mug 1 with sinkbasin 1 =>",
        "think: Now I clean a mug (1). Task completed!\n",
    ],
    f"{ASK}Put cleaned mug in/on desk.": ["> put mug 1 in/on desk 1 =>"],
}


def test_the_clean_mug_of_figures_1_and_9_is_put_on_the_desk():
    program = partial(adapt, planner=PLANNER, max_depth=3, carry=True)
    episode = play(program, Household(), {key: list(said) for key, said in SAID.items()})
    whole = "put a clean mug on desk."
    assert tree(episode) == [
        (0, "E", whole),
        (1, "P", whole),
        (1, "E", f"{FIND}."),
        (2, "P", f"{FIND}."),
        (2, "E", f"{FIND} from desk."),
        (2, "E", f"{FIND} from cabinet."),
        (1, "E", "Clean mug with sinkbasin."),
        (1, "E", "Put cleaned mug in/on desk."),
    ]  # the drawer is not looked into any more
    assert (episode.reward, find_k_max(episode), claims_success(episode)) == (1, 3, True)
    # What the failed executors did is undone; what is known is the last action of a success.
    assert [restarted.actions for restarted in of_kind(episode, Restarted)] == [(), ()]
    cleaning = episode.threads[6].sequence.text
    assert cleaning.startswith("> take mug 1 from cabinet 2 =>You pick up the mug 1")


def test_an_executor_that_succeeds_without_an_action_hands_on_what_was_known():
    said = {key: list(replies) for key, replies in SAID.items()}
    said[f"plan {ASK}put a clean mug on desk."] = [
        listing([FIND, "Look at mug", "Clean mug with sinkbasin", "Put cleaned mug in/on desk"])
    ]
    said[f"{ASK}Look at mug."] = ["think: I have it already. Task completed!\n"]
    program = partial(adapt, planner=PLANNER, max_depth=3, carry=True)
    episode = play(program, Household(), said)
    assert episode.reward == 1
    cleaning = next(t for t in episode.threads.values() if "Clean" in t.context.text)
    assert cleaning.sequence.text.startswith("> take mug 1 from cabinet 2 =>You pick up the mug 1")


# Figure 3: a beehive, two levels deep


BEEHIVE = (
    "craft 1 beehive using 6 planks, 3 honeycomb",
    "craft 4 oak planks using 1 oak logs",
)


def test_the_beehive_of_figure_3_is_crafted_from_its_tree():
    ask = "Goal: "
    parts = ["fetch 6 planks", "fetch 3 honeycomb", "craft 1 beehive using 6 planks, 3 honeycomb"]
    logs = ["fetch 2 oak logs", "craft 4 oak planks using 1 oak logs, 2 times"]
    say = {
        f"{ask}craft beehive.": ["> get 1 beehive =>", "think: task failed!\n"],
        f"plan {ask}craft beehive.": [listing(parts)],
        f"{ask}fetch 6 planks.": ["> get 6 planks =>", "think: task failed!\n"],
        f"plan {ask}fetch 6 planks.": [listing(logs)],
        f"{ask}{logs[0]}.": ["> get 2 oak logs =>", "think: Task Completed!\n"],
        f"{ask}{logs[1]}.": [*["> craft 4 oak planks using 1 oak logs =>"] * 2, "Task Completed!"],
        f"{ask}{parts[1]}.": ["> get 3 honeycomb =>", "think: Task Completed!\n"],
        f"{ask}{parts[2]}.": ["> craft 1 beehive using 6 oak planks, 3 honeycomb =>"],
    }
    program = partial(adapt, planner=PLANNER, max_depth=4, start=("inventory",))
    episode = play(program, TextCraft.custom("beehive", BEEHIVE), say)
    assert [title.removeprefix(ask) for title in titles(episode)] == [
        *("craft beehive.", "craft beehive.", "fetch 6 planks.", "fetch 6 planks."),
        *(f"{logs[0]}.", f"{logs[1]}.", f"{parts[1]}.", f"{parts[2]}."),
    ]
    assert (episode.reward, find_k_max(episode)) == (1, 3)
    last = episode.threads[7].sequence.text  # the inventory is the first that it reads
    assert last.startswith("> inventory =>Inventory: ")
    assert "[honeycomb] (3)" in last.partition("\n")[0]


# Figure 11: what has to be crafted is fetched by one executor, without a plan


def test_the_diorite_of_figure_11_is_fetched_by_one_executor():
    ask = "Goal: "
    commands = (
        "craft 2 andesite using 1 diorite, 1 cobblestone",
        "craft 2 diorite using 2 quartz, 2 cobblestone",
    )
    parts = ["fetch 1 diorite", "fetch 1 cobblestone", commands[0]]
    say = {
        f"{ask}craft andesite.": ["> get 1 andesite =>", "think: task failed!\n"],
        f"plan {ask}craft andesite.": [listing(parts)],
        f"{ask}{parts[0]}.": [
            *("> get 1 diorite =>", "> get 2 quartz =>", "> get 2 cobblestone =>"),
            *(f"> {commands[1]} =>", "think: Task Completed!\n"),
        ],
        f"{ask}{parts[1]}.": ["> get 1 cobblestone =>", "think: Task Completed!\n"],
        f"{ask}{parts[2]}.": [f"> {commands[0]} =>"],
    }
    program = partial(adapt, planner=PLANNER, max_depth=4, start=("inventory",))
    episode = play(program, TextCraft.custom("andesite", commands), say)
    assert [title.removeprefix(ask) for title in titles(episode)] == [
        *("craft andesite.", "craft andesite."),  # the second is the planner
        *(f"{part}." for part in parts),
    ]
    assert (episode.reward, find_k_max(episode)) == (1, 2)
    seen = episode.threads[3].sequence.text.partition("\n")[0]  # "we propagate the inventory"
    assert "[diorite] (2)" in seen


def listing(steps: list[str]) -> str:
    order = " AND ".join(f"Step {n}" for n in range(1, len(steps) + 1))
    listed = "".join(f"Step {n}: {step}\n" for n, step in enumerate(steps, 1))
    return f"{listed}Execution Order: ({order})\n{END}"


# Figure 8: a plan with both operators, which never changes


def test_the_plan_of_figure_8_is_of_two_levels():
    steps = [f"{FIND} from {place}" for place in ("desk", "cabinet", "countertop")]
    steps += ["Clean mug with sinkbasin", "Put cleaned mug in/on desk"]
    listed = "".join(f"Step {n}: {step}\n" for n, step in enumerate(steps, 1))
    order = "((Step 1 OR Step 2 OR Step 3) AND Step 4 AND Step 5)"
    assert parse_plan(f"{listed}Execution Order: {order}").logic == (
        "AND",
        (("OR", (1, 2, 3)), 4, 5),
    )
    said = {key: list(replies) for key, replies in SAID.items() if not key.startswith("plan")}
    said[f"{ASK}put a clean mug on desk."] = [f"{listed}Execution Order: {order}\n{END}"]
    program = partial(plan_and_execute, executor=EXECUTOR, carry=True)
    episode = play(program, Household(), said)
    assert [task for _, _, task in tree(episode)[1:]] == [
        *(f"{steps[0]}.", f"{steps[1]}.", f"{steps[3]}.", f"{steps[4]}.")
    ]
    acted = [event.action for event in of_kind(episode, Acted)]
    assert acted[-1] == "put mug 1 in/on desk 1"
    assert (episode.reward, len(acted)) == (1, 7)
