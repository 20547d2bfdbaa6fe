"""What ADaPT paper prints in appendix G, played by real sessions, line by line.

An executor that writes what the paper prints, in an environment that answers as printed, has to
give the printed trajectory, and a planner that writes a printed plan its steps as the tasks of the
next executors. The trajectories are in the adapt-*.txt beside this file, in the paper's layout and
quoted in short: descriptions of rooms and some thoughts are left out, long lists and pages cut, and
the checks of an assumption shortened after the first ones.

Two things are laid out in the kit's way: a thought is no action, so nothing answers "OK." to it (it
is one in the shop), and an answer stands between the kit's marks. `as_printed` undoes that. Not
here: Match and Shortlist of the shop, which are calls of another form (docs/fidelity/webshop.md).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from helpers.printed import Printed
from helpers.programs import EXECUTOR, PLANNER

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.episode_facts import claims_success
from thread_kit.methods.adapt import adapt
from thread_kit.methods.react import react
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

HERE = Path(__file__).parent
THOUGHT = "> think: "


def read(name: str) -> list[str]:
    """The trajectories of a file, each with its task in the first line."""
    return (HERE / f"adapt-{name}.txt").read_text(encoding="utf-8").strip().split("\n\n")


def split(trajectory: str) -> list[tuple[str, str]]:
    """Its thoughts and actions, each with what was answered; nothing to a thought."""
    steps: list[tuple[str, str]] = []
    for line in trajectory.split("\n")[1:]:
        if line.startswith("> "):
            steps.append((line, ""))
        elif not steps[-1][0].startswith(THOUGHT):
            action, answer = steps[-1]
            steps[-1] = action, f"{answer}\n{line}".strip("\n")
    return steps


def write(steps: list[tuple[str, str]]) -> list[str]:
    """The replies of a model that writes this: each ends where it has to listen."""
    replies = [""]
    for line, answer in steps:
        replies[-1] += f"{line.replace(THOUGHT, 'think: ')}{' =>' if answer else chr(10)}"
        if answer:
            replies.append("")
    return replies


def as_printed(text: str) -> list[tuple[str, str]]:
    """What stands in a thread, as steps with their answers."""
    text = re.sub(r"^think: ", THOUGHT, text, flags=re.MULTILINE)
    text = re.sub(r" =>\n?(.+?)\n?<=$", r"\n\1", text, flags=re.MULTILINE | re.DOTALL)
    return split(f"\n{text.strip()}")


@pytest.mark.parametrize(
    ("benchmark", "number"),
    [(name, n) for name in ("alfworld", "textcraft", "webshop") for n in range(len(read(name)))],
)
def test_the_printed_executors(benchmark, number):
    trajectory = read(benchmark)[number]
    steps = split(trajectory)
    answers = [(line.removeprefix("> "), answer) for line, answer in steps if answer]
    env = Printed(trajectory.partition("\n")[0], answers)
    engine = ScriptedEngine([*write(steps), "> a step behind the verdict =>"])
    session = Session(engine, env, program=partial(react, iterations=20), prompt=EXECUTOR)
    episode = session.run(progress=False)
    (thread,) = episode.threads.values()
    assert as_printed(thread.sequence.text) == steps
    assert [(act.action, act.observation) for act in thread.actions] == answers
    assert (thread.status, env.left) == (Status.ENDED, [])
    assert claims_success(episode)  # "Task completed!" is the executor's end (section 3.1)


MUG = "Find and take mug"
PLANS = [
    ("Put a mug in/on desk.", "AND", [MUG, "Put mug in/on desk"]),
    (
        "Clean mug and put it in/on desk.",
        "AND",
        [MUG, "Clean mug with sinkbasin", "Put cleaned mug in/on desk"],
    ),
    (
        "Cool mug and put it in/on desk.",
        "AND",
        [MUG, "Cool mug with fridge", "Put cooled mug in/on desk"],
    ),
    (
        "Heat mug and put it in/on desk.",
        "AND",
        [MUG, "Heat mug with microwave", "Put heated mug in/on desk"],
    ),
    ("Look at mug under desklamp.", "AND", [MUG, "Use the desklamp"]),
    (
        "Find and take mug",
        "OR",
        [f"{MUG} from {place}" for place in ("desk", "cabinet", "countertop", "drawer")],
    ),
    (
        "Buy 3 ounce bottle of citrus deodorant for sensitive skin, that is natural.",
        "AND",
        [
            "Search[3 ounce citrus deodorant sensitive skin]",
            "SimpleMatch[3 ounce citrus deodorant sensitive skin with price lower than $50]",
            'Buy[prod_id, "3 ounce bottle of citrus deodorant for sensitive skin"]',
        ],
    ),
    (
        "Narrow down search results for 3 ounce bottle of citrus deodorant.",
        "OR",
        [
            "DetailMatch[B078GWRC1J, 3 ounce bottle for sensitive skin]",
            "DetailMatch[B08SMG4WB9, 3 ounce bottle of citrus deodorant for sensitive skin]",
            "Search[3 ounce citrus deodorant natural and sensitive skin]",
        ],
    ),
    (
        "craft dark oak sign.",
        "AND",
        [
            "fetch 6 dark oak planks",
            "fetch 1 stick",
            "craft dark oak sign using 6 dark oak planks, 1 stick",
        ],
    ),
    (
        "fetch 6 dark oak planks.",
        "AND",
        ["fetch 1 dark oak log", *["craft 4 dark oak planks using 1 dark oak log"] * 2],
    ),
]


def write_plan(logic: str, steps: list[str]) -> str:
    listed = "".join(
        f"# Think: First, I will focus on this.\nStep {n}: {step}\n"
        for n, step in enumerate(steps, 1)
    )
    order = f" {logic} ".join(f"Step {n}" for n in range(1, len(steps) + 1))
    return (
        f"{listed}# Think: I will connect them using the {logic!r} operator.\n"
        f"Execution Order: ({order})\n#END#"
    )


def play_plan(goal: str, logic: str, steps: list[str], *, works: bool) -> Episode:
    """ADAPT on a goal that its executor fails at, and whose parts all work or all fail."""
    verdict = "think: Task completed!\n" if works else "think: Task failed!\n"
    replies = ["think: Task failed!\n", write_plan(logic, steps), *[verdict] * len(steps)]
    program = partial(adapt, planner=PLANNER, max_depth=2)
    session = Session(
        ScriptedEngine(replies),
        Printed(f"Goal: {goal}", []),
        program=program,
        prompt=EXECUTOR,
        prompts=[PLANNER],
        scope="none",
    )
    return session.run(progress=False)


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize(("goal", "logic", "steps"), PLANS)
def test_the_printed_plans(goal, logic, steps, works):
    """Of AND all are done while they work, of OR all are tried while they fail."""
    episode = play_plan(goal, logic, steps, works=works)
    tried = steps if works == (logic == "AND") else steps[:1]
    asked = [episode.dialect.asked(t.context.text) for t in episode.threads.values()]
    assert asked == [f"Goal: {goal}", f"Goal: {goal}", *(f"Goal: {step}." for step in tried)]
    assert claims_success(episode) == works
