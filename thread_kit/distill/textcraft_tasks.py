"""Synthetic TextCraft tasks: recipes that exist nowhere, so that a model has to read them.

A task is a goal and its commands, for `TextCraft.custom`. Two kinds: `generate_task` draws a whole
tree of recipes, `rename_items` keeps the recipes of a task and gives every item another name. Names
are made of the words of the training tasks and of an open vocabulary (`words.py`). Goals of the
official test never occur. For evaluation `exchange_words` gives the same words other ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from thread_kit.distill.words import UNSEEN, draw_word, words_of
from thread_kit.envs.textcraft.env import Task, TextCraft, tasks
from thread_kit.envs.textcraft.planner import NOT_MEMBERS, TAGS, Recipe, is_member, solve

SyntheticTask = tuple[str, tuple[str, ...]]

MAX_ACTIONS = 60  # the longest official task takes 27
MADE_COUNTS = (1, 1, 1, 1, 2, 3, 4, 4, 6, 8, 9, 16)
USED_COUNTS = (1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9)


@cache
def _held_out() -> frozenset[str]:
    """Goals that no training task may have: those of the official test and of development."""
    return frozenset(task.goal for split in ("test", "dev") for task in tasks(split))


@cache
def _training_words() -> tuple[str, ...]:
    return tuple(word for word in words_of("train") if word not in TAGS)


class _Names:
    """Names of items, each given once. Four in ten of their words are those of training tasks."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._given = {*TAGS, *_held_out()}
        self._own = [draw_word(draw) for _ in range(6)]  # so that names of a task look alike

    def _word(self) -> str:
        kind = self._draw.random()
        if kind < 0.4:
            return self._draw.choice(_training_words())
        return self._draw.choice(self._own) if kind < 0.6 else draw_word(self._draw)

    def new(self, like: str | None = None, kind: str | None = None) -> str:
        """A name. like: begin with this one's words; kind: end as members of this kind do."""
        while True:
            count = self._draw.choices((1, 2, 3, 4), (25, 45, 24, 6))[0]
            words = [self._word() for _ in range(count)]
            if like:
                words = [*like.split()[:2], self._word()]
            if kind:
                words = [*words[: self._draw.choice((1, 1, 2))], kind]
            name = " ".join(words)
            if name not in self._given and not (kind is None and words[-1] in TAGS):
                self._given.add(name)
                return name


def generate_task(seed: int, depth: int) -> SyntheticTask:
    """A task that takes `depth` levels of crafting, at most; the same for the same arguments."""
    for attempt in range(1000):
        draw = random.Random(f"{seed}/{depth}/{attempt}")
        goal, recipes = _tree(draw, depth)
        commands = [str(recipe) for recipe in recipes]
        draw.shuffle(commands)
        plan = solve(goal, tuple(commands))
        if plan and len(plan) <= MAX_ACTIONS:
            return goal, tuple(commands)
    raise RuntimeError(f"no task of depth {depth} with at most {MAX_ACTIONS} actions was found")


def _tree(draw: random.Random, depth: int) -> tuple[str, list[Recipe]]:
    names = _Names(draw)
    goal = names.new()
    recipes: list[Recipe] = []
    known: list[str] = []
    level = [goal]
    for left in range(depth, 0, -1):
        following: list[str] = []
        for output in level:
            inputs: list[tuple[int, str]] = []
            for _ in range(draw.choices((1, 2, 3, 4), (40, 38, 17, 5))[0]):
                if draw.random() < 0.1:
                    item = draw.choices(TAGS, (8, 2))[0]
                    _add_members(draw, names, recipes, item)
                elif known and draw.random() < 0.12:
                    item = draw.choice(known)  # an ingredient that is used elsewhere, too
                else:
                    item = names.new(output if draw.random() < 0.2 else None)
                    # At least one way goes all the way down.
                    if left > 1 and (not following or draw.random() < 0.3):
                        following.append(item)
                    else:
                        known.append(item)
                if item not in [name for _, name in inputs]:
                    inputs.append((draw.choice(USED_COUNTS), item))
            recipes.append(Recipe(output, draw.choice(MADE_COUNTS), tuple(inputs)))
        level = following
    for _ in range(draw.choice((0, 1, 2, 4, 6, 9, 12))):  # commands that lead nowhere
        of = draw.choice(recipes)
        inputs = [(draw.choice(USED_COUNTS), draw.choice(of.inputs)[1])]
        if draw.random() < 0.4:
            inputs.append((draw.choice(USED_COUNTS), names.new()))
        output = names.new(of.output if draw.random() < 0.4 else None)
        recipes.append(Recipe(output, draw.choice(MADE_COUNTS), tuple(inputs)))
    return goal, recipes


def _add_members(draw: random.Random, names: _Names, recipes: list[Recipe], kind: str) -> None:
    """Make sure that a kind has members that can be made."""
    if not any(is_member(recipe.output, kind) for recipe in recipes):
        for _ in range(draw.choice((1, 2, 3, 5))):
            member = names.new(kind=kind)
            inputs = ((draw.choice((1, 1, 2, 4)), names.new()),)
            recipes.append(Recipe(member, draw.choice(MADE_COUNTS), inputs))


def rename_items(seed: int, goal: str, commands: tuple[str, ...]) -> SyntheticTask:
    """The same task with other names; kinds keep theirs, and members stay members."""
    draw = random.Random(f"{seed}/{goal}")
    names = _Names(draw)
    new = {tag: tag for tag in TAGS}

    def rename(item: str) -> str:
        if item not in new:
            kind = next((tag for tag in TAGS if is_member(item, tag)), None)
            new[item] = names.new(kind=kind)
        return new[item]

    return _rename(goal, commands, rename, draw)


def exchange_words(goal: str, commands: tuple[str, ...]) -> SyntheticTask:
    """The same task, every word of its names exchanged for one that no lesson has.

    A word is always exchanged for the same one: "oak sign" and "oak planks" stay alike. Kinds keep
    their names, and their members end with them; "white wool", which is no member of its kind, gets
    a name of its own.
    """
    draw = random.Random(f"words/{goal}")
    new = {tag: tag for tag in TAGS}

    def exchange(item: str) -> str:
        if item in NOT_MEMBERS:
            return " ".join(map(exchange_word, (item, f"{item} too")))
        return " ".join(map(exchange_word, item.split()))

    def exchange_word(word: str) -> str:
        while word not in new:
            drawn = draw_word(draw, UNSEEN)
            if drawn not in new.values():
                new[word] = drawn
        return new[word]

    return _rename(goal, commands, exchange, draw)


def _rename(
    goal: str, commands: tuple[str, ...], rename: Callable[[str], str], draw: random.Random
) -> SyntheticTask:
    """The task with each item called as `rename` calls it, its commands in another order."""
    renamed = []
    for recipe in map(Recipe.parse, commands):
        output = rename(recipe.output)
        inputs = tuple((count, rename(item)) for count, item in recipe.inputs)
        renamed.append(str(Recipe(output, recipe.count, inputs)))
    draw.shuffle(renamed)
    return rename(goal), tuple(renamed)


@cache
def renamed_tasks(split: str) -> tuple[Task, ...]:
    """The tasks of a split, every word exchanged for one that no lesson has (`exchange_words`).

    For evaluation: what is left of a result where no name can be known.
    """
    renamed = []
    for task in tasks(split):
        goal, commands = exchange_words(task.goal, task.commands)
        renamed.append(replace(task, goal=goal, commands=commands))
    return tuple(renamed)


def make_renamed(split: str, number: int) -> TextCraft:
    """The environment of a task of `renamed_tasks`."""
    task = renamed_tasks(split)[number]
    return TextCraft.custom(task.goal, task.commands)


def training_tasks(seed: int, number: int) -> Iterator[SyntheticTask]:
    """`number` training tasks: the real ones, the real ones renamed, synthetic ones, in turn."""
    real = tasks("train")
    draw = random.Random(seed)
    draw.shuffle(real)
    for n in range(number):
        task = real[(n // 4) % len(real)]
        if n % 4 == 0 and n // 4 < len(real):
            yield task.goal, task.commands
        elif n % 4 == 1:
            yield rename_items(seed + n, task.goal, task.commands)
        else:
            yield generate_task(seed + n, draw.choices((1, 2, 3, 4), (10, 35, 40, 15))[0])
