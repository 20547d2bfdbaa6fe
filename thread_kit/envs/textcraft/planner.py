"""A planner for TextCraft that reads only what the model reads: the goal and the printed commands.

Plans backwards from the goal, as THREAD's threads do (THREAD paper, appendix G.5): what a command
makes is crafted, everything else is fetched. Covered: several recipes for an item, cycles
(ingot and nugget, honey bottle and honey block), what is left over when a command makes more than
was needed, and tags. Not covered: a proof that the plan is the shortest; among the recipes
of one item it takes the one whose own plan is shortest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import ceil

# The printed ingredients that are no items but kinds of items: an action must name a member, such
# as "oak planks" for "planks". In the package's recipes no other tag is left as an ingredient.
TAGS = ("planks", "wool")

# In the package an item is a member of the kind that its own recipe's group names, and the recipe
# of white wool, unlike those of the dyed ones, names none.
NOT_MEMBERS = ("white wool",)

# Beyond what any task of the game needs (27 actions, 219 looks for an item); they stop a list of
# one's own that would have the planner look for ever.
MAX_DEPTH = 8
MAX_REPETITIONS = 64
MAX_LOOKS = 20_000

Stock = dict[str, int]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One printed command: `count` of `output` from `inputs`, pairs of count and item."""

    output: str
    count: int
    inputs: tuple[tuple[int, str], ...]

    @classmethod
    def parse(cls, command: str) -> Recipe:
        """Read "craft 4 stick using 2 bamboo"; raises ValueError for anything else.

        Counts are from 1 to 999,999, as the game takes them.
        """
        count = "([1-9][0-9]{0,5})"
        match = re.fullmatch(rf"craft {count} (\S.*?) using (.+)", command.strip())
        parts = match[3].split(",") if match else []
        inputs = [re.fullmatch(rf"{count} (\S.*)", part.strip()) for part in parts]
        if not match or not all(inputs):
            raise ValueError(
                f"not a crafting command: {command!r}; expected 'craft 4 stick using 2 bamboo'"
            )
        return cls(match[2], int(match[1]), tuple((int(i[1]), i[2]) for i in inputs if i))

    def __str__(self) -> str:
        """The command, as `parse` reads it and the game takes it."""
        inputs = ", ".join(f"{count} {item}" for count, item in self.inputs)
        return f"craft {self.count} {self.output} using {inputs}"


def solve(goal: str, commands: tuple[str, ...]) -> list[str] | None:
    """Actions that craft `goal` ("oak sign") from nothing with `commands`; None if none is found.

    Raises ValueError if a line of `commands` is no crafting command.
    """
    recipes: defaultdict[str, list[Recipe]] = defaultdict(list)
    for command in commands:
        recipe = Recipe.parse(command)
        recipes[recipe.output].append(recipe)
    if goal not in recipes:  # the goal must be crafted; fetching it earns nothing
        return None
    plan = _obtain(goal, 1, {}, dict(recipes), (), iter(range(MAX_LOOKS)))
    return plan[0] if plan else None


def _obtain(
    item: str,
    count: int,
    stock: Stock,
    recipes: dict[str, list[Recipe]],
    path: tuple[str, ...],
    looks: Iterator[int],
) -> tuple[list[str], Stock] | None:
    """Actions after which there are `count` of `item`, and the stock then; None if it cannot be.

    path: the items that are being made, outermost first; needing one of them again is a cycle.
    looks: one for each item that is looked for; where none is left, nothing is found.
    """
    if next(looks, None) is None:
        return None
    if item in path:  # before the stock is looked at: what lies there is what is being added to
        return None
    missing = count - stock.get(item, 0)
    if missing <= 0:
        return [], stock
    if item not in recipes:
        return [f"get {missing} {item}"], {**stock, item: count}
    if len(path) >= MAX_DEPTH:
        return None
    plans = [
        plan
        for recipe in recipes[item]
        if (
            plan := _craft(
                recipe, ceil(missing / recipe.count), stock, recipes, (*path, item), looks
            )
        )
    ]
    return min(plans, key=lambda plan: len(plan[0]), default=None)


def _craft(
    recipe: Recipe,
    times: int,
    stock: Stock,
    recipes: dict[str, list[Recipe]],
    path: tuple[str, ...],
    looks: Iterator[int],
) -> tuple[list[str], Stock] | None:
    """Actions that collect what `times` crafts of `recipe` need and do them; and the stock then."""
    if times > MAX_REPETITIONS:
        return None
    actions: list[str] = []
    chosen: list[tuple[int, str]] = []
    for count, ingredient in recipe.inputs:
        plans = [
            (*plan, member)
            for member in members(ingredient, recipes)
            if (plan := _obtain(member, count * times, stock, recipes, path, looks))
        ]
        if not plans:
            return None
        steps, stock, member = min(plans, key=lambda plan: len(plan[0]))
        actions += steps
        chosen.append((count, member))
        # Set aside, so that making the next ingredient cannot use it up.
        stock = {**stock, member: stock[member] - count * times}
    command = str(replace(recipe, inputs=tuple(chosen)))
    made = stock.get(recipe.output, 0) + recipe.count * times
    return actions + [command] * times, {**stock, recipe.output: made}


def members(ingredient: str, recipes: Collection[str]) -> list[str]:
    """The items that count as `ingredient`: itself, or those of a kind that `recipes` can make.

    One of them must give the whole count.
    """
    if ingredient not in TAGS:
        return [ingredient]
    return [item for item in recipes if is_member(item, ingredient)]


def is_member(item: str, tag: str) -> bool:
    """Whether an item counts as one of a kind: oak planks are planks."""
    return item.endswith(f" {tag}") and item not in NOT_MEMBERS
