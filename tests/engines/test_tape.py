"""Tapes: what was recorded comes back token by token, and what was not is a loud error."""

import json
from itertools import pairwise

import pytest
from helpers.episodes import PROMPT, REPLIES, Shed
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, ASYNC, Dialect, Stop
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.engine import Completion, EngineError, Prefilled, Sampled
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.engines.tape import TapeEngine
from thread_kit.engines.tape_file import TapeFile
from thread_kit.prompts import EMPTY
from thread_kit.session.session import Session
from thread_kit.trace.events import to_json

STOPS = AGENT.stops


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.jsonl"


def ask(engine, thread=0, text="Prompt:", **options):
    options = {"stops": STOPS, "max_tokens": 100} | options
    engine.begin(thread, engine.tokenize(text), **options)


def news(engine, thread=0):
    """All news of a call, until it is over."""
    found = []
    while not (found and isinstance(found[-1], Completion)):
        new = engine.advance(thread)
        assert new, "the call does not end"
        found += new
    return found


def said(engine, thread=0, **options):
    ask(engine, thread, **options)
    return news(engine, thread)[-1].text


def timeless(episode):
    """An episode as plain data, without the seconds that the session measures itself."""
    events = [to_json(event) for event in episode.events]
    for event in events:
        if event["event"] in ("prompted", "closed"):
            event["seconds"] = 0.0
    return {**episode.header}, events


def play(engine, env=True, prompt=PROMPT, **options):
    """One episode, in the shed or with its goal alone."""
    given = {"env": Shed()} if env else {"context": "Sharpen the axe. =>"}
    return Session(engine, prompt=prompt, **given, **options).run(progress=False)


# Recording and playing


def test_an_episode_replays_to_an_equal_trace(path):
    recorded = play(TapeEngine(ScriptedEngine(REPLIES), path))
    replayed = play(TapeEngine.replay(path))
    assert len(recorded.threads) > 3
    assert timeless(replayed) == timeless(recorded)


def test_the_tape_changes_nothing_of_what_the_engine_says(path):
    plain = timeless(play(ScriptedEngine(REPLIES)))
    taped = timeless(play(TapeEngine(ScriptedEngine(REPLIES), path)))
    for events in (plain[1], taped[1]):
        for event in events:
            event.pop("seconds", None)
    assert taped == plain


class Coarse(ScriptedEngine):
    """One whose tokens are of any size, cut through characters and stop strings, with progress."""

    def __init__(self, pieces):
        super().__init__([])
        self.pieces = pieces

    def submit(self, thread, wanted):
        completion = PartialCompletion(thread, wanted.stops, wanted.max_tokens, self.tokenize)
        self.queue = [Prefilled(thread, 1, len(wanted.tokens)), *enumerate(self.pieces, 1000)]
        self.completion = completion

    def step(self):
        if self.completion.stop is not None or not self.queue:
            return [self.completion.finish(Stop.END_OF_STREAM)]
        one = self.queue.pop(0)
        if isinstance(one, Prefilled):
            return [one]
        return [Sampled(self.completion.thread, one[0], self.completion.add(*one))]


cuts = st.lists(st.integers(0, 60), max_size=12)


@settings(deadline=None, max_examples=100)
@given(st.text("=>#END\x00é🪓\ud800\u2028 a", max_size=30), cuts, st.integers(1, 20))
def test_news_come_back_as_they_were_whatever_the_tokens_cut(tmp_path_factory, text, cuts, limit):
    path = tmp_path_factory.mktemp("tape") / "t.jsonl"
    raw = text.encode("utf-8", "surrogatepass")
    edges = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    engine = TapeEngine(Coarse([raw[a:b] for a, b in pairwise(edges)]), path)
    ask(engine, 5, "Say: " + text, max_tokens=limit)
    recorded = news(engine, 5)
    replay = TapeEngine.replay(path)
    ask(replay, 5, "Say: " + text, max_tokens=limit)
    assert news(replay, 5) == recorded


def test_another_thread_may_ask_what_was_recorded(path):
    ask(TapeEngine(ScriptedEngine(["a =>"]), path), 0)
    engine = TapeEngine(ScriptedEngine(["a =>"]), path)
    assert said(engine, 0) == "a =>"
    replay = TapeEngine.replay(path)
    ask(replay, 7)
    assert {one.thread for one in news(replay, 7)} == {7}


def test_equal_calls_have_the_same_answer_also_at_the_same_time(path):
    engine = TapeEngine(ScriptedEngine(["one =>", "two =>"]), path)
    ask(engine, 0)
    ask(engine, 1)
    calls = {}
    while len(calls) < 2:
        calls |= {one.thread: one.text for one in engine.step() if isinstance(one, Completion)}
    assert calls == {0: "one =>", 1: "one =>"}
    assert said(engine, 2) == said(TapeEngine.replay(path), 0) == "one =>"


def test_a_call_that_waits_for_an_equal_one_asks_itself_when_that_is_cancelled(path):
    engine = TapeEngine(ScriptedEngine(["one =>", "two =>"]), path)
    ask(engine, 0)
    ask(engine, 1)
    engine.step()
    assert engine.cancel(0).text == "o"
    assert news(engine, 1)[-1].text == "two =>"
    assert said(TapeEngine.replay(path)) == "two =>"


def test_known_calls_are_played_and_only_new_ones_reach_the_engine(path):
    assert said(TapeEngine(ScriptedEngine(["old =>"]), path)) == "old =>"
    inner = ScriptedEngine(["new =>"])
    engine = TapeEngine(inner, path)
    assert said(engine) == "old =>"
    assert inner.seen == []
    assert said(engine, text="Another") == "new =>"
    assert inner.seen == ["Another"]
    replay = TapeEngine.replay(path)
    assert [said(replay), said(replay, text="Another")] == ["old =>", "new =>"]


def test_an_episode_that_broke_off_goes_on_where_the_tape_ends(path):
    with pytest.raises(EngineError, match="script is over"):
        play(TapeEngine(ScriptedEngine(REPLIES[:4]), path))
    whole = play(TapeEngine(ScriptedEngine(REPLIES[4:]), path))
    plain = play(ScriptedEngine(REPLIES))
    assert [one.sequence for one in whole.threads.values()] == [
        one.sequence for one in plain.threads.values()
    ]


def test_the_engine_evaluates_a_prompt_that_the_tape_spared_it_before_its_first_call(path):
    with pytest.raises(EngineError):
        play(TapeEngine(ScriptedEngine(REPLIES[:1]), path))
    inner = ScriptedEngine(REPLIES[1:])
    play(TapeEngine(inner, path))
    assert inner._prompt == list(inner.tokenize(PROMPT.text, first=True))


def test_a_cancelled_call_is_not_on_the_tape(path):
    engine = TapeEngine(ScriptedEngine(["abc =>"]), path)
    ask(engine)
    engine.advance(0)
    assert engine.cancel(0).stop is Stop.CANCELLED
    with pytest.raises(EngineError, match="has no calls"):
        ask(TapeEngine.replay(path))


def test_a_call_that_is_played_can_be_cancelled_and_asked_again(path):
    said(TapeEngine(ScriptedEngine(["abc =>"]), path))
    replay = TapeEngine.replay(path)
    ask(replay)
    replay.advance(0)
    call = replay.cancel(0)
    assert (call.text, call.tokens, call.stop) == ("a", (ord("a"),), Stop.CANCELLED)
    assert replay.cancel(0) is None
    assert replay.step() == []
    assert said(replay) == "abc =>"


def test_releasing_a_thread_ends_its_call(path):
    said(TapeEngine(ScriptedEngine(["abc =>"]), path))
    replay = TapeEngine.replay(path)
    ask(replay)
    replay.release(0)
    assert replay.step() == replay.advance(0) == []


# What is not on the tape


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"stops": Dialect(listen="->").stops}, ["stops", "->", "=>"]),
        ({"max_tokens": 7}, ["max_tokens: 7, not 100"]),
        ({"temperature": 0.5}, ["temperature: 0.5, not 0.0"]),
        ({"seed": (0, 3)}, ["seed", "[0, 3]"]),
    ],
    ids=["stops", "max_tokens", "temperature", "seed"],
)
def test_another_option_is_a_miss_that_names_it(path, options, names):
    said(TapeEngine(ScriptedEngine(["a =>"]), path))
    with pytest.raises(EngineError) as error:
        ask(TapeEngine.replay(path), **options)
    message = str(error.value)
    assert all(name in message for name in [*names, "agrees in 7 of 7 tokens", str(path)])
    assert "\n" not in message


def test_other_tokens_are_a_miss_that_shows_where_the_texts_part(path):
    engine = TapeEngine(ScriptedEngine(["a =>", "b =>"]), path)
    said(engine, text="Find the axe.")
    for text in ("Find ", "the ", "the axe.", "the saw."):
        engine.tokenize(text)
    replay = TapeEngine.replay(path)
    tokens = replay.tokenize("Find ") + replay.tokenize("the saw.")
    with pytest.raises(EngineError) as error:
        replay.begin(0, tokens, stops=STOPS, max_tokens=100)
    message = str(error.value)
    assert "agrees in 9 of 13 tokens" in message
    assert "at character 9 it has 'Find the saw.' where the tape has 'Find the axe.'" in message


def test_a_text_that_was_never_tokenized_is_a_miss_that_shows_the_nearest(path):
    play(TapeEngine(ScriptedEngine(REPLIES), path))
    other = Shed()
    other.reset = lambda: "Sharpen the saw. =>"
    with pytest.raises(EngineError) as error:
        Session(TapeEngine.replay(path), other, prompt=PROMPT).run(progress=False)
    assert "the saw. =>" in str(error.value)
    assert "the axe. =>" in str(error.value)


def test_a_text_at_another_place_is_a_miss(path):
    TapeEngine(ScriptedEngine([]), path).tokenize("a", first=True)
    with pytest.raises(EngineError, match="not at the middle"):
        TapeEngine.replay(path).tokenize("a")


def test_a_session_with_other_stops_is_a_miss(path):
    play(TapeEngine(ScriptedEngine(REPLIES), path), env=False, prompt=EMPTY)
    with pytest.raises(EngineError, match="stops"):
        play(TapeEngine.replay(path), env=False, prompt=EMPTY, dialect=Dialect(listen="->"))


def test_a_prompt_that_was_never_evaluated_is_a_miss(path):
    engine = TapeEngine(ScriptedEngine([]), path)
    tokens = engine.tokenize("Prompt:")
    with pytest.raises(
        EngineError, match=r"few-shot prompt of 7 tokens is not on the tape.*Prompt:"
    ):
        list(TapeEngine.replay(path).prefill(tokens))


# The file


def test_every_answer_is_on_disk_when_it_is_handed_out(path):
    engine = TapeEngine(ScriptedEngine(["a =>", "b =>"]), path)
    ask(engine, text="x")
    while not any(isinstance(one, Completion) for one in engine.advance(0)):
        assert not TapeFile(path).calls
    assert [one.text for one in TapeFile(path).calls.values()] == ["a =>"]


@pytest.mark.parametrize("left", [1, 20, 0.5])
def test_half_a_line_at_the_end_is_dropped_and_recording_goes_on_behind_the_last_whole_one(
    path, left
):
    engine = TapeEngine(ScriptedEngine(["a =>", "b =>"]), path)
    said(engine, text="x")
    whole = path.read_bytes()
    said(engine, text="y")
    added = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + added[: int(left * len(added)) if left < 1 else left])
    assert said(TapeEngine.replay(path), text="x") == "a =>"
    assert said(TapeEngine(ScriptedEngine(["c =>"]), path), text="y") == "c =>"
    replay = TapeEngine.replay(path)
    assert [said(replay, text="x"), said(replay, text="y")] == ["a =>", "c =>"]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_header_that_was_half_written_is_written_anew(path):
    path.write_text('{"kind": "ta')
    assert said(TapeEngine(ScriptedEngine(["a =>"]), path)) == "a =>"
    assert said(TapeEngine.replay(path)) == "a =>"


@pytest.mark.parametrize("content", ["no tape", '{"a": 1}\n', "\n", '{"kind": "tape"}\n'])
def test_a_file_that_is_no_tape_is_refused_and_left_alone(path, content):
    path.write_text(content)
    with pytest.raises(EngineError, match=r"line 1 of .* is not a tape's"):
        TapeEngine(ScriptedEngine([]), path)
    assert path.read_text() == content


def test_a_damaged_line_is_named(path):
    said(TapeEngine(ScriptedEngine(["a =>"]), path))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[1][:9] + "\n" + lines[2])
    with pytest.raises(EngineError, match="line 2 of"):
        TapeEngine.replay(path)


def test_a_tape_that_is_missing_is_an_error_with_the_remedy(path):
    with pytest.raises(EngineError, match=r"no tape at .*record one"):
        TapeEngine.replay(path)


def test_a_tape_belongs_to_one_model(path):
    said(TapeEngine(ScriptedEngine(["a =>"]), path))
    with pytest.raises(EngineError, match="name is 'scripted', not 'other'"):
        TapeEngine(ScriptedEngine([], name="other"), path)


def test_a_few_shot_prompt_is_on_the_tape_once(path):
    prompt = "Prompt: " * 200
    engine = TapeEngine(ScriptedEngine(["a =>"] * 9), path)
    list(engine.prefill(engine.tokenize(prompt)))
    size = path.stat().st_size
    for number in range(9):
        assert said(engine, text=prompt + str(number)) == "a =>"
    calls = [line for line in path.read_text().splitlines() if '"kind": "call"' in line]
    assert all(len(line) < 1000 for line in calls)
    replay = TapeEngine.replay(path)
    assert said(replay, text=prompt + "8") == "a =>"
    assert size > 5000, "the prompt is long enough to be noticed"


# Misuse


@pytest.mark.parametrize("replay", [True, False])
def test_a_thread_that_generates_cannot_begin_again(path, replay):
    engine = TapeEngine(ScriptedEngine(["a =>", "b =>"]), path)
    if replay:
        said(engine)
        engine = TapeEngine.replay(path)
    ask(engine)
    with pytest.raises(ValueError, match="thread 0 is generating already"):
        ask(engine)
    with pytest.raises(ValueError, match="no tokens"):
        engine.begin(1, [], stops=STOPS, max_tokens=3)


def test_a_closed_tape_says_so_and_closing_twice_does_nothing(path):
    inner = ScriptedEngine(["a =>"])
    with TapeEngine(inner, path) as engine:
        ask(engine)
        assert "1 calls" not in repr(engine)
    engine.close()
    assert not inner._running
    for use in (engine.step, lambda: engine.tokenize("a"), lambda: ask(engine)):
        with pytest.raises(EngineError, match="is closed"):
            use()
    assert "replayed" in repr(TapeEngine.replay(path))


@pytest.mark.model
def test_an_episode_of_the_embedded_model_replays_to_an_equal_trace(path):
    from helpers.kitchen import LIMITS, Kitchen

    from thread_kit.engines.models import load_model

    def run(engine):
        return Session(engine, Kitchen(), **LIMITS).run(progress=False)

    with TapeEngine(load_model(cpu_threads=1, context=1024), path) as engine:
        recorded = run(engine)
        again = run(engine)
    assert recorded.depth >= 2
    assert timeless(run(TapeEngine.replay(path))) == timeless(again) == timeless(recorded)


def test_children_that_run_side_by_side_are_recorded_and_replayed(tmp_path):
    def speak(text):
        asked = text.rpartition("Prompt:\n")[2]
        if asked.startswith("Two things."):
            return "#END#" if "{t2}" in asked else "First, I need tea. ~>"
        return f"print('{'a' * 40 if 'tea' in asked else 'b'}')\n#END#"

    def play(engine):
        with Session(engine, context="Two things.", dialect=ASYNC) as session:
            return session.run(progress=False)

    path = tmp_path / "tape.jsonl"
    with TapeEngine(ScriptedEngine(speak), path) as engine:
        recorded = play(engine)
    with TapeEngine.replay(path) as engine:
        replayed = play(engine)
    assert len(recorded.threads) == 3
    assert str(replayed) == str(recorded)
    assert replayed.events[:-1] == recorded.events[:-1]  # the last has the session's own seconds
