"""Rewind and fork: an episode happens again up to an event, and goes on from there."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers.episodes import PROMPT, REPLIES, Shed, is_on_disk, of_kind
from helpers.random_episodes import play, speaker
from hypothesis import given, settings
from hypothesis import strategies as st

import thread_kit as tk
from thread_kit.dialect import Stop
from thread_kit.engines.engine import EngineError
from thread_kit.engines.replay import ReplayEngine, ReplayError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.exchange import phi_full_sequence
from thread_kit.methods.common import write_reply
from thread_kit.requests import Status
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.session.fork import fingerprint
from thread_kit.session.session import Session
from thread_kit.session.session import fork as fork_of
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    Acted,
    Closed,
    Edited,
    Ended,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Prompted,
    Resolved,
    Returned,
    Spawned,
    Token,
)


def happened(episode: Episode, after: int = 0) -> list:
    """The events without what depends on a cache or a clock."""
    found = []
    for event in episode.events[after:]:
        if isinstance(event, GeneratedSpan):
            event = replace(event, reused=0, evaluated=0, seconds=0.0)
        if isinstance(event, Closed):
            event = replace(event, seconds=0.0)
        if isinstance(event, Prompted):
            continue
        found.append(event)
    return found


def tree(episode: Episode, thread: int = 0) -> tuple:
    """A thread and those below it, whatever the order in which they were served."""
    one = episode.threads[thread]
    below = [tree(episode, child) for child in one.spawned]
    return one.context, one.sequence, one.status, one.variables, below


def same(a: Episode, b: Episode, futures: bool) -> bool:
    """Futures that were being written at the fork begin anew, so who is served when may differ."""
    if not futures:
        return happened(a) == happened(b)
    return Status.OUT_OF_CALLS in (a.status, b.status) or tree(a) == tree(b)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.booleans(), st.data())
def test_an_unchanged_fork_is_the_episode_wherever_it_is_made(seed, futures, data):
    session = play(seed, futures)
    episode = session.run(progress=False)
    at = data.draw(st.integers(0, len(episode.events) - 1))
    event = episode.events[at]
    token = None
    if isinstance(event, GeneratedSpan):
        token = data.draw(st.none() | st.integers(0, len(event.span)))
    if isinstance(event, Ended | Closed) and event.status is episode.status is Status.OUT_OF_CALLS:
        return  # a fork of how an episode broke off goes on where it did
    fork = session.fork(at, token=token)
    again = fork.run(progress=False)
    assert same(again, episode, futures)
    assert again.events[:at] == episode.events[:at]
    assert again.header["fork"] == {
        "of": fingerprint(episode, at),
        "event": at,
        "token": token or 0,
    }


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.booleans(), st.data())
def test_a_fork_of_a_changed_fork_repeats_the_change(seed, futures, data):
    session = play(seed, futures)
    episode = session.run(progress=False)
    changes = []
    for at, event in enumerate(episode.events):
        match event:
            case GeneratedSpan():
                changes.append((at, {"token": 0, "text": "a = 7\nThen, I need a nail. =>"}))
                changes.append((at, {"variables": {"a": 8, "b": [1]}}))
            case Spawned(parent=int()):
                changes.append((at, {"context": "I need a hammer. =>"}))
                changes.append((at, {"variables": {"c": 8}}))
            case Observed() | Acted():
                changes.append((at, {"observation": "The {a} falls."}))
            case Returned() | Resolved():
                changes.append((at, {"returned": "Nothing, or {a}."}))
    at, change = data.draw(st.sampled_from(changes))
    fork = session.fork(at, **change)
    changed = fork.run(progress=False)
    if changed.status is Status.OUT_OF_CALLS and not of_kind(changed, Edited):
        return  # the others had used the calls up before the changed one was asked
    assert len(of_kind(changed, Edited)) == 1
    assert changed.events[:at] == episode.events[:at]
    whole = len(changed.events) - 1
    edited = index(changed, Edited)
    again = fork.fork(data.draw(st.integers(edited + 2, whole)))
    if changed.status is not Status.OUT_OF_CALLS:
        assert same(again.run(progress=False), changed, futures)
    # To its last event, without asking the model once:
    last = max(n for n, e in enumerate(changed.events) if not isinstance(e, Ended | Closed))
    mute = fork.fork(last + 1, engine=ScriptedEngine([]))
    with suppress(EngineError):
        mute.run(progress=False)
    assert mute.episode.events[: last + 1] == changed.events[: last + 1]


def test_a_fork_behind_a_spent_budget_ends_as_its_episode_did():
    session = play(220, True)
    whole = session.run(progress=False)
    assert whole.status is Status.OUT_OF_CALLS
    at = len(whole.events) - 1
    assert isinstance(whole.events[at - 1], Ended)
    assert happened(session.fork(at).run(progress=False)) == happened(whole)


@pytest.mark.parametrize("futures", [False, True])
@pytest.mark.parametrize("budget", [{"calls": 9}, {"tokens": 170}])
def test_a_fork_among_the_closing_events_goes_on_where_the_budget_was_spent(budget, futures):
    """However far behind that place it is asked for; and further, where there is more to spend."""
    session = play(34, futures, **budget)
    whole = session.run(progress=False)
    assert whole.status in (Status.OUT_OF_CALLS, Status.OUT_OF_TOKENS)
    [*_, last] = [n for n, e in enumerate(whole.events) if not isinstance(e, Ended | Closed)]
    for at in range(last + 1, len(whole.events)):
        forked = session.fork(at)
        again = forked.run(progress=False)
        assert forked.error is None
        assert again.status is whole.status
        if not futures:  # else who is served when may differ, as above
            assert happened(again) == happened(whole)
        more = session.fork(at, calls=25, tokens=None).run(progress=False)
        assert happened(more)[: last - 3] == happened(whole)[: last - 3]
        assert more.usage.calls > whole.usage.calls


@pytest.fixture
def shed() -> Session:
    session = Session(ScriptedEngine(REPLIES), Shed(), prompt=PROMPT)
    session.run(progress=False)
    return session


def test_a_fork_has_an_environment_of_its_own_and_the_sandbox_that_was_given():
    with MontySandbox() as sandbox:
        session = Session(ScriptedEngine(REPLIES), Shed(), prompt=PROMPT, sandbox=sandbox)
        session.run(progress=False)
        forked = session.fork(1, engine=ScriptedEngine(REPLIES))
        assert forked.env is not session.env
        assert forked._sandbox is sandbox
        forked.run(progress=False)
    assert happened(forked.episode) == happened(session.episode)


def index(episode: Episode, kind: type, n: int = 0) -> int:
    return [at for at, event in enumerate(episode.events) if isinstance(event, kind)][n]


def fork(session: Session, at: int | None, replies: list[str], **changes) -> Episode:
    return session.fork(at, engine=ScriptedEngine(replies), **changes).run(progress=False)


ENDS = ["#END#"] * 9


def test_text_is_written_and_the_model_goes_on_behind_it(shed):
    at = index(shed.episode, GeneratedSpan)
    was = shed.episode.events[at].span.text
    episode = fork(shed, at, [" saw'\n#END#"], token=8, text="long")
    assert episode.threads[0].sequence.text == was[:8] + "long saw'\n#END#"
    assert episode.threads[0].variables == {"tool": "long saw"}
    assert of_kind(episode, Edited) == [Edited(0, "text", 0, was[8:], "long")]
    call = of_kind(episode, GeneratedSpan)[0]
    assert sum(call.lengths) == len(call.span.text)


def test_a_spawn_can_be_forced_in_the_middle_of_a_line(shed):
    at = index(shed.episode, GeneratedSpan)
    episode = fork(
        shed, at, ["print('Fine.')\n#END#", "#END#"], token=13, text="I need oil. =>, no"
    )
    assert of_kind(episode, GeneratedSpan)[0].stop is Stop.LISTEN
    assert episode.threads[1].title == "I need oil."
    assert episode.threads[0].sequence.text == "tool = 'axe'\nI need oil. =>Fine.<=\n#END#"


def test_a_mark_can_begin_in_the_past_and_end_in_what_the_model_writes(shed):
    at = index(shed.episode, GeneratedSpan)
    span = shed.episode.events[at].span
    assert span.text.endswith("=>")
    episode = fork(shed, at, [">#END#", "#END#", "#END#"], token=len(span) - 1)
    call = of_kind(episode, GeneratedSpan)[0]
    assert (call.span, call.stop) == (span, Stop.LISTEN)


def test_nothing_can_be_written_behind_the_end_of_a_call(shed):
    at = index(shed.episode, GeneratedSpan)
    with pytest.raises(ValueError, match="the call stops at its '=>'"):
        shed.fork(at, token=len(shed.episode.events[at].span), text="more")


def test_a_child_sees_the_context_that_it_is_given(shed):
    at = index(shed.episode, Spawned, 1)
    episode = fork(shed, at, ENDS, context="I need to find the saw. =>")
    assert episode.threads[1].title == "I need to find the saw."
    assert episode.events[at].was == "I need to find the axe. =>"


def test_another_phi_holds_from_the_fork_on(shed):
    at = index(shed.episode, Spawned, 2)
    episode = fork(shed, at, ENDS, phi=phi_full_sequence)
    assert episode.threads[1].context == shed.episode.threads[1].context
    assert episode.threads[2].context.text.count("> open shed") == 1
    assert episode.header["exchange"]["phi"] == "phi_full_sequence"


@pytest.mark.parametrize("kind", [Acted, Observed])
def test_an_observation_can_be_another_one(shed, kind):
    episode = fork(shed, index(shed.episode, kind), ENDS, observation="It is locked.")
    assert "=>It is locked.<=" in episode.threads[1].sequence.text
    assert of_kind(episode, Edited)[0].was == "You open shed."
    assert of_kind(episode, Acted)[0].observation == "You open shed."


def test_what_a_child_returns_can_be_another_text_and_its_names_come_up(shed):
    at = index(shed.episode, Returned)
    episode = fork(shed, at, ENDS, returned="Take the {tool}.")
    returned = of_kind(episode, Returned)[0]
    assert returned.span.text == "Take the {tool}.<=\n"
    assert returned.variables == {"tool": "axe"}


def test_a_variable_changes_what_is_instantiated_behind_it(shed):
    episode = fork(shed, index(shed.episode, Spawned, 1), ENDS, variables={"tool": "saw"})
    assert episode.threads[1].title == "I need to find the saw."
    assert episode.threads[0].variables == {"tool": "saw"}
    assert shed.episode.threads[0].variables == {"tool": "axe"}


def test_a_fork_is_a_trace_that_opens_again(shed, tmp_path):
    path = tmp_path / "fork.jsonl"
    episode = fork(shed, 4, ENDS, path=path)
    is_on_disk(episode, path)
    assert Episode.load(path).header["fork"]["of"] == fingerprint(shed.episode, 4)


def test_a_saved_episode_goes_on_where_it_was_stopped(tmp_path):
    path = tmp_path / "t.jsonl"
    whole = play(11).run(progress=False)
    session = play(11, path=path)
    for _ in session:
        if len(session.episode.events) == 9:
            session.stop()
    stopped = Episode.load(path)
    assert stopped.status is Status.STOPPED
    resumed = tk.fork(stopped, engine=ScriptedEngine(speaker(11)), env=Shed()).run(progress=False)
    assert happened(resumed) == happened(whole)


def test_a_torn_trace_goes_on_where_it_was_torn(tmp_path):
    path, torn = tmp_path / "t.jsonl", tmp_path / "torn.jsonl"
    whole = play(5, path=path).run(progress=False)
    raw = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        torn.write_bytes(raw[: int(len(raw) * share)])
        found = Episode.load(torn)
        resumed = tk.fork(found, engine=ScriptedEngine(speaker(5)), env=Shed())
        assert happened(resumed.run(progress=False)) == happened(whole)


@pytest.mark.slow
@pytest.mark.parametrize("futures", [False, True])
@given(seed=st.integers(0, 30), data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_went_on_with_a_new_engine_can_go_on_with_another_one(seed, futures, data):
    """A new engine evaluates the few-shot prompt again, in the midst of the episode."""
    whole = episode = play(seed, futures).run(progress=False)
    for _ in range(2):
        last = max(n for n, e in enumerate(episode.events) if not isinstance(e, Ended | Closed))
        at = data.draw(st.integers(0, last))
        again = ScriptedEngine(speaker(seed, futures))
        episode = tk.fork(episode, at, engine=again, env=Shed()).run(progress=False)
    assert same(episode, whole, futures)


def test_a_spent_budget_can_be_raised():
    session = play(11, calls=3)
    assert session.run(progress=False).status is Status.OUT_OF_CALLS
    assert happened(session.fork(calls=25).run(progress=False)) == happened(
        play(11).run(progress=False)
    )


@pytest.mark.parametrize(
    ("replies", "first", "then"),
    [
        (["one =>", "x" * 50, "#END#"], {"new_tokens": 30}, {"new_tokens": 60}),
        (["one =>", "two =>", "#END#", "#END#"], {"depth": 1}, {"depth": 3}),
        (["one =>", "two =>", "#END#", "#END#"], {"depth": 1}, {"depth": 0}),
    ],
)
def test_limits_that_cut_a_child_can_change_behind_it(replies, first, then):
    session = Session(ScriptedEngine(replies), context="go", **first)
    whole = session.run(progress=False)
    assert whole.status is Status.ENDED
    at = max(n for n, event in enumerate(whole.events) if isinstance(event, GeneratedSpan))
    episode = fork(session, at, ["#END#"], **then)
    assert episode.status is Status.ENDED
    statuses = [thread.status for thread in episode.threads.values()]
    assert statuses == [thread.status for thread in whole.threads.values()]


def test_a_child_that_another_context_cut_is_repeated():
    engine = ScriptedEngine(["one =>", "x" * 100, "#END#"], context=120)
    session = Session(engine, context="go")
    whole = session.run(progress=False)
    assert whole.threads[1].status is Status.OUT_OF_CONTEXT
    at = max(n for n, event in enumerate(whole.events) if isinstance(event, GeneratedSpan))
    larger = ScriptedEngine(["#END#"], context=200)
    episode = tk.fork(whole, at, engine=larger).run(progress=False)
    assert episode.status is Status.ENDED


def test_seconds_that_the_past_took_are_spent():
    replies = ["one =>", "#END#", "two =>", "#END#", "#END#"]
    session = Session(ScriptedEngine(replies), context="go")
    past, calls = Episode(session.episode.header), 0
    for event in session:
        if isinstance(event, GeneratedSpan):
            event, calls = replace(event, seconds=10.0), calls + 1
        if not event.passing:
            past.add(event)
        if calls == 3:
            break
    session.close()
    for seconds, status, asked in ((29, Status.OUT_OF_TIME, 0), (600, Status.ENDED, 2)):
        engine = ScriptedEngine(["#END#"] * 3)
        episode = tk.fork(past, engine=engine, seconds=seconds).run(progress=False)
        assert (episode.status, len(engine.seen)) == (status, asked)
        assert episode.seconds > 30


def test_a_cut_call_goes_on_behind_what_it_wrote():
    session = Session(ScriptedEngine(["abcdef#END#"]), context="go", tokens=3)
    assert session.run(progress=False).threads[0].sequence.text == "abc"
    episode = fork(session, None, ["def#END#"], tokens=50)
    assert episode.threads[0].sequence.text == "abcdef#END#"
    assert len(of_kind(episode, GeneratedSpan)) == 1


def test_another_model_reads_the_same_texts(shed):
    class Shifted(ScriptedEngine):
        """Another vocabulary."""

        def tokenize(self, text, *, first=False):
            return tuple(ord(character) + 1 for character in text)

        def submit(self, thread, request):
            tokens = [token - 1 for token in request.tokens]
            super().submit(thread, replace(request, tokens=tokens))

    engine = Shifted(["\x22DMC\x22"] * 9)
    episode = shed.fork(index(shed.episode, Returned), engine=engine).run(progress=False)
    assert engine.seen[0].endswith("=>The shed holds a {tool}.<=\n")
    again, was = episode.threads[2].sequence, shed.episode.threads[2].sequence
    assert again.text == was.text
    assert again.tokens == tuple(token + 1 for token in was.tokens)


FOUND = ["Find it. =>", "print('here')\n#END#", "print('done')\n#END#"]


@pytest.mark.parametrize(
    ("kind", "changed", "number", "left"),
    [(Spawned, "context", 1, 1), (Returned, "returned", 0, 2)],
)
def test_what_was_changed_once_can_be_changed_again(kind, changed, number, left):
    session = Session(ScriptedEngine(FOUND), context="task")
    session.run(progress=False)
    for text in ("other =>", "third =>"):
        at = index(session.episode, kind, number)
        session = session.fork(at, **{changed: text}, engine=ScriptedEngine(FOUND[left:]))
        assert session.run(progress=False).status is Status.ENDED
    (edit,) = of_kind(session.episode, Edited)
    assert edit.now == "third =>"


def test_an_observation_that_was_changed_can_be_changed_again():
    replies = ["> open shed =>", "print('done')\n#END#"]
    session = Session(ScriptedEngine(replies), Shed())
    session.run(progress=False)
    for text in ("It is locked.", "It is empty."):
        at = index(session.episode, Observed)
        session = session.fork(at, observation=text, engine=ScriptedEngine(replies[1:]))
        assert session.run(progress=False).status is Status.ENDED
    assert [edit.now for edit in of_kind(session.episode, Edited)] == ["It is empty."]
    assert "=>It is empty.<=" in session.episode.threads[0].sequence.text


def test_a_call_that_was_changed_can_be_changed_again():
    session = Session(ScriptedEngine(FOUND), context="task")
    session.run(progress=False)
    for token, text in ((3, "XX"), (2, "YY")):
        calls = [n for n, e in enumerate(session.episode.events) if isinstance(e, GeneratedSpan)]
        end = ScriptedEngine(["')\n#END#"])
        session = session.fork(calls[-1], token=token, text=text, engine=end)
        assert session.run(progress=False).status is Status.ENDED
    assert session.episode.threads[0].sequence.text.endswith("prYY')\n#END#")


@pytest.mark.parametrize("value", [(1, 2), {1: "a"}, {"x": (1,)}])
def test_a_variable_that_a_person_set_is_the_same_in_a_fork_of_the_fork(value):
    replies = ["x = 1\nFind it. =>", "print('here')\n#END#", "print(p)\n#END#"]
    session = Session(ScriptedEngine(replies), context="task")
    session.run(progress=False)
    at = [n for n, e in enumerate(session.episode.events) if isinstance(e, GeneratedSpan)][-1]
    once = session.fork(at, variables={"p": value}, engine=ScriptedEngine(replies[2:]))
    assert once.run(progress=False).status is Status.ENDED
    again = once.fork(len(once.episode.events) - 2, engine=ScriptedEngine([]))
    assert again.run(progress=False).status is Status.ENDED


def test_a_changed_call_that_is_stopped_keeps_what_was_changed_in_it():
    class Noting(ScriptedEngine):
        def submit(self, thread, request):
            self.asked = request.given and request.given.text, tuple(request.forbid)
            super().submit(thread, replace(request, forbid=()))

    session = Session(ScriptedEngine(FOUND), context="task")
    session.run(progress=False)
    (at, *_) = [n for n, e in enumerate(session.episode.events) if isinstance(e, GeneratedSpan)]
    for changes in ({"forbid_spawn": True}, {"text": "XX"}):
        fork = session.fork(at, token=3, **changes, engine=Noting(["abcdef')\n#END#"]))
        stopped = stop_at(fork, ord("c"))
        (edit,) = of_kind(stopped, Edited)
        again = Noting(["def')\n#END#"])
        resumed = fork.fork(engine=again)
        assert resumed.run(progress=False).status is Status.ENDED
        written = f"Fin{changes.get('text', '')}abc"
        assert again.asked == (written, ("=>",) if "forbid_spawn" in changes else ())
        assert of_kind(resumed.episode, Edited) == [edit]


def stop_at(session: Session, token: int) -> Episode:
    for event in session:
        if isinstance(event, Token) and event.token == token:
            break
    session.close()
    assert session.episode.status is Status.STOPPED
    return session.episode


def test_another_model_goes_on_with_a_broken_off_call_in_its_own_tokens():
    class Shifted(ScriptedEngine):
        def tokenize(self, text, *, first=False):
            return tuple(ord(character) + 1000 for character in text)

        def submit(self, thread, request):
            self.read = "".join(chr(token - 1000) for token in request.seen)
            super().submit(thread, replace(request, tokens=[t - 1000 for t in request.tokens]))

    session = Session(ScriptedEngine(["print('here')\n#END#"]), context="task")
    engine = Shifted([""] * 3)
    fork_of(stop_at(session, ord("h")), engine=engine).run(progress=False)
    assert engine.read.endswith("print('h")


class Bytes(ScriptedEngine):
    """A token a byte, as the vocabularies of models have them."""

    def tokenize(self, text, *, first=False):
        return tuple(text.encode())

    def _spell(self, token):
        return bytes([token])


def test_a_call_that_broke_off_in_a_character_writes_it_again():
    written = "print('\u20ac')\n#END#"
    session = Session(Bytes([written]), context="task")
    rest = Bytes([written.removeprefix("print('")])
    again = fork_of(stop_at(session, "\u20ac".encode()[0]), engine=rest).run(progress=False)
    assert again.threads[0].sequence.text == written
    assert bytes(again.threads[0].sequence.tokens).decode() == written


def test_a_past_that_does_not_happen_again_is_refused(shed):
    class Other(Shed):
        def step(self, action):
            return super().step(action)._replace(observation="You fall.")

    at = index(shed.episode, Returned)
    forked = shed.fork(at, env=Other())
    assert forked.run(progress=False).status is Status.FAILED
    assert isinstance(forked.error, ReplayError)
    assert re.match(
        r"ReplayError: event \d+ was Acted.*You open shed.*You fall", forked.episode.detail
    )
    assert not of_kind(forked.episode, Acted)


@pytest.mark.parametrize(
    ("at", "changes", "message"),
    [
        (-1, {}, "at=-1"),
        (999, {}, "no such event"),
        (None, {}, "came to its end"),
        (1, {"token": 3}, "event 1 is a Spawned"),
        (1, {"context": "x"}, "choose its Spawned"),
        (2, {"token": 9999}, "has 49 tokens"),
        (2, {"observation": "x"}, "has no observation"),
        (2, {"returned": "x"}, "no child returns"),
        (0, {"variables": {"x": 1}}, "no thread's"),
        (2, {"prompt": PROMPT}, "prompt cannot change"),
        (2, {"env": tk.TextCraft("dev", 0)}, "another task"),
        (2, {"env": 3}, "env=3 is no environment"),
        (1.5, {}, "at=1.5 is no whole number"),
        ("3", {}, "at='3' is no whole number"),
        (2, {"token": True}, "token=True is no whole number"),
        (2, {"text": b"x"}, "text=b'x' is no text"),
        (2, {"context": 5}, "context=5 is no text"),
        (2, {"observation": 5}, "observation=5 is no text"),
        (2, {"returned": 5}, "returned=5 is no text"),
        (2, {"variables": ["a"]}, "variables=\\['a'\\] are no values by names"),
    ],
)
def test_what_cannot_be_changed_says_what_can(shed, at, changes, message):
    with pytest.raises(ValueError, match=message):
        shed.fork(at, **changes)


def test_a_place_may_be_of_a_frames_column(shed, tmp_path):
    at = index(shed.episode, Returned)
    forked = [shed.fork(place).run(progress=False) for place in (at, np.int64(at))]
    assert happened(forked[0]) == happened(forked[1])
    forked[1].save(tmp_path / "fork.jsonl")
    assert tk.Episode.load(tmp_path / "fork.jsonl").header["fork"]["event"] == at


def test_a_running_session_is_forked_while_it_is_paused():
    whole = play(11).run(progress=False)
    session = play(11)
    for _ in session:
        if len(session.episode.events) == 12:
            break
    assert happened(session.fork().run(progress=False)) == happened(whole)
    assert happened(session.run(progress=False)) == happened(whole)


@pytest.mark.parametrize("scope", ["exported", "shared", "own"])
def test_a_person_sets_variables_whatever_the_scope(scope):
    session = Session(ScriptedEngine(REPLIES), Shed(), prompt=PROMPT, scope=scope)
    session.run(progress=False)
    at = index(session.episode, Spawned, 1)
    episode = fork(session, at, ENDS, variables={"tool": "saw"})
    assert of_kind(episode, Edited)[0].variables == {"tool": "saw"}
    assert episode.threads[1].title == "I need to find the saw."


def test_where_there_are_no_variables_none_can_be_set():
    session = Session(ScriptedEngine(REPLIES), Shed(), prompt=PROMPT, scope="none")
    session.run(progress=False)
    with pytest.raises(ValueError, match="have no variables"):
        fork(session, index(session.episode, Spawned, 1), ENDS, variables={"tool": "saw"})


@pytest.mark.parametrize("name", ["not a name", "class", 3, "_n", "x" * 101])
def test_what_no_variable_can_be_called_is_refused(name):
    session = Session(ScriptedEngine(REPLIES), Shed(), prompt=PROMPT)
    session.run(progress=False)
    with pytest.raises(ValueError, match="a variable cannot be called"):
        fork(session, index(session.episode, Spawned, 1), ENDS, variables={"tool": "saw", name: 1})


def test_cells_that_a_session_kept_are_freed_however_the_switch_stands_at_the_end():
    released = []

    class Counting(ScriptedEngine):
        def release(self, thread, *, keep=False):
            released.append((thread.thread, keep))
            super().release(thread, keep=keep)

    session = Session(Counting(["ask =>", "print('an axe')\n#END#", "#END#"]), context="go =>")
    session.keep_cells = "episode"
    for event in session:
        if isinstance(event, Ended):
            session.keep_cells = False
    assert released == [(1, True), (0, False), (1, False)]


def test_a_fork_keeps_cells_as_its_session_did():
    session = Session(ScriptedEngine(["#END#"]), context="go =>")
    session.keep_cells = "episode"
    session.run(progress=False)
    assert session.fork(0).keep_cells == "episode"


def test_calls_of_one_thread_with_nothing_between_happen_again_one_after_the_other():
    """A lesson, say, that holds a mark of listening."""
    said = ["Look =>", " again =>", " and be done.#END#"]
    session = Session(ScriptedEngine(said), context="Go.", program=partial(write_reply, calls=9))
    session.run(progress=False)
    assert len(of_kind(session.episode, GeneratedSpan)) == 3
    for at in range(len(session.episode.events) - 1):
        written = sum(isinstance(e, GeneratedSpan) for e in session.episode.events[:at])
        assert happened(fork(session, at, said[written:])) == happened(session.episode)
    replayed = Session(
        ReplayEngine(session.episode), context="Go.", program=partial(write_reply, calls=9)
    )
    assert happened(replayed.run(progress=False)) == happened(session.episode)


def test_another_prompt_at_the_start_is_that_of_every_thread(shed):
    example = replace(PROMPT.examples[0], response="Nothing.\n#END#")
    other = replace(PROMPT, name="other", examples=(example,))
    episode = fork(shed, 0, REPLIES, prompt=other)
    assert {thread.prompt for thread in episode.threads.values()} == {other.sha256}


CHANGES = [
    (GeneratedSpan, {"token": 8, "text": "long"}),
    (Observed, {"observation": "A saw."}),
    (Returned, {"returned": "It is lost."}),
    (GeneratedSpan, {"variables": {"tool": "saw"}}),
]


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_a_fork_of_a_fork_that_has_not_come_to_its_change_has_the_change(
    shed, kind, change, is_closed
):
    at = index(shed.episode, kind)
    whole = fork(shed, at, ENDS, **change)
    for stop in range(index(whole, Edited) + 1):
        first = shed.fork(at, engine=ScriptedEngine(ENDS), **change)
        for _ in first:
            if len(first.episode.events) > stop:
                break
        if is_closed:
            first.close()
        assert happened(fork(first, None, ENDS)) == happened(whole)


def test_a_variable_that_a_person_sets_is_not_lost():
    replies = ["x = 0\nGo. =>", "x = undefined\nprint(x)\n#END#", "#END#"]
    session = Session(ScriptedEngine(replies), context="Go.")
    episode = session.run(progress=False)
    assert of_kind(episode, Returned)[0].span.text.startswith("NameError")
    at = index(episode, ExecutedLine, 2)
    changed = fork(session, at, ["#END#"], variables={"x": 5})
    assert of_kind(changed, Returned)[0].span.text == "5<=\n"


def test_a_fork_of_a_fork_with_another_phi_has_the_first_phi_in_its_past(shed):
    at = index(shed.episode, GeneratedSpan, 1)
    changes = {"phi": phi_full_sequence, "token": 4, "text": "x"}
    whole = fork(shed, at, ENDS, **changes)
    first = shed.fork(at, engine=ScriptedEngine(ENDS), **changes)
    for _ in first:
        if len(first.episode.events) >= at:
            break
    again = fork(first, None, ENDS)
    assert happened(again) == happened(whole)


def test_a_trace_from_before_its_variables_were_told_happens_again():
    """Those of the gallery: the environment's variables are not in their first event."""
    old = tk.open_episode("acacia-fence-gate")
    assert not old.at_first
    env = tk.TextCraft(**old.header["task"])
    fork = tk.fork(old, at=len(old.events) - 3, engine=ScriptedEngine(["#END#"] * 5), env=env)
    new = fork.run(progress=False)
    assert new.status.is_end, new.detail
    assert list(new.at_first) == ["commands"]
