"""A saved episode plays again without its model, and what was not recorded is a loud error."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace

import pytest
from helpers.episodes import PROMPT, REPLIES, Shed
from helpers.random_episodes import play as play_at_random
from helpers.random_episodes import speaker
from hypothesis import given, settings
from hypothesis import strategies as st

import thread_kit as tk
from thread_kit.dialect import ASYNC, Dialect
from thread_kit.engines.engine import EngineError
from thread_kit.engines.replay import ReplayEngine, ReplayError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.exchange import phi_full_sequence
from thread_kit.prompts import EMPTY
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Prefilling, Prompted, Returned, Token, to_json
from thread_kit.trace.shipped import open_episode


def timeless(episode):
    """An episode as plain data, without the seconds that the session measures itself."""
    events = [to_json(event) for event in episode.events]
    for event in events:
        if event["event"] == "closed":
            event["seconds"] = 0.0
    return {**episode.header}, events


def play(engine, env=True, prompt=PROMPT, **options):
    """One episode, in the shed or with its goal alone."""
    given = {"env": Shed()} if env else {"context": "Sharpen the axe. =>"}
    return Session(engine, prompt=prompt, **given, **options).run(progress=False)


@pytest.fixture
def recorded():
    return play(ScriptedEngine(REPLIES))


def test_an_episode_replays_to_an_equal_trace(recorded):
    replayed = play(ReplayEngine(recorded))
    assert len(recorded.threads) > 3
    assert timeless(replayed) == timeless(recorded)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), futures=st.booleans())
def test_any_episode_replays_from_its_file(tmp_path_factory, seed, futures):
    path = tmp_path_factory.mktemp("replay") / "t.jsonl"
    recorded = play_at_random(seed, futures, path=path).run(progress=False)
    replay = ReplayEngine(Episode.load(path))
    again = Session(replay, Shed(), prompt=recorded_prompt(futures), calls=25, depth=4)
    assert timeless(again.run(progress=False))[1] == timeless(recorded)[1]


def recorded_prompt(futures):
    return replace(PROMPT, dialect=tk.ASYNC) if futures else PROMPT


def test_what_is_repeated_is_no_token_for_token_show(recorded):
    events = Session(ReplayEngine(recorded), Shed(), prompt=PROMPT)
    assert not [event for event in events if isinstance(event, Token | Prefilling)]


def test_the_repeated_is_checked_against_the_record(recorded):
    class Other(Shed):
        def step(self, action):
            return super().step(action)._replace(observation="You fall.")

    again = Session(ReplayEngine(recorded), Other(), prompt=PROMPT)
    assert again.run(progress=False).status is Status.FAILED
    assert isinstance(again.error, ReplayError)
    assert re.search(r"You open shed.*You fall", again.episode.detail)


def test_another_exchange_is_not_what_was_recorded(recorded):
    episode = play(ReplayEngine(recorded), phi=phi_full_sequence)
    assert episode.status is Status.FAILED
    assert re.match(r"(ReplayError|EngineError): .*recorded", episode.detail)


def test_other_marks_are_not_what_was_recorded(recorded):
    marks = Dialect(listen=">>", end="#STOP#")
    episode = play(ReplayEngine(recorded), prompt=EMPTY, dialect=marks)
    assert episode.status is Status.FAILED
    assert re.match(r"(ReplayError|EngineError): .*recorded", episode.detail)


def test_a_text_that_was_never_tokenized_is_an_error_with_the_remedy(recorded):
    with pytest.raises(EngineError, match=r"no tokens of 'never'; give an engine"):
        ReplayEngine(recorded).tokenize("never")


def test_a_thread_that_asks_for_more_than_was_recorded_is_an_error_with_the_remedy(recorded):
    part = Episode(recorded.header)
    for event in recorded.events[:-4]:  # without the last call and what came of it
        part.add(event)
    assert isinstance(part.events[-1], Returned)
    episode = play(ReplayEngine(part))
    assert episode.status is Status.FAILED
    assert episode.detail.startswith("EngineError: the recorded episode is over")


def test_an_episode_that_broke_off_goes_on_with_another_engine(recorded):
    part = Episode(recorded.header)
    for event in recorded.events[:6]:
        part.add(event)
    calls = part.usage.calls
    engine = ScriptedEngine(REPLIES[calls:])
    whole = play(ReplayEngine(part, engine))
    assert whole.threads[0].sequence == recorded.threads[0].sequence
    assert len(engine.seen) == len(REPLIES) - calls


def test_a_prompt_is_evaluated_by_the_engine_that_goes_on_before_its_first_call(recorded):
    part = Episode(recorded.header)
    for event in recorded.events[:6]:
        part.add(event)
    engine = ScriptedEngine(REPLIES[part.usage.calls :])
    whole = play(ReplayEngine(part, engine))
    first, second = [event for event in whole.events if isinstance(event, Prompted)]
    assert first == recorded.events[0]
    assert second.evaluated == len(recorded.header["prompts"][first.prompt]["tokens"])


def test_the_engine_is_asked_for_nothing_where_the_record_is_enough(recorded):
    engine = ScriptedEngine([])
    assert play(ReplayEngine(recorded, engine)).status is Status.ENDED
    assert not engine.seen
    assert not engine._prompt


def test_a_thread_that_generates_cannot_begin_again(recorded):
    engine = ReplayEngine(recorded)
    options = {"stops": recorded.dialect.stops, "max_tokens": 10}
    engine.begin((0, 0), [1], **options)
    with pytest.raises(ValueError, match="is generating already"):
        engine.begin((0, 0), [1], **options)
    assert engine.cancel((0, 0)) is None
    engine.begin((0, 0), [1], **options)


def test_releasing_a_thread_ends_its_call(recorded):
    engine = ReplayEngine(recorded)
    engine.begin((0, 0), [1], stops=recorded.dialect.stops, max_tokens=10)
    engine.release((0, 0))
    engine.begin((0, 0), [1], stops=recorded.dialect.stops, max_tokens=10)


@pytest.mark.parametrize("goes_on", [False, True])
def test_one_that_is_closed_says_so_and_leaves_the_engine_behind_it_open(recorded, goes_on):
    behind = ScriptedEngine([]) if goes_on else None
    engine = ReplayEngine(recorded, behind)
    context = recorded.threads[0].context.text
    spell = engine.tokenizer(recorded.threads[0].prompt)
    assert spell(context)
    engine.close()
    engine.close()
    uses = [
        engine.step,
        lambda: engine.advance(0),
        lambda: list(engine.prefill([1])),
        lambda: list(engine.prefill_prompt("", [1])),
        lambda: engine.begin((0, 0), [1], stops={}, max_tokens=1),
        lambda: engine.tokenize(context),
        lambda: engine.tokenizer("")(context),
    ]
    for use in uses:
        with pytest.raises(EngineError, match="is closed"):
            use()
    engine.release((0, 0))
    assert engine.cancel((0, 0)) is None
    assert behind is None or behind.is_open


def test_it_says_what_it_replays(recorded):
    with closing(ReplayEngine(recorded)) as engine:
        assert engine.describe() == recorded.header["model"]
        assert f"{recorded.usage.calls} recorded calls" in repr(engine)
        assert engine.name == "scripted"


def test_children_that_run_side_by_side_are_replayed():
    def speak(text):
        asked = text.rpartition("Prompt:\n")[2]
        if asked.startswith("Two things."):
            return "#END#" if "{t2}" in asked else "First, I need tea. ~>"
        return f"print('{'a' * 40 if 'tea' in asked else 'b'}')\n#END#"

    def start(engine):
        return Session(engine, context="Two things.", dialect=ASYNC).run(progress=False)

    recorded = start(ScriptedEngine(speak))
    replayed = start(ReplayEngine(recorded))
    assert len(recorded.threads) == 3
    assert timeless(replayed) == timeless(recorded)


@pytest.mark.model
def test_an_episode_of_the_embedded_model_replays_without_it(tmp_path):
    path = tmp_path / "t.jsonl"
    with tk.load_model(cpu_threads=1, context=1024) as engine:
        recorded = Session(engine, TextCraft("dev", 47), path=path, calls=20, new_tokens=80).run(
            progress=False
        )
    assert recorded.depth >= 2
    again = Session(
        ReplayEngine(Episode.load(path)), TextCraft("dev", 47), calls=20, new_tokens=80
    ).run(progress=False)
    assert timeless(again) == timeless(recorded)


# Ends in the midst of what is repeated


@pytest.mark.parametrize("how", ["close", "with", "stop", "seconds"])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_an_episode_that_ends_while_it_is_repeated_ends_in_order(tmp_path, how, after):
    path = tmp_path / "t.jsonl"
    episode = play_at_random(11).run(progress=False)
    assert len(episode.events) > 12
    options = {"seconds": 1e-9} if how == "seconds" and not after else {}
    engine = ScriptedEngine(speaker(11))
    session = tk.fork(episode, 12, engine=engine, env=Shed(), path=path, **options)
    for _ in range(after):
        next(session)
    if how == "with":
        with session:
            pass
    elif how == "close":
        session.close()
    else:
        if not options:
            session.stop()
        session.run(progress=False)
    over = Episode.load(path)
    assert over.status in (Status.STOPPED, Status.OUT_OF_TIME)
    assert not any(thread.status.is_live for thread in over.threads.values())
    assert str(over) == str(session.episode)


def test_what_was_closed_while_it_was_repeated_can_go_on():
    whole = play_at_random(11).run(progress=False)
    session = tk.fork(whole, 12, engine=ScriptedEngine(speaker(11)), env=Shed())
    for _ in range(7):
        next(session)
    session.close()
    again = tk.fork(session.episode, engine=ScriptedEngine(speaker(11)), env=Shed())
    assert again.run(progress=False).threads[0].sequence == whole.threads[0].sequence


def test_what_a_person_ended_is_not_repeated_but_gone_on_with():
    session = Session(ScriptedEngine(REPLIES), Shed(), prompt=PROMPT)
    while not (event := next(session)).passing or event.thread == 0:  # in a call of a child
        pass
    session.stop()
    stopped = session.run(progress=False)
    assert stopped.status is Status.STOPPED
    with pytest.raises(ValueError, match=r"\(stopped\).* go on behind it: fork"):
        play(ReplayEngine(stopped))
    again = tk.fork(stopped, engine=ScriptedEngine(REPLIES[2:]), env=Shed())
    assert again.run(progress=False).threads.keys() >= {0, 1}


def test_where_another_model_spells_what_was_recorded_the_error_says_so():
    episode = open_episode("crossbow")
    engine = ReplayEngine(episode, ScriptedEngine(["#END#"] * 9))
    session = Session(engine, TextCraft(**episode.header["task"])).run(progress=False)
    assert "in other tokens" in session.detail
    assert "fork(episode, engine=...)" in session.detail
