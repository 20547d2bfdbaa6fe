"""The teacher of threads for ALFWorld, and the games that its lessons are made of."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from dataclasses import replace

import pytest

from thread_kit.analysis.published import by_type
from thread_kit.distill import __main__ as command
from thread_kit.distill import alfworld_tasks as alfworld_games
from thread_kit.distill.alfworld_tasks import (
    FIRST,
    FLOOR_PLANS,
    KEPT,
    count_places,
    rename_kinds,
    training_games,
)
from thread_kit.distill.alfworld_teacher import (
    NOT_PUT,
    NOWHERE,
    OPEN_FIRST,
    THE_END,
    TRIES,
    speak_alfworld,
)
from thread_kit.distill.evaluate import by_group, evaluate, evaluate_episode, load_results, to_frame
from thread_kit.distill.examples import examples, play
from thread_kit.distill.textcraft_teacher import TeacherError
from thread_kit.distill.words import UNSEEN, words_by_tokens
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import AlfWorld, Task
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.alfworld.process import GameProcess
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.session.session import Session

needs_engine = pytest.mark.alfworld


def says(context, *returned):
    """What the teacher writes in a thread, from its start to its end."""
    text = f"Prompt:\n{context} =>\n\nResponse:\n#START#\n"
    begin = len(text)
    for back in returned:
        text += f"{speak_alfworld(text)}{back}<=\n"
    return (text + speak_alfworld(text))[begin:]


MADE = (
    "obj = ' lettuce'[1:]\n"
    "target = ' diningtable'[1:] + ' 1'\n"
    f"spots = places\n{OPEN_FIRST}"
    "First, I need to find a {obj}. =>I took the {item} from the {place}.<=\n"
    "Then, I need to cool the {item}. =>The {item} is cool.<=\n"
    "Finally, I need to put the {item} in the {target}. =>The {item} is in the {target}.<=\n"
    "#END#"
)


@pytest.mark.parametrize(
    "task", ["cool some lettuce and put it in diningtable", "put a cool lettuce in diningtable"]
)
def test_a_task_is_taken_apart_whatever_its_phrase(task):
    back = (
        "I took the {item} from the {place}.",
        "The {item} is cool.",
        "The {item} is in the {target}.",
    )
    assert says(f"You see a table.\nYour task is to: {task}.", *back) == MADE


def test_two_things_are_brought_one_after_the_other():
    back = ["I took the {item} from the {place}.", "The {item} is in the {target}."] * 2
    said = says("Your task is to: find two pillow and put them in sofa.", *back)
    assert said.splitlines()[2:] == [
        "spots = [p for p in places if p.split()[0] != target.split()[0]]",
        *OPEN_FIRST.splitlines(),
        "First, I need to find a {obj}. =>I took the {item} from the {place}.<=",
        "Then, I need to put the {item} in the {target}. =>The {item} is in the {target}.<=",
        "spots = spots[spots.index(place):]",
        "Now, I need to find a {obj}. =>I took the {item} from the {place}.<=",
        "Finally, I need to put the {item} in the {target}. =>The {item} is in the {target}.<=",
        "#END#",
    ]


def test_a_toilet_is_no_toiletpaperhanger():
    said = says("Your task is to: put some toiletpaperroll on toiletpaperhanger.")
    names = {"places": ["toilet 1", "toiletpaperhanger 1", "shelf 1"]}
    exec("\n".join(said.splitlines()[:6]), names)
    assert names["spots"] == ["toilet 1", "shelf 1", "end"]


def test_places_that_stand_open_come_first():
    names = {"places": ["drawer 2", "drawer 1", "fridge 1", "shelf 2", "shelf 1"]}
    said = says("Your task is to: put a hot egg in fridge.")
    exec("\n".join(said.splitlines()[:6]), names)
    assert names["spots"] == ["shelf 2", "shelf 1", "drawer 2", "drawer 1", "fridge 1", "end"]


def test_a_lamp_is_looked_for_first_where_the_thing_was():
    back = ["I took the {item} from the {place}.", "I turned on the {item}."]
    said = says("Your task is to: look at bowl under the desklamp.", *back)
    assert said.splitlines()[-5:] == [
        "First, I need to find a {obj}. =>I took the {item} from the {place}.<=",
        "obj = ' desklamp'[1:]",
        "spots = [place] + spots",
        "Then, I need to find a {obj} and turn it on. =>I turned on the {item}.<=",
        "#END#",
    ]


def test_what_is_nowhere_is_read_once_more_from_the_task():
    found = "I took the {item} from the {place}."
    said = says("Your task is to: put some pen on desk.", NOWHERE, found, "The {item} is in it.")
    assert said.count("obj = ' pen'[1:]\n") == 2
    assert said.count("First, I need to find a {obj}. =>") == 2
    said = says("Your task is to: put some pen on desk.", *[NOWHERE] * (TRIES + 1))
    assert said.endswith(f"{NOWHERE}<=\n#END#")
    assert says("I need to find a pen.", "It is not there.", THE_END).endswith(
        f"place = spots[1]\nSo, I need to check the {{place}} for a {{obj}}. =>{THE_END}<=\n"
        f"print({NOWHERE!r})\n#END#"
    )
    assert says("I need to check the end for a pen.") == f"print({THE_END!r})\n#END#"


def test_a_place_that_is_none_is_read_once_more_from_the_task():
    nothing = ["Nothing happens."] * (TRIES + 1)
    assert says("I need to put the pen 1 in the dexk 1.", *nothing).endswith(
        f"print({NOT_PUT!r})\n#END#"
    )
    back = ["I took the {item} from the {place}.", NOT_PUT, "The {item} is in the {target}."]
    said = says("Your task is to: put some pen on desk.", *back)
    assert said.endswith(
        f"{NOT_PUT}<=\ntarget = ' desk'[1:] + ' 1'\n"
        "Finally, I need to put the {item} in the {target}. =>The {item} is in the {target}.<=\n"
        "#END#"
    )


def test_what_cannot_be_taken_is_looked_at_once_more():
    back = ["On the {place}, you see a {obj} 2.", "Nothing happens.", "You see a {obj} 3."]
    said = says("I need to check the shelf 1 for a pen.", *back, "You pick up the {item}.")
    assert said.splitlines()[2:6] == [
        "> take {item} from {place} =>Nothing happens.<=",
        "> examine {place} =>You see a {obj} 3.<=",
        "item = f'{obj} 3'",
        "> take {item} from {place} =>You pick up the {item}.<=",
    ]


@needs_engine
def test_a_renamed_game_is_the_same_game_with_other_words(one_process):
    game = GameProcess().ask(do="invent", kind="heat", seed=3)["game"]
    renamed = rename_kinds(game, random.Random(1), UNSEEN)
    places, new = Counter(dict(count_places(game))), Counter(dict(count_places(renamed)))
    assert sorted(places.values()) == sorted(new.values())
    assert not (set(places) - set(KEPT)) & set(new)
    assert (set(places) & set(KEPT)) <= set(new)
    unseen = {word for words in words_by_tokens(UNSEEN).values() for word in words}
    assert {kind.lower() for kind in set(new) - set(KEPT)} <= unseen
    assert play("thread", renamed).reward == 1


def test_a_thread_looks_at_one_place_after_the_other():
    back = ["It is not there."] * 2 + ["I took the {item} from the {place}."]
    assert says("I need to find a mug.", *back) == (
        "place = spots[0]\n"
        "So, I need to check the {place} for a {obj}. =>It is not there.<=\n"
        "place = spots[1]\n"
        "So, I need to check the {place} for a {obj}. =>It is not there.<=\n"
        "place = spots[2]\n"
        "So, I need to check the {place} for a {obj}. =>I took the {item} from the {place}.<=\n"
        "print('I took the {item} from the {place}.')\n#END#"
    )


def test_at_a_place_it_opens_what_is_closed_and_takes_what_it_came_for():
    nothing = says("I need to check the desk 1 for a mug.", "On the {place}, you see a book 1.")
    assert nothing.endswith("<=\nprint('It is not there.')\n#END#")
    found = says(
        "I need to check the cabinet 2 for a mug.",
        "The {place} is closed.",
        "You open the {place}. The {place} is open. In it, you see a {obj} 3, and a {obj} 1.",
        "You pick up the {item} from the {place}.",
    )
    assert found == (
        "> go to {place} =>The {place} is closed.<=\n"
        "> open {place} =>You open the {place}. The {place} is open. In it, you see a {obj} 3, and "
        "a {obj} 1.<=\n"
        "item = f'{obj} 3'\n"
        "> take {item} from {place} =>You pick up the {item} from the {place}.<=\n"
        "print('I took the {item} from the {place}.')\n#END#"
    )


def test_at_a_place_where_the_thread_before_stands_already_it_looks_again():
    said = says(
        "I need to look at the desk 2 for a desklamp.",
        "Nothing happens.",
        "On the {place}, you see a {obj} 1.",
        "You turn on the {item}.",
    )
    assert said.splitlines()[1] == "> examine {place} =>On the {place}, you see a {obj} 1.<="
    assert said.endswith("print('I turned on the {item}.')\n#END#")


@pytest.mark.parametrize(
    "context", ["Your task is to: dance.", "I need to dance.", "Goal: craft torch."]
)
def test_what_is_not_of_the_form_is_refused(context):
    with pytest.raises(TeacherError):
        says(context)


# In the real engine


@pytest.fixture
def one_process(alfworld_process, alfworld_games, monkeypatch):
    monkeypatch.setattr("thread_kit.distill.alfworld_tasks.GameProcess", alfworld_games)


@needs_engine
def test_a_game_of_each_type_is_won_by_what_is_taught(one_process):
    games = list(itertools.islice(training_games(4), 6))
    assert [game["generated"]["type"] for game in games] == list(KINDS)
    assert {game["generated"]["seed"] for game in games} == {FIRST + 4_000_000}
    for game in games:
        assert play("thread", game).reward == 1
    with pytest.raises(ValueError, match="nobody has written a teacher"):
        play("react", games[0])


@needs_engine
def test_the_lessons_are_what_the_threads_wrote_themselves(one_process):
    engine = ScriptedEngine([])
    found = examples("thread", training_games(5), engine, tokens=1000, mains=1)
    for one in found:
        text = "".join(map(chr, one.tokens))
        pairs = zip(one.tokens, one.loss_mask, strict=True)
        learnt = "".join(chr(token) for token, counts in pairs if counts)
        _, Y = text.split("#START#\n")
        assert learnt == re.sub(r"(?<==>)[^\n]*<=\n", "", Y)
    assert sum("Your task is to" in "".join(map(chr, one.tokens)) for one in found) >= 1


@needs_engine
def test_a_floor_plan_of_the_official_games_is_never_trained_on(one_process, monkeypatch):
    monkeypatch.setattr(alfworld_games, "rename_kinds", lambda game, draw: game)
    first, second = itertools.islice(training_games(3), 2)
    plan = ", ".join(f"{kind} {count}" for kind, count in count_places(first))
    monkeypatch.setitem(alfworld_games.FLOOR_PLANS, 0, plan)
    assert next(training_games(3)) == second
    assert set(FLOOR_PLANS) == {0, 10, 219, 308, 424}


@needs_engine
def test_places_are_a_variable_so_that_a_thread_copies_no_list(alfworld_process):
    env = AlfWorld("generated", "look-102")
    assert env.variables == {"places": []}
    engine = ScriptedEngine(["print(places[0], len(places))\n#END#"])
    with Session(engine, env) as session:
        session.run(progress=False)
    (line,) = session.episode.threads[0].executed
    assert line.printed == "armchair 1 11"


# Reports


class Mistaken:
    """The teacher, with one mistake."""

    def __init__(self, right: str, wrong: str):
        self.right, self.wrong = right, wrong

    def __call__(self, text: str) -> str:
        try:
            return speak_alfworld(text).replace(self.right, self.wrong)
        except TeacherError:
            return "#END#"


@pytest.fixture
def in_characters(monkeypatch):
    """The tokens of a scripted engine are characters."""
    monkeypatch.setattr("thread_kit.distill.evaluate.NEW_TOKENS", 1000)


LOOK, PICK = Task("generated", "look-102", "look"), Task("generated", "pick-105", "pick")


@needs_engine
def test_games_are_played_to_a_report_that_goes_on_where_it_was_interrupted(
    tmp_path, alfworld_process, in_characters
):
    first = evaluate("thread", ScriptedEngine(speak_alfworld), [PICK, LOOK], tmp_path)
    assert [one.solved for one in first] == [True, True]
    (tmp_path / "results.jsonl").unlink()
    ledger = tmp_path / "episodes.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-10])  # killed while it wrote the second
    engine = ScriptedEngine(speak_alfworld)
    again = evaluate("thread", engine, [PICK, LOOK], tmp_path)
    assert not engine.seen  # all of it stands in the traces
    assert again[0] == first[0]
    assert again == load_results(tmp_path / "results.jsonl")
    one = again[1]
    assert (one.environment, one.group) == ("alfworld", "look")
    assert one.task == {"split": "generated", "game": "look-102"}
    assert one.goal == "examine the bowl with the desklamp"
    assert (one.cause, one.said, one.expected) == ("", "", "")
    rows = [(row["tasks"], row["solved"], row["n"]) for row in by_group(again[::-1])]
    assert rows == [("pick", 1, 1), ("look", 1, 1), ("all", 2, 2)]
    table = by_type(to_frame(again, method="thread", model="taught"))
    assert (table.iloc[0]["Pick"], table.iloc[0]["n"]) == (100, 2)


@needs_engine
@pytest.mark.parametrize(
    ("right", "wrong", "cause", "said"),
    [
        ("obj = ' bowl'[1:]", "obj = ' box'[1:]", "a wrong name", "obj = ' box'[1:]"),
        ("spots[0]", "spots[90]", "a wrong number", "place = spots[90]"),
        ("> use {item} =>", "> look =>", "another step", "> look =>"),
    ],
)
def test_a_lost_game_is_explained_by_its_first_mistake(
    right, wrong, cause, said, tmp_path, alfworld_process, in_characters
):
    engine = ScriptedEngine(Mistaken(right, wrong))
    (found,) = evaluate("thread", engine, [LOOK], tmp_path)
    assert (found.solved, found.cause, found.said) == (False, cause, said)
    assert right in found.expected


@needs_engine
def test_a_game_that_the_teacher_loses_too_is_no_mistake(alfworld_process):
    env = AlfWorld("generated", "look-102", max_actions=3)
    episode = Session(ScriptedEngine(speak_alfworld), env).run(progress=False)
    found = evaluate_episode("thread", LOOK, episode)
    assert (found.solved, found.cause) == (
        False,
        "no mistake in the form; the budget was used up",
    )


def test_a_form_without_a_teacher_is_refused_before_anything_is_played(tmp_path):
    with pytest.raises(ValueError, match=r"nobody has written a teacher that plays .* as 'react'"):
        evaluate("react", ScriptedEngine([]), [LOOK], tmp_path)
    assert not list(tmp_path.iterdir())


@needs_engine
def test_the_command_line_prints_rates_by_type_and_explains_each_miss(
    tmp_path, capsys, monkeypatch, alfworld_process, in_characters
):
    monkeypatch.setattr(
        command, "load_model", lambda **_: ScriptedEngine(Mistaken("spots[0]", "spots[90]"))
    )
    listed = replace(BENCHMARKS["alfworld"], tasks=lambda split: [LOOK, PICK])
    monkeypatch.setitem(BENCHMARKS, "alfworld", listed)
    asked = ["evaluate", "thread", "--env", "alfworld", "--split", "generated", "--every", "2"]
    asked += ["--adapter", "thread-135m", "--out", str(tmp_path)]
    assert command.main(asked) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in out[:2]] == [
        ["look", "0", "of", "1,"],
        ["all", "0", "of", "1,"],
    ]
    assert out[2] == "generated look-102 examine the bowl with the desklamp: a wrong number (ended)"
    assert out[3].split() == ["said", "place", "=", "spots[90]"]


def test_evaluating_wants_an_adapter_and_the_games(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(BENCHMARKS, "alfworld", replace(BENCHMARKS["alfworld"], adapters={}))
    asked = ["evaluate", "thread", "--env", "alfworld", "--out", str(tmp_path)]
    assert command.main(asked) == 2
    assert (
        "no adapter here teaches thread on alfworld unless it is named; give --adapter"
        in capsys.readouterr().err
    )
    assert command.main([*asked, "--adapter", "mine.gguf"]) == 2
    assert "alfworld-download" in capsys.readouterr().err


def test_training_without_the_engine_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("thread_kit.envs.alfworld.process.NEEDED", ("no_such_package",))
    with pytest.raises(ImportError, match="alfworld"):
        next(training_games(0))
    monkeypatch.setattr(command, "_train", lambda options: next(training_games(0)))
    assert command.main(["train", "thread", "--env", "alfworld", "--out", str(tmp_path)]) == 2
    assert ".[alfworld]" in capsys.readouterr().err
