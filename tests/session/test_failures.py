"""What fails beside the model ends in order: an event with the traceback, a status, a trace."""

from __future__ import annotations

import logging

import pytest
from helpers.episodes import Shed, is_on_disk, of_kind
from helpers.suites import suite

import thread_kit as tk
from thread_kit.dialect import AGENT
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Step
from thread_kit.exchange import phi_last_line
from thread_kit.experiments.method import SessionMethod
from thread_kit.requests import Await, Finished, Generate, Show, SpawnAsync, Status
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sequence import Sequence
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Closed, Ended, ExecutedLine, Returned

CHILD_ASKS = ("I need it. =>", "I need more. =>", "print('more')\n#END#", "#END#", "#END#")


def broken(*arguments) -> str:
    raise ZeroDivisionError("my mistake")


def run(*replies: str, **options) -> Session:
    given = {"context": "go", **options}
    session = Session(ScriptedEngine(replies), **given)
    session.run(progress=False)
    return session


def returned(episode: Episode, thread: int = 0) -> list[str]:
    return [event.span.text for event in of_kind(episode, Returned) if event.thread == thread]


def is_my_mistake(traceback: str) -> bool:
    return (
        traceback.startswith("Traceback (most recent call last):\n")
        and 'File "test_failures.py", line ' in traceback
        and ", in broken\n" in traceback
        and traceback.endswith("ZeroDivisionError: my mistake")
    )


@pytest.mark.parametrize(
    ("name", "line"), [("phi", "I need it. =>"), ("xi", "> open =>"), ("abstract", "> open =>")]
)
def test_a_function_that_fails_ends_the_thread_that_met_it(tmp_path, name, line, caplog):
    path = tmp_path / "episode.jsonl"
    session = run(line, env=Shed(), context=None, path=path, **{name: broken})
    episode = session.episode
    assert (episode.status, episode.detail) == (Status.FAILED, "ZeroDivisionError: my mistake")
    assert isinstance(session.error, ZeroDivisionError)
    [end] = of_kind(episode, Ended)
    assert is_my_mistake(end.traceback)
    assert isinstance(episode.events[-1], Closed)
    is_on_disk(episode, path)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info[1] is session.error


def test_a_childs_failure_is_a_text_to_its_parent_and_the_episode_goes_on():
    def phi(sequence, variables, dialect):
        if "more" in sequence.text:
            broken()
        return phi_last_line(sequence, variables, dialect)

    session = run(*CHILD_ASKS[:2], "#END#", phi=phi)
    episode = session.episode
    assert episode.status is Status.ENDED
    assert session.error is None
    assert returned(episode) == [
        "Error: the thread did not finish (failed: ZeroDivisionError: my mistake).<=\n"
    ]
    assert [end.traceback != "" for end in of_kind(episode, Ended)] == [True, False]


def test_what_psi_raises_is_what_the_parent_reads(caplog):
    session = run(*CHILD_ASKS, psi=broken)
    episode = session.episode
    assert episode.status is Status.ENDED
    assert session.error is None
    text = "Error: psi failed (ZeroDivisionError: my mistake).<=\n"
    assert returned(episode) == returned(episode, 1) == [text]
    failures = of_kind(episode, ExecutedLine)[1:]
    assert [event.thread for event in failures] == [1, 0]
    assert all(is_my_mistake(event.error) for event in failures)
    assert len(caplog.records) == 1, "the same place is said once"


@pytest.mark.parametrize("name", ["phi", "psi", "xi", "abstract"])
def test_a_function_that_gives_no_text_is_told_so(name):
    session = run(
        "I need it. =>", "#END#", "> open =>", "#END#", env=Shed(), context=None,
        **{name: lambda *arguments: None},
    )  # fmt: skip
    text = f"TypeError: {name} gave None, which is no text"
    assert text in (returned(session.episode)[0] if name == "psi" else session.episode.detail)


def test_a_fork_repeats_a_failure_of_psi_although_its_lines_have_moved():
    def psi(child):
        return broken()

    first = run(*CHILD_ASKS, psi=psi)

    def psi(child):  # as it was, further down
        return broken()

    fork = tk.fork(
        first.episode, len(first.episode.events) - 2, recorded={"psi": psi},
        engine=ScriptedEngine(["#END#"] * 3),
    )  # fmt: skip
    assert fork.run(progress=False).status is Status.ENDED
    assert fork.error is None


def test_a_mended_phi_goes_on_where_the_broken_one_failed():
    first = run("I need it. =>", phi=broken)
    engine = ScriptedEngine(["print('it')\n#END#", "#END#"])
    fork = first.fork(engine=engine, phi=phi_last_line)
    assert fork.run(progress=False).status is Status.ENDED
    assert returned(fork.episode) == ["it<=\n"]


def test_a_thread_that_fails_waits_for_its_own_children():
    def phi(sequence, variables, dialect):
        return broken() if "late" in sequence.text else phi_last_line(sequence, variables, dialect)

    session = run("One ~>", "late =>", "print('slow')\n#END#", phi=phi, dialect=tk.ASYNC)
    episode = session.episode
    assert [thread.status for thread in episode.threads.values()] == [Status.FAILED, Status.ENDED]
    assert [end.thread for end in of_kind(episode, Ended)] == [1, 0]


REWARD = "ValueError: step of the environment gave the reward"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((None, 0.0, False, False, {}), "TypeError: step of the environment gave None"),
        (
            ("Done.", float("nan"), False, False, {}),
            f"{REWARD} nan",
        ),
        (
            ("Done.", 100.0, False, False, {}),
            f"{REWARD} 100",
        ),
        (
            ("Done.", "much", False, False, {}),
            "TypeError: step gave the reward 'much'; return a number",
        ),
        (
            ("Done.", None, False, False, {}),
            "TypeError: step gave the reward None; return a number",
        ),
        (("Done.", 0.0), "TypeError: step gave ('Done.', 0.0); return tk.Step("),
        (
            ("Done.", 0.0, False, False, 7),
            "TypeError: step gave the info 7; return a dict, {} for none",
        ),
        (("Done.", 0.0, False, False, None), "TypeError: step gave the info None; return a dict"),
        ("text", "TypeError: step gave 'text'; return tk.Step(observation, reward, "),
        (None, f"TypeError: step gave None; return tk.Step({', '.join(Step._fields)})"),
    ],
)
def test_an_environment_that_gives_what_no_trace_could_hold_ends_its_episode(
    tmp_path, step, message
):
    class Odd(Shed):
        def step(self, action):
            return step

    path = tmp_path / "episode.jsonl"
    episode = run("> open =>", env=Odd(), context=None, path=path).episode
    assert episode.status is Status.FAILED
    assert episode.detail.startswith(message)
    is_on_disk(episode, path)


def test_an_error_that_cannot_be_written_is_one_all_the_same():
    class MuteError(Exception):
        def __str__(self):
            broken()

    class Mute(Shed):
        def step(self, action):
            raise MuteError

    episode = run("> open =>", env=Mute(), context=None).episode
    assert episode.detail == "MuteError: (its message cannot be written)"


def test_an_endless_error_is_cut():
    class Long(Shed):
        def step(self, action):
            raise KeyError("x" * 10**6)

    episode = run("> open =>", env=Long(), context=None).episode
    assert len(episode.detail) < 3_000
    assert sum(len(end.traceback) for end in of_kind(episode, Ended)) < 9_000


class Defiant(MontySandbox):
    """One that fails to bind what comes up, and to close."""

    def execute(self, state, code, inputs=None):
        if inputs:
            raise OverflowError("no room")
        return super().execute(state, code, inputs)

    def close(self) -> None:
        super().close()
        raise OSError("it does not close")


def test_a_sandbox_that_cannot_take_variables_is_an_error_of_the_thread():
    with pytest.raises(OSError, match="close"), Defiant() as sandbox:
        session = run(
            "I need it. =>", "x = 5\nprint('{x}')\n#END#", "#END#", sandbox=sandbox
        )  # fmt: skip
    assert session.episode.status is Status.ENDED
    errors = [line.error for line in of_kind(session.episode, ExecutedLine) if line.error]
    assert errors == ["the sandbox failed (OverflowError: no room)"]


def test_an_own_sandbox_that_does_not_close_ends_no_session():
    class Own(Shed):
        def sandbox(self):
            return Defiant()

    session = run("x = 1\n#END#", env=Own(), context=None)
    assert session.episode.status is Status.ENDED
    assert str(session.error) == "it does not close"


def test_a_program_that_asks_for_what_is_no_request_is_told_so():
    def odd(new):
        yield 5
        return Finished(Sequence(), Status.ENDED, {})

    episode = run(program=odd, scope="none").episode
    assert episode.detail == "TypeError: a program asked for 5, which is no request"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "TypeError: a program returned None, and no Finished"),
        (Finished(Sequence(), Status.GENERATING, {}), "TypeError: a program returned Finished("),
    ],
)
def test_a_program_that_returns_no_end_is_told_so(value, said):
    def odd(new):
        yield Show(Sequence())
        return value

    assert run(program=odd, scope="none").episode.detail.startswith(said)


def test_a_program_that_waits_for_nobody_is_told_so():
    def odd(new):
        yield SpawnAsync("I need it. =>", "t1")
        yield Await("t2")

    episode = run("#END#", program=odd, scope="none").episode
    assert episode.detail == "ValueError: a program waits for 't2', and its futures are: t1"


def test_a_program_that_fails_ends_its_thread():
    def odd(new):
        yield Generate(Sequence())
        broken()

    episode = run("#END#", program=odd, scope="none").episode
    assert episode.detail == "ZeroDivisionError: my mistake"
    assert is_my_mistake(of_kind(episode, Ended)[0].traceback)


def test_a_suite_says_in_its_row_what_failed(tmp_path):
    method = SessionMethod("broken", fixed={"phi": broken, "scope": "exported"})
    results = suite(tmp_path / "r.jsonl", methods=[method], traces=True).run(progress=False)
    assert {row["error"] for row in results} == {"ZeroDivisionError: my mistake"}
    assert {row["status"] for row in results} == {"failed"}
    for row in results:
        trace = Episode.load(tmp_path / row["trace"])
        assert is_my_mistake(of_kind(trace, Ended)[-1].traceback)


def test_only_interrupts_leave_a_session():
    class Interrupting(Shed):
        def step(self, action):
            raise KeyboardInterrupt

    session = Session(ScriptedEngine(["> open =>"]), Interrupting())
    with pytest.raises(KeyboardInterrupt):
        list(session)
    assert session.episode.status is Status.STOPPED
    assert AGENT.end not in session.episode.threads[0].sequence.text


def test_a_reward_of_another_library_is_a_number_in_the_trace(tmp_path):
    import numpy as np

    class Scientific(Shed):
        def step(self, action):
            return Step("Done.", np.float32(0.5), np.bool_(True), np.False_, {})

    path = tmp_path / "episode.jsonl"
    episode = run("> open =>", "#END#", env=Scientific(), context=None, path=path).episode
    assert episode.reward == 0.5
    is_on_disk(episode, path)


def test_an_error_that_holds_what_a_model_wrote_does_not_act_on_the_console(caplog):
    class Echo(Shed):
        def step(self, action):
            raise ValueError(f"no action: {action}")

    session = run("> \x1b[2J\x9b31m go =>", env=Echo(), context=None)
    assert "\x1b[2J" in session.episode.detail, "the trace holds it as it is"
    [record] = caplog.records
    shown = logging.Formatter().format(record)
    assert "␛[2J" in shown.splitlines()[0]
    assert shown.splitlines()[-1].startswith("ValueError: no action: ␛[2J")
    assert not {"\x1b", "\x9b"} & {*shown, *caplog.text}
