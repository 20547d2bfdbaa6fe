"""Makes the task files of TextCraft; see README.md beside this file.

From the root of the checkout:
    python -m data.textcraft.make                    writes dev.jsonl and train.jsonl
    python -m data.textcraft.make --official FILE    writes official.jsonl, too
With --check nothing is written; the exit status is 1 if a file is not what would be written.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thread_kit.envs.textcraft.env import Task, tasks
from thread_kit.envs.textcraft.game import item_id, item_words, load_crafting_tree
from thread_kit.envs.textcraft.planner import solve

SEED = 0
DEV = {2: 40, 1: 24}  # goals of that depth in dev; all others are in train
MAX_DISTRACTORS = 10  # per task, and recipes drawn per ingredient: the package's two limits


def official(rows: Iterable[dict[str, Any]]) -> list[Task]:
    """The official tasks from rows with seed, goal ("craft x.") and commands, a block of text."""
    made = []
    for row in rows:
        goal = row["goal"].removeprefix("craft ").removesuffix(".")
        commands = tuple(row["commands"].strip().splitlines()[1:])
        made.append(Task("test", row["seed"], goal, depth(goal), commands))
    return made


def generated() -> list[Task]:
    """The tasks of dev and train: every goal that no official task has."""
    used = {task.goal for task in tasks("test")}
    goals = sorted(item_words(item) for item in load_crafting_tree().itemid_recipes)
    goals = [goal for goal in goals if goal not in used]
    random.Random(SEED).shuffle(goals)
    goals.sort(key=depth, reverse=True)  # deepest first, as in the official order
    splits: dict[str, list[str]] = {"dev": [], "train": []}
    for goal in goals:
        in_dev = sum(depth(other) == depth(goal) for other in splits["dev"])
        splits["dev" if in_dev < DEV[depth(goal)] else "train"].append(goal)
    return [
        Task(split, number, goal, depth(goal), commands(goal))
        for split, members in splits.items()
        for number, goal in enumerate(members)
    ]


def commands(goal: str) -> tuple[str, ...]:
    """What the package's reset would print for `goal`: needed recipes, distractors, shuffled.

    The same draw (up to ten uses of each ingredient, then ten of them all), but from sorted
    lists and by a generator of its own, so that it does not depend on the process.
    """
    rng = random.Random(f"{SEED} {goal}")
    uses = load_crafting_tree().collect_item_uses()
    recipes = needed(goal)
    drawn = set()
    for recipe in recipes:
        for ingredient in recipe.input_items:
            known = uses[ingredient.item_tag.name]
            drawn |= {use.recipe_str for use in rng.sample(known, min(len(known), MAX_DISTRACTORS))}
    lines = {recipe.recipe_str for recipe in recipes}
    distractors = sorted(drawn - lines)
    distractors = rng.sample(distractors, min(len(distractors), MAX_DISTRACTORS))
    printed = sorted(lines) + distractors
    rng.shuffle(printed)
    return tuple(printed)


def needed(goal: str) -> list[Any]:
    """All recipes of `goal`, of their ingredients, of the ingredients' ingredients, and so on."""
    tree = load_crafting_tree()
    found: dict[str, tuple[Any, ...]] = {}
    waiting = [item_id(goal)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = tree.itemid_recipes.get(name) or tree.tag_recipes.get(name) or ()
            waiting += [i.item_tag.name for recipe in found[name] for i in recipe.input_items]
    return [recipe for recipes in found.values() for recipe in recipes]


def depth(goal: str) -> int:
    return load_crafting_tree().get_min_depth(item_id(goal))


def text(made: list[Task]) -> str:
    """The lines of a task file; raises ValueError if a task has no known solution."""
    for task in made:
        if solve(task.goal, task.commands) is None:
            raise ValueError(f"no solution for {task!r}; leave its goal out")
    keys = ("number", "goal", "depth", "commands")
    return "".join(json.dumps({key: getattr(task, key) for key in keys}) + "\n" for task in made)


def put(path: Path, made: list[Task], check: bool) -> bool:
    """Write the tasks to `path`, unless `check`; returns whether they were there already."""
    new = text(made)
    same = path.exists() and path.read_text("utf-8") == new
    if not same and not check:
        path.write_text(new, "utf-8")
    print(f"{path.name}: {len(made)} tasks, {'as it was' if same else 'different'}")
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the task files of TextCraft.")
    parser.add_argument("--official", type=Path, metavar="FILE", help="the official tasks, JSON")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    arguments = parser.parse_args()

    files: dict[str, list[Task]] = {}
    if arguments.official:
        files["official.jsonl"] = official(json.loads(arguments.official.read_text("utf-8")))
    made = generated()
    for split in ("dev", "train"):
        files[f"{split}.jsonl"] = [task for task in made if task.split == split]
    folder = Path(__file__).parent
    same = [put(folder / name, chosen, arguments.check) for name, chosen in files.items()]
    return int(arguments.check and not all(same))


if __name__ == "__main__":
    sys.exit(main())
