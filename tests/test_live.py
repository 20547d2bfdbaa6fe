"""The live widget: the changes that it sends, and its Python side."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from episodes import REPLIES, session

from thread_kit.engines import EngineError
from thread_kit.events import (
    Prefilling,
    Token,
)
from thread_kit.thread import Status
from thread_kit.trace import Episode
from thread_kit.views.deltas import changes, fold, joined, state_of
from thread_kit.views.html import episode_html
from thread_kit.views.live import LiveEpisode, watch
from thread_kit.views.outbox import INTERVAL, Outbox


@pytest.fixture(scope="module")
def episode() -> Episode:
    one = session()
    for _ in one:
        pass
    return one.episode


def test_changes_fold_into_the_state_of_the_episode():
    one = session()
    state = state_of(one.episode)
    for event in one:
        for change in json.loads(json.dumps(changes(state, one.episode, event))):
            fold(state, change)
        if not event.passing:
            assert {**state, "reading": None} == state_of(one.episode)
    assert state == state_of(one.episode)


def test_tokens_are_written_one_by_one_and_never_sent_again():
    one = session()
    state = state_of(one.episode)
    sent = 0
    for event in one:
        found = changes(state, one.episode, event)
        for change in found:
            fold(state, change)
        sent += len(json.dumps(found))
        if isinstance(event, Token):
            assert found[-1] == ["write", ["threads", str(event.thread), "writing"], event.text]
        if isinstance(event, Prefilling):
            assert state["reading"]["total"] == event.total
    assert sent < 30 * len(json.dumps(state))


def test_joined_changes_do_the_same():
    found = [
        ["write", ["a"], "x"],
        ["write", ["a"], "y"],
        ["set", ["b"], 1],
        ["set", ["b"], 2],
        ["write", ["a"], "z"],
        ["push", ["c"], [1]],
        ["push", ["c"], [2]],
    ]
    states: list[dict[str, Any]] = []
    for version in (found, joined(found)):
        state = {"a": "", "b": 0, "c": []}
        for change in json.loads(json.dumps(version)):
            fold(state, change)
        states.append(state)
    assert states[0] == states[1] == {"a": "xyz", "b": 2, "c": [1, 2]}
    assert len(joined(found)) < len(found)


class Clock:
    """A time that stands until it is told to go on, and what was asked to be called later."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.waiting.append((self.now + seconds, call))

    def go(self, seconds: float) -> None:
        self.now += seconds
        due = [call for when, call in self.waiting if when <= self.now]
        self.waiting = [one for one in self.waiting if one[0] > self.now]
        for call in due:
            call()


def test_at_most_ten_messages_a_second_and_nothing_is_lost():
    clock, sent, times = Clock(), [], []
    state = {"text": ""}
    outbox = Outbox(
        state,
        lambda message: (sent.append(message), times.append(clock.now)),
        clock=clock,
        later=clock.later,
    )
    for _ in range(1000):  # a thousand tokens in five seconds
        outbox.add([["write", ["text"], "x"]])
        clock.go(0.005)
    assert len(sent) <= 10 * 5
    assert min(b - a for a, b in pairwise(times)) >= INTERVAL - 1e-9
    clock.go(INTERVAL)
    assert [message["n"] for message in sent] == list(range(1, len(sent) + 1))
    assert "".join(change[2] for one in sent for change in one["changes"]) == "x" * 1000
    assert state["text"] == "x" * 1000


def test_a_snapshot_holds_what_was_sent_and_no_more():
    clock, sent = Clock(), []
    outbox = Outbox({"text": ""}, sent.append, clock=clock, later=clock.later)
    for letter in "abc":
        outbox.add([["write", ["text"], letter]])
    assert json.loads(outbox.snapshot()) == {"n": 2, "text": "abc"}
    assert len(sent) == 2  # what waited went out first
    clock.go(1)
    assert len(sent) == 2


def live_messages(live: LiveEpisode) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    live.send = lambda content, buffers=None: messages.append(content)  # type: ignore[method-assign]
    return messages


def test_the_messages_of_a_live_episode_fold_into_its_last_state():
    live = watch(session())
    assert repr(live) == "LiveEpisode(0 threads, depth 0, 0 tokens generated, not started)"
    messages = live_messages(live)
    state = json.loads(live.get_state("snapshot")["snapshot"])
    episode = live.wait(60)
    assert repr(live) == "LiveEpisode(4 threads, depth 2, 266 tokens generated, ended)"
    for message in messages:
        for change in message["changes"]:
            fold(state, change)
    assert {key: state[key] for key in state_of(episode)} == state_of(episode)
    assert state["phase"] == "over"
    # A page that is opened only now:
    late = json.loads(live.get_state("snapshot")["snapshot"])
    assert late == {**state, "n": len(messages)}


def test_an_error_of_the_session_is_shown_and_raised():
    live = LiveEpisode(session(REPLIES[:2]))
    with pytest.raises(EngineError, match="the script is over"):
        live.wait(60)
    state = json.loads(live.get_state("snapshot")["snapshot"])
    assert state["error"].startswith("EngineError: the script is over")
    assert state["status"] == "failed"
    assert state["threads"]["0"]["status"] == "failed"
    assert repr(live) == "LiveEpisode(2 threads, depth 1, 63 tokens generated, failed)"


def test_showing_the_widget_begins_the_session_and_stores_a_stable_form():
    live = watch(session())
    bundle = live._repr_mimebundle_()[0]
    assert bundle["text/plain"].endswith("0 tokens generated, not started)")
    assert "needs a running kernel" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    episode = live.wait(60)
    bundle = live._repr_mimebundle_()[0]
    assert bundle["text/plain"] == repr(live)
    assert bundle["text/html"] == episode_html(episode)


def test_buttons_pause_resume_and_stop():
    live = LiveEpisode(session())
    messages = live_messages(live)
    live._asked(live, {"do": "pause"}, [])  # before the first event: it stays there
    live._asked(live, {"shown": 0}, [])
    assert live.wait(0.2).status is Status.GENERATING
    assert len(live.episode.events) <= 1
    live._asked(live, {"do": "stop"}, [])
    assert live.wait(60).status is Status.STOPPED
    assert repr(live).endswith("stopped)")
    assert messages[-1]["changes"][-1] == ["set", ["phase"], "over"]


def test_a_view_that_missed_something_gets_everything():
    live = LiveEpisode(session())
    live.wait(60)
    asked: list[str] = []
    live.send_state = asked.append  # type: ignore[method-assign]
    live._asked(live, {"shown": live._outbox.sent}, [])
    assert asked == []
    live._asked(live, {"shown": 0}, [])
    assert asked == ["snapshot"]
