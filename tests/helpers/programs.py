"""Parts for the tests of programs: a lock to open, scripts by role, the prompts' world."""

from __future__ import annotations

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.method_registry import load_method
from thread_kit.prompts import Example, Prompt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

GOALS = {
    "note block": (
        "craft 1 bucket using 3 iron ingot",
        "craft 4 warped planks using 1 warped stems",
        "craft 1 note block using 8 planks, 1 redstone",
        "craft 4 dark oak planks using 1 dark oak logs",
        "craft 1 light gray bed using 3 light gray wool, 3 planks",
        "craft 4 oak planks using 1 oak logs",
    ),
    "bone block": (
        "craft 3 bone meal using 1 bone",
        "craft 1 bone block using 9 bone meal",
        "craft 1 white dye using 1 bone meal",
    ),
}
"""The worlds of the examples: goals and their commands."""

PLANNER = Prompt("planner", (Example("plan", "#END#"),))
EXECUTOR = Prompt("executor", (Example("execute", "#END#"),))


class Lock(Env):
    """Opens when `open` is done for the `tries`-th time since it was made."""

    name = "lock"

    def __init__(self, tries: int = 1) -> None:
        self.task = {"tries": tries}
        self.left = tries

    def reset(self) -> str:
        return "A lock.\nTask: open it."

    def step(self, action: str) -> Step:
        self.left -= action == "open"
        opened = action == "open" and self.left <= 0
        return Step("It opens." if opened else "Nothing happens.", float(opened), opened, False, {})

    def again(self) -> Lock:
        return Lock(self.task["tries"])

    def oracle(self) -> list[str]:
        return ["open"] * self.task["tries"]


def play(program, speak, *, env=None, **options) -> Episode:
    """An episode of a program; the engine says what `speak` gives."""
    given = {"scope": "none", "prompts": [PLANNER], **options}
    return Session(ScriptedEngine(speak), env or Lock(), program=program, **given).run(
        progress=False
    )


def titles(episode: Episode) -> list[str]:
    return [one.title for one in episode.threads.values()]


def by_title(replies: dict[str, list[str]]):
    """What a thread says, by what it was asked: its last line of context, then whose turn it is."""
    left = {title: list(said) for title, said in replies.items()}

    def speak(text: str) -> str:
        role = "plan " if text.startswith(PLANNER.text) else ""
        title = text.rpartition("\n\nResponse:\n")[0].rpartition("\n")[2]
        return left[role + title].pop(0)

    return speak


YES, NO = "Task completed!\n#END#", "Task failed!\n#END#"


def world(goal: str = "note block") -> TextCraft:
    """The game of whatever these worlds have a command for."""
    commands = next(those for those in GOALS.values() if f" {goal} using " in "\n".join(those))
    return TextCraft.custom(goal, commands)


def run(name: str, speak, goal: str = "note block") -> Episode:
    """An episode of a method by name, in the world of its examples."""
    method = load_method(name, "textcraft")
    return method(ScriptedEngine(speak), world(goal), seed=0, path=None).run(progress=False)
