"""Children that nobody waits for: order, waiting, what comes up, budgets, failures, traces."""

import gc
import random
import threading
from collections import Counter
from dataclasses import replace

import pytest
from helpers.checker import check
from helpers.episodes import count_seconds, ended_within, is_on_disk, of_kind, outputs
from helpers.frames import fold, strip_details, view_as_json
from helpers.threads import child, finish, generated, nothing
from helpers.threads import start as start_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, ASYNC, Dialect, Stop
from thread_kit.engines.engine import EngineBusyError, EngineError, Sampled
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.exchange import phi_full_sequence, psi_full_sequence
from thread_kit.paths import resource
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import Example, Prompt
from thread_kit.requests import (
    Act,
    Await,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    Spawn,
    SpawnAsync,
    Status,
)
from thread_kit.sequence import Provenance, Sequence
from thread_kit.session.session import Session
from thread_kit.session.worker import Worker
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    Acted,
    Ended,
    GeneratedSpan,
    Observed,
    Referred,
    Resolved,
    Returned,
    Spawned,
    Token,
    Waiting,
)
from thread_kit.views.html import episode_html
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.plot import supplemental_work_figure
from thread_kit.views.text import thread_text


@pytest.fixture
def start(sandbox, tmp_path):
    """A session in the asynchronous dialect on these replies; its trace goes to a file."""

    def make(*replies: str, **options) -> Session:
        if "env" not in options:
            options.setdefault("context", "Do it. =>")
        options.setdefault("dialect", ASYNC)
        options.setdefault("sandbox", sandbox)
        options.setdefault("path", tmp_path / "episode.jsonl")
        engine = options.pop("engine", None) or ScriptedEngine(replies)
        return Session(engine, options.pop("env", None), **options)

    return make


class Door(Env):
    name = "door"

    def __init__(self) -> None:
        self.task = {"number": 0}
        self.actions: list[str] = []

    def reset(self) -> str:
        return "There is a door."

    def step(self, action: str) -> Step:
        self.actions.append(action)
        return Step("The door is open", 1.0, True, False, {})

    def again(self) -> Env:
        return Door()

    def oracle(self) -> list[str]:
        return ["open"]


class Speaking(ScriptedEngine):
    """Replies from a function of all that the thread sees.

    slow: a source of chance; where given, a step takes only some of the calls further.
    """

    def __init__(self, speak, slow: random.Random | None = None, **options) -> None:
        super().__init__([], **options)
        self.speak = speak
        self.slow = slow

    def begin(self, thread, tokens, **options) -> None:
        self._replies.append(self.speak("".join(map(chr, tokens))))
        super().begin(thread, tokens, **options)

    def step(self):
        running = list(self._running)
        if self.slow and running:
            running = self.slow.sample(running, self.slow.randint(1, len(running)))
        return [self._write_token(thread) for thread in running]


# Algorithm 2 with futures, on hand-made replies


def start_async(**exchange):
    return start_thread(ASYNC, **exchange)


def spawned(one, text="First, find the mug. ~>", **variables):
    """The thread has spawned a child and goes on; the request with which it did."""
    one.send(generated(text, Stop.SPAWN))
    request = one.send(nothing(**variables))
    assert isinstance(request, SpawnAsync)
    assert isinstance(one.send(None), Generate)
    return request


def test_a_thread_that_spawns_without_waiting_goes_on_behind_a_reference():
    one = start_async()
    one.send(generated("First, find the mug. ~>", Stop.SPAWN))
    assert one.send(nothing()) == SpawnAsync("find the mug. =>", "t1")
    request = one.send(None)
    assert request.sequence.text == "First, find the mug. ~>{t1}<=\n"
    assert [span.provenance for span in request.sequence] == [
        Provenance.GENERATED,
        Provenance.REFERENCE,
    ]


def test_references_are_numbered_within_the_thread():
    one = start_async()
    assert [spawned(one).name for _ in range(3)] == ["t1", "t2", "t3"]


def test_a_name_that_means_something_already_is_left_alone():
    one = start_async(futures=["t2"])
    assert [spawned(one, t1="mine").name for _ in range(2)] == ["t3", "t4"]


def test_a_line_that_uses_a_future_waits_and_the_lines_before_it_have_run():
    one = start_async()
    spawned(one)
    assert one.send(generated("a = 1\nb = t1\nc = 2\nGo. =>")) == Execute(("a = 1",))
    assert one.send(nothing(a=1)) == Await("t1")
    assert one.send(child("I have {mug}.", mug="mug 1")) == Define(
        {
            "mug": "mug 1",
            "t1": "I have mug 1.",
        }
    )
    assert one.send(nothing(a=1)) == Execute(("b = t1", "c = 2"))
    assert one.send(nothing(a=1)) == Spawn("Go. =>")


@pytest.mark.parametrize(
    "line", ["print(t1)", "print('{t1}')", "x = f'{t1}'", "len(t1)", "t1 = 'other'", "y = [t1]"]
)
def test_a_line_of_python_that_names_a_future_waits(line):
    one = start_async()
    spawned(one)
    assert one.send(generated(f"{line}\nGo. =>")) == Await("t1")


@pytest.mark.parametrize(
    "line", ["So t1 is on its way.", "{t1}", "x = 't1'", "print('t1')", "t2=1"]
)
def test_whatever_names_no_future_does_not_wait(line):
    one = start_async()
    spawned(one)
    assert isinstance(one.send(generated(f"{line}\nGo. =>")), Execute)
    assert one.send(nothing()) == Spawn("Go. =>")


def test_a_context_that_names_a_future_waits_for_it_and_instantiates_it():
    one = start_async()
    spawned(one)
    spawned(one)
    one.send(generated("Then, compare {t2} with {t1}, {t2}. =>"))
    assert one.send(nothing()) == Await("t2")
    one.send(child("red"))
    assert one.send(nothing(t2="red")) == Await("t1")
    one.send(child("blue"))
    assert one.send(nothing(t2="red", t1="blue")) == Spawn("compare red with blue, red. =>")


def test_what_phi_leaves_out_is_not_waited_for():
    one = start_async()
    spawned(one)
    one.send(generated("While {t1} runs, look around. =>"))
    assert one.send(nothing()) == Spawn("look around. =>")


def test_with_the_full_sequence_each_spawn_waits_for_those_before_it():
    one = start_async(phi=phi_full_sequence)
    spawned(one)
    one.send(generated("Go. ~>", Stop.SPAWN))
    assert one.send(nothing()) == Await("t1")


@pytest.mark.parametrize("mark", ["=>", "~>"])
def test_an_action_that_names_a_future_waits_and_is_always_waited_for(mark):
    one = start_async()
    spawned(one)
    one.send(generated(f"> take {{t1}} {mark}", Stop.LISTEN if mark == "=>" else Stop.SPAWN))
    assert one.send(nothing()) == Await("t1")
    one.send(child("mug 1"))
    assert one.send(nothing(t1="mug 1")) == Act("take mug 1")


def test_a_thread_that_ends_waits_for_all_of_its_children():
    one = start_async()
    spawned(one)
    spawned(one)
    one.send(generated("print('{x}')\n#END#", Stop.END))
    assert one.send(Executed({"x": 1}, "{x}")) == Await("t1")
    # Nobody asked for what comes up now, so it takes nothing away.
    assert one.send(child("{x}{y}", x=666, y=2)) == Define({"y": 2, "t1": "6662"})
    assert one.send(nothing(x=1, y=2, t1="6662")) == Await("t2")
    one.send(child("b"))
    over = finish(one, nothing(x=1, y=2, t1="6662", t2="b"))
    assert (over.status, over.printed, over.variables["x"]) == (Status.ENDED, "{x}", 1)


def test_a_thread_that_is_cut_waits_for_its_children_as_well():
    one = start_async()
    spawned(one)
    one.send(generated("and so on and", Stop.LENGTH))
    assert one.send(nothing()) == Await("t1")
    one.send(child("a"))
    assert finish(one, nothing()).status is Status.TRUNCATED


def test_a_thread_that_ends_does_not_wait_for_what_it_inherited_and_never_used():
    one = start_async(futures=["t1"])
    one.send(generated("#END#", Stop.END))
    assert finish(one, nothing()).status is Status.ENDED


def test_an_inherited_future_is_waited_for_where_it_is_used():
    one = start_async(futures=["t1"])
    assert one.send(generated("print(t1)\n#END#", Stop.END)) == Await("t1")


def test_a_future_means_nothing_above_its_thread_so_its_text_comes_up_instead():
    one = start_async()
    one.send(generated("Go. =>"))
    one.send(nothing())
    below = Finished(
        Sequence(), Status.ENDED, {"t1": "red {x}", "x": 1}, "It is {t1}, {x}.", ("t1",)
    )
    assert one.send(below) == Define({"x": 1})
    assert one.send(None).sequence.spans[-1].text == "It is red {x}, {x}.<=\n"


def test_a_child_cannot_overwrite_the_future_of_its_parent():
    one = start_async()
    spawned(one)
    one.send(generated("Go. =>"))
    one.send(nothing())
    assert one.send(child("It is {t1}.", t1="stolen")) == Define({})
    assert one.send(None).sequence.spans[-1].text == "It is stolen.<=\n"


def test_in_a_dialect_without_a_spawn_mark_it_is_prose():
    one = start_thread(AGENT)
    assert ASYNC.spawn not in AGENT.stops
    one.send(generated("Find it. ~> =>"))
    assert one.send(nothing()) == Spawn("Find it. ~> =>")


@pytest.mark.parametrize("spawn", ["=>", ">", "==>", "", " "])
def test_a_spawn_mark_differs_from_all_other_marks(spawn):
    with pytest.raises(ValueError, match="spawn mark"):
        Dialect(spawn=spawn)


# Sessions


TWO = (
    "First, find the mug. ~>",
    "Then, find the cup. ~>",
    "looking in every place that there is, and then once more\nprint('The mug is red.')\n#END#",
    "print('I compare: {t1} {t2}')\n#END#",
    "I see one.\nprint('The cup is blue.')\n#END#",
)
"""Thread 0 spawns two children and goes on; the replies in the order in which the calls begin."""


def kinds(episode: Episode) -> list[str]:
    def name(event) -> str:
        child = getattr(event, "child", None)
        of = "" if child is None else f" {child}"
        return f"{type(event).__name__.lower()} {getattr(event, 'thread', '')}{of}"

    return [name(event) for event in episode.events]


def test_the_parent_goes_on_while_its_children_run_and_waits_where_it_names_them(run):
    episode = run(*TWO)
    assert kinds(episode) == [
        "spawned 0",
        "generatedspan 0",
        "spawned 1",
        "referred 0 1",
        "generatedspan 0",
        "spawned 2",
        "referred 0 2",
        "generatedspan 0",
        "waiting 0 1",
        "generatedspan 2",
        "executedline 2",
        "ended 2",
        "generatedspan 1",
        "executedline 1",
        "ended 1",
        "resolved 0 1",
        "resolved 0 2",
        "executedline 0",
        "ended 0",
        "closed ",
    ]
    assert outputs(episode, 0) == ["I compare: {t1} {t2}"]
    assert episode.threads[0].variables == {"t1": "The mug is red.", "t2": "The cup is blue."}
    assert episode.status is Status.ENDED


def test_the_parent_and_both_children_get_a_token_in_every_step(start):
    written: dict[int, int] = Counter()
    shared = 0
    for event in start(*TWO):
        if isinstance(event, Token):
            written[event.thread] += 1
            shared += len(written) == 3 and max(written.values()) > 0
    assert len(written) == 3
    assert shared > 30


def test_what_a_thread_returns_holds_the_texts_of_its_futures(run):
    episode = run(
        "Go. =>",
        "First, find it. ~>",
        "print('I have {t1}')\n#END#",
        "mug = 'mug 1'\nprint('the {mug}')\n#END#",
        "#END#",
    )
    assert of_kind(episode, Returned)[0].span.text == "I have the mug 1<=\n"


def test_children_that_use_the_same_names_do_not_get_into_each_others_texts(run):
    episode = run(
        "First, get planks. ~>",
        "Then, get sticks. ~>",
        "item = 'planks'\nprint('I have {item}.')\n#END#",
        "print(t1 + ' ' + t2)\nprint(item)\n#END#",
        "item = 'sticks'\nprint('I have {item}.')\n#END#",
    )
    assert outputs(episode, 0) == ["I have planks. I have sticks.", "sticks"]


def test_an_action_gets_values_and_no_names(run):
    door = Door()
    run("First, a. ~>", "> open {t1} =>", "x = 1\nprint('door {x}')\n#END#", "#END#", env=door)
    assert door.actions == ["open door 1"]


def test_a_waiting_thread_says_so(start):
    session = start(*TWO)
    for event in session:
        if isinstance(event, Waiting):
            one = session.episode.threads[0]
            assert (one.status, one.waits_for) == (Status.WAITING, 1)
            assert session.episode.threads[1].status is Status.GENERATING
            assert "0 waiting" in str(session.episode)
            break
    else:
        pytest.fail("nobody waited")
    session.close()


def test_a_child_that_is_over_is_not_waited_for(run):
    episode = run("First, a. ~>", "x" * 99 + "\nprint(t1)\n#END#", "print(7)\n#END#")
    assert of_kind(episode, Waiting) == []
    assert outputs(episode, 0) == ["7"]


def test_variables_come_up_where_the_future_is_used_however_long_the_child_has_been_over(run):
    episode = run(
        "First, a. ~>",
        "thing = 'old'\n" + "x" * 99 + "\nprint(thing)\nprint(t1)\nprint(thing)\n#END#",
        "thing = 'new'\nprint('{thing}')\n#END#",
    )
    assert [text for text in outputs(episode, 0) if text] == ["old", "new", "new"]


def test_a_child_gets_a_copy_of_the_variables_at_its_spawn(run):
    episode = run(
        "x = 1\nFirst, a. ~>",
        "x = 2\nprint(t1)\n#END#",
        "print(x)\nx = 3\nprint('{x}')\n#END#",
    )
    assert outputs(episode, 1)[0] == "1"
    assert episode.threads[0].variables["x"] == 3, "it came up with the text that names it"


def test_a_child_can_wait_for_a_future_that_it_inherited(run):
    episode = run(
        "First, a. ~>",
        "Then, b. ~>",
        "x" * 50 + "\nprint('A')\n#END#",
        "print('{t2}')\n#END#",
        "print('B sees ' + t1)\n#END#",
    )
    assert [(e.thread, e.child) for e in of_kind(episode, Waiting)] == [(0, 2), (2, 1)]
    assert [(e.thread, e.future, e.text) for e in of_kind(episode, Resolved)] == [
        (2, "t1", "A"),
        (0, "t2", "B sees A"),
        (0, "t1", "A"),
    ]


def test_a_joined_child_inherits_futures_too(run):
    episode = run("First, a. ~>", "Go. =>", "print('A')\n#END#", "print(t1)\n#END#", "#END#")
    assert of_kind(episode, Returned)[0].span.text == "A<=\n"


def test_a_childs_own_numbers_go_on_behind_those_that_it_inherited(run):
    episode = run(
        "First, a. ~>", "Go. =>", "#END#", "Next, b. ~>", "print('{t2}')\n#END#",
        "print('B')\n#END#", "#END#",
    )  # fmt: skip
    assert [e.future for e in of_kind(episode, Spawned)] == [None, "t1", None, "t2"]
    assert of_kind(episode, Returned)[0].span.text == "B<=\n"


def test_a_child_of_a_dead_end_is_nobodys_business(run):
    episode = run("First, a. ~>", "#END#", "print('late')\n#END#")
    assert [e.thread for e in of_kind(episode, Ended)] == [1, 0]


def test_a_child_that_nobody_waits_for_cannot_act_nor_can_those_below_it(run):
    door = Door()
    episode = run(
        "First, a. ~>",
        "> open =>",
        "> open =>",
        "print(t1)\n#END#",
        "Go. =>",
        "> open =>",
        "print('No.')\n#END#",
        "print('Never.')\n#END#",
        env=door,
    )
    assert door.actions == ["open"]
    assert [event.thread for event in of_kind(episode, Acted)] == [0]
    refused = [event for event in of_kind(episode, Observed) if event.thread]
    assert {event.thread for event in refused} == {1, 2}
    for event in refused:
        assert event.span.text.startswith("There is no environment to act in")
    assert (episode.status, episode.reward) == (Status.ENDED, 1.0)


def test_what_runs_at_the_same_time_takes_fewer_steps_and_writes_the_same():
    def steps(mark: str) -> tuple[int, int]:
        def speak(seen: str) -> str:
            done = seen.count("<=")
            if "find" in seen.partition("Response")[0]:
                return "x" * 50 + "\nprint('It is here.')\n#END#"
            return f"First, find it. {mark}" if done < 3 else "#END#"

        engine = Speaking(speak)
        episode = Session(engine, context="Do it. =>", dialect=ASYNC).run(progress=False)
        assert len(episode.threads) == 4
        return engine.steps_taken, episode.usage.generated

    (joined, wrote), (together, wrote_too) = steps("=>"), steps("~>")
    assert wrote == wrote_too
    assert together < 0.6 * joined


# A child that fails


def test_a_truncated_child_gives_its_error_where_it_is_instantiated(run):
    episode = run("First, a. ~>", "print(t1)\n#END#", "x" * 60, new_tokens=50)
    assert episode.threads[1].status is Status.TRUNCATED
    assert outputs(episode, 0) == ["Error: the thread did not finish (truncated)."]
    assert episode.status is Status.ENDED


def test_a_child_that_is_too_deep_gives_its_error_at_once(run):
    episode = run("First, a. ~>", "print(t1)\n#END#", depth=0)
    assert episode.threads[1].status is Status.OUT_OF_DEPTH
    assert outputs(episode, 0) == ["Error: the thread did not finish (out of depth)."]
    assert of_kind(episode, Waiting) == []


def test_a_child_that_fills_its_context_gives_its_error(run):
    engine = ScriptedEngine(["First, a. ~>", "print(t1)\n#END#", "x" * 500], context=150)
    episode = run(engine=engine)
    assert episode.threads[1].status is Status.OUT_OF_CONTEXT
    assert "out of context" in outputs(episode, 0)[0]


def test_a_child_that_prints_nothing_gives_an_empty_text(run):
    assert outputs(run("First, a. ~>", "print([t1])\n#END#", "#END#"), 0) == ["['']"]


def test_the_whole_sequence_of_a_child_can_be_its_value(run):
    episode = run("First, a. ~>", "x = t1\n#END#", "hm\n#END#", psi=psi_full_sequence)
    assert episode.threads[0].variables["x"] == "hm\n#END#"


# Budgets, which are the episode's


def all_end_as(episode: Episode, status: Status, threads: int) -> None:
    assert episode.status is status
    assert [one.status for one in episode.threads.values()] == [status] * threads
    assert all(one.waits_for is None for one in episode.threads.values())
    assert episode.detail


def test_calls_that_run_at_the_same_time_count_as_soon_as_they_begin(run):
    episode = run(*["Again. ~>"] * 20, calls=5)
    assert episode.status is Status.OUT_OF_CALLS
    assert episode.usage.calls == 5
    assert all(event.stop is Stop.SPAWN for event in of_kind(episode, GeneratedSpan))
    assert not any(one.status.is_live for one in episode.threads.values())


@pytest.mark.parametrize("tokens", [1, 10, 11, 12, 25, 40, 57, 58, 100])
def test_threads_that_run_at_the_same_time_never_spend_more_tokens_than_there_are(run, tokens):
    episode = run(*["Again. ~>"] * 40, tokens=tokens, new_tokens=20)
    assert episode.status is Status.OUT_OF_TOKENS
    assert episode.usage.generated == tokens


def test_a_budget_of_tokens_that_is_just_enough_is_enough(run):
    replies = ("a ~>", "b ~>", "#END#", "#END#", "#END#")
    episode = run(*replies, tokens=sum(map(len, replies)))
    assert episode.status is Status.ENDED
    assert run(*replies, tokens=sum(map(len, replies)) - 1).status is Status.OUT_OF_TOKENS


def test_spent_time_ends_all_that_run(start, monkeypatch):
    count_seconds(monkeypatch)
    session = start("a ~>", "b ~>", *["x" * 1000] * 3, seconds=1000, new_tokens=1_000_000)
    episode = session.run(progress=False)
    all_end_as(episode, Status.OUT_OF_TIME, 3)
    cut = [event for event in of_kind(episode, GeneratedSpan) if event.stop is Stop.CANCELLED]
    assert sorted(event.thread for event in cut) == [0, 1, 2], "what they wrote is kept"


def test_somebody_can_stop_the_session_while_children_run(start, tmp_path):
    session = start("a ~>", "b ~>", *["x" * 100_000] * 3, new_tokens=1_000_000)
    for event in session:
        if isinstance(event, Token) and event.thread == 2:
            other = threading.Thread(target=session.stop)
            other.start()
            other.join()
    all_end_as(session.episode, Status.STOPPED, 3)
    is_on_disk(session.episode, tmp_path / "episode.jsonl")
    assert session.engine.step() == []


def test_a_worker_stops_it_as_well(start):
    worker = Worker(
        start("a ~>", "b ~>", *["x" * 100_000] * 3, new_tokens=1_000_000),
        lambda event: worker.stop() if isinstance(event, Token) and event.thread == 2 else None,
    )
    all_end_as(worker.start().wait(10), Status.STOPPED, 3)


@pytest.mark.parametrize("kind", [Spawned, Referred, Waiting, Token, GeneratedSpan, Resolved])
@pytest.mark.parametrize("number", [0, 1])
def test_a_session_that_is_closed_while_children_run_keeps_what_they_wrote(
    start, tmp_path, kind, number
):
    replies = {reply: len(reply) for reply in TWO}
    session = start(*TWO)
    sampled = 0
    for event in session:
        sampled += isinstance(event, Token)
        if isinstance(event, kind) and event.thread == 0:
            if not number:
                break
            number -= 1
    session.close()
    episode = session.episode
    assert not any(one.status.is_live for one in episode.threads.values())
    assert sampled <= episode.usage.generated <= sum(replies.values())
    assert session.engine.step() == []
    is_on_disk(episode, tmp_path / "episode.jsonl")


def test_an_iteration_that_is_given_up_closes_the_trace(start, tmp_path):
    session = start(*TWO)
    for event in session:
        if isinstance(event, Waiting):
            break
    episode = session.episode
    del session, event
    gc.collect()
    assert {one.status for one in episode.threads.values()} == {Status.STOPPED}
    is_on_disk(episode, tmp_path / "episode.jsonl")


def test_an_engine_that_fails_fails_the_episode_and_all_its_threads(start, tmp_path):
    session = start("a ~>", "b ~>", "x" * 50)
    session.run(progress=False)
    assert isinstance(session.error, EngineError)
    assert "the script is over" in session.episode.detail
    all_end_as(session.episode, Status.FAILED, 3)
    is_on_disk(session.episode, tmp_path / "episode.jsonl")


# Engines


def test_a_thread_waits_for_its_turn_where_the_engine_has_no_room_for_one_more_call(run):
    class Narrow(ScriptedEngine):
        most = 0

        def begin(self, thread, tokens, **options):
            if len(self._running) >= 2:
                raise EngineBusyError("two calls run already")
            super().begin(thread, tokens, **options)
            self.most = max(self.most, len(self._running))

    engine = Narrow(["a ~>", "b ~>", "c ~>", *["x" * 9 + "#END#"] * 4])
    assert run(engine=engine).status is Status.ENDED
    assert engine.most == 2


def test_an_engine_that_is_full_of_calls_that_nobody_goes_on_with_is_an_error(start, monkeypatch):
    monkeypatch.setattr("thread_kit.session.calls.PATIENCE", 0.01)

    class Full(ScriptedEngine):
        def begin(self, thread, tokens, **options):
            raise EngineBusyError("others' calls run")

    session = start(engine=Full([]))
    assert session.run(progress=False).status is Status.FAILED
    assert isinstance(session.error, EngineBusyError)


def test_one_step_brings_news_for_all_threads_of_a_driver_and_keeps_the_others():
    engine = ScriptedEngine(["aa", "bb", "cc"])
    for thread in (1, 2, 3):
        engine.begin(thread, [65], stops={}, max_tokens=9)
    assert engine.advance(2, 1) == [Sampled(2, 98, "b"), Sampled(1, 97, "a")]
    assert engine.advance(3) == [Sampled(3, 99, "c")], "no second step was taken"
    assert engine.advance(3) == [Sampled(3, 99, "c")]
    assert engine.advance(1) == [Sampled(1, 97, "a")]


def test_sessions_that_share_an_engine_do_not_change_one_another(sandbox):
    def speak(seen: str) -> str:
        if "find" in seen:
            return "x" * (10 * seen.count("m") + 1) + "\nprint('It is here.')\n#END#"
        parts = TWO[:2]
        return parts[seen.count("<=")] if seen.count("<=") < 2 else TWO[3]

    engine = Speaking(speak)
    sessions = [
        Session(engine, context="Do it. =>", dialect=ASYNC, sandbox=sandbox) for _ in range(3)
    ]
    alone = Session(Speaking(speak), context="Do it. =>", dialect=ASYNC, sandbox=sandbox)
    expected = alone.run(progress=False)
    workers = [Worker(session).start() for session in sessions]
    for worker in workers:
        episode = worker.wait(20)
        assert episode.status is Status.ENDED
        assert [one.sequence for one in episode.threads.values()] == [
            one.sequence for one in expected.threads.values()
        ]


# What is refused


def test_a_shared_scope_is_refused(start):
    with pytest.raises(ValueError, match="depend on who is faster"):
        start(scope="shared")


@pytest.mark.parametrize(("scope", "options"), [("none", {"sandbox": None}), ("own", {})])
def test_futures_need_variables_that_a_parent_gets_from_its_children(start, scope, options):
    with pytest.raises(ValueError, match=f"scope='{scope}'"):
        start(scope=scope, **options)


def test_in_the_dialect_of_join_nothing_has_changed(run):
    episode = run("First, a ~> b. =>", "print('A')\n#END#", "#END#", dialect=AGENT)
    assert "spawn" not in episode.header["dialect"]
    assert episode.threads[1].title == "a ~> b."
    assert '"future"' not in "\n".join(episode.to_lines())


# The trace


def test_the_work_of_a_child_belongs_to_the_tokens_of_its_reference(run):
    episode = run(*TWO)
    assert episode.threads[0].sequence.text == (
        "First, find the mug. ~>{t1}<=\nThen, find the cup. ~>{t2}<=\n"
        "print('I compare: {t1} {t2}')\n#END#"
    )
    work = episode.supplemental_work(0)
    for number, reference in ((1, "{t1}<=\n"), (2, "{t2}<=\n")):
        first, behind = episode.threads[0].returned[number]
        assert episode.threads[0].sequence.text[first:behind] == reference
        generated = episode.threads[number].usage.generated
        assert work[first:behind] == [generated] * len(reference)
        work[first:behind] = [0] * len(reference)
    assert set(work) == {0}


def test_the_trace_says_what_stands_for_whom_and_when_it_was_resolved(run):
    episode = run(*TWO)
    main, mug, cup = episode.threads.values()
    assert (main.future, mug.future, cup.future) == (None, "t1", "t2")
    assert [(e.child, e.at) for e in main.resolved] == [
        (1, len(main.sequence)),
        (2, len(main.sequence)),
    ]
    assert [(e.future, e.text, e.variables) for e in of_kind(episode, Resolved)] == [
        ("t1", "The mug is red.", {"t1": "The mug is red."}),
        ("t2", "The cup is blue.", {"t2": "The cup is blue."}),
    ]


def test_a_trace_from_before_there_were_futures_opens_and_is_written_as_it_was():
    path = resource("data/episodes/acacia-fence-gate.jsonl")
    episode = Episode.load(path)
    assert list(episode.to_lines()) == path.read_text().splitlines()
    assert {one.future for one in episode.threads.values()} == {None}
    assert "reference" not in episode_html(episode)


def test_a_trace_that_speaks_of_a_future_that_was_never_spawned_is_refused(run):
    lines = list(run(*TWO).to_lines())
    at = next(n for n, line in enumerate(lines) if '"waiting"' in line)
    lines[at] = lines[at].replace('"child": 1', '"child": 9')
    with pytest.raises(ValueError, match="never spawned"):
        Episode.from_lines(lines)


# Views


def test_the_tree_in_text_names_the_reference_of_a_child(run):
    assert [line[:36].rstrip() for line in str(run(*TWO)).splitlines()[:3]] == [
        "0 ended  Do it.",
        "├─ 1 ended  {t1} find the mug.",
        "└─ 2 ended  {t2} find the cup.",
    ]


def test_a_thread_in_text_says_what_its_futures_were(run):
    text = thread_text(run(*TWO), 0)
    assert "reference 1 ┆ {t1}<=" in text
    assert "future      │ t2 is thread 2: The cup is blue." in text


def test_every_view_can_be_taken_after_every_event(start):
    session = start(*TWO)
    recorder = FrameRecorder(session.episode)
    state = recorder.about["start"]
    growing = 0
    for event in session:
        for frame in recorder.add(event):
            fold(state, frame)
        growing = max(growing, sum(bool(one["writing"]) for one in state["threads"].values()))
        if event.passing:
            continue
        assert strip_details(state) == view_as_json(session.episode)
        check(episode_html(session.episode))
        if 0 in session.episode.threads:
            supplemental_work_figure(session.episode)
        if isinstance(event, Waiting):
            assert "waiting for 1" in check(episode_html(session.episode)).text
            assert state["threads"]["0"]["futures"] == [
                ["t1", "thread 1, not used yet"],
                ["t2", "thread 2, not used yet"],
            ]
    assert growing == 3, "three threads grow at the same time"


def test_html_says_to_whom_a_reference_refers(run):
    page = check(episode_html(run(*TWO)))
    assert "reference to thread 1 (7)" in page.text
    assert "t1thread 1: The mug is red." in page.text


def test_the_tree_of_a_child_hangs_below_its_reference(run):
    episode = run(*TWO)
    assert "reference" in {bar.name for bar in supplemental_work_figure(episode).data}


# The prompt checker

ASKS = Example(
    "Goal: compare.",
    "n = 2\nFirst, find {n} cups. ~>{t1}<=\nThen, find tea. ~>{t2}<=\n"
    "Now, compare {t1} with {t2}. =>Both are red.<=\n#END#",
)
CUPS = Example("find 2 cups. =>", "print('{n} red cups')\n#END#")
TEA = Example("find tea. =>", "kind = 'red'\nprint('{kind} tea')\n#END#")
BOTH = Example("compare 2 red cups with red tea. =>", "print('Both are red.')\n#END#")


def test_a_prompt_whose_threads_go_on_can_be_proved():
    assert check_prompt(Prompt("p", (ASKS, CUPS, TEA, BOTH), ASYNC)) == []


@pytest.mark.parametrize(
    ("examples", "problem"),
    [
        ((ASKS, CUPS, BOTH), "does not wait for 'find tea. =>', and no example has this context"),
        ((replace(ASKS, response=ASKS.response.replace("{t2}<=", "{t1}<=")), CUPS, TEA), "shows"),
        ((ASKS, CUPS, replace(TEA, response="> look =>Tea<=\n#END#"), BOTH), "nobody waits for it"),
    ],
)
def test_an_unsound_prompt_whose_threads_go_on_is_told_why(examples, problem):
    assert problem in " / ".join(check_prompt(Prompt("p", examples, ASYNC)))


# Random programs


@st.composite
def programs(draw, levels: int = 3):
    """What a thread does, in order: ("use", a name), or ("spawn", a mark, a name, a program)."""
    steps = []
    for _ in range(draw(st.integers(0, 4 if levels == 3 else 2))):
        name = f"t{draw(st.integers(1, 4))}"
        if levels == 0 or draw(st.booleans()):
            steps.append(("use", name))
        else:
            mark = draw(st.sampled_from(["~>", "~>", "=>"]))
            steps.append(("spawn", mark, name, draw(programs(levels - 1))))
    return steps


def play(program):
    """The function that speaks for every thread of a program, each named by its place."""

    def speak(seen: str) -> str:
        context, _, Y = seen.removeprefix("Prompt:\n").partition("\n\nResponse:\n#START#\n")
        place = context.split()[1].rstrip(".")
        steps = program
        for number in place.split("-")[1:]:
            steps = [step for step in steps if step[0] == "spawn"][int(number)][3]
        done = Y.count("<=\n")
        said = [""]
        for step in steps:
            if step[0] == "use":
                said[-1] += f"used = {step[1]}\n"
            else:
                said[-1] += f"Do {place}-{len(said) - 1}. {{{step[2]}}} {step[1]}"
                said.append("")
        said[-1] += f"print('{place}: {{t1}} {{t2}}')\n#END#"
        return said[done]

    return speak


def post_order(episode: Episode) -> list[int]:
    return [one.id for one in reversed(mirrored(episode))]


def mirrored(episode: Episode, thread: int = 0):
    one = episode.threads[thread]
    return [one, *(x for child in reversed(one.spawned) for x in mirrored(episode, child))]


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(programs(), st.integers(0, 10))
def test_no_program_of_spawns_and_waits_can_lock_itself_up(sandbox, program, seed):
    def outcome(slow):
        engine = Speaking(play(program), slow)
        options = {"context": "Do 0. =>", "dialect": ASYNC, "sandbox": sandbox, "calls": None}
        episode = Session(engine, **options).run(progress=False)
        assert episode.status is Status.ENDED
        assert all(one.status is Status.ENDED for one in episode.threads.values())
        order = post_order(episode)
        for event in of_kind(episode, Waiting):
            assert order.index(event.child) < order.index(event.thread)
        for one in episode.threads.values():
            assert len(one.sequence) == len(episode.supplemental_work(one.id))
        return {
            one.title.split()[1]: (one.context.text, one.sequence.text, one.variables)
            for one in episode.threads.values()
        }

    assert outcome(None) == outcome(random.Random(seed)), "nothing depends on who was faster"


pieces = st.sampled_from([
    "a = 1", "t1 = 2", "b = t1", "print('{a} {t1}')", "print(t2)", "print(", "> look {t1}", "~>",
    "~>", "~>", "=>", "<=", "#END#", "\n", "\n", " ", ", ", "{t1}", "{t2}", "First, {t1} and {t2}.",
    "~", ">", "é🪓", "\x00", "del t1", "{t1} = {t2}",
])  # fmt: skip


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.lists(pieces, max_size=8).map("".join), max_size=16),
    st.integers(1, 10),
    st.integers(1, 30),
    st.none() | st.integers(1, 150),
    st.integers(0, 3),
)
def test_whatever_the_model_writes_the_episode_ends_within_its_budgets(
    sandbox, tmp_path_factory, replies, calls, new_tokens, tokens, depth
):
    path = tmp_path_factory.mktemp("any") / "episode.jsonl"
    episode = Session(
        ScriptedEngine([*replies, *["#END#"] * 20]),
        Door(),
        dialect=ASYNC,
        calls=calls,
        new_tokens=new_tokens,
        tokens=tokens,
        depth=depth,
        sandbox=sandbox,
        path=path,
    ).run(progress=False)
    is_on_disk(episode, path)
    ended_within(episode, calls=calls, depth=depth)
    assert tokens is None or episode.usage.generated <= tokens
    for one in episode.threads.values():
        assert len(one.sequence) == len(episode.supplemental_work(one.id))
        assert thread_text(episode, one.id)
        written = "".join(s.text for s in one.sequence if s.provenance is Provenance.GENERATED)
        assert all(ran.line in written for ran in one.executed if "(what" not in ran.line)
        if one.status is Status.ENDED:
            assert set(one.spawned) <= {event.child for event in one.resolved} | set(one.returned)
