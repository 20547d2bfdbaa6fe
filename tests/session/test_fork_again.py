"""Forks of forks, and of episodes that ended in the middle of something."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from helpers.episodes import PROMPT, Shed, of_kind

import thread_kit as tk
from thread_kit import exchange
from thread_kit.dialect import Stop
from thread_kit.engines.replay import ReplayEngine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Step
from thread_kit.exchange import phi_full_sequence
from thread_kit.methods.common import act
from thread_kit.requests import Finished, Generate, Show, Status
from thread_kit.sequence import Sequence
from thread_kit.session.session import Session
from thread_kit.session.session import fork as fork_of
from thread_kit.trace.episode import Episode, TraceError
from thread_kit.trace.events import (
    Acted,
    Closed,
    Edited,
    Event,
    GeneratedSpan,
    Observed,
    Spawned,
)


def place(episode: Episode, kind: type[Event], number: int = 0) -> int:
    return [n for n, event in enumerate(episode.events) if isinstance(event, kind)][number]


def spell(event: GeneratedSpan) -> str:
    """What the tokens of a scripted engine say: they are characters."""
    return "".join(map(chr, event.span.tokens))


def contexts(episode: Episode) -> list[str]:
    return [event.context.text.partition("\n\n")[0] for event in of_kind(episode, Spawned)]


# Functions that forks change

LETTERS = [
    "I think, do A. =>",
    "#END#",
    "I think, do B. =>",
    "#END#",
    "I think, do C. =>",
    *["#END#"] * 2,
]


@pytest.fixture
def changed() -> tuple[Session, Session]:
    """An episode, and its fork before B with another phi."""
    session = Session(ScriptedEngine(LETTERS), context="go =>")
    at = place(session.run(progress=False), GeneratedSpan, 2)
    fork = session.fork(at, engine=ScriptedEngine(LETTERS[2:]), phi=phi_full_sequence)
    fork.run(progress=False)
    return session, fork


@pytest.mark.parametrize("is_saved", [False, True])
def test_each_part_of_a_fork_is_repeated_with_the_function_that_it_had(changed, is_saved):
    _, fork = changed
    at, engine = place(fork.episode, GeneratedSpan, 4), ScriptedEngine(LETTERS[4:])
    if is_saved:
        saved = Episode.from_lines(fork.episode.to_lines())
        again = fork_of(saved, at, engine=engine)
    else:
        again = fork.fork(at, engine=engine)
    episode = again.run(progress=False)
    assert episode.status is Status.ENDED
    assert contexts(episode) == contexts(fork.episode)
    # A third function behind the second, and all of them once more.
    third = again.fork(at, engine=ScriptedEngine(LETTERS[4:]), phi=exchange.phi_last_line)
    assert contexts(third.run(progress=False))[:3] == contexts(episode)[:3]
    assert contexts(third.episode)[3] == "Prompt:\nI think, do C. =>".replace("I think, ", "")
    lines = Episode.from_lines(third.episode.to_lines())
    last = fork_of(lines, len(lines.events) - 2, engine=ScriptedEngine(["#END#"]))
    assert contexts(last.run(progress=False)) == contexts(third.episode)


def test_a_fork_before_an_earlier_one_goes_on_with_the_new_function(changed):
    session, fork = changed
    engine = ScriptedEngine(LETTERS[1:])
    episode = fork.fork(3, engine=engine).run(progress=False)
    assert contexts(episode)[:2] == contexts(session.episode)[:2]
    assert contexts(episode)[2] == contexts(fork.episode)[2]


@pytest.mark.parametrize(
    "part",
    [
        {"exchange": {"path": "__file__"}},
        {"exchange": {"engine": "phi_last_line"}},
        {"limits": {"path": 1}},
        {"sampling": {"calls": 1}},
        {"dialect": {"path": "x"}},
        {"fork": {"event": 1, "exchange": {"path": [[1, "__file__"]]}}},
        {"fork": {"event": 1, "exchange": {"phi": [["x", 1]]}}},
    ],
)
def test_a_header_that_would_give_a_fork_other_parameters_is_refused(part):
    session = Session(ScriptedEngine(["#END#"]), context="go =>")
    header, *lines = session.run(progress=False).to_lines()
    with pytest.raises(TraceError, match="line 1: this is no trace"):
        Episode.from_lines([json.dumps({**json.loads(header), **part}), *lines])


@pytest.mark.parametrize("name", ["__file__", "Path", "Variables", "nothing"])
def test_only_functions_of_the_kit_are_found_by_their_names(name):
    session = Session(ScriptedEngine(["#END#"]), context="go =>")
    header, *lines = session.run(progress=False).to_lines()
    data = json.loads(header)
    data["exchange"]["phi"] = name
    episode = Episode.from_lines([json.dumps(data), *lines])
    with pytest.raises(ValueError, match=f"phi={name}, which is not this kit's own"):
        fork_of(episode, 1, engine=ScriptedEngine(["#END#"]))


# Text of whose tokens only the sum is known

SAYS = ["x = 1\nGo. =>", "#END#", "y = 2\n#END#"]


@pytest.mark.parametrize("token", range(20))
def test_what_a_person_wrote_is_kept_whole_or_not_at_all(token):
    session = Session(ScriptedEngine(SAYS), context="go =>")
    at = place(session.run(progress=False), GeneratedSpan)
    once = session.fork(at, token=3, text="abcdef", engine=ScriptedEngine([" tail\n#END#"]))
    (call,) = of_kind(once.run(progress=False), GeneratedSpan)
    assert list(call.lengths)[3:9] == [0] * 5 + [6]
    at = place(once.episode, GeneratedSpan)
    again = once.fork(at, token=token, engine=ScriptedEngine(["T\n#END#"]))
    (made,) = of_kind(again.run(progress=False), GeneratedSpan)
    assert spell(made) == made.span.text
    kept = "x =abcdef tail\n#END#"[: 3 if 3 < token < 9 else token]
    assert made.span.text == kept + ("T\n#END#" if token < 20 else "")


@pytest.mark.parametrize("token", range(1, 9))
def test_a_call_that_came_as_one_piece_is_kept_whole_or_not_at_all(token):
    class Piece(ScriptedEngine):
        def advance(self, *threads):
            news = []
            while not any(hasattr(item, "stop") for item in news):
                news += super().advance(*threads)
            *sampled, over = news
            text = "".join(item.text for item in sampled)
            pieces = [replace(one, text=text if n == 0 else "") for n, one in enumerate(sampled)]
            return [*pieces, over]

    session = Session(Piece(["value = 5\n#END#"]), context="go =>")
    at = place(session.run(progress=False), GeneratedSpan)
    again = session.fork(at, token=token, engine=ScriptedEngine(["w = 7\n#END#"]))
    (made,) = of_kind(again.run(progress=False), GeneratedSpan)
    assert spell(made) == made.span.text == "w = 7\n#END#"


def test_a_change_of_a_call_is_told_wherever_the_session_is_closed():
    class AtOnce(ScriptedEngine):
        def advance(self, *threads):
            news = []
            while not any(hasattr(item, "stop") for item in news):
                news += super().advance(*threads)
            return news

    session = Session(ScriptedEngine(SAYS), context="go =>")
    at = place(session.run(progress=False), GeneratedSpan)
    for closed in range(1, 20):
        fork = session.fork(at, token=3, text="MINE", engine=AtOnce([" bc\n#END#"]))
        for _ in range(closed):
            if next(fork, None) is None:
                return
        fork.close()
        calls = [call for call in of_kind(fork.episode, GeneratedSpan) if "MINE" in call.span.text]
        assert len(of_kind(fork.episode, Edited)) == len(calls)


# What one of several threads had ended when the session was closed


def speak(seen: str) -> str:
    """A main thread that goes on beside its child; both write a few lines."""
    own = seen.rpartition("#START#\n")[2]
    if "Prompt:\nDo it" in seen:
        return "print('a child')\n#END#".removeprefix(own)
    if "~>" not in own:
        return "Do it. ~>".removeprefix(own)
    whole = "x = 1\nyy = 22\nzzz = 333\nprint('{t1}, main')\n#END#"
    return whole.removeprefix(own.rpartition("<=\n")[2])


def test_a_call_that_was_given_up_goes_on_also_where_another_one_had_ended():
    whole = Session(ScriptedEngine(speak), context="go =>", dialect=tk.ASYNC).run(progress=False)
    beside = 0
    for closed in range(2, 200):
        session = Session(ScriptedEngine(speak), context="go =>", dialect=tk.ASYNC)
        for _ in range(closed):
            next(session, None)
        session.close()
        if session.episode.status is Status.ENDED:
            break
        calls = of_kind(session.episode, GeneratedSpan)
        beside += len(calls) > 1 and {call.stop for call in calls[-2:]} == {
            Stop.CANCELLED,
            Stop.END,
        }
        # Older traces have what was given up first.
        for episode in (session.episode, _swap(session.episode)):
            fork = fork_of(episode, engine=ScriptedEngine(speak)).run(progress=False)
            texts = [thread.sequence.text for thread in fork.threads.values()]
            assert fork.status is Status.ENDED
            assert texts == [thread.sequence.text for thread in whole.threads.values()]
    assert beside


def _swap(episode: Episode) -> Episode:
    """The last two calls in the other order, where they stand side by side."""
    events = list(episode.events)
    for n in reversed(range(1, len(events))):
        if isinstance(events[n], GeneratedSpan):
            if isinstance(events[n - 1], GeneratedSpan) and events[n].stop is Stop.CANCELLED:
                events[n - 1 : n + 1] = events[n], events[n - 1]
            break
    swapped = Episode(episode.header)
    for event in events:
        swapped.add(event)
    return swapped


def test_what_was_given_up_at_the_end_of_a_task_is_given_up_once_more():
    class Over(Shed):
        def step(self, action):
            return Step("done", 1.0, True, False, {})

        def again(self):
            return Over()

    def say(seen: str) -> str:
        own = seen.rpartition("#START#\n")[2]
        if "Prompt:\nDo it" in seen:
            return "print('a child that goes on and on and on and on')\n#END#".removeprefix(own)
        if "~>" not in own:
            return "Do it. ~>"
        return "y = 1\n> again =>" if "done" in own else "> finish =>"

    prompt = replace(PROMPT, dialect=tk.ASYNC)
    episode = Session(ScriptedEngine(say), Over(), prompt=prompt).run(progress=False)
    assert any(call.stop is Stop.CANCELLED for call in of_kind(episode, GeneratedSpan))
    again = Session(ReplayEngine(episode), Over(), prompt=prompt).run(progress=False)
    assert again.usage.generated == episode.usage.generated
    assert len(again.events) == len(episode.events)


# Time, actions, tasks, values


def test_time_is_what_the_session_took_and_not_the_sum_of_calls_side_by_side():
    session = Session(ScriptedEngine(speak), context="go =>", dialect=tk.ASYNC)
    episode = session.run(progress=False)
    slow = Episode(episode.header)
    for event in episode.events:
        if isinstance(event, GeneratedSpan):
            event = replace(event, seconds=10.0)
        elif isinstance(event, Closed):
            event = replace(event, seconds=12.0)
        slow.add(event)
    at = len(slow.events) - 2
    fork = fork_of(slow, at, engine=ScriptedEngine(speak), seconds=20.0)
    assert fork.run(progress=False).status is Status.ENDED
    late = fork_of(slow, at, engine=ScriptedEngine(speak), seconds=11.0)
    assert late.run(progress=False).status is Status.OUT_OF_TIME


def two_actions(thread):
    """Two actions before one of them is shown, and another one behind."""
    Y = Sequence()
    for actions in (("one", "two"), ("three",)):
        for action in actions:
            seen, _ = yield from act(thread, Y, action)
        Y = seen
        yield Show(Y)
    generated = yield Generate(Y)
    return Finished(Y + generated.span, Status.ENDED, {})


@pytest.mark.parametrize("number", range(3))
def test_one_observation_is_changed_whichever_are_shown(number):
    session = Session(ScriptedEngine(["#END#"]), Shed(), program=two_actions)
    at = place(session.run(progress=False), Acted, number)
    fork = session.fork(at, observation="EDIT", engine=ScriptedEngine(["#END#"]))
    episode = fork.run(progress=False)
    assert episode.status is Status.ENDED
    assert len(of_kind(episode, Edited)) == 1
    shown = [event.span.text.startswith("EDIT") for event in of_kind(episode, Observed)]
    assert shown == [number == 1, number == 2]


@pytest.mark.parametrize("task", [{"ids": (1, 2)}, {"levels": {1: "a"}}])
def test_a_task_of_any_values_is_the_same_task(task):
    class Own(Shed):
        def __init__(self):
            super().__init__()
            self.task = task

        def again(self):
            return Own()

    session = Session(ScriptedEngine(["#END#"] * 3), Own())
    session.run(progress=False)
    assert session.fork(1).run(progress=False).status is Status.ENDED


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"a", object()])
def test_a_value_that_no_trace_can_hold_is_refused(value):
    session = Session(ScriptedEngine(SAYS), context="go =>")
    session.run(progress=False)
    with pytest.raises(ValueError, match=r"v=.* is no value that a trace can hold"):
        session.fork(1, variables={"v": value})
