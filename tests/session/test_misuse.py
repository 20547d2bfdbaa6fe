"""What people, models and machines do wrong: each ends in order, and nothing finished is lost."""

from __future__ import annotations

import functools
import math
import signal
import threading
import time
from typing import Any

import pytest

import thread_kit as tk
from thread_kit import code_lines
from thread_kit.dialect import AGENT, QA, Dialect
from thread_kit.engines.engine import EngineError
from thread_kit.engines.human import HumanEngine
from thread_kit.engines.models import load_model
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.exchange import phi_full_sequence, psi_print
from thread_kit.program import thread_program
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import EMPTY, Example, Prompt, PromptError, load_prompt, parse_prompt
from thread_kit.requests import Status
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.session.session import Session, fork
from thread_kit.session.worker import Worker
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted, Closed, Ended, Event, GeneratedSpan, Observed, Token
from thread_kit.views.state_machine import watch_machine


class Bare(Env):
    """An environment of a newcomer."""

    observation: Any = ""

    def reset(self) -> str:
        return self.observation

    def step(self, action: str) -> Step:
        return self.observation

    def again(self) -> Env:
        return self

    def oracle(self) -> None:
        return None


class Named(Bare):
    name = "named"
    task: dict[str, Any] = {}  # noqa: RUF012


def run(*replies, **options):
    options.setdefault("context", "go")
    return Session(ScriptedEngine(replies), **options).run(progress=False)


def test_functions_that_a_program_would_not_use_are_refused():
    with pytest.raises(ValueError, match="phi, psi would not be used: a program exchanges"):
        run(program=thread_program, phi=phi_full_sequence, psi=psi_print)


@pytest.mark.parametrize(
    ("name", "function", "takes"),
    [
        ("phi", lambda sequence, variables: "x =>", "sequence, variables, dialect"),
        ("phi", "phi_last_line", "give one, from thread_kit.exchange"),
        ("psi", lambda: "x", "child"),
        ("xi", lambda sequence: "x", "sequence, variables, dialect"),
        ("abstract", lambda observation, variables, more: "x", "observation, variables"),
    ],
)
def test_a_function_that_does_not_take_what_it_is_given_is_refused_at_once(name, function, takes):
    with pytest.raises(ValueError, match=f"{name}=.*{takes}"):
        run("#END#", **{name: function})
    assert run("#END#", phi=phi_full_sequence, psi=str).status.is_end  # `str` does not tell


def test_a_decorated_function_is_asked_for_what_its_decorator_takes():
    def goal_first(function):
        @functools.wraps(function)
        def phi(sequence, variables, dialect):
            return function(sequence)

        return phi

    @goal_first
    def mine(sequence):
        return "mine =>"

    episode = run("go =>", "#END#", "#END#", phi=mine)
    assert "mine =>" in episode.threads[1].context.text


def test_functions_of_a_fork_are_refused_at_once_too():
    episode, engine = run("#END#"), ScriptedEngine([])
    for changes in ({"phi": lambda a: "x"}, {"recorded": {"psi": lambda: "x"}}):
        with pytest.raises(ValueError, match="does not take"):
            fork(episode, 1, engine=engine, **changes)


def test_a_fork_without_an_engine_says_so():
    with pytest.raises(TypeError, match=r"fork\(\) wants an engine"):
        fork(run("#END#"), 1)


@pytest.mark.parametrize("sandbox", ["bubblewrap", MontySandbox])
def test_what_is_no_sandbox_is_refused_before_the_episode(sandbox):
    with pytest.raises(ValueError, match=r"is no sandbox; make one: tk.BubblewrapSandbox\(\)"):
        Session(ScriptedEngine(["#END#"]), TextCraft("dev", 47), sandbox=sandbox)


@pytest.mark.parametrize("dialect", [AGENT, QA])
def test_the_program_alone_exchanges_as_a_session_of_the_dialect_does(dialect):
    replies = ["x = 1\nFirst, the sum of {x} and 2 is =>", "print('3')\n#END#", "#END#"]
    plain, alone = (
        run(*replies, dialect=dialect, program=program) for program in (None, thread_program)
    )
    assert len(alone.threads) == 2
    assert [str(thread.context) for thread in alone.threads.values()] == [
        str(thread.context) for thread in plain.threads.values()
    ]
    assert [thread.sequence for thread in alone.threads.values()] == [
        thread.sequence for thread in plain.threads.values()
    ]


# What models write


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ("print('good')\nprinter = undefined", "good"),
        ("x = 1; print(zzz)", "NameError: name 'zzz' is not defined"),
        ("print('old')\nresult = print(f'{zzz}')", "NameError: name 'zzz' is not defined"),
    ],
)
def test_the_answer_is_what_the_last_line_with_a_print_came_to(lines, answer):
    episode = run("I need it. =>", f"{lines}\n#END#", "#END#")
    assert episode.threads[0].sequence.spans[1].text == f"{answer}<=\n"


def test_text_of_a_child_never_becomes_an_action_of_its_parent():
    replies = ["I need it. =>", "print('x\\n> get 1 oak logs')\n#END#", " and more =>", "#END#"]
    session = Session(ScriptedEngine([*replies, "#END#"]), TextCraft("dev", 47), dialect=QA)
    episode = session.run(progress=False)
    assert not [event for event in episode.events if isinstance(event, Acted | Observed)]


def test_a_comma_in_what_a_child_said_does_not_cut_the_next_context():
    episode = run(
        "A is =>", "print('41, or so')\n#END#", " and B is =>", "#END#", "#END#", dialect=QA
    )
    assert episode.threads[2].title == "A is =>41, or so<= and B is"


def test_a_function_that_a_child_names_stays_a_function():
    replies = ["f = lambda n: n + 1\nI need it. =>", "print('use {f}')\n#END#", "x = f(1)\n#END#"]
    for scope in ("exported", "shared"):
        episode = run(*replies, scope=scope)
        assert episode.threads[0].variables["x"] == 2


def test_a_shared_variable_is_shown_as_the_child_left_it():
    episode = run("a = 1\nI need it. =>", "a = 2\n#END#", "b = a\n#END#", scope="shared")
    assert episode.threads[0].variables == {"a": 2, "b": 2}


@pytest.mark.slow
def test_lines_that_take_long_do_not_outlast_the_time_limit():
    slow = "x = [0 for i in range(10**12) if False]\n" * 20
    episode = run(f"{slow}#END#", seconds=1.5)
    assert episode.status is Status.OUT_OF_TIME
    assert len(episode.threads[0].executed) < 10


# What people do


def test_giving_up_in_the_middle_of_a_call_keeps_what_it_wrote(tmp_path):
    path = tmp_path / "episode.jsonl"
    with Session(ScriptedEngine(["a long story"]), context="go", path=path) as session:
        tokens = 0
        while tokens < 4:
            tokens += isinstance(next(session), Token)
    kept = Episode.load(path)
    assert kept.threads[0].sequence.text == "a lo"
    assert kept.status is Status.STOPPED


def test_a_session_that_is_closed_before_it_began_is_closed(tmp_path):
    path = tmp_path / "episode.jsonl"
    session = Session(ScriptedEngine([]), context="go", path=path)
    session.close()
    session.close()
    assert isinstance(Episode.load(path).events[-1], Closed)
    assert list(session) == []


def test_an_interrupt_stops_the_episode_and_run_returns_it():
    class Interrupting(ScriptedEngine):
        def step(self):
            signal.raise_signal(signal.SIGINT)
            return super().step()

    before = signal.getsignal(signal.SIGINT)  # a shell's background jobs ignore it
    session = Session(Interrupting(["a long story"]), context="go")
    assert session.run(progress=False).status is Status.STOPPED
    assert signal.getsignal(signal.SIGINT) is before


def test_an_older_trace_of_the_same_name_is_kept(tmp_path):
    path = tmp_path / "mine.jsonl"
    run("first#END#", path=path)
    run("second#END#", path=path)
    run("third#END#", path=path)
    texts = [Episode.load(tmp_path / name).threads[0].sequence.text for name in
             ("mine.1.jsonl", "mine.2.jsonl", "mine.jsonl")]  # fmt: skip
    assert texts == ["first#END#", "second#END#", "third#END#"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "textcraft"}, "tk.load_prompt"),
        ({"engine": "smollm2-135m"}, "tk.load_model"),
        ({"prompt": "Prompt:\n" * 99}, "tk.parse_prompt"),
        ({"env": TextCraft, "context": None}, "is a class; call it"),
        ({"env": 3, "context": None}, "inherit from tk.Env"),
        ({"env": Bare(), "context": None}, "Bare has no name and no task"),
        ({"dialect": "async"}, "tk.ASYNC"),
        ({"scope": "nonee"}, "'own' or 'none'"),
        ({"env": TextCraft("dev", 47)}, "either an environment or a context"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": -3}, "temperature"),
        ({"seed": None}, "seed"),
        ({"seed": -1}, "seed"),
        ({"new_tokens": None}, "new_tokens"),
        ({"calls": 0}, "calls"),
        ({"depth": -4}, "depth"),
        ({"calls": 2.5}, "calls=2.5 is no whole number"),
        ({"new_tokens": 10.5}, "new_tokens=10.5 is no whole number"),
        ({"tokens": 1e3}, "tokens=1000.0 is no whole number"),
        ({"depth": 0.5}, "depth=0.5 is no whole number"),
        ({"seed": 0.5}, "seed=0.5 is no whole number"),
        ({"calls": True}, "calls=True"),
        ({"seed": False}, "seed=False"),
        ({"temperature": True}, "temperature=True"),
        ({"seconds": math.inf}, "seconds"),
        ({"prompt": Prompt("p", (Example("c", "#END#"),)), "dialect": QA}, "dialects"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(options, message):
    options = {"engine": ScriptedEngine([]), "context": "go", **options}
    with pytest.raises(ValueError, match=message):
        Session(options.pop("engine"), **options)


@pytest.mark.model
def test_an_adapter_and_examples_are_too_much():
    with load_model(cpu_threads=1) as engine:
        prompt = Prompt("p", (Example("c", "#END#"),))
        with pytest.warns(
            UserWarning, match=r"adapter thread-135m\.gguf, and is shown the examples of p"
        ):
            Session(engine, context="go", prompt=prompt).close()
        Session(engine, context="go").close()


def test_what_an_environment_gives_is_text_from_the_start():
    env = Named()
    env.observation = ("Goal: open the box.", {})
    with pytest.raises(TypeError, match=r"reset of the environment gave .* which is no text"):
        Session(ScriptedEngine([]), env)


def test_no_sandbox_is_left_where_the_model_cannot_be_asked(monkeypatch):
    engine = ScriptedEngine([])
    monkeypatch.setattr(engine, "tokenizer", lambda sha256: 1 / 0)
    made = []
    monkeypatch.setattr(Named, "sandbox", lambda self: made.append(self), raising=False)
    env = Named()
    env.observation = "Goal"
    with pytest.raises(ZeroDivisionError):
        Session(engine, env)
    assert not made


@pytest.mark.parametrize(
    "marks", [{"close": "=>"}, {"start": "#END#"}, {"actions": ("",)}, {"end": "=>!"}]
)
def test_marks_that_cannot_be_told_apart_are_refused(marks):
    with pytest.raises(ValueError, match="mark"):
        Dialect(**marks)


def test_waiting_for_a_paused_worker_resumes_it():
    worker = Worker(Session(ScriptedEngine(["#END#"]), context="go"))
    worker.pause()
    worker.start().start()
    assert worker.wait().status is Status.ENDED


class Waiting(ScriptedEngine):
    """Says that it has begun a step, and waits to be told to go on."""

    def __init__(self, replies: list[str]) -> None:
        super().__init__(replies)
        self.inside, self.go_on = threading.Event(), threading.Event()

    def step(self):
        self.inside.set()
        self.go_on.wait(30)
        return super().step()


def test_a_session_in_a_worker_cannot_be_stepped_beside_it():
    engine = Waiting(["#END#"])
    session = Session(engine, context="go")
    worker = Worker(session).start()
    engine.inside.wait(30)
    with pytest.raises(RuntimeError, match="worker thread"):
        next(session)
    with pytest.raises(RuntimeError, match="worker thread"):
        session.close()
    engine.go_on.set()
    assert worker.wait().status is Status.ENDED


def test_a_second_worker_does_not_go_on_where_the_first_one_is_paused():
    session = Session(ScriptedEngine(["a b c #END#"]), context="go")
    told: list[Event | None] = []
    first = Worker(session, lambda event: first.pause() if isinstance(event, Token) else None)
    first.start()
    until = time.monotonic() + 30
    while not first.is_paused and time.monotonic() < until:
        time.sleep(0.001)
    before = len(session.episode.events)
    second = Worker(session, told.append).start()
    with pytest.raises(RuntimeError, match="running in another worker: look at the player"):
        second.wait(30)
    assert (told, len(session.episode.events)) == ([None], before)
    first.pause = lambda: None
    assert first.wait().status is Status.ENDED
    assert Worker(session).wait().status is Status.ENDED  # nobody drains it any more


def test_a_worker_beside_a_loop_over_its_session_says_so_at_its_end():
    engine = Waiting(["#END#"])
    session = Session(engine, context="go")
    loop = threading.Thread(target=session.run, kwargs={"progress": False})
    loop.start()
    engine.inside.wait(30)
    told: list[Event | None] = []
    worker = Worker(session, told.append).start()
    worker._thread.join(30)
    assert (told, type(worker.error)) == ([None], RuntimeError)
    engine.go_on.set()
    loop.join()
    assert session.episode.status is Status.ENDED


def test_a_prompt_that_teaches_endless_spawning_is_told_so():
    loop = Example("I need it. =>", "First, I need it. =>Yes.<=\nprint('Yes.')\n#END#")
    main = Example("Goal.", "First, I need it. =>Yes.<=\n#END#")
    assert "child of itself" in " ".join(check_prompt(Prompt("p", (main, loop))))


def test_an_example_that_goes_on_behind_its_end_is_refused():
    with pytest.raises(PromptError, match="goes on behind"):
        parse_prompt("Prompt:\nc\n\nResponse:\n#START#\nprint('a')#END#\nmore #END#\n")


# What machines do


@pytest.mark.model
def test_an_engine_that_is_closed_in_the_middle_is_an_error_and_no_crash(tmp_path):
    path = tmp_path / "episode.jsonl"
    engine = load_model(cpu_threads=1)
    session = Session(engine, context="Once upon a time =>", new_tokens=50, path=path)
    while not isinstance(next(session), Token):
        pass
    engine.close()
    list(session)
    assert isinstance(session.error, EngineError)
    assert "load it again" in session.episode.detail
    events = Episode.load(path).events
    assert [type(event) for event in events[-3:]] == [GeneratedSpan, Ended, Closed]
    assert events[-1].status is Status.FAILED


@pytest.mark.model
def test_an_interrupt_in_a_prefill_leaves_the_engine_usable(monkeypatch):
    import llama_cpp

    decode, calls = llama_cpp.llama_decode, []

    def interrupted(*arguments):
        code = decode(*arguments)
        calls.append(code)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return code

    with load_model(cpu_threads=1, adapter=None) as engine:
        monkeypatch.setattr(llama_cpp, "llama_decode", interrupted)
        prompt = Prompt("p", (Example("c " * 300, "r\n#END#"),))
        with pytest.raises(KeyboardInterrupt):
            list(Session(engine, context="go", prompt=prompt, new_tokens=5))
        again = Session(engine, context="go", prompt=prompt, new_tokens=5).run(progress=False)
        fresh = Session(engine, context="go", prompt=EMPTY, new_tokens=5).run(progress=False)
    assert again.status is Status.TRUNCATED
    assert fresh.status in (Status.TRUNCATED, Status.ENDED, Status.END_OF_STREAM)


@pytest.mark.model
def test_a_cache_that_no_machine_can_hold_is_refused():
    with pytest.raises(EngineError, match="smaller context"):
        load_model(context=2_000_000_000)


@pytest.mark.parametrize("make", [lambda: ScriptedEngine(["never"]), lambda: person()])
def test_an_engine_that_is_closed_while_a_session_waits_ends_it(make):
    engine = make()
    session = Session(engine, context="go")
    engine.begin = lambda *a, begin=engine.begin, **o: (begin(*a, **o), engine.close())[0]
    session.run(progress=False)
    assert isinstance(session.error, EngineError)
    assert session.episode.status is Status.FAILED
    assert "load it again" in session.episode.detail


@pytest.mark.parametrize(
    "use",
    [
        tk.watch,
        watch_machine,
        tk.list_events,
        tk.supplemental_work_figure,
        tk.usage_figure,
        tk.find_first_error,
        lambda source: tk.to_dataset([source]),
        tk.least_lead,
        lambda source: tk.draw_edge(source, 1),
        lambda source: tk.save_picture(source, "unused.svg"),
        lambda source: tk.save_page(source, "unused.html"),
        lambda source: tk.fork(source, 0, engine=ScriptedEngine([])),
    ],
)
def test_a_path_in_the_place_of_an_episode_is_named_with_the_way_to_open_it(use):
    with pytest.raises(
        TypeError, match=r"not 'x\.jsonl'; a trace opens with Episode\.load\(path\)"
    ):
        use("x.jsonl")


def test_what_is_no_function_or_no_prompt_is_refused_before_anything_is_played():
    with pytest.raises(ValueError, match="phi='phi_last_line' is no function"):
        Session(ScriptedEngine([]), context="go", phi="phi_last_line")
    with pytest.raises(ValueError, match="prompt='textcraft' of 'x' is no prompt"):
        tk.SessionMethod("x", prompt="textcraft")


def test_a_replay_is_made_by_fork():
    with pytest.raises(TypeError, match=r"'x\.jsonl' is no Replay; fork"):
        Session(ScriptedEngine([]), context="go", replay="x.jsonl")


def person() -> HumanEngine:
    return HumanEngine(ScriptedEngine([]))


def test_code_that_is_never_complete_is_not_read_anew_at_each_call(monkeypatch):
    read, parse = [], code_lines._parse

    def count(source, mode):
        read.append(len(source))
        return parse(source, mode)

    for name in ("_parse", "_parse_once"):  # what is parsed again at once counts as well
        monkeypatch.setattr(code_lines, name, count)

    def characters_read(calls: int) -> int:
        read.clear()
        code_lines._blocks.cache_clear()
        asks = [f"x{n} = [\n" + "[1,\n" * 50 + " =>" for n in range(calls)]
        replies = [reply for ask in asks for reply in (ask, "#END#")]
        session = Session(ScriptedEngine(replies), context="go", dialect=QA, calls=2 * calls)
        assert session.run(progress=False).usage.calls == 2 * calls
        return sum(read)

    assert characters_read(20) < 2.2 * characters_read(10)


class Local(ScriptedEngine):
    """Says of itself what a local model says."""

    def __init__(self, adapter: dict[str, str] | None) -> None:
        super().__init__(["#END#"])
        self.adapter = adapter

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "adapter": self.adapter}


def test_a_model_that_nothing_or_two_things_teach_is_warned_of():
    shown = load_prompt("textcraft")
    with pytest.warns(UserWarning, match=r"no adapter and is shown no examples.*'textcraft'"):
        Session(Local(None), TextCraft("dev", 47)).close()
    with pytest.warns(UserWarning, match=r"taught by the adapter mine.gguf, and is shown"):
        Session(Local({"file": "mine.gguf"}), TextCraft("dev", 47), prompt=shown).close()
    for adapter, options in ((None, {"prompt": shown}), ({"file": "mine.gguf"}, {})):
        Session(Local(adapter), TextCraft("dev", 47), **options).close()
    Session(Local(None), context="go").close()
