"""ALFWorld: the real engine in its process, generated games, the official ones at hand."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

import pytest

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld import process as game_process
from thread_kit.envs.alfworld.bleu import bleu, find_nearest
from thread_kit.envs.alfworld.env import LISTED, AlfWorld, data_folder, tasks
from thread_kit.envs.alfworld.generator import KINDS, ROOMS, generate_file
from thread_kit.envs.alfworld.planner import solve
from thread_kit.envs.alfworld.process import GameError, GameProcess
from thread_kit.envs.alfworld.wording import apply_wording, read_goal
from thread_kit.envs.alfworld.worker import drop_irrelevant
from thread_kit.envs.benchmark import spread_evenly
from thread_kit.experiments.method import PerTaskMethod, SessionMethod
from thread_kit.experiments.suite import Suite
from thread_kit.prompts import EMPTY, load_prompt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("THREAD_KIT_SHARED", ROOT.parent / "shared"))
HALF = SHARED / "data" / "alfworld" / "valid_unseen_67.tar.xz"
ALL = "THREAD_KIT_ALFWORLD"  # the folder that has json_2.1.1: every game in it is played

GAMES = ("pick-105", "clean-101", "heat-101", "cool-102", "look-102", "pick2-101")
"""One of each type; the prompts' examples are from them, too."""

SMALL = "look-102"
"""A bedroom: the engine loads it three times as fast as a kitchen."""

needs_engine = pytest.mark.alfworld

MUG = "You are in the middle of a room. Looking quickly around you, you see a cabinet 8, a cabinet"


pytestmark = pytest.mark.usefixtures("alfworld_games")


@pytest.fixture
def env(alfworld_process):
    """Put a mug in the fridge; one stands on diningtable 1. It has just begun."""
    env = AlfWorld("generated", "pick-105")
    env.reset()
    return env


def run(env, *actions):
    """The observations of `actions`."""
    return [env.step(action).observation for action in actions]


def in_the_papers_wording(plan):
    return [re.sub(r"^move (.+) to ", r"put \1 in/on ", action) for action in plan]


# What needs no engine


GAME = {
    "pddl_domain": "",
    "grammar": '{"rhs": "Your task is to: put a hot mug in desk."}',
    "pddl_problem": "",
    "solvable": True,
}


def official(folder, *names, **changes):
    """Files that look like downloaded games, under ALFWorld's data folder."""
    for name in names:
        path = folder / "json_2.1.1" / "valid_unseen" / name / "game.tw-pddl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({**GAME, **changes}))


HOT = "pick_heat_then_place_in_recep-Mug-None-Desk-10"
TWO = "pick_two_obj_and_place-CD-None-Safe-308"


def test_official_games_are_listed_by_name_without_what_alfworld_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    official(tmp_path, f"{TWO}/trial_1", f"{HOT}/trial_2", f"{HOT}/trial_1")
    official(tmp_path, "pick_and_place_with_movable_recep-Mug-Bowl-Desk-10/trial_1")
    official(tmp_path, "pick_heat_then_place_in_recep-BreadSliced-None-Desk-10/trial_1")
    official(tmp_path, f"{HOT}/trial_3", solvable=False)
    listed = [(task.name, task.type) for task in tasks()]
    assert listed == [
        (f"{HOT}/trial_1", "heat"),
        (f"{HOT}/trial_2", "heat"),
        (f"{TWO}/trial_1", "pick2"),
    ]
    assert AlfWorld(game=2).task["game"] == f"{TWO}/trial_1"
    env = AlfWorld(game=f"{HOT}/trial_2")
    assert (env.type, env.goal, env.max_actions) == ("heat", "put a hot mug in desk", 50)
    assert env.task == {"split": "valid_unseen", "game": f"{HOT}/trial_2", "wording": "papers"}
    assert repr(env) == f"AlfWorld(valid_unseen, {HOT}/trial_2: put a hot mug in desk)"
    path = tasks()[0].path
    assert AlfWorld(game=path).task == {"split": "", "game": f"{HOT}/trial_1", "wording": "papers"}
    with pytest.raises(ValueError, match=r"no task 3 in split 'valid_unseen'; choose 0 to 2"):
        AlfWorld(game=3)
    with pytest.raises(ValueError, match=r"no game 'x' among the 3 of split 'valid_unseen'"):
        AlfWorld(game="x")


def test_the_data_folder_is_alfworlds_own(monkeypatch):
    monkeypatch.delenv("ALFWORLD_DATA")
    assert data_folder() == Path.home() / ".cache" / "alfworld"


def test_without_the_official_games_the_error_says_how_to_get_them():
    with pytest.raises(FileNotFoundError, match=r"alfworld-download.*ALFWORLD_DATA.*'heat-0'"):
        AlfWorld()


def test_generated_games_are_listed_by_type_and_seed():
    listed = tasks("generated")
    assert len(listed) == 6 * LISTED
    assert [task.name for task in listed[:2]] == ["pick-0", "pick-1"]
    assert {task.type for task in listed} == set(KINDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "test"}, "unknown split 'test'; choose one of valid_unseen, valid_seen"),
        ({"wording": "old"}, "unknown wording 'old'; choose one of papers, classic, engine"),
        ({"max_actions": 0}, "max_actions is 0; give 1 or more"),
        ({"split": "generated", "game": "fry-1"}, "no generated game 'fry-1'.*'heat-12'"),
        ({"split": "generated", "game": "heat-01"}, "no generated game 'heat-01'"),
        ({"game": {"generated": {"type": "heat"}}}, "type and seed"),
        ({"game": {"grammar": ""}}, "type and seed"),
        ({"game": {"generated": {"type": "heat", "seed": 1}}}, "it lacks pddl_domain"),
        ({"game": "somewhere/game.tw-pddl"}, "the folders of a game file say its task type"),
        ({"split": "generated", "game": 60}, "no task 60 in split 'generated'; choose 0 to 59"),
    ],
)
def test_what_cannot_be_played_is_told_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        AlfWorld(**arguments)


def test_a_file_that_is_no_game_is_named(tmp_path):
    path = tmp_path / HOT / "trial_1" / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    for content in ("nothing", "[]", '{"grammar": ""}'):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"game\.tw-pddl is no game file of ALFWorld"):
            AlfWorld(game=path)
    path.write_text(json.dumps({**GAME, "grammar": "{}"}))
    with pytest.raises(ValueError, match="no line 'Your task is to"):
        AlfWorld(game=path)
    with pytest.raises(ValueError, match="the folders of a game file say its task type"):
        AlfWorld(game=tmp_path / "game.tw-pddl")


@pytest.mark.parametrize("kind", ["fry", ""])
def test_an_unknown_type_of_game_is_refused(kind):
    with pytest.raises(ValueError, match=r"unknown task type .* choose one of pick, clean"):
        generate_file(kind, 1)


@pytest.mark.parametrize("seed", [-1, "1", 1.0])
def test_a_seed_is_a_number_from_0(seed):
    with pytest.raises(ValueError, match="a number from 0"):
        generate_file("pick", seed)


def test_a_missing_engine_is_an_error_with_the_remedy(monkeypatch):
    monkeypatch.setattr(game_process, "NEEDED", ("no_such_package",))
    with pytest.raises(
        ImportError, match=re.escape('pip install -c constraints.txt ".[alfworld]"')
    ):
        GameProcess()


def test_wording_changes_no_game_that_is_worded_already():
    once = apply_wording(GAME, "classic")
    assert apply_wording(once, "classic") == once
    assert apply_wording(GAME, "engine") is GAME


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("put mug 1 on desk 1", "put mug 1 in/on desk 1"),
        ("go to the desk 1", "go to desk 1"),
        ("take the mug 1 from desk", "take mug 1 from desk 2"),
        ("look", "look"),
        ("Go to desk 2.", "go to desk 2"),  # and not desk 1, which has as many words in common
        ("go to desk 2. Then I look", "go to desk 2"),
        ("dance", "dance"),  # alike is none (AutoGen's code, too)
    ],
)
def test_the_nearest_action_is_the_one_with_the_most_words_in_common(said, meant):
    admissible = ["go to desk 1", "go to desk 2", "look", "put mug 1 in/on desk 1"]
    admissible += ["put mug 1 in/on desk 2", "take mug 1 from desk 2"]
    assert find_nearest(said, admissible) == meant
    assert find_nearest(said, []) == said


def test_bleu_is_1_for_the_same_and_falls_with_what_differs():
    same, other = ["go", "to", "desk", "1"], ["go", "to", "desk", "2"]
    assert bleu(same, same) == 1
    assert bleu(same, other) == pytest.approx((3 / 4 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert bleu(same[:2], same) < bleu(same[:3], same) < 1
    assert bleu([], same) == bleu(["dance"], same) == 0


# Generated games


@needs_engine
@pytest.mark.parametrize("name", GAMES)
def test_a_generated_game_of_each_type_is_won_by_its_oracle(name, alfworld_process):
    env = AlfWorld("generated", name)
    assert env.type == name.partition("-")[0]
    context = env.reset()
    assert not env.won
    assert context.startswith("You are in the middle of a room. Looking quickly around you, ")
    assert context.endswith(f"\nYour task is to: {env.goal}.")
    game = json.loads(generate_file(env.type, int(name[-3:])).read_text())
    assert game["generated"] == {"type": env.type, "seed": int(name[-3:]), "version": 1}
    assert game["solvable"]
    plan = in_the_papers_wording(game["walkthrough"])
    steps = [env.step(action) for action in plan]
    assert [step.reward for step in steps] == [0.0] * (len(steps) - 1) + [1.0]
    assert env.won
    assert not any("Nothing happens" in step.observation for step in steps)


@needs_engine
def test_a_plan_for_what_matters_wins_as_cheaply_as_one_for_the_whole_household():
    game = json.loads(generate_file("clean", 101).read_text())
    small = {**game, "pddl_problem": drop_irrelevant(game["pddl_problem"])}
    assert len(small["pddl_problem"]) < len(game["pddl_problem"]) / 2
    run = subprocess.run(
        [sys.executable, "-c", PLANS],
        input=json.dumps([game, small]),
        capture_output=True,
        text=True,
    )
    whole, less = json.loads(run.stdout.splitlines()[-1])
    assert len(whole) == len(less) == len(game["walkthrough"])


PLANS = """
import json, sys
from thread_kit.envs.alfworld.worker import Game
plans = [Game(game).plan() for game in json.load(sys.stdin)]
print("\\n" + json.dumps(plans))
"""


@needs_engine
def test_a_name_is_the_same_game_in_every_process(tmp_path, monkeypatch):
    known = generate_file("look", 102).read_bytes()
    monkeypatch.setenv("THREAD_KIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert generate_file("look", 102).read_bytes() == known
    # Raise VERSION when this changes: results are kept by the names of games.
    problem = json.loads(known)["pddl_problem"]
    assert hashlib.sha256(problem.encode()).hexdigest()[:16] == "358783c27a0aa871"


@needs_engine
def test_what_lies_in_a_household_is_in_its_room_and_where_the_package_lets_it_lie():
    problem = json.loads(generate_file("pick", 105).read_text())["pddl_problem"]
    fact = re.compile(r"^\((\w+) (\S+) (\S+)\)$", re.MULTILINE)
    facts = fact.findall(problem)
    kind = {one: t for name, one, t in facts if name in ("objectType", "receptacleType")}
    allowed = {(place, thing) for name, place, thing in facts if name == "canContain"}
    lying = [(kind[place], kind[thing]) for name, thing, place in facts if name == "inReceptacle"]
    assert lying
    assert set(lying) <= allowed
    things = {thing.removesuffix("Type") for _, thing in lying}
    assert any(things <= set(room.things) for room in ROOMS.values())


# Episodes


@needs_engine
def test_an_episode_in_the_papers_wording(env):
    steps = [
        env.step(action)
        for action in (
            "go to cabinet 8",
            "open cabinet 8",
            "go to diningtable 1",
            "take mug 1 from diningtable 1",
            "inventory",
            "go to fridge 1",
            "put mug 1 on fridge 1",
            "open fridge 1",
            "put mug 1 in/on fridge 1",
        )
    ]
    assert [step.observation for step in steps] == [
        "The cabinet 8 is closed.",
        "You open the cabinet 8. The cabinet 8 is open. In it, you see nothing.",
        "On the diningtable 1, you see a mug 1.",
        "You pick up the mug 1 from the diningtable 1.",
        "You are carrying: a mug 1.",
        "The fridge 1 is closed.",
        "Nothing happens.",
        "You open the fridge 1. The fridge 1 is open. In it, you see nothing.",
        "You put the mug 1 in/on the fridge 1.",
    ]
    assert [step.reward for step in steps] == [0.0] * 8 + [1.0]
    assert [step.terminated for step in steps] == [False] * 8 + [True]
    assert steps[-1].info == {"actions": 9, "won": True}


@needs_engine
def test_the_other_wordings_say_where_one_arrives():
    classic = AlfWorld("generated", SMALL, wording="classic")
    assert re.fullmatch(
        r"You arrive at loc \d+\. On the sofa 1, you see .+", *run(classic, "go to sofa 1")
    )
    engine = AlfWorld("generated", "pick-105", wording="engine")
    assert run(engine, "go to diningtable 1", "take mug 1 from diningtable 1", "go to shelf 2") == [
        "You arrive at diningtable 1. On the diningtable 1, you see a mug 1.",
        "You pick up the mug 1 from the diningtable 1.",
        "You arrive at shelf 2. On the shelf 2, you see nothing.",
    ]
    assert "move mug 1 to shelf 2" in engine.admissible
    assert run(engine, "put mug 1 in/on shelf 2", "move mug 1 to shelf 2") == [
        "Nothing happens.",
        "You move the mug 1 to the shelf 2.",
    ]


@needs_engine
def test_admissible_actions_are_those_that_do_something(env):
    assert "go to fridge 1" in env.admissible
    assert "open fridge 1" not in env.admissible
    assert "help" not in env.admissible  # which the papers' version of the game had not
    assert run(env, "help") == ["Nothing happens."]
    env.step("go to fridge 1")
    assert "open fridge 1" in env.admissible
    assert env.again().admissible == ()  # it has not begun


@needs_engine
def test_what_is_no_action_can_be_taken_for_the_nearest_one(alfworld_process):
    env = AlfWorld("generated", "pick-105", nearest=True)
    assert env.task["nearest"]
    env.reset()
    assert run(env, "go to the diningtable", "take mug 1 from diningtable") == [
        "On the diningtable 1, you see a mug 1.",
        "You pick up the mug 1 from the diningtable 1.",
    ]
    assert env.step("go to the fridge").info["done"] == "go to fridge 1"
    assert "done" not in env.step("look").info
    assert env.again().nearest


@needs_engine
def test_every_action_counts_and_the_last_one_ends_the_episode():
    env = AlfWorld("generated", SMALL, max_actions=2)
    assert not env.step("dance").truncated
    assert env.step("look").truncated
    late = env.step("look")
    assert late.observation == "The task is over."
    assert (late.reward, late.terminated, late.truncated) == (0.0, False, True)
    assert late.info == {"actions": 2, "won": False}
    assert env.admissible == ()


@needs_engine
def test_the_limit_is_one_for_the_oracle_too():
    game = json.loads(generate_file("look", 102).read_text())
    plan = AlfWorld("generated", SMALL, max_actions=None).oracle()
    assert plan == in_the_papers_wording(game["walkthrough"])
    env = AlfWorld("generated", SMALL, max_actions=len(plan))
    assert env.oracle() == plan
    last = [env.step(action) for action in plan][-1]
    assert (last.reward, last.terminated, last.truncated) == (1.0, True, False)
    assert AlfWorld("generated", SMALL, max_actions=len(plan) - 1).oracle() is None


@needs_engine
def test_reset_and_again_start_anew_and_leave_each_other_alone():
    env = AlfWorld("generated", "pick-105")
    other = env.again()
    start = other.reset()
    assert start.startswith(MUG)
    run(env, "go to diningtable 1", "take mug 1 from diningtable 1")
    assert run(other, "go to diningtable 1") == ["On the diningtable 1, you see a mug 1."]
    assert run(env, "inventory") == ["You are carrying: a mug 1."]
    assert env.reset() == start
    assert env.step("inventory") == (
        "You are not carrying anything.",
        0.0,
        False,
        False,
        {"actions": 1, "won": False},
    )
    assert run(other, "inventory") == ["You are not carrying anything."]


@needs_engine
def test_text_that_is_no_action_does_nothing(env):
    for text in ("", " \n", "go to\nfridge 1", "\udc80", "x" * 100_000, "{r.name}"):
        assert run(env, text, "  go to fridge 1\n") == [
            "Nothing happens.",
            "The fridge 1 is closed.",
        ]
        run(env, "go to shelf 1")


@needs_engine
def test_a_session_plays_it_and_the_trace_has_what_came_of_it(tmp_path, alfworld_process):
    env = AlfWorld("generated", SMALL)
    written = json.loads(generate_file("look", 102).read_text())["walkthrough"]
    plan = in_the_papers_wording(written)
    replies = (*(f"> {action} =>" for action in plan), "print('Done.')\n#END#")
    path = tmp_path / "episode.jsonl"
    Session(ScriptedEngine(replies), env, prompt=EMPTY, path=path).run()
    episode = Episode.load(path)
    assert episode.header["task"] == env.task
    assert f"You turn on the {plan[-1].removeprefix('use ')}." in episode.seen(0)
    assert episode.header["versions"]["alfworld"] == "0.4.2"


@needs_engine
def test_in_a_suite_every_game_is_played_with_the_examples_of_its_type(tmp_path, alfworld_process):
    def speak(text):
        shown.append(text.partition("Your task is to: ")[2].partition(".")[0])
        return "#END#"

    shown = []
    suite = Suite(
        tmp_path / "results.jsonl",
        methods=[
            PerTaskMethod("thread", lambda examples: SessionMethod("thread", load_prompt(examples)))
        ],
        models={"silent": ScriptedEngine(speak)},
        environment=AlfWorld,
        tasks=[{"split": "generated", "game": game} for game in (SMALL, "pick-105")],
    )
    rows = suite.run(progress=False).rows
    assert [row["error"] for row in rows] == ["", ""]
    first_of_the_prompt = ["examine the statue with the desklamp", "put a ladle in drawer"]
    assert shown == first_of_the_prompt


def test_a_part_of_the_games_has_as_many_of_each_type_as_there_are():
    listed = tasks("generated")
    chosen = spread_evenly(listed, 24)
    assert Counter(task.type for task in chosen) == dict.fromkeys(KINDS, 4)
    assert [task.name for task in chosen[:4]] == ["pick-0", "pick-2", "pick-5", "pick-7"]
    few = [*listed[:1], *listed[10:30]]  # one of them to pick
    assert Counter(task.type for task in spread_evenly(few, 7)) == {
        "pick": 1,
        "clean": 3,
        "heat": 3,
    }
    with pytest.raises(ValueError, match="this split has 1 to 60"):
        spread_evenly(listed, 61)


# The process


def is_alive(pid):
    """Whether a process runs; one that has ended and is yet to be waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid):
    """Whether a process is gone, within the time that a loaded machine may need."""
    patience = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    return not is_alive(pid)


@needs_engine
def test_the_process_ends_with_the_episode_with_close_and_with_its_last_holder():
    game = json.loads(generate_file("look", 102).read_text())
    for over in ("won", "closed", "dropped"):
        env = AlfWorld("generated", SMALL)
        env.reset()
        pid = env._process._process.pid
        assert is_alive(pid)
        if over == "won":
            for action in game["walkthrough"]:  # without a `move`, alike in every wording
                env.step(action)
        elif over == "closed":
            env.close()
            env.close()
            with pytest.raises(GameError, match="the engine is closed"):
                env.step("look")
        del env
        gc.collect()
        assert ends(pid), over


@needs_engine
@pytest.mark.skipif(not Path("/proc").exists(), reason="no /proc")
def test_the_process_ends_when_its_host_is_killed():
    code = (
        "from thread_kit.envs.alfworld.process import GameProcess\n"
        "engine = GameProcess(); print(engine._process.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as host:
        pid = int(host.stdout.readline())
        assert is_alive(pid)
        host.kill()
        assert ends(pid)


@needs_engine
def test_a_process_that_dies_is_an_error_that_says_so():
    env = AlfWorld("generated", SMALL)
    start = env.reset()
    os.kill(env._process._process.pid, signal.SIGKILL)
    with pytest.raises(GameError, match=r"died \(exit code -9\); it said last: "):
        env.step("look")
    assert env.reset() == start  # and one can begin again


@needs_engine
def test_an_interrupted_step_leaves_no_reply_to_the_next_one(monkeypatch):
    env = AlfWorld("generated", SMALL)
    start = env.reset()
    process = env._process

    class Interrupted:
        send_bytes = process._pipe.send_bytes

        def poll(self, seconds):
            raise KeyboardInterrupt

    monkeypatch.setattr(process, "_pipe", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        env.step("look")
    assert not process.is_open
    assert env.reset() == start


@needs_engine
def test_a_silent_process_is_ended_and_the_error_says_what_helps():
    with GameProcess(seconds=0.01) as engine:  # it cannot even start in that time
        with pytest.raises(TimeoutError, match=r"within 0\.01 seconds.*A larger `seconds`"):
            engine.ask(do="dance")
        assert not engine.is_open


@needs_engine
def test_what_the_engine_refuses_is_an_error_with_its_reason_and_it_lives_on():
    game = json.loads(generate_file("look", 102).read_text())
    with GameProcess() as engine:
        with pytest.raises(GameError, match="refuses: ValueError: not a request"):
            engine.ask(do="dance")
        with pytest.raises(GameError, match="refuses: "):
            engine.ask(do="start", game={**game, "grammar": "nonsense"})
        assert engine.ask(do="start", game=game)["won"] is False


@needs_engine
def test_a_goal_that_nothing_reaches_is_refused_by_the_planner():
    game = json.loads(generate_file("look", 102).read_text())
    unreachable = re.sub(r"\(pickupable \S+\)\n", "", game["pddl_problem"])
    with pytest.raises(GameError, match="refuses: "):
        solve({**game, "pddl_problem": unreachable})


# The official games


@pytest.fixture(scope="module")
def official_folder(tmp_path_factory):
    """All games of the folder that `ALL` names; else one a type of the half at hand."""
    if folder := os.environ.get(ALL):
        return Path(folder)
    if not HALF.exists():
        pytest.skip(f"no official games: {HALF.name} is not in the shared folder; or set {ALL}")
    folder = tmp_path_factory.mktemp("official")
    with tarfile.open(HALF) as archive:
        archive.extractall(folder, filter="data")
    seen = Counter()
    for path in sorted(folder.glob("*/*/*/*/game.tw-pddl")):
        prefix = path.parent.parent.name.partition("-")[0]
        seen[prefix] += 1
        if seen[prefix] > 1:
            path.unlink()
    return folder


@needs_engine
def test_official_games_load_in_the_papers_wording_and_the_oracle_wins(
    official_folder, monkeypatch
):
    monkeypatch.setenv("ALFWORLD_DATA", str(official_folder))
    played = Counter()
    for task in tasks("valid_unseen"):
        env = AlfWorld("valid_unseen", task.name)
        room, goal = env.reset().split("\n")
        assert re.fullmatch(
            r"You are in the middle of a room\. Looking quickly around you, you see "
            r"(a \w+ \d+, )+and a \w+ \d+\.",
            room,
        )
        assert goal == f"Your task is to: {read_goal(json.loads(task.path.read_text()))}."
        plan = env.oracle()
        steps = [env.step(action) for action in plan]
        assert steps[-1].reward == 1.0, task
        assert not any(re.search("arrive|move", step.observation) for step in steps), task
        played[task.type] += 1
    assert set(played) == set(KINDS)
