"""Drafts: what is looked up was there, only what pays is verified, and what is written is the same.

llama.cpp rounds differently where a batch has another shape, so two texts may part where two tokens
are nearly as likely: `NEAR` is the gap, in logits, that counts as near (as in `test_exact.py`).
"""

from __future__ import annotations

import json

import llama_cpp
import numpy as np
import pytest
from helpers.kitchen import LIMITS, Kitchen
from helpers.weights import few_layers, quick_weights
from hypothesis import given
from hypothesis import strategies as st

import thread_kit as tk
from thread_kit.dialect import Stop
from thread_kit.engines import draft_length
from thread_kit.engines.draft_length import GAIN, SIZES, DraftLength, measure_costs
from thread_kit.engines.drafts import LONGEST, DraftIndex
from thread_kit.engines.engine import Completion, EngineError, Prefilled, Sampled
from thread_kit.engines.replay import ReplayEngine
from thread_kit.sequence import Provenance, Span
from thread_kit.session.run_together import run_together
from thread_kit.session.session import Session
from thread_kit.trace.costs import Usage
from thread_kit.trace.events import GeneratedSpan, from_json, plain, to_json

NEAR = 0.5
REPEATING = "The cow sees the hill. " * 8 + "The cow"

tokens = st.integers(0, 3)
texts = st.lists(st.lists(tokens, max_size=20), max_size=4)


# The index


def match(text: list[int], place: int, last: list[int]) -> int:
    """How many tokens before a place are the last ones."""
    length = 0
    while length < min(place, len(last)) and text[place - length - 1] == last[-length - 1]:
        length += 1
    return length


@given(texts, st.lists(tokens, min_size=1, max_size=12), st.integers(0, 12))
def test_a_draft_is_what_followed_the_longest_match(texts, seen, most):
    index = DraftIndex()
    for number, text in enumerate(texts):
        index.add(number, text)
    draft, matched = index.look_up(seen, most)
    last = seen[-LONGEST:]
    lengths = [match(text, n, last) for text in texts for n in range(1, len(text))]
    longest = max(lengths, default=0)
    if not longest or not most:
        assert (draft, matched) == ([], 0)
        return
    assert matched == longest
    places = [(text, n) for text in texts for n in range(1, len(text))]
    followed = [text[n] for text, n in places if match(text, n, last) == longest]
    assert draft[0] in followed
    assert 0 < len(draft) <= most


@given(texts, st.lists(st.integers(1, 5), max_size=30), st.lists(tokens, min_size=1, max_size=9))
def test_a_text_that_comes_in_pieces_is_found_as_if_it_came_at_once(texts, pieces, seen):
    at_once, in_pieces = DraftIndex(), DraftIndex()
    for number, text in enumerate(texts):
        at_once.add(number, text)
        rest, sizes = list(text), iter(pieces)
        while rest:
            size = next(sizes, 20)
            in_pieces.add(number, rest[:size])
            del rest[:size]
    assert at_once.look_up(seen, 5) == in_pieces.look_up(seen, 5)


def test_a_draft_that_ends_with_its_text_is_looked_up_further():
    index = DraftIndex()
    index.add("loop", [1, 2, 3, 1, 2, 3])
    assert index.look_up([1, 2, 3], 7) == ([1, 2, 3, 1, 2, 3, 1], 3)


def test_of_equally_long_matches_the_latest_counts():
    index = DraftIndex()
    index.add("early", [5, 6, 7, 1])
    index.add("late", [5, 6, 7, 2])
    assert index.look_up([5, 6, 7], 1) == ([2], 3)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.lists(tokens, max_size=30)), max_size=30
    ),
    st.integers(0, 60),
)
def test_what_is_kept_is_bounded(steps, limit):
    index = DraftIndex(limit)
    for whole, key, text in steps:
        (index.read if whole else index.add)(key, text)
        held = sum(len(text) for text in index._texts.values())
        assert index.size == held <= limit
        entries = sum(len(places) for places in index._behind_two.values())
        assert entries + len(index._behind_one) <= 2 * limit + sum(len(s[2]) for s in steps)
    index._forget(0)
    assert not index._texts
    assert not index._behind_one
    assert not index._behind_two


def test_a_prompt_that_is_read_again_is_kept_once_and_longer_than_others():
    index = DraftIndex(limit=40)
    prompt = [7, 8, 9] * 5
    index.read("prompt", prompt)
    for number in range(20):
        index.read("prompt", prompt)
        index.add(number, [1, 2, 3, 4, 5])
    assert index.look_up([7, 8], 1) == ([9], 2)
    assert index.size <= 40
    index.read("prompt", [7, 8, 5])
    assert index.look_up([7, 8], 1) == ([5], 2)


# How long a draft is

FLAT = dict.fromkeys(SIZES, 0.01)
LINEAR = {size: 0.01 * size for size in SIZES}


def learned(costs, share: float) -> DraftLength:
    """After a hundred tokens of which so many came true, spread evenly."""
    length = DraftLength(None, costs)
    for n in range(400):
        length.learn(1 + n % LONGEST, (n // LONGEST * share) % 1 + share >= 1)
    return length


def test_where_more_tokens_cost_as_much_more_nothing_is_ever_looked_up():
    assert DraftLength(None, LINEAR).most == 0


def test_where_they_cost_nothing_drafts_are_as_long_as_what_comes_true_makes_them():
    assert DraftLength(None, FLAT).choose([(4, 15)], 1) == [0], "nothing has come true so far"
    assert learned(FLAT, 1.0).choose([(4, 15)], 1) == [15]
    assert learned(FLAT, 0.0).choose([(4, 15)], 1) == [0]
    assert learned(FLAT, 1.0).choose([(4, 9)], 1) == [7], "to a size that was measured"


def test_a_fixed_length_takes_what_there_is():
    assert DraftLength(6, {}).most == 6
    assert DraftLength(6, {}).choose([(1, 6), (8, 2), (0, 0)], 40) == [6, 2, 0]
    assert DraftLength(0, {}).most == 0


@given(
    st.lists(st.floats(0.001, 10), min_size=len(SIZES), max_size=len(SIZES)),
    st.floats(0, 1),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=8),
)
def test_what_is_chosen_is_expected_to_pay(spent, share, drafts):
    costs = dict(zip(SIZES, sorted(spent), strict=True))
    length = learned(costs, share)
    tokens = len(drafts)
    chosen = length.choose(drafts, tokens)
    assert all(0 <= n <= most for n, (_, most) in zip(chosen, drafts, strict=True))
    if any(chosen):
        assert tokens + sum(chosen) in SIZES
        expected = sum(length._expect(m, n) for n, (m, _) in zip(chosen, drafts, strict=True))
        rate = (tokens + expected) / length._cost(tokens + sum(chosen))
        assert rate >= GAIN * tokens / length._cost(tokens)


def test_a_pass_is_measured_for_each_size_after_one_that_loads_the_weights():
    passes: list[int] = []
    costs = measure_costs(passes.append)
    assert passes[: len(SIZES) + 1] == [1, *SIZES]
    assert tuple(costs) == SIZES


def test_larger_passes_are_measured_where_those_of_sixteen_tokens_are_quick(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(draft_length.time, "perf_counter", lambda: now[0])

    def evaluate(tokens):
        passes.append(tokens)
        now[0] += 0.001 + per_token * tokens

    for per_token, last in ((0.008, 16), (0, 64)):  # noqa: B007 (a closure reads it)
        passes: list[int] = []
        assert [*measure_costs(evaluate)][-1] == last
        assert passes.count(last) >= 2, "the least of some"


@pytest.mark.parametrize("draft", [-1, 1.5, "x"])
def test_a_length_that_is_none_is_an_engine_error(draft):
    with pytest.raises(EngineError, match="draft="):
        DraftLength(draft, {})


# In a trace


def test_traces_without_drafts_say_nothing_of_them():
    event = GeneratedSpan(0, Span(Provenance.GENERATED, "a", (1,)), Stop.END, 0, 1, 0.1)
    assert not {"passes", "drafted", "accepted", "came_true"} & set(to_json(event))
    assert from_json(to_json(event)) == event


def test_a_trace_says_which_tokens_came_true_and_no_others_can_have():
    span = Span(Provenance.GENERATED, "ab", (1, 2))
    event = GeneratedSpan(0, span, Stop.END, 0, 1, 0.1, (1, 1), accepted=1, came_true=(1,))
    assert from_json(plain(to_json(event))) == event
    with pytest.raises(ValueError, match="behind the last"):
        from_json({**to_json(event), "came_true": [2]})


def test_usages_add_up_what_was_drafted():
    usage = Usage(passes=3, drafted=20, accepted=10) + Usage(passes=1, drafted=2)
    assert (usage.passes, usage.drafted, usage.accepted) == (4, 22, 10)


# In an engine


def load(draft, weights=few_layers, **options):
    return tk.load_model(
        weights(),
        **(
            {"adapter": None, "context": 1024, "cpu_threads": 1, "keep_prompts": False}
            | {"draft": draft}
            | options
        ),
    )


@pytest.fixture(scope="module")
def engines():
    """The same model without drafts, and with some in every pass."""
    with load(0) as plain, load(6) as drafting:
        yield plain, drafting


def complete(engine, text: str = REPEATING, *, thread=0, release=True, **options):
    """A call from begin to end: what it brought, and the completion."""
    tokens = engine.tokenize(text, first=True)
    engine.begin(thread, tokens, **({"stops": {}, "max_tokens": 24} | options))
    sampled = []
    while True:
        for news in engine.step():
            must_be_consistent(engine)
            match news:
                case Sampled():
                    sampled.append(news)
                case Completion():
                    if release:
                        engine.release(thread)
                    return sampled, news


def must_be_consistent(engine) -> None:
    """What is on record is what the cells hold, and running calls have no token in no cell."""
    memory = llama_cpp.llama_get_memory(engine._model.context)
    for key, sequence in engine._cache._sequences.items():
        last = llama_cpp.llama_memory_seq_pos_max(memory, sequence.number)
        assert last == len(sequence.tokens) - 1
        if call := engine._running.get(key):
            verified = len(sequence.tokens) - len(call.rows)
            assert sequence.tokens[:verified] == call.tokens[:verified]


@pytest.mark.model
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_tokens": 1},
        {"max_tokens": 7},
        {"stops": {"the hill": Stop.END}},
        {"stops": {"hi": Stop.END}},
        {"forbid": ("hill",)},
        {"logprobs": (" hill",)},
        {"temperature": 0.3, "seed": (3,)},
        {"temperature": 1.5, "seed": (4,)},
    ],
    ids=str,
)
def test_a_call_with_drafts_brings_what_one_without_brings(engines, options):
    (one, plain), (other, drafted) = (complete(engine, **options) for engine in engines)
    assert [(s.token, s.text) for s in other] == [(s.token, s.text) for s in one]
    for ours, its in zip(other, one, strict=True):
        assert (ours.logprobs is None) == (its.logprobs is None)
        if ours.logprobs and its.logprobs:
            assert ours.logprobs[0] == pytest.approx(its.logprobs[0], abs=0.05)
    for name in ("text", "tokens", "stop", "reused", "evaluated"):
        assert getattr(drafted, name) == getattr(plain, name), name
    assert plain.passes == plain.drafted == 0
    if not options:
        assert drafted.accepted > 10
        assert drafted.passes < len(drafted.tokens) / 2
    assert drafted.passes >= 1
    assert drafted.accepted <= drafted.drafted
    assert len(drafted.came_true) == drafted.accepted
    assert all(0 <= place < len(drafted.tokens) for place in drafted.came_true)


@pytest.mark.model
def test_what_is_given_goes_on_with_drafts_as_without(engines):
    first = complete(engines[0])[1]
    half = first.tokens[:8]
    text = engines[0]._vocabulary.detokenize(half).decode()
    given = Span(Provenance.GENERATED, text, half)
    for engine in engines:
        assert complete(engine, given=given)[1].tokens == first.tokens


@pytest.mark.model
def test_a_call_that_is_cancelled_keeps_what_it_told_and_no_cell_more(engines):
    engine = engines[1]
    tokens = engine.tokenize(REPEATING, first=True)
    engine.begin(0, tokens, stops={}, max_tokens=24)
    told = []
    while not (told and engine._running[0].rows):  # in the midst of a draft that comes true
        told += [news.token for news in engine.step() if isinstance(news, Sampled)]
    call = engine.cancel(0)
    assert list(call.tokens) == told
    assert engine._cache.sequence(0).tokens == [*tokens, *told][:-1]
    must_be_consistent(engine)
    engine.begin(0, [*tokens, *told], stops={}, max_tokens=3)
    assert engine._running[0].completion.reused == len(tokens) + len(told) - 1
    engine.release(0, keep=True)
    must_be_consistent(engine)
    engine.release(0)


@pytest.mark.model
def test_a_prompt_that_is_read_in_the_midst_of_a_draft_changes_nothing(engines):
    expected = [news.token for news in complete(engines[0])[0]]
    engine = engines[1]
    engine.begin(0, engine.tokenize(REPEATING, first=True), stops={}, max_tokens=24)
    told: list[int] = []
    prompts = 0
    while len(told) < 24:
        told += [news.token for news in engine.step() if isinstance(news, Sampled)]
        if prompts < 3 and engine._running[0].rows:
            prompts += 1
            for progress in engine.prefill(engine.tokenize(f"{prompts} is a number.", first=True)):
                assert isinstance(progress, Prefilled)
            must_be_consistent(engine)
    engine.release(0)
    assert prompts == 3
    assert told == expected


@pytest.mark.model
def test_a_draft_takes_no_cell_from_anybody():
    with load(15, context=256, sequences=4) as engine:
        taken = engine.tokenize(REPEATING * 12, first=True)[:190]
        engine.begin("kept", taken, stops={}, max_tokens=1)
        while engine.step():
            pass
        engine.release("kept", keep=True)
        told, call = complete(engine, max_tokens=30)
        assert "kept" in engine._cache, "it would have had to go for drafts alone"
        assert len(told) == 30
        assert call.accepted > 0


@pytest.mark.model
def test_what_cannot_forget_a_part_gets_no_drafts(engines, monkeypatch):
    text = "one two three four five six. one two three"  # it goes on otherwise
    expected = [news.token for news in complete(engines[0], text)[0]]
    with load(6) as engine:
        cut = engine._cache._memory.cut

        def forget_all(sequence: int, length: int) -> bool:
            return cut(sequence, 0) and length == 0

        monkeypatch.setattr(engine._cache._memory, "cut", forget_all)
        assert [news.token for news in complete(engine, text)[0]] == expected
        assert not engine._drafter.is_on


class Scratch:
    """How much less likely than the likeliest a token is, evaluated from scratch."""

    def __init__(self, engine) -> None:
        self.engine = engine

    def gap(self, seen: list[int], token: int) -> float:
        self.engine.begin("scratch", seen, stops={}, max_tokens=1)
        rows = []
        sample = self.engine._sample
        self.engine._sample = lambda row, call: (
            rows.append(np.array(self.engine._logits(row))) or sample(row, call)
        )
        while not rows:
            self.engine.step()
        del self.engine._sample
        self.engine.release("scratch")
        return float(rows[0].max() - rows[0][token])


def must_say_the_same(plain, drafted, engine) -> None:
    """Two episodes, call by call, up to the first near tie."""
    seen: dict[int, list[int]] = {}
    for one, other in zip(plain.events, drafted.events, strict=False):
        if isinstance(one, GeneratedSpan) and isinstance(other, GeneratedSpan):
            if one.span.tokens != other.span.tokens:
                pairs = zip(one.span.tokens, other.span.tokens, strict=False)
                first = next(n for n, (a, b) in enumerate(pairs) if a != b)
                context = [*seen[one.thread], *one.span.tokens[:first]]
                scratch = Scratch(engine)
                for span in (one.span, other.span):
                    assert scratch.gap(context, span.tokens[first]) < NEAR
                return
            assert (one.stop, one.reused, one.evaluated) == (
                *(other.stop, other.reused),
                other.evaluated,
            )
        if (context := getattr(one, "context", None)) is not None:
            seen[one.thread] = [*plain.prompt(one.thread).tokens, *context.tokens]
        if span := getattr(one, "span", None):
            seen[one.thread] += span.tokens
    assert len(plain.events) == len(drafted.events)


@pytest.mark.model
def test_an_episode_of_several_threads_is_the_same_with_drafts():
    with load(0, quick_weights) as one, load(6, quick_weights) as other:
        plain, drafted = (
            Session(engine, Kitchen(), **LIMITS).run(progress=False) for engine in (one, other)
        )
        assert len(plain.threads) > 2
        must_say_the_same(plain, drafted, one)
    assert 0 < drafted.usage.accepted <= drafted.usage.drafted
    assert drafted.usage.passes < drafted.usage.generated
    replayed = Session(ReplayEngine(drafted), Kitchen(), **LIMITS).run(progress=False)
    assert replayed.usage.passes == drafted.usage.passes
    assert replayed.usage.drafted == drafted.usage.drafted


@pytest.mark.model
def test_a_batch_of_episodes_is_the_same_with_drafts():
    numbers = (47, 58)
    played = []
    for draft in (0, 5):
        with load(draft, quick_weights, adapter="thread-135m", context=4096) as engine:
            sessions = [
                Session(engine, tk.TextCraft("dev", number), new_tokens=200, calls=12)
                for number in numbers
            ]
            for _ in run_together(sessions):
                pass
            played.append([session.episode for session in sessions])
            if draft:
                assert sum(session.usage.accepted for session in played[-1]) > 50
                must_be_consistent(engine)
    with load(0, quick_weights, adapter="thread-135m", context=4096) as engine:
        for plain, drafted in zip(*played, strict=True):
            must_say_the_same(plain, drafted, engine)


@pytest.mark.model
def test_what_a_pass_costs_is_measured_once_and_kept(monkeypatch):
    measured = []
    measure = draft_length.measure_costs

    def count(evaluate, sizes):
        measured.append(1)
        return measure(evaluate, sizes)

    monkeypatch.setattr(draft_length, "measure_costs", count)
    folder = tk.paths.cache_folder() / "passes"
    with load(None) as engine:
        assert tuple(engine.costs) == SIZES[: len(engine.costs)]
        assert 16 in engine.costs, "larger ones where the machine is quick"
        assert len(engine._cache) == 0, "no cell is taken by it"
        first = engine.costs
        complete(engine)
    with load(None) as engine:
        assert engine.costs == first
    assert len(measured) == 1
    (file,) = folder.iterdir()
    for damaged in ("", "[]", '{"1": "x"}', json.dumps({"1": -1.0}), "{}"):
        file.write_text(damaged)
        with load(None):
            pass
    assert len(measured) == 6
    with load(0) as engine:
        assert engine.costs == {}
    assert len(measured) == 6
    with load(None, batch=8) as engine:  # more do not go into a pass
        assert tuple(engine.costs) == (1, 2, 4, 8)
    monkeypatch.setattr("llama_cpp.llama_print_system_info", lambda: b"AVX2 = 1")
    with load(None):  # another build of llama.cpp
        pass
    assert len(measured) == 8
