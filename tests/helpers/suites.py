"""Parts of suites that other processes can import; as a program, a suite that kills itself."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

from thread_kit.distill.textcraft_teacher import speak_thread
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.suite import Suite
from thread_kit.prompts import Example, Prompt, load_prompt

THREAD = SessionMethod("thread", fixed={"scope": "exported"})
SHOWN = SessionMethod("thread, shown", Prompt("one", (Example("say a =>", "print('a')\n#END#"),)))


def speak(text: str) -> str:
    """The oracle's words, which take no notice of a few-shot prompt."""
    return speak_thread(text.removeprefix(SHOWN.prompt.text))


def tasks(*numbers: int) -> list[dict[str, object]]:
    """Tasks of the dev split; 40 to 63 are of depth 1, the shortest."""
    return [{"split": "dev", "number": number} for number in numbers]


class Yard(Env):
    """One may look around, so often."""

    name = "alfworld"

    def __init__(self, max_actions: int | None = 50) -> None:
        self.task: dict[str, object] = {}
        self.max_actions, self.taken = max_actions, 0

    def reset(self) -> str:
        return "Look around."

    def step(self, action: str) -> Step:
        self.taken += 1
        return Step("Grass.", 0.0, False, self.taken == self.max_actions, {})

    def again(self) -> Env:
        return Yard(self.max_actions)

    def oracle(self) -> None:
        return None


class Deadly(ScriptedEngine):
    """The oracle's words, until its process is killed after so many steps."""

    def __init__(self, steps: int):
        super().__init__(speak)
        self.left = steps

    def step(self):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step()


def oracle() -> ScriptedEngine:
    return ScriptedEngine(speak)


def shown_oracle() -> ScriptedEngine:
    """The oracle's words behind the kit's own few-shot prompt of TextCraft."""
    examples = load_prompt("textcraft").text
    return ScriptedEngine(lambda text: speak_thread(text.removeprefix(examples)))


def deadly(steps: int) -> ScriptedEngine:
    return Deadly(steps)


class Endless(ScriptedEngine):
    """Writes for ever."""

    def __init__(self):
        super().__init__(speak)

    def step(self):
        return []


def endless() -> ScriptedEngine:
    """Leaves a file that says which process has loaded it."""
    Path(os.environ["LOADED"], f"loaded-{os.getpid()}").touch()
    return Endless()


def unloadable() -> ScriptedEngine:
    raise OSError("the model's file is gone")


def suite(path: Path, **changed) -> Suite:
    """Two methods on three short tasks, spoken by the oracle."""
    given = {
        "methods": [THREAD, SHOWN],
        "models": {"oracle": oracle},
        "environment": TextCraft,
        "tasks": tasks(40, 47, 55),
    }
    return Suite(path, **{**given, **changed})


if __name__ == "__main__":
    path, (at_once, steps, traces) = Path(sys.argv[1]), map(int, sys.argv[2:])
    load = partial(deadly, steps)
    suite(path, models={"oracle": load}, traces=bool(traces)).run(at_once=at_once, progress=False)
