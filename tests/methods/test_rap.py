"""RAP: which logs are found for which situation, and what the model reads of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import play

from thread_kit.envs.env import Env, Step
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.memories import make_log
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.memory import Index, Log, LogMemory, read_records, write_records
from thread_kit.methods.rap import RetrievalKey, cut, parse_key, rap
from thread_kit.paths import resource
from thread_kit.prompts import EMPTY, Example, Prompt, load_prompt
from thread_kit.requests import Status
from thread_kit.trace.events import Acted, Observed

KEY = Prompt("key", (Example("key", "#END#"),))

MUG = Log(
    "Task: heat a mug.",
    "heat",
    "I take a mug and heat it.",
    (
        ("think: I look for a mug.", "OK."),
        ("> go to desk 1", "You see a mug 1."),
        ("> take mug 1", "You take it."),
        ("> heat mug 1", "It is hot."),
    ),
)
PEN = Log(
    "Task: put a pen on the shelf.",
    "pick",
    "I take a pen and put it on the shelf.",
    (("> go to drawer 1", "You see a pen 1."), ("> put pen 1 on shelf 1", "Done.")),
)
MEMORY = LogMemory([PEN, MUG])


class House(Env):
    """Heating a cup wins."""

    name = "house"

    def __init__(self) -> None:
        self.task = {}

    def reset(self) -> str:
        return "A house.\nTask: heat a cup."

    def step(self, action: str) -> Step:
        won = action == "heat cup 1"
        return Step("It is hot." if won else f"You {action}.", float(won), won, False, {})

    def again(self) -> House:
        return House()

    def oracle(self) -> list[str]:
        return ["go to desk 1", "take cup 1 from desk 1", "heat cup 1"]


def by_role(plan, keys, steps):
    """A script: the plan, keys in order, steps in order."""
    keys, steps = list(keys), list(steps)

    def speak(text):
        if text.startswith(KEY.text):
            return keys.pop(0)
        if "\nPlan: " not in text.rpartition("Prompt:\n")[2]:
            return plan
        return steps.pop(0)

    return speak


def remember(speak, **options):
    program = partial(rap, **{"memory": MEMORY, "key": KEY, "kind": "heat", **options})
    return play(program, speak, env=House(), prompt=EMPTY, prompts=[KEY], new_tokens=10**5)


# The retriever


def test_a_log_is_scored_by_task_kind_plan_and_its_best_step():
    assert [log for log, _ in MEMORY.find("heat a mug", k=2)] == [MUG, PEN]
    assert MEMORY.find("heat a mug", k=1)[0][1] == 0
    assert MEMORY.find("none of these", "pick", k=1)[0][0] is PEN
    assert MEMORY.find("x", "", "put it on the shelf", k=1)[0][0] is PEN
    assert MEMORY.find("x", seen="mug", k=1) == [(MUG, 1)]  # where a mug was seen
    assert MEMORY.find("x", action="heat", k=1) == [(MUG, 3)]  # where something was heated
    assert MEMORY.find("x", action="put", k=1) == [(PEN, 1)]


def test_of_equal_logs_the_first_comes_first_and_an_empty_memory_finds_nothing():
    assert [log for log, _ in MEMORY.find("zzz", k=5)] == [PEN, MUG]
    assert LogMemory([]).find("heat", k=3) == []
    assert Index(["", "the a"]).score("heat") == [0.0, 0.0]


def test_a_score_is_a_share_of_the_best():
    scores = Index(["heat a mug", "heat", "a pen"]).score("heats mugs")
    assert max(scores) == scores[0] == 1.0
    assert 0 < scores[1] < 1
    assert scores[2] == 0


def test_steps_are_cut_around_the_one_that_is_like_the_key():
    dialect = EMPTY.dialect
    assert cut(MUG, 2, 1, dialect) == (
        "> go to desk 1 =>You see a mug 1.<=\n> take mug 1 =>You take it.<=\n"
    )
    assert cut(PEN, 0, 10, dialect).count("=>") == 2


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("search: mug", RetrievalKey(seen="mug")),
        ("Action: take\nmore", RetrievalKey(action="take")),
        ("I would search: mug", RetrievalKey(seen="mug")),
        ("> action: take. search: mug", RetrievalKey(seen="mug")),
        ("take", RetrievalKey()),
        ("", RetrievalKey()),
    ],
)
def test_a_key_searches_or_acts(text, key):
    assert parse_key(text) == key


# The episode


def test_the_plan_is_made_from_the_plans_of_like_tasks_and_logs_are_found_anew_by_each_thought():
    steps = [
        "> go to desk 1 =>",
        "think: Now I heat cup 1. =>",
        "> heat cup 1 =>",
    ]
    episode = remember(by_role("I heat the cup.#END#", ["action: heat#END#"], steps))
    assert episode.reward == 1
    assert [event.action for event in of_kind(episode, Acted)] == ["go to desk 1", "heat cup 1"]
    contexts = [thread.context.text for thread in episode.threads.values()]
    # The plan's examples, the likest first.
    assert contexts[1].startswith(f"Prompt:\n{MUG.task}\n\nResponse:\n#START#\n{MUG.plan}#END#")
    assert contexts[1].endswith("Prompt:\nTask: heat a cup.\n\nResponse:\n#START#\n")
    # The executor's, and its own task with the plan.
    asked = "Prompt:\nA house.\nTask: heat a cup.\nPlan: I heat the cup.\n\nResponse:\n#START#\n"
    assert contexts[2].endswith(asked)
    assert f"{MUG.task}\nPlan: {MUG.plan}" in contexts[2]
    assert contexts[4] == "Prompt:\nthink: Now I heat cup 1.\n\nResponse:\n#START#\n"
    last = episode.threads[5].sequence.text
    assert last.startswith("> go to desk 1 =>You go to desk 1.<=\nthink: Now I heat cup 1. =>OK.<=")
    observed = [event.span.text for event in of_kind(episode, Observed)]
    assert observed == ["You go to desk 1.<=\n", "It is hot.<=\n"]  # no answer to a thought


def test_no_log_ends_where_its_window_does():
    steps = ["> heat cup 1 =>"]
    episode = remember(by_role("p#END#", [], steps))
    executor = episode.threads[2].context.text
    assert MUG.steps[-1][0] in executor
    assert "#END#" not in executor


def test_a_plan_that_is_cut_counts_as_far_as_it_goes():
    """RAP's code: it stops at the line's end, or where its tokens do."""
    program = partial(rap, memory=MEMORY, key=KEY, kind="heat")
    options = {"env": House(), "prompt": EMPTY, "prompts": [KEY]}
    episode = play(program, lambda text: "a" * 30, new_tokens=20, **options)
    asked = episode.threads[2].context.text.rpartition("Prompt:\n")[2]
    plan = f"Plan: {'a' * 20}"
    assert asked == f"A house.\nTask: heat a cup.\n{plan}\n\nResponse:\n#START#\n"


@pytest.mark.parametrize("end", [" =>", "\n#END#", ""])
def test_a_thought_makes_a_key_wherever_its_reply_ends(end):
    steps = [f"think: I look for a cup.{end}", "> heat cup 1 =>"]
    episode = remember(by_role("p#END#", ["search: cup#END#"], steps))
    assert any(thread.prompt == KEY.sha256 for thread in episode.threads.values())


def test_a_key_that_searches_shows_few_steps_of_many_logs():
    logs = [
        Log("Task: heat a cup.", "heat", "", tuple((f"> {n} {m}", "x") for m in range(30)))
        for n in range(12)
    ]
    steps = ["think: I look for a cup. =>", "think: I put it. =>", "> heat cup 1 =>"]
    keys = ["search: x#END#", "action: 3#END#"]
    episode = remember(by_role("p#END#", keys, steps), memory=LogMemory(logs))
    shown = [thread.context.text.count("Prompt:") - 1 for thread in episode.threads.values()]
    assert (shown[2], shown[4], shown[6]) == (4, 8, 4)
    texts = [thread.context.text.count("=>x<=") for thread in episode.threads.values()]
    assert (texts[2], texts[4]) == (4 * 10, 8 * 5)


def test_where_there_is_no_key_the_logs_stay():
    steps = ["think: heat. =>", "think: hm. =>", "> heat cup 1 =>"]
    keys = ["action: heat#END#", "I do not know#END#"]
    logs = [
        Log("Task: heat a cup.", "heat", "", tuple((f"> {n} {m}", "x") for m in range(30)))
        for n in range(12)
    ]
    logs.append(Log("Task: heat a cup.", "heat", "", (("> heat it", "x"),)))
    episode = remember(by_role("p#END#", keys, steps), memory=LogMemory(logs))
    assert episode.reward == 1
    first, second, third = (episode.threads[n].context.text for n in (2, 4, 6))
    assert "> heat it" not in first
    assert "> heat it" in second
    assert second == third


def test_what_only_begins_like_a_thought_is_done():
    steps = ["> think of a cup =>", "> heat cup 1 =>"]
    episode = remember(by_role("p#END#", [], steps))
    assert [event.action for event in of_kind(episode, Acted)] == ["think of a cup", "heat cup 1"]


def test_a_thought_above_an_action_is_a_key_and_a_step_of_its_own():
    """The released code asks for each line by a call; a model may write several in one."""
    steps = ["think: heat.\n> go to pen =>", "> heat cup 1 =>"]
    keys = ["action: heat#END#"]
    episode = remember(by_role("p#END#", [*keys], [*steps]))
    assert episode.reward == 1
    assert [t.context.text for t in episode.threads.values() if "think: heat.\n" in t.context.text]
    assert remember(by_role("p#END#", [*keys], [*steps]), iterations=2).reward == 0


def test_without_plans_the_key_is_the_thought_or_what_was_seen():
    steps = ["> go to pen =>", "> think[heat] =>", "> heat cup 1 =>"]
    program = partial(rap, memory=LogMemory([MUG, replace(PEN, task=MUG.task)]))
    episode = play(program, steps, env=House(), prompt=EMPTY, prompts=[], new_tokens=10**5)
    assert episode.reward == 1
    assert len(episode.threads) == 4
    assert episode.threads[2].context.text.startswith(
        f"Prompt:\n{MUG.task}\nPlan: {PEN.plan}"
    )  # a pen was seen
    assert "> think[heat] =>OK.<=\n" in episode.threads[3].sequence.text
    assert episode.threads[3].context.text.startswith(f"Prompt:\n{MUG.task}\nPlan: {MUG.plan}")


@pytest.mark.parametrize("words", ["think: Task completed! =>", "Task failed!\n#END#"])
def test_what_it_says_of_itself_ends_nothing(words):
    """As in the released code: the game does, or the steps."""
    episode = remember(by_role("p#END#", ["action: heat#END#"], [words, "> heat cup 1 =>"]))
    assert episode.reward == 1


@pytest.mark.parametrize("reply", ["no action =>", "#END#", "Task failed!\n#END#", "a" * 10])
def test_whatever_the_model_writes_ends_in_order(reply):
    program = partial(rap, memory=MEMORY, iterations=3)
    episode = play(program, lambda text: reply, env=House(), prompt=EMPTY, prompts=[])
    assert episode.status in (Status.ENDED, Status.OUT_OF_CALLS, Status.END_OF_STREAM)


# Its memory and its prompt


def test_a_log_is_what_the_oracle_does_with_its_thoughts():
    log = make_log(House())
    assert log.plan == "I find and take a cup, then heat it."
    assert log.task == "Task: heat a cup."
    assert [action for action, _ in log.steps] == [
        "think: I look for a cup.",
        "> go to desk 1",
        "think: There is cup 1. I take it.",
        "> take cup 1 from desk 1",
        "think: Now I heat cup 1.",
        "> heat cup 1",
    ]


def test_logs_of_the_shop_think_before_what_they_choose():
    """As the trajectories of the released code do, whose thoughts are the keys there."""
    for record in read_records(resource("data/memories") / "rap-webshop.jsonl"):
        steps = [step for step, _ in record["steps"]]
        acts = [n for n, step in enumerate(steps) if step.startswith("> ") and step != "> load"]
        assert all(steps[number - 1].startswith("think: ") for number in acts)
        assert steps[-2:] == [
            "think: All that was asked for is chosen. I buy it.",
            "> click[Buy Now]",
        ]


def test_a_full_stop_behind_an_action_is_taken_away_as_in_the_released_code():
    episode = remember(by_role("Heat it.#END#", [], ["> heat cup 1. =>"]))
    assert episode.reward == 1


def test_a_memory_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "memories" / "rap-x.jsonl"
    write_records(path, [MUG, PEN])
    assert [Log.of(record) for record in read_records(path)] == [MUG, PEN]
    path.write_text("{")
    with pytest.raises(ValueError, match="no record of a memory"):
        read_records(path)
    with pytest.raises(ValueError, match="no log of an episode"):
        Log.of({"task": "x"})


def test_where_there_is_no_memory_the_command_that_makes_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("THREAD_KIT_MEMORIES", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"thread_kit\.experiments\.memories rap --env"):
        load_method("rap", "webshop")


@pytest.mark.parametrize("name", ["alfworld", "webshop"])
def test_the_kits_memories_are_won_episodes_of_train_tasks(name):
    records = read_records(resource("data/memories") / f"rap-{name}.jsonl")
    logs = [Log.of(record) for record in records]
    assert len(logs) >= 10
    assert all(log.steps for log in logs)
    if name == "webshop":
        goals = [BENCHMARKS[name].environment(split="train", number=n) for n in range(60)]
        by_task = {env.reset(): env for env in goals}
        for log in logs:  # what was seen is what the shop of now shows
            took = [(step, seen) for step, seen in log.steps if step.startswith("> ")]
            env = by_task[log.task]
            shown = [env.step(step.removeprefix("> ")).observation.strip() for step, _ in took]
            assert shown == [seen for _, seen in took]
        assert all(log.steps[-1][0] == "> click[Buy Now]" for log in logs)
    else:
        assert {log.kind.removeprefix("alfworld-") for log in logs} == {
            *("pick", "clean", "heat", "cool", "look", "pick2")
        }


def test_the_keys_of_the_prompt_are_words_of_their_thoughts():
    for example in load_prompt("rap/alfworld-key").examples:
        key = parse_key(example.response.removesuffix("#END#"))
        word = key.seen or key.action
        assert word in example.context
        assert bool(key.seen) == ("look for" in example.context)
