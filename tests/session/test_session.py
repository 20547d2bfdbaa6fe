"""Sessions over a scripted engine: order, exchange, budgets, hostile text, failures, workers."""

import gc
import pickle
import re
import resource
import threading
from contextlib import contextmanager
from itertools import pairwise

import pytest
from helpers.episodes import count_seconds, ended_within, is_on_disk, of_kind, outputs
from hypothesis import given, settings
from hypothesis import strategies as st

import thread_kit as tk
from thread_kit.dialect import AGENT, QA, QA_ASYNC, Dialect, Stop
from thread_kit.engines.engine import EngineError
from thread_kit.engines.replay import ReplayEngine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.env import Env, Step
from thread_kit.envs.registry import find_benchmark
from thread_kit.envs.textcraft.env import TextCraft, tasks
from thread_kit.exchange import as_observed, phi_full_sequence, psi_full_sequence
from thread_kit.prompts import EMPTY, Example, Prompt
from thread_kit.requests import Status
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.sandbox import Sandbox, SandboxResult
from thread_kit.sequence import Provenance
from thread_kit.session import effects
from thread_kit.session.session import Session, fork
from thread_kit.session.worker import Worker
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    Acted,
    Closed,
    Ended,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Pictured,
    Prompted,
    Returned,
    Spawned,
    Token,
    to_json,
)
from thread_kit.trace.jsonl import to_line

ONE = Prompt("one", (Example("Do it. =>", "print('Done.')\n#END#"),))
OTHER = Prompt("other", (Example("Go on. =>", "print('Gone.')\n#END#"),))


@pytest.fixture
def start(sandbox, tmp_path):
    """A session on these replies; its trace goes to a file, its code to the shared sandbox."""

    def make(*replies: str, env: Env | None = None, **options) -> Session:
        options.setdefault("context", "Do it. =>" if env is None else None)
        options.setdefault("path", tmp_path / "episode.jsonl")
        options.setdefault("sandbox", sandbox)
        engine = options.pop("engine", None) or ScriptedEngine(replies)
        return Session(engine, env, **options)

    return make


def returned_texts(episode: Episode) -> list[str]:
    return [event.span.text for event in of_kind(episode, Returned)]


class Door(Env):
    """An environment of one task: open the door. Whatever follows is refused and earns nothing."""

    name = "door"

    def __init__(self) -> None:
        self.task = {"number": 0}
        self.actions: list[str] = []

    def reset(self) -> str:
        return "There is a door."

    def step(self, action: str) -> Step:
        self.actions.append(action)
        opened = action == "open"
        text = "The door is open" if opened else "Nothing happens"
        return Step(text, float(opened), opened, False, {"actions": len(self.actions)})

    def again(self) -> Env:
        return Door()

    def oracle(self) -> list[str]:
        return ["open"]


# The episode of THREAD paper, appendix G.5


def g5_replies(commands: list[str]) -> list[str]:
    """What a model would write for "craft dark oak sign", in the order of its calls."""
    sign = "craft 3 dark oak sign using 6 dark oak planks, 1 stick"
    planks = "craft 4 dark oak planks using 1 dark oak logs"
    check = "To start, I first need to check if I can get {total} {precursor}. =>"
    again = (
        "To craft {precursor}, I need to perform the following action until I have at least "
        "{total} {precursor}: {command} =>"
    )
    return [
        # Thread 0
        f"commands = {commands!r}\n"
        "items = [c.split(' using ')[0].split(' ', 2)[2] for c in commands]\n"
        "target_item = 'dark oak sign'\n"
        "target_item_count_total = 1\n"
        "idx = items.index(min([x for x in items if target_item in x], key=len))\n"
        "target_craft_command = commands[idx]\n"
        "To craft {target_item}, I need to perform the following action until I have at least "
        "{target_item_count_total} {target_item}: {target_craft_command} =>",
        # Thread 1
        "target_item = 'dark oak sign'\n"
        "precursor = 'dark oak planks'\n"
        "reps = -(-1 // 3)\n"
        "total = 6 * reps\n" + check,
        # Thread 2: cannot get planks
        "get_item = 'dark oak planks'\nget_item_count_total = 6\n"
        "> get {get_item_count_total} {get_item} =>",
        "I cannot get the {get_item}.\nprint('You cannot get the material.')\n#END#",
        # Thread 1 crafts them
        f"Since I cannot get {{precursor}}, I need to craft it.\ncommand = {planks!r}\n" + again,
        # Thread 3
        "target_item = 'dark oak planks'\n> get 2 dark oak logs =>",
        "> craft 4 {target_item} using 1 dark oak logs =>",
        "> craft 4 {target_item} using 1 dark oak logs =>",
        "print('You have completed the action.')\n#END#",
        # Thread 1 needs a stick
        "precursor2 = 'stick'\ncommand2 = 'craft 4 stick using 2 dark oak planks'\n"
        "To craft {precursor2}, I need to perform the following action: {command2} =>",
        # Thread 4
        "> craft 4 stick using 2 dark oak planks =>",
        "made = 'stick'\nprint('You have completed the action and made 4 {made}.')\n#END#",
        # Thread 1
        f"Finally, I will perform the action 1 time: {{made}} is there.\n> {sign} =>",
        "print('You have completed the action.')\n#END#",
        # Thread 0
        "#END#",
    ]


@pytest.fixture
def g5(run):
    number = next(task.number for task in tasks("test") if task.goal == "dark oak sign")
    commands = list(tasks("test")[number].commands)
    engine = ScriptedEngine(g5_replies(commands))
    env = TextCraft("test", number)
    return run(engine=engine, env=env, prompt=ONE, new_tokens=5000), engine


def test_the_marks_are_those_of_the_prompt_that_is_shown():
    shown = Prompt("other", (Example("task", "print('x')\n#END#"),), Dialect(listen="~~"))
    replies = ["Find it. ~~", "print('here')\n#END#", "#END#"]
    for name in ("prompt", "main_prompt"):
        session = Session(ScriptedEngine(list(replies)), context="task", **{name: shown})
        assert len(session.run(progress=False).threads) == 2


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (tk.TextCraft, "textcraft"),
        (tk.AlfWorld, "alfworld"),
        (tk.DataCommonsQA, "datacommons"),
        (tk.IcuQA, "icu"),
        (tk.WebShop, "webshop"),
        (tk.InterCodeSql, "sql"),
        (tk.InterCodeBash, "bash"),
    ],
)
def test_an_environment_has_the_marks_of_its_benchmark(env, name):
    assert env.dialect == find_benchmark(name).dialect


def test_what_an_environment_calls_its_dialect_are_marks():
    class Sql(TextCraft):
        dialect = "mysql"

    with pytest.raises(ValueError, match=r"Sql.dialect is 'mysql'; the marks of threads stand"):
        Session(ScriptedEngine(["#END#"]), Sql("dev", 47))


@pytest.mark.statistics
def test_without_examples_the_marks_are_those_of_the_environment():
    question = DataCommonsQA("train", 0, weaker_sandbox=True)
    none = pickle.loads(pickle.dumps(EMPTY))
    for own, dialect in (({}, QA), ({"prompt": none}, QA), ({"dialect": QA_ASYNC}, QA_ASYNC)):
        with Session(ScriptedEngine(["#END#"]), question.again(), **own) as session:
            assert Dialect.of(session.episode.header["dialect"]) == dialect


def test_a_session_that_cannot_write_closes_its_sandbox():
    class House(TextCraft):
        made: MontySandbox

        def sandbox(self):
            self.made = MontySandbox()
            return self.made

    env = House("dev", 0)
    with pytest.raises(OSError, match="nope"):
        Session(ScriptedEngine([]), env, path="/proc/nope/x.jsonl")
    assert "closed" in repr(env.made)


def test_the_papers_episode_crafts_the_sign(g5):
    episode, _ = g5
    assert episode.status is Status.ENDED
    assert episode.reward == 1.0
    assert {one.status for one in episode.threads.values()} == {Status.ENDED}
    assert [one.parent for one in episode.threads.values()] == [None, 0, 1, 1, 1]
    assert [one.depth for one in episode.threads.values()] == [0, 1, 2, 2, 2]


def test_the_papers_children_see_their_parents_last_line_behind_the_comma_instantiated(g5):
    episode, _ = g5
    assert episode.threads[1].context.text == (
        "Prompt:\nI need to perform the following action until I have at least 1 dark oak sign: "
        "craft 3 dark oak sign using 6 dark oak planks, 1 stick =>\n\nResponse:\n#START#\n"
    )
    assert [episode.threads[n].title for n in (2, 3, 4)] == [
        "I first need to check if I can get 6 dark oak planks.",
        "I need to perform the following action until I have at least 6 dark oak planks: "
        "craft 4 dark oak planks using 1 dark oak logs",
        "I need to perform the following action: craft 4 stick using 2 dark oak planks",
    ]


def test_the_papers_observations_speak_by_names(g5):
    episode, _ = g5
    texts = [event.span.text for event in of_kind(episode, Observed)]
    assert texts[0] == "Could not find {get_item}<=\n"
    assert texts[2] == "Crafted 4 minecraft:{target_item}<=\n"
    assert texts[-1] == "Crafted 3 minecraft:{target_item}<=\n"
    assert [event.observation for event in of_kind(episode, Acted)][2] == (
        "Crafted 4 minecraft:dark_oak_planks"
    )


def test_the_papers_actions_are_instantiated(g5):
    episode, _ = g5
    assert [event.action for event in of_kind(episode, Acted)] == [
        "get 6 dark oak planks",
        "get 2 dark oak logs",
        "craft 4 dark oak planks using 1 dark oak logs",
        "craft 4 dark oak planks using 1 dark oak logs",
        "craft 4 stick using 2 dark oak planks",
        "craft 3 dark oak sign using 6 dark oak planks, 1 stick",
    ]


def test_what_came_back_in_the_papers_episode_names_its_variables(g5):
    episode, _ = g5
    back = of_kind(episode, Returned)
    assert [(event.thread, event.child) for event in back] == [(1, 2), (1, 3), (1, 4), (0, 1)]
    assert back[2].span.text == "You have completed the action and made 4 {made}.<=\n"
    assert back[2].variables == {"made": "stick"}
    assert episode.threads[1].variables["made"] == "stick"
    assert "made" not in episode.threads[0].variables


def test_in_the_papers_episode_a_parent_listens_until_its_child_is_over(g5):
    episode, _ = g5
    assert_join_order(episode)


def test_every_call_sees_prompt_context_and_sequence(g5):
    episode, engine = g5
    spans: dict[int, str] = {}
    calls = iter(engine.seen)
    for event in episode.events:
        if isinstance(event, GeneratedSpan):
            q = episode.prompt(event.thread).text
            c = episode.threads[event.thread].context.text
            assert q == ONE.text
            assert next(calls) == q + c + spans.get(event.thread, "")
        if isinstance(event, GeneratedSpan | Observed | Returned):
            spans[event.thread] = spans.get(event.thread, "") + event.span.text
    assert next(calls, None) is None


def test_the_papers_work_is_where_the_children_worked(g5):
    episode, _ = g5
    work = episode.supplemental_work(0)
    start, stop = episode.threads[0].returned[1]
    below = sum(episode.threads[n].usage.generated for n in (1, 2, 3, 4))
    assert work[start:stop] == [below] * (stop - start)
    assert sum(work[:start]) + sum(work[stop:]) == 0


def assert_join_order(episode: Episode) -> None:
    """Between the spawn of a child and its return, nothing happens in its parent."""
    listening: list[int] = []
    for event in episode.events:
        match event:
            case Spawned(parent=None):
                listening = [event.thread]
            case Spawned():
                assert event.parent == listening[-1]
                listening.append(event.thread)
            case Ended():
                assert event.thread == listening.pop()
            case Prompted() | Closed():
                pass
            case _:
                assert event.thread == listening[-1]
    assert listening == []


# Exchange and scope


def test_what_a_child_names_comes_up_and_nothing_else(run):
    episode = run(
        "a = 1\nFind it. =>",
        "found = 'mug 1'\nsecret = 2\nprint('I have {found}.')\n#END#",
        "print(found)\nprint(secret)\n#END#",
    )
    assert outputs(episode, 0)[1] == "mug 1"
    assert "NameError" in outputs(episode, 0)[2]
    assert episode.threads[0].variables == {"a": 1, "found": "mug 1"}


def test_names_come_up_through_every_level_that_names_them(run):
    episode = run(
        "Find it. =>",
        "Look. =>",
        "found = 'mug 1'\nprint('{found}')\n#END#",
        "print('Yes: {found}.')\n#END#",
        "print(found)\n#END#",
    )
    assert outputs(episode, 0) == ["mug 1"]


@pytest.mark.parametrize(("scope", "after"), [("exported", "1"), ("shared", "2")])
def test_a_child_overwrites_its_parents_variables_only_in_a_shared_scope(run, scope, after):
    episode = run(
        "x = 1\nGo. =>",
        "print(x)\nx = 2\nprint('Done.')\n#END#",
        "print(x)\n#END#",
        scope=scope,
    )
    assert outputs(episode, 1)[0] == "1", "a child inherits the variables in every scope"
    assert outputs(episode, 0)[-1] == after


def test_a_second_child_does_not_see_what_the_first_defined_unless_it_came_up(run):
    replies = (
        "Go. =>",
        "x = 1\ny = 2\nprint('{y}')\n#END#",
        "Go on. =>",
        "print(y)\nprint(x)\nprint('Done.')\n#END#",
        "#END#",
    )
    exported = outputs(run(*replies), 2)
    assert exported[0] == "2"
    assert "NameError" in exported[1]
    assert outputs(run(*replies, scope="shared"), 2)[:2] == ["2", "1"]


@pytest.mark.parametrize("value", ["{1, 2}", "(1, 'a')", "None", "float('inf')", "len", "b'x'"])
def test_values_of_any_kind_come_up_and_are_on_disk_as_in_memory(run, value):
    # `run` compares what is on disk.
    episode = run("Go. =>", f"v = {value}\nprint('{{v}}')\n#END#", "print('still here')\n#END#")
    assert outputs(episode, 0) == ["still here"]
    assert "v" in episode.threads[0].variables


def test_a_print_that_fails_returns_its_error(run):
    episode = run("Go. =>", "print(nothing)\n#END#", "#END#")
    assert "NameError" in returned_texts(episode)[0]


@pytest.mark.parametrize("line", ["print(x)", "print(f'It is {{x}}.')", "print('It is', x)"])
@pytest.mark.parametrize("dialect", [AGENT, QA])
def test_a_value_from_before_a_line_failed_is_not_printed_as_the_answer(run, line, dialect):
    said = f"x = undefined\n{line.replace('{{', '{').replace('}}', '}')}\n#END#"
    episode = run("x = 'old'\nI need it. =>", said, "\n#END#", dialect=dialect)
    assert returned_texts(episode)[0].startswith("NameError: name 'undefined'")
    bound = "x = undefined\nx = 'new'\nprint(x)\n#END#"
    episode = run("x = 'old'\nI need it. =>", bound, "\n#END#", dialect=dialect)
    assert returned_texts(episode)[0].startswith("new<=")


def test_a_name_that_has_a_value_again_is_lost_no_more(run):
    half = "x = 1; y = undefined", "print(x)\n#END#"
    episode = run("Go. =>", "\n".join(half), "#END#")
    assert returned_texts(episode) == ["1<=\n"]
    shared = "x = 1\nGo. =>", "x = undefined\nGo. =>", "x = 5\n#END#", "print(x)\n#END#", "#END#"
    episode = run(*shared, scope="shared")
    assert returned_texts(episode)[-1] == "5<=\n"


def test_what_the_code_of_an_action_binds_counts_as_that_of_a_line(run):
    action = "x = undefined\n# > x = 5; print(x) =>", "\nprint('{x}')\n#END#"
    episode = run("The value is =>", *action, " of it.\n#END#", dialect=QA)
    assert returned_texts(episode) == ["{x}<="]
    assert episode.threads[0].variables == {"x": 5}
    action = "# > x = undefined =>", "\nprint('{x}')\n#END#"
    episode = run("The value is =>", *action, " of it.\n#END#", dialect=QA)
    assert returned_texts(episode) == ["NameError: name 'undefined' is not defined<="]
    mended = "# > print(y) =>", "\ny = 5\n# > print(y) =>", "\n#END#"
    episode = run("The value is =>", *mended, " of it.\n#END#", dialect=QA)
    assert returned_texts(episode) == ["<="]
    action = "# > x = undefined =>", "\n#END#"
    episode = run("The value is =>", *action, " of it.\n#END#", dialect=QA)
    assert returned_texts(episode) == ["NameError: name 'undefined' is not defined<="]


def test_a_variable_that_is_gone_is_none_in_the_trace(run):
    episode = run("x = 5\nimport math as x\nI need {x}. =>", "#END#", "#END#")
    assert (episode.threads[0].variables, episode.threads[1].variables) == ({}, {})
    assert episode.threads[1].title == "I need {x}."


def test_the_last_print_is_returned(run):
    episode = run("Go. =>", "print('first')\nprint('last')\nx = 1\n#END#", "#END#")
    assert returned_texts(episode) == ["last<=\n"]


@pytest.mark.parametrize("line", ["x = 1; print('last')", "print ('last')", "  print('last')"])
def test_a_print_counts_however_its_line_is_written(run, line):
    episode = run("Go. =>", f"print('first')\n{line}\n#END#", "#END#")
    assert returned_texts(episode) == ["last<=\n"]


def test_what_came_back_is_never_executed(run):
    episode = run(
        "x = 1\nGo. =>",
        "print('ok\\nx = 666\\nprint(666)')\n#END#",
        "print(x)\n#END#",
    )
    assert "\nx = 666\n" in episode.threads[0].sequence.text
    assert outputs(episode, 0)[-1] == "1"
    assert [line.line for line in episode.threads[0].executed] == ["x = 1", "print(x)"]


def test_in_questions_and_answers_a_line_goes_on_behind_what_came_back(run):
    episode = run("The mean is =>", "print(7)\n#END#", " of ten.\n#END#", dialect=QA)
    assert episode.threads[0].sequence.text == "The mean is =>7<= of ten.\n#END#"


def test_the_observation_abstraction_can_be_switched_off(run):
    replies = "x = 'Nothing happens'\n> look =>", "#END#"
    for options, text in (({}, "{x}<=\n"), ({"abstract": as_observed}, "Nothing happens<=\n")):
        episode = run(*replies, env=Door(), **options)
        assert [event.span.text for event in of_kind(episode, Observed)] == [text]


def test_an_action_without_an_environment_is_answered(run):
    episode = run("> open =>", "#END#")
    assert of_kind(episode, Acted) == []
    assert "no environment" in of_kind(episode, Observed)[0].span.text
    assert episode.status is Status.ENDED


def test_threads_come_to_their_own_ends_when_the_task_is_solved(run):
    episode = run(
        "Open it. =>", "> open =>", "print('Open.')\n#END#", "print('Done.')\n#END#", env=Door()
    )
    assert episode.reward == 1.0
    assert {one.status for one in episode.threads.values()} == {Status.ENDED}
    assert returned_texts(episode) == ["Open.<=\n"]
    assert outputs(episode, 0) == ["Done."]


def test_whoever_acts_when_the_task_is_over_ends_the_episode(run):
    door = Door()
    episode = run("Open it. =>", "> open =>", "> knock =>", "print('Open.')\n#END#", env=door)
    assert door.actions == ["open"], "the environment is left alone once its task is over"
    assert episode.reward == 1.0
    assert {one.status for one in episode.threads.values()} == {Status.TASK_OVER}
    assert episode.usage.calls == 3


# Ablations


def test_without_variables_nothing_is_executed_or_instantiated(run):
    episode = run(
        "x = 'mug'\nFind the {x}. =>",
        "print('I have {x}.')\n#END#",
        "print(x)\n#END#",
        scope="none",
        sandbox=None,
    )
    assert episode.threads[1].title == "Find the {x}."
    assert returned_texts(episode) == ["I have {x}.<=\n"]
    assert all(one.variables == {} for one in episode.threads.values())
    assert episode.header["scope"] == "none"


def test_without_variables_a_sandbox_that_was_given_is_not_used(run):
    episode = run("x = 1\nprint(x + 1)\n#END#", scope="none")
    assert outputs(episode, 0) in ([], [None, None])


def test_with_the_full_sequence_a_child_sees_all_that_its_parent_wrote(run):
    engine = ScriptedEngine(["x = 'mug'\nFirst, find the {x}. =>", "#END#", "#END#"])
    run(engine=engine, phi=phi_full_sequence)
    assert "Prompt:\nx = 'mug'\nFirst, find the mug. =>\n\nResponse:" in engine.seen[1]


def test_the_full_sequence_of_a_child_can_come_back(run):
    episode = run("Go. =>", "thinking\n#END#", "#END#", psi=psi_full_sequence)
    assert returned_texts(episode) == ["thinking\n#END#<=\n"]


def test_the_main_thread_can_have_a_prompt_of_its_own(run):
    engine = ScriptedEngine(["Go. =>", "Go. =>", "#END#", "#END#", "#END#"])
    episode = run(engine=engine, prompt=ONE, main_prompt=OTHER)
    assert engine.seen[0].startswith(OTHER.text + "Prompt:\nDo it.")
    assert engine.seen[1].startswith(ONE.text + "Prompt:\nGo.")
    assert engine.seen[2].startswith(ONE.text)
    assert engine.seen[4].startswith(OTHER.text)
    assert [episode.prompt(n).text for n in (0, 1)] == [OTHER.text, ONE.text]
    assert len(of_kind(episode, Prompted)) == 2


def test_a_prompt_that_all_threads_share_is_evaluated_once(run):
    episode = run("Go. =>", "#END#", "#END#", prompt=ONE)
    assert [event.evaluated for event in of_kind(episode, Prompted)] == [len(ONE.text)]
    assert [event.reused for event in of_kind(episode, GeneratedSpan)][:2] == [len(ONE.text)] * 2


# Budgets


def all_end_as(episode: Episode, status: Status, threads: int) -> None:
    assert episode.status is status
    assert [one.status for one in episode.threads.values()] == [status] * threads
    assert all(one.detail for one in episode.threads.values())
    assert episode.detail
    assert "<=\n" not in returned_texts(episode), "nothing empty came back"


def test_a_spent_budget_of_calls_ends_the_episode_and_says_so(run):
    episode = run(*["Again. =>"] * 10, calls=3)
    all_end_as(episode, Status.OUT_OF_CALLS, 4)
    assert episode.usage.calls == 3
    assert returned_texts(episode) == []


def test_a_call_that_needs_no_budget_is_not_cut_by_one(run):
    assert run("Go. =>", "#END#", "#END#", calls=3).status is Status.ENDED


def test_too_many_new_tokens_in_a_call_truncate_the_thread_and_its_parent_is_told(run):
    episode = run("Go. =>", "x" * 60, "I see.\n#END#", new_tokens=50)
    assert episode.threads[1].status is Status.TRUNCATED
    assert "50" in episode.threads[1].detail
    assert len(episode.threads[1].sequence) == 50
    assert returned_texts(episode) == ["Error: the thread did not finish (truncated).<=\n"]
    assert episode.status is Status.ENDED


def test_a_cut_in_mid_line_is_no_spawn_even_where_the_rest_would_have_been_one(run):
    episode = run("First, I need to find it. =>", new_tokens=20)
    assert len(episode.threads) == 1
    assert episode.status is Status.TRUNCATED


@pytest.mark.parametrize("tokens", [1, 5, 25, 50])
def test_a_spent_budget_of_tokens_ends_the_episode_and_says_so(run, tokens):
    episode = run(*["Again and again. =>"] * 10, tokens=tokens, new_tokens=50)
    all_end_as(episode, Status.OUT_OF_TOKENS, len(episode.threads))
    assert episode.usage.generated == tokens


def test_a_budget_of_tokens_that_is_just_enough_is_enough(run):
    assert run("abc#END#", tokens=8).status is Status.ENDED


def test_a_child_that_is_too_deep_is_refused_and_its_parent_is_told(run):
    engine = ScriptedEngine(["Down. =>", "Down. =>", "#END#", "#END#"])
    episode = run(engine=engine, depth=1)
    assert [one.status for one in episode.threads.values()] == [
        Status.ENDED,
        Status.ENDED,
        Status.OUT_OF_DEPTH,
    ]
    assert episode.threads[2].usage.calls == 0
    assert "out of depth" in returned_texts(episode)[0]
    assert episode.status is Status.ENDED


def test_depth_zero_allows_no_child_at_all(run):
    episode = run("Down. =>", "#END#", depth=0)
    assert episode.threads[1].status is Status.OUT_OF_DEPTH


def test_spent_time_ends_the_episode_and_says_so(run, monkeypatch):
    count_seconds(monkeypatch)
    episode = run("Go. =>", "x" * 1000, seconds=1000, new_tokens=1_000_000)
    all_end_as(episode, Status.OUT_OF_TIME, 2)
    assert of_kind(episode, GeneratedSpan)[-1].stop is Stop.CANCELLED
    assert 0 < len(episode.threads[1].sequence) < 1000, "what it wrote is kept"


def test_spent_time_ends_the_episode_even_before_its_first_call(run):
    episode = run("#END#", seconds=1e-9, prompt=ONE)
    assert episode.status is Status.OUT_OF_TIME


def test_somebody_can_stop_the_session_from_another_thread(start, tmp_path):
    session = start("Go. =>", "x" * 100_000, new_tokens=1_000_000)
    for event in session:
        if isinstance(event, Token) and event.thread == 1:
            other = threading.Thread(target=session.stop)
            other.start()
            other.join()
    all_end_as(session.episode, Status.STOPPED, 2)
    assert len(session.episode.threads[1].sequence) < 100
    is_on_disk(session.episode, tmp_path / "episode.jsonl")


def test_a_session_that_was_stopped_before_it_began_ends_as_stopped(start):
    session = start("#END#", prompt=ONE)
    session.stop()
    assert session.run(progress=False).status is Status.STOPPED


def test_a_thread_that_fills_its_context_says_so_and_its_parent_is_told(run):
    engine = ScriptedEngine(["Go. =>", "x" * 500, "I see.\n#END#"], context=150)
    episode = run(engine=engine)
    assert episode.threads[1].status is Status.OUT_OF_CONTEXT
    assert "150" in episode.threads[1].detail
    assert "out of context" in returned_texts(episode)[0]
    assert episode.status is Status.ENDED


def test_a_context_that_does_not_fit_ends_the_thread_without_a_call_to_the_script(run):
    engine = ScriptedEngine(["Go. =>"], context=20)
    assert run(engine=engine).status is Status.OUT_OF_CONTEXT


def test_an_end_of_stream_ends_the_thread_and_is_on_record(run):
    episode = run("Go. =>", "print('Done.')", "#END#")
    assert episode.threads[1].status is Status.END_OF_STREAM
    assert "without the end mark" in episode.threads[1].detail
    assert returned_texts(episode) == ["Done.<=\n"]


@pytest.mark.parametrize("limit", ["calls", "new_tokens", "tokens", "seconds"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_budget_that_leaves_nothing_to_do_is_refused(limit, value):
    with pytest.raises(ValueError, match=f"{limit}={value} leaves nothing to do"):
        Session(ScriptedEngine([]), context="Do it.", **{limit: value})


def test_either_an_environment_or_a_context_is_needed():
    for options in ({}, {"env": Door(), "context": "Do it."}):
        with pytest.raises(ValueError, match="either an environment or a context"):
            Session(ScriptedEngine([]), **options)


def test_an_unknown_scope_is_refused():
    with pytest.raises(ValueError, match="global"):
        Session(ScriptedEngine([]), context="Do it.", scope="global")


# Hostile model text


def test_a_model_that_spawns_forever_is_stopped_by_the_calls(run):
    episode = run(*["Again. =>"] * 300)
    assert episode.status is Status.OUT_OF_CALLS
    assert episode.usage.calls == 200
    assert Status.OUT_OF_DEPTH in {one.status for one in episode.threads.values()}
    assert_join_order(episode)


def test_without_a_limit_of_depth_it_is_still_the_calls_that_end_it(run):
    episode = run(*["Again. =>"] * 401, depth=None, calls=400, scope="none", sandbox=None)
    assert episode.status is Status.OUT_OF_CALLS
    assert episode.depth == 400


def test_a_model_that_never_ends_is_cut(run):
    episode = run("word " * 2000)
    assert episode.status is Status.TRUNCATED
    assert episode.usage.generated == 1000


@pytest.mark.parametrize(
    "line",
    [
        "print('x' * 10_000_000)",
        "print('\\n'.join(['x = 1'] * 1_000_000))",
        "[print('x' * 1000) for _ in range(10_000)]",
        "while True: pass",
        "[0 for _ in iter(int, 1)]",
        "x = 'a' * 10**12",
        "x = 10**10**10",
        "x = [0] * 10**11",
        "import os; print(os.listdir('/'))",
        "print(open('/etc/passwd').read())",
        "open('stolen.txt', 'w').write('x')",
        "__import__('os').system('touch stolen.txt')",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['touch', 'stolen.txt'])",
        "import sys; sys.exit(1)",
        "exit()",
        "raise SystemExit",
        "raise KeyboardInterrupt",
        "().__class__.__base__.__subclasses__()",
        "def f(): return f()",
        "print('\\ud800')",
        "x = '\\x00'",
        "del print",
        "print = 3",
        "(" * 5000,
        "-" * 3000 + "1",
    ],
)
def test_a_hostile_line_ends_as_a_line_and_the_episode_goes_on(run, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = threading.active_count()
    episode = run("secret = 1\nGo. =>", f"{line}\n#END#", "print(secret)\n#END#")
    assert episode.status is Status.ENDED
    assert outputs(episode, 0)[-1] == "1", "the parent's variables are as they were"
    assert not (tmp_path / "stolen.txt").exists()
    assert "root:" not in str(episode.events)
    assert len(returned_texts(episode)[0]) < 20_000
    assert threading.active_count() == before


pieces = st.sampled_from([
    "a = 1", "b = a + 1", "a = 'oak log'", "print('{a}')", "print(b)", "print(", "import os",
    "> look", "> open", "# > x", "=>", "=>", "<=", "#END#", "\n", "\n", "\n", " ", ", ", "{a}",
    "{b}", "First, find {a}.", "Prompt:", "Response:", "#START#", "é🪓", "\x00", "\r",
])  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(pieces, max_size=8).map("".join), max_size=12),
    st.sampled_from(["exported", "shared"]),
    st.integers(1, 8),
    st.integers(1, 40),
    st.integers(0, 3),
)
def test_whatever_the_model_writes_the_episode_ends_with_a_status_and_its_trace_opens(
    sandbox, tmp_path_factory, replies, scope, calls, new_tokens, depth
):
    path = tmp_path_factory.mktemp("any") / "episode.jsonl"
    session = Session(
        ScriptedEngine([*replies, *["#END#"] * 20]),
        Door(),
        prompt=ONE,
        scope=scope,
        calls=calls,
        new_tokens=new_tokens,
        depth=depth,
        sandbox=sandbox,
        path=path,
    )
    episode = session.run(progress=False)
    is_on_disk(episode, path)
    assert_join_order(episode)
    ended_within(episode, calls=calls, depth=depth)
    for one in episode.threads.values():
        own = "".join(s.text for s in one.sequence if s.provenance is Provenance.GENERATED)
        for line in one.executed:
            assert line.line in own, "nothing is executed that the thread did not write"
        assert len(one.executed) <= own.count("\n") + 1
        for before, after in pairwise(one.sequence):
            assert before.provenance is not after.provenance


def written_by_lines(episode: Episode) -> int:
    """Bytes of the trace."""
    return sum(len(to_line(to_json(line))) for line in of_kind(episode, ExecutedLine))


def test_what_lines_write_into_the_trace_is_bounded_over_the_episode(run, start, monkeypatch):
    monkeypatch.setattr(effects, "LINES_BYTES", 250_000)
    lines = "y = 'a' * 90_000\n" + "y = y\n" * 60
    child = f"{lines}This is prose.\nprint('{{y}}')\n#END#"
    replies = ["First, I need it. =>", child, "x = 1\n#END#"]
    episode = run(*replies)
    assert 250_000 < written_by_lines(episode) < 400_000
    ran = episode.threads[1].executed
    assert [line.error for line in ran] == [None] * 3 + [effects.REFUSAL] * 59
    assert not ran[-1].changed
    assert outputs(episode, 0) == [effects.REFUSAL]  # the bound is the episode's
    assert returned_texts(episode) == [f"{effects.REFUSAL}<=\n"]  # the model reads why

    # An episode that happens again, or goes on, comes to the same bound at the same line.
    again = start(engine=ReplayEngine(episode), path=None).run(progress=False)
    assert again.events[:-1] == episode.events[:-1]
    at = episode.events.index(ran[1])
    resumed = fork(episode, at, engine=ScriptedEngine(replies[2:])).run(progress=False)
    assert of_kind(resumed, ExecutedLine) == of_kind(episode, ExecutedLine)


def test_what_threads_hold_that_are_alive_is_bounded_in_sum(run, monkeypatch):
    """128 threads of an episode that stays within its budget held 2.1 GB."""
    monkeypatch.setattr(effects, "STATES_BYTES", 50_000)
    deeper = "x = 'a' * 20_000\nFirst, I need it. =>"
    episode = run(*[deeper] * 4, *["#END#"] * 4, "x = 1\n#END#")
    errors = [line.error for line in of_kind(episode, ExecutedLine)]
    assert errors == [None] * 3 + [effects.TOO_MUCH, None]  # until one has ended


def test_values_that_come_up_count_as_what_lines_write(run, monkeypatch):
    monkeypatch.setattr(effects, "LINES_BYTES", 400)
    child = "x = 'a' * 80; print('{x}')\n#END#"
    episode = run(*["I need it. =>", child] * 2, "#END#")
    texts = [event.variables for event in of_kind(episode, Returned)]
    assert texts == [{"x": "a" * 80}, {}]
    assert outputs(episode, 0) == [effects.REFUSAL]


def test_pictures_count_as_what_lines_write(run, monkeypatch):
    class Camera(Sandbox):
        print_characters = variables_characters = state_bytes = 10_000

        def execute(self, state, code, inputs=None):
            return SandboxResult(b"", "", None, {}, {"/scratch/a.png": bytes(3_000)})

        def close(self) -> None:
            pass

    monkeypatch.setattr(effects, "LINES_BYTES", 10_000)
    episode = run("draw()\n" * 5 + "#END#", sandbox=Camera())
    assert len(of_kind(episode, Pictured)) == 3  # 4,000 characters each
    assert outputs(episode, 0) == [None] * 3 + [effects.REFUSAL] * 2


# Failures


def test_an_engine_that_fails_in_the_middle_fails_the_episode_and_leaves_its_trace(start, tmp_path):
    session = start("x = 1\nGo. =>", "print(x)\nGo. =>")
    session.run(progress=False)
    assert isinstance(session.error, EngineError)
    all_end_as(session.episode, Status.FAILED, 3)
    assert "the script is over" in session.episode.detail
    is_on_disk(session.episode, tmp_path / "episode.jsonl")


def test_an_engine_that_fails_in_mid_call_fails_the_episode_and_leaves_its_trace(start, tmp_path):
    class Breaks(ScriptedEngine):
        def step(self):
            if len(self.seen) == 2:
                raise EngineError("the model broke")
            return super().step()

    session = start(engine=Breaks(["Go. =>", "never", "never"]))
    session.run(progress=False)
    assert str(session.error) == "the model broke"
    all_end_as(session.episode, Status.FAILED, 2)
    is_on_disk(session.episode, tmp_path / "episode.jsonl")


def test_an_environment_that_fails_fails_the_episode_and_leaves_its_trace(start, tmp_path):
    class Breaks(Door):
        def step(self, action):
            raise ZeroDivisionError("the environment broke")

    session = start("> open =>", env=Breaks())
    session.run(progress=False)
    all_end_as(session.episode, Status.FAILED, 1)
    assert session.episode.detail == "ZeroDivisionError: the environment broke"
    assert isinstance(session.error, ZeroDivisionError)
    [end] = of_kind(session.episode, Ended)
    assert re.search(r'File "test_session.py", line \d+, in step\n', end.traceback)
    assert end.traceback.endswith("\nZeroDivisionError: the environment broke")
    is_on_disk(session.episode, tmp_path / "episode.jsonl")


def test_a_failed_episode_leaves_nothing_in_the_engine(start):
    engine = ScriptedEngine(["Go. =>", "Go. =>"])
    session = start(engine=engine)
    assert session.run(progress=False).status is Status.FAILED
    assert isinstance(session.error, EngineError)
    assert engine.step() == []


FULL = ("x = 1\nGo. =>", "> look =>", "print('{x}')\n#END#", "#END#")


def size_of_the_trace(start, tmp_path) -> tuple[int, int]:
    """Bytes of the whole trace, and of its header."""
    start(*FULL, env=Door()).run(progress=False)
    whole = (tmp_path / "episode.jsonl").read_bytes()
    return len(whole), whole.index(b"\n") + 1


@contextmanager
def file_size_limit(size):
    """No file of this process may become larger (bytes): writing past it is a real OSError.

    Not a fixture: pytest reports a test before its fixtures end, and may report to a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_full_disk_fails_the_episode_which_stays_complete_in_memory(start, tmp_path, part):
    whole, header = size_of_the_trace(start, tmp_path)
    session = start(*FULL, env=Door())
    with file_size_limit(int(header + part * (whole - header))):
        episode = session.run(progress=False)
    assert "File too large" in str(session.error)
    assert episode.status is Status.FAILED
    assert isinstance(episode.events[-1], Closed)
    assert not any(one.status.is_live for one in episode.threads.values())
    on_disk = Episode.load(tmp_path / "episode.jsonl").events
    assert on_disk == episode.events[: len(on_disk)]
    assert len(on_disk) < len(episode.events)
    del session
    gc.collect()  # a file that was left open would speak up here


def test_a_disk_that_is_full_when_the_episode_ends_loses_nothing_in_memory(start, tmp_path):
    whole, _ = size_of_the_trace(start, tmp_path)
    session = start(*FULL, env=Door())
    with file_size_limit(whole - 5):
        session.run(progress=False)
    assert "File too large" in str(session.error)
    assert isinstance(session.episode.events[-1], Closed)
    assert not session.episode.status.is_live


@pytest.mark.parametrize("calls", [1, 2])
def test_a_disk_that_is_full_when_a_budget_ends_the_episode_loses_nothing_in_memory(
    start, tmp_path, calls
):
    start(*FULL, env=Door(), calls=calls).run(progress=False)
    lines = (tmp_path / "episode.jsonl").read_bytes().splitlines(keepends=True)
    session = start(*FULL, env=Door(), calls=calls)
    with file_size_limit(len(b"".join(lines[:-3])) + 3):  # the first thread's end does not fit
        session.run(progress=False)
    assert "File too large" in str(session.error)
    assert isinstance(session.episode.events[-1], Closed)
    assert not any(one.status.is_live for one in session.episode.threads.values())


def test_a_disk_that_is_full_from_the_start_is_an_error_at_the_start(start):
    with pytest.raises(OSError, match="No space left on device"):
        start("#END#", path="/dev/full")
    gc.collect()


def test_a_path_that_cannot_be_written_is_an_error_at_the_start(start, tmp_path):
    (tmp_path / "episode.jsonl").mkdir()
    with pytest.raises(OSError, match=r"episode\.jsonl"):
        start("#END#")
    gc.collect()


def test_a_session_without_a_path_writes_nothing(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert start("#END#", path=None).run(progress=False).status is Status.ENDED
    assert list(tmp_path.iterdir()) == []


def test_an_iteration_that_is_given_up_closes_the_trace(start, tmp_path):
    session = start("Go. =>", "x" * 100)
    for event in session:
        if isinstance(event, Token) and event.thread == 1:
            break
    episode, engine = session.episode, session.engine
    del session, event
    gc.collect()
    assert episode.status is Status.STOPPED
    assert {one.status for one in episode.threads.values()} == {Status.STOPPED}
    is_on_disk(episode, tmp_path / "episode.jsonl")
    assert engine.step() == [], "the call that ran is over"


def test_a_session_that_is_never_begun_leaves_a_header_and_no_open_file(start, tmp_path):
    session = start("#END#")
    del session
    gc.collect()  # a file that was left open would speak up here
    assert Episode.load(tmp_path / "episode.jsonl").events == []


# Stepping


def test_every_event_is_in_the_trace_and_on_disk_before_it_is_handed_out(start, tmp_path):
    session = start(*FULL, env=Door(), prompt=ONE)
    number = 0
    for event in session:
        number += not event.passing
        assert event.passing or session.episode.events[-1] is event
        assert len(Episode.load(tmp_path / "episode.jsonl").events) == number
    assert isinstance(event, Closed)
    assert next(session, None) is None


def test_the_texts_of_the_tokens_are_the_text_of_the_call(start):
    session = start("é🪓 =>", "print('ü')\n#END#ignored", "#END#")
    texts: dict[int, str] = {}
    for event in session:
        match event:
            case Token():
                texts[event.thread] = texts.get(event.thread, "") + event.text
            case GeneratedSpan():
                assert texts.pop(event.thread) == event.span.text


def test_two_runs_of_the_same_replies_are_the_same_episode(run):
    def facts(episode):
        return [
            (type(event), getattr(event, "thread", None), getattr(event, "span", None))
            for event in episode.events
        ]

    assert facts(run(*FULL, env=Door())) == facts(run(*FULL, env=Door()))


def test_a_run_shows_its_progress_only_when_asked(start, capsys):
    start("#END#").run(progress=False)
    assert capsys.readouterr().err == ""
    start("#END#").run()
    assert "call" in capsys.readouterr().err


# A worker


def test_a_worker_runs_a_session_and_hands_over_every_event_and_then_none(start):
    events = []
    episode = Worker(start(*FULL, env=Door()), events.append).start().wait(10)
    assert episode.status is Status.ENDED
    assert [event for event in events if event and not event.passing] == episode.events
    assert events[-1] is None
    assert events.count(None) == 1


def test_a_worker_pauses_after_an_event_and_goes_on_where_it_was(start):
    events, paused = [], threading.Event()

    def pause_at_the_first_spawn(event):
        events.append(event)
        if isinstance(event, Spawned) and event.thread == 1:
            worker.pause()
            paused.set()

    worker = Worker(start(*FULL, env=Door()), pause_at_the_first_spawn)
    worker.start()
    assert paused.wait(10)
    number = len(events)
    episode = worker.wait(0.1)
    assert worker.is_running
    assert len(events) == number
    assert episode.status.is_live
    worker.resume()
    assert worker.wait(10).status is Status.ENDED
    assert not worker.is_running


def test_a_worker_that_is_stopped_ends_its_episode_even_while_paused(start, tmp_path):
    paused = threading.Event()

    def pause_at_the_first_token(event):
        if isinstance(event, Token) and event.thread == 1:
            worker.pause()
            paused.set()

    worker = Worker(start("Go. =>", "x" * 1000), pause_at_the_first_token)
    worker.start()
    assert paused.wait(10)
    worker.stop()
    episode = worker.wait(10)
    assert not worker.is_running
    all_end_as(episode, Status.STOPPED, 2)
    is_on_disk(episode, tmp_path / "episode.jsonl")


def test_a_worker_says_what_went_wrong_when_it_is_waited_for(start):
    events = []
    worker = Worker(start("Go. =>"), events.append).start()
    assert worker.wait(10).status is Status.FAILED
    assert isinstance(worker.error, EngineError)
    assert "the script is over" in str(worker.error)
    assert events[-1] is None
    assert worker.session.episode.status is Status.FAILED


def test_a_listener_that_fails_ends_the_episode_and_closes_its_trace(start, tmp_path):
    def fail_at_the_first_spawn(event):
        if isinstance(event, Spawned):
            raise ZeroDivisionError("the listener broke")

    worker = Worker(start(*FULL, env=Door()), fail_at_the_first_spawn).start()
    with pytest.raises(ZeroDivisionError):
        worker.wait(10)
    episode = worker.session.episode
    assert not episode.status.is_live
    is_on_disk(episode, tmp_path / "episode.jsonl")


def test_workers_run_sessions_side_by_side(start, tmp_path):
    all_begun = threading.Barrier(4)

    def meet(event):
        if isinstance(event, Spawned) and event.parent is None:
            all_begun.wait(60)

    workers = [
        Worker(start(*FULL, env=Door(), path=tmp_path / f"{n}.jsonl"), meet).start()
        for n in range(4)
    ]
    for number, worker in enumerate(workers):
        assert worker.wait(10).status is Status.ENDED
        is_on_disk(worker.session.episode, tmp_path / f"{number}.jsonl")


class BrokenSandbox(MontySandbox):
    """One that raises what no sandbox should."""

    def execute(self, *arguments, **options):
        raise OverflowError("cannot convert float infinity to integer")


def test_a_sandbox_that_fails_is_feedback_to_the_thread_and_ends_no_session():
    with BrokenSandbox() as sandbox:
        engine = ScriptedEngine(["x = 1\nprint(x)\n#END#"])
        episode = Session(engine, context="go", sandbox=sandbox).run(progress=False)
    assert episode.status is Status.ENDED
    assert {line.error.partition(" (")[0] for line in episode.threads[0].executed} == {
        "the sandbox failed"
    }


def test_a_childs_failed_look_up_reaches_its_parent_as_an_error():
    replies = [
        "First, I need the value. =>",
        "value = {}['height']\nprint('{value}')\n#END#",
        "print('done')\n#END#",
    ]
    episode = Session(ScriptedEngine(replies), context="go").run(progress=False)
    assert "=>KeyError: " in episode.threads[0].sequence.text
    assert "{value}" not in episode.threads[0].sequence.text


def test_a_failed_look_up_is_not_answered_by_what_the_parent_had_under_that_name():
    replies = [
        "value = 'oak'\nFirst, I need the value. =>",
        "value = {}['height']\nprint('It is {value}.')\n#END#",
        "Next, I need it once more. =>",
        "value = 'fir'\nvalue = {}['height']\nvalue = 'ash'\nprint('It is {value}.')\n#END#",
        "print('done')\n#END#",
    ]
    episode = Session(ScriptedEngine(replies), context="go").run(progress=False)
    first, second = episode.threads[0].sequence.text.split("Next")
    assert "=>KeyError: " in first
    assert "It is" not in first
    assert "=>It is {value}.<=" in second, "a later line has bound it after all"
    assert episode.threads[0].variables["value"] == "ash"
