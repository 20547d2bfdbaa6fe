"""The engine on llama.cpp, with the embedded model: nothing is evaluated twice, nothing changes.

What an engine caches, batches or evicts must never change what a thread says. The reference is
llama.cpp used by the book: one sequence, an empty cache, the whole context in one piece. Its own
logits depend a little on the shape of a batch (floating point sums, quantized activations): for
the embedded model on a CPU by 0.1 in the middle and 0.2 to 0.4 at most. So the tests first measure
this noise, by the book as well, and then allow it: two tokens that are as near to each other may
change places, and logits may differ by as much. One token that is missing in a cache, or another
in its place, moves the logits by two to four times that.
"""

import ctypes
import gc
import os
import re
import signal
import subprocess
import sys
import threading

import llama_cpp
import numpy as np
import pytest
from helpers.kitchen import LIMITS, PROMPT, Kitchen
from helpers.sequences import longest_prefix
from helpers.weights import few_layers, quick_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, ASYNC, Stop
from thread_kit.engines import llama, prompt_readers
from thread_kit.engines.engine import Completion, EngineBusyError, EngineError, Prefilled, Sampled
from thread_kit.engines.models import load_model
from thread_kit.prompts import load_prompt, parse_prompt
from thread_kit.requests import Status
from thread_kit.session.run_together import run_together
from thread_kit.session.session import Session
from thread_kit.session.worker import Worker
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Ended, GeneratedSpan, Prompted, Returned, Spawned, Token

pytestmark = pytest.mark.model


ASKS = parse_prompt(
    "".join(
        f"""Prompt:
Topics: {one}, {other}. =>

Response:
#START#
First, tell me about {one}. ~>{{t1}}<=
Then, tell me about {other}. ~>{{t2}}<=
print('{{t1}} {{t2}}')
#END#


"""
        for one, other in (("the sea", "the hills"), ("the cow", "the train"))
    ),
    "asks",
    ASYNC,
)
TELLS = parse_prompt(
    """Prompt:
tell me about the sea. =>

Response:
#START#
The sea is wide and blue. Ships cross it day and night, and fishermen live by it.
print('The sea is wide and blue.')
#END#
""",
    "tells",
    ASYNC,
)
TOPICS = "Topics: the king, the farmer. =>"

POEM = "Write a long poem about the sea and the ships."
LETTER = "Write a letter to the king about the harvest."


def load(weights=None, **options):
    """The embedded model's first layers, or other weights: what it says matters to few tests.

    One CPU thread: the tests share the machine.
    """
    given = {"adapter": None, "context": 1024, "cpu_threads": 1, "keep_prompts": False, "draft": 0}
    return load_model(weights or few_layers(), **(given | options))


@pytest.fixture(scope="module")
def shared():
    """All layers: an episode with children, and what is held against it."""
    engine = load(quick_weights())
    yield engine
    engine.close()


@pytest.fixture
def engine(shared):
    """An engine with an empty cache and nothing running."""
    shared._cache = type(shared._cache)(shared._cache._memory, shared._model.sequences)
    shared._running.clear()
    shared._mail.clear()
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(shared._model.context), False)
    return shared


class Reference:
    """llama.cpp by the book: one sequence, an empty cache, the whole context in one batch."""

    def __init__(self, path, context: int = 1024) -> None:
        self.model = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params()
        )
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = context
        params.n_threads = params.n_threads_batch = 1
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.batch = llama_cpp.llama_batch_init(context, 0, 1)
        self.size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

        self.known: dict[tuple, np.ndarray] = {}
        self.noise = np.zeros(1)

    def measure_noise(self, context, sampled) -> None:
        """By how much the logits depend on the shape of a batch alone."""
        whole = self.logits(context, sampled)
        in_pieces = self.evaluate([*context, *sampled[:-1]], len(sampled), piece=16)
        self.noise = distances(whole, in_pieces)

    def logits(self, context, sampled) -> np.ndarray:
        """The logits from which each of the sampled tokens was taken, one row each."""
        key = (*context, *sampled[:-1]), len(sampled)
        if key not in self.known:
            self.known[key] = self.evaluate(*key, piece=len(key[0]))
        return self.known[key]

    def evaluate(self, tokens, last: int, piece: int) -> np.ndarray:
        """The logits behind each of the last tokens, evaluated in pieces of this many tokens."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        rows = []
        for start in range(0, len(tokens), piece):
            part = tokens[start : start + piece]
            for n, token in enumerate(part):
                self.batch.token[n], self.batch.pos[n] = token, start + n
                self.batch.n_seq_id[n], self.batch.seq_id[n][0] = 1, 0
                self.batch.logits[n] = start + n >= len(tokens) - last
            self.batch.n_tokens = len(part)
            assert llama_cpp.llama_decode(self.context, self.batch) == 0
            for n in range(len(part)):
                if self.batch.logits[n]:
                    row = llama_cpp.llama_get_logits_ith(self.context, n)
                    rows.append(np.array(np.ctypeslib.as_array(row, (self.size,))))
        return np.array(rows)

    def first_fault(self, context, sampled) -> str:
        """Where greedy tokens differ from the reference by more than the noise; "" if nowhere."""
        allowed = 0.02 + 2 * self.noise.max()
        for n, (row, token) in enumerate(zip(self.logits(context, sampled), sampled, strict=True)):
            gap = float(row.max() - row[token])
            if gap > allowed:
                return (
                    f"token {n} is {token}, not {row.argmax()}: its logit is {gap:.3f} lower, "
                    f"and batches alone explain {allowed:.3f}"
                )
        return ""

    def assert_same_logits(self, run) -> None:
        """The logits behind all of a run's tokens are the reference's, up to the noise."""
        found = np.concatenate(
            [
                distances(self.logits(context, sampled), np.array(logits))
                for context, sampled, logits in zip(
                    run.contexts, run.sampled, run.logits, strict=True
                )
                if logits
            ]
        )
        assert np.median(found) <= 0.02 + 1.5 * np.median(self.noise)
        assert found.max() <= 0.02 + 2.5 * self.noise.max()

    def close(self) -> None:
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)


def distances(rows, others) -> np.ndarray:
    """For each row, by how much the five likeliest tokens differ; a common shift says nothing."""
    found = []
    for row, other in zip(rows, others, strict=True):
        likely = np.argsort(row)[-5:]
        difference = (other - row)[likely]
        found.append(float(np.abs(difference - difference.mean()).max()))
    return np.array(found)


@pytest.fixture(scope="module")
def reference(shared, run):
    one = Reference(shared.path)
    one.measure_noise(run.contexts[-1], run.sampled[-1])
    yield one
    one.close()


class Run:
    """An episode with what a trace leaves out: every context, and every token as it was sampled.

    A call that evaluated nothing was answered by an earlier one (`test_completion_cache.py`); it
    has no logits.
    """

    def __init__(self, session: Session, *, logits: bool = True) -> None:
        self.events = []
        rows: list[np.ndarray] = []
        self.logits: list[list[np.ndarray]] = []  # behind each of the tokens
        for event in session:
            self.events.append(event)
            if logits and isinstance(event, Token):
                row = llama_cpp.llama_get_logits_ith(session.engine._model.context, -1)
                size = session.engine._vocabulary.size
                rows.append(np.array(np.ctypeslib.as_array(row, (size,))))
            elif isinstance(event, GeneratedSpan):
                self.logits.append(rows if event.evaluated else [])
                rows = []
        self.episode = session.episode
        self.contexts: list[list[int]] = []  # of each call: q + c + Y
        self.sampled: list[list[int]] = []
        self.calls: list[GeneratedSpan] = []
        seen: dict[int, list[int]] = {}
        running: dict[int, list[int]] = {}
        for event in self.events:
            match event:
                case Token():
                    running.setdefault(event.thread, []).append(event.token)
                case GeneratedSpan():
                    thread = event.thread
                    q = self.episode.prompt(thread).tokens
                    c = self.episode.threads[thread].context.tokens
                    self.contexts.append([*q, *c, *seen.get(thread, [])])
                    self.sampled.append(running.pop(thread, []))
                    self.calls.append(event)
            if span := getattr(event, "span", None):
                seen.setdefault(event.thread, []).extend(span.tokens)

    @property
    def texts(self) -> list[str]:
        return [call.span.text for call in self.calls]


def play(engine, **options) -> Run:
    return Run(Session(engine, Kitchen(), **(LIMITS | options)))


@pytest.fixture(scope="module")
def run(shared):
    return play(shared)


def ask(engine, thread: int, text: str, max_tokens: int = 12, **options):
    """Begin a call; the tokens that it sees."""
    tokens = engine.tokenize(AGENT.context(text), first=True)
    engine.begin(thread, tokens, stops=AGENT.stops, max_tokens=max_tokens, **options)
    return tokens


def finish(engine, *threads: int) -> dict[int, Completion]:
    """Step until these calls are over."""
    calls: dict[int, Completion] = {}
    while not all(thread in calls for thread in threads):
        news = engine.step()
        assert news, "nothing is running, and a call is missing"
        calls |= {one.thread: one for one in news if isinstance(one, Completion)}
    return calls


# Text and tokens


@pytest.fixture(scope="module")
def missing(shared):
    """Bytes that no token of the vocabulary spells: llama.cpp leaves them out."""
    spelled = set(shared._vocabulary.detokenize(range(shared._vocabulary.size)))
    bytes_of_text = {*range(0x80), *range(0x80, 0xC0), *range(0xC2, 0xF5)}
    return bytes(sorted(bytes_of_text - spelled))


def test_no_byte_of_plain_text_is_missing_in_the_vocabulary(missing):
    assert not set(missing) & {*b"\n\t", *range(0x20, 0x7F)}


@settings(deadline=None, max_examples=100)
@given(
    st.text(max_size=30)
    | st.text("é🪓→ =>#END\n\t\x00<|im_start|>", max_size=30)
    | st.sampled_from(["", "<|im_start|>user", "<|endoftext|>", "\x00", "  \n\n  ", "\u200d", "ｅ́"])
)
def test_text_is_spelled_by_its_tokens(shared, missing, text):
    tokens = shared.tokenize(text)
    assert shared._vocabulary.detokenize(tokens) == text.encode().translate(None, missing)
    # What opens a context may get marks in front, and is the same text behind them.
    first = shared.tokenize(text, first=True)
    assert first[len(first) - len(tokens) :] == tokens


def test_text_never_becomes_a_control_token(shared):
    control = shared._vocabulary.raw(b"<|im_start|>", special=False)
    assert len(control) > 1
    assert shared.tokenize("<|im_start|>") == control


def test_a_vocabulary_that_adds_an_end_adds_none_where_a_thread_goes_on(shared, monkeypatch):
    vocabulary = shared._vocabulary
    plain = vocabulary.tokenize("Go", first=True)
    end = next(token for token in range(vocabulary.size) if vocabulary.ends(token))
    monkeypatch.setattr(llama_cpp, "llama_vocab_get_add_eos", lambda vocab: True)
    assert vocabulary.tokenize("Go", first=True) == plain
    monkeypatch.setattr(vocabulary, "raw", lambda raw, *, special: (*plain, end))
    assert vocabulary.tokenize("Go", first=True) == plain


def test_what_a_prompt_and_its_continuation_are_tokenized_to_is_cut_at_the_seam(shared):
    # A context is tokenized by itself, so that the prompt in front of it can be shared.
    q, c = PROMPT.text, AGENT.context("Go. =>")
    tokens = shared.tokenize(q, first=True) + shared.tokenize(c)
    assert shared._vocabulary.detokenize(tokens) == (q + c).encode()


# One episode


def test_the_episode_under_test_spawns_returns_and_nests(run):
    # What the tests below rest on. If the model's answers changed, choose another goal.
    assert len(run.calls) >= 5
    assert run.episode.depth >= 2
    assert len([event for event in run.events if isinstance(event, Returned)]) >= 3
    assert {call.stop for call in run.calls} >= {Stop.LISTEN, Stop.END}


def test_the_logits_behind_every_token_are_those_of_the_reference(run, reference):
    reference.assert_same_logits(run)


def test_every_call_says_what_the_reference_says_of_its_whole_context(run, reference):
    for number, (context, sampled) in enumerate(zip(run.contexts, run.sampled, strict=True)):
        fault = reference.first_fault(context, sampled)
        assert not fault, f"call {number}: {fault}"


def test_calls_say_what_an_engine_without_a_cache_says(run, engine, reference):
    for number in (len(run.calls) // 2, len(run.calls) - 1):
        context, call = run.contexts[number], run.calls[number]
        engine.begin(0, context, stops=AGENT.stops, max_tokens=24)
        again = finish(engine, 0)[0]
        engine.release(0)
        assert again.reused == 0
        if again.tokens != call.span.tokens:
            faults = [reference.first_fault(context, t) for t in (again.tokens, call.span.tokens)]
            assert faults == ["", ""], f"call {number}: {again.text!r}, not {call.span.text!r}"


def test_a_call_keeps_the_tokens_that_were_sampled_up_to_its_stop(run):
    for sampled, call in zip(run.sampled, run.calls, strict=True):
        same = 0
        while same < len(call.span) and sampled[same] == call.span.tokens[same]:
            same += 1
        assert same >= len(sampled) - 1, "at most the token that held the stop was spelled anew"


def expected_costs(run: Run) -> list[tuple[int, int]]:
    """By hand: what each call reuses and evaluates while nothing is evicted."""
    held: dict[object, list[int]] = {}
    answered: set[tuple[int, ...]] = set()
    costs = []
    calls = iter(zip(run.contexts, run.sampled, strict=True))
    for event in run.events:
        match event:
            case Prompted():
                held["prompt"] = list(run.episode.header["prompts"][event.prompt]["tokens"])
            case GeneratedSpan():
                context, sampled = next(calls)
                if tuple(context) in answered:
                    costs.append((len(context), 0))
                    continue
                answered.add(tuple(context))
                # The last token of a context gives the logits, the last sampled one is not needed.
                reused = longest_prefix(context[:-1], held.values())
                unused = 0 if event.stop is Stop.END_OF_STREAM else 1
                costs.append((reused, len(context) - reused + len(sampled) - unused))
                held[event.thread] = [*context, *sampled][: len(context) + len(sampled) - unused]
            case Ended():
                held.pop(event.thread, None)
    return costs


def test_each_call_reuses_all_that_is_there_and_evaluates_only_the_rest(run):
    assert [(call.reused, call.evaluated) for call in run.calls] == expected_costs(run)


def test_an_episode_evaluates_its_prompt_once_and_every_token_behind_it_at_most_once(run):
    calls = [call for call in run.calls if call.evaluated]
    threads = [run.episode.threads[number] for number in {call.thread for call in calls}]
    prompt = len(prompt_tokens(run))
    prompted = [event for event in run.events if isinstance(event, Prompted)]
    assert [(event.reused, event.evaluated) for event in prompted] == [(0, prompt)]
    everything = sum(len(one.context) + len(one.sequence) for one in threads)
    # Less what a child's context shares with one that is there, and each thread's last token,
    # or what came back to it last, where no call followed.
    begun: set[int] = set()
    shared = 0
    for call in calls:
        shared += 0 if call.thread in begun else call.reused - prompt
        begun.add(call.thread)
    never_needed = sum(
        1 + sum(len(span) for span in one.sequence.spans[-1:] if span.provenance == "returned")
        for one in threads
    )
    assert run.episode.usage.evaluated == prompt + everything - shared - never_needed


def prompt_tokens(run: Run) -> list[int]:
    return next(iter(run.episode.header["prompts"].values()))["tokens"]


def test_the_second_episode_finds_the_prompt_in_the_cache(engine):
    limits = {"calls": 1, "new_tokens": 2}
    first = Session(engine, Kitchen(), prompt=PROMPT, **limits).run(progress=False)
    second = Session(engine, Kitchen(), prompt=PROMPT, **limits).run(progress=False)
    for episode, reused in ((first, 0), (second, len(engine.tokenize(PROMPT.text, first=True)))):
        prompted = next(event for event in episode.events if isinstance(event, Prompted))
        assert prompted.reused == reused
    assert second.prompting.evaluated == 0


# Not enough room


def says_the_same(one: Run, other: Run, reference: Reference) -> None:
    """The same calls with the same tokens, up to a tie in the reference."""
    calls = zip(one.contexts, one.sampled, other.contexts, other.sampled, strict=False)
    for number, (context, sampled, other_context, other_sampled) in enumerate(calls):
        assert context == other_context
        if sampled != other_sampled:
            faults = [reference.first_fault(context, t) for t in (sampled, other_sampled)]
            assert faults == ["", ""], f"call {number}: {faults}"
            return  # a tie: from here on they are different episodes
    assert len(one.calls) == len(other.calls)


def test_a_cache_that_is_too_small_evicts_and_says_the_same(run, reference):
    engine = load(quick_weights(), context=256)
    small = play(engine)
    assert len(engine._cache) <= 1, "at most the prompt is kept when the episode is over"
    engine.close()
    says_the_same(run, small, reference)
    reference.assert_same_logits(small)


def test_a_cache_that_evicted_evaluates_again(shared):
    engine = load(context=256)
    texts = {n: " ".join([word] * 100) for n, word in enumerate(("one", "two", "three"))}
    for n, text in texts.items():
        ask(engine, n, text, max_tokens=2)
        finish(engine, n)
    # The cells of the first or of the second went to the third.
    tokens = [len(ask(engine, n, texts[n], max_tokens=2)) for n in (0, 1)]
    again = finish(engine, 0, 1)
    engine.close()
    assert min(again[n].reused - tokens[n] + 1 for n in (0, 1)) < 0


@pytest.mark.parametrize("sequences", [1, 2])
def test_more_threads_than_sequences_say_the_same(run, reference, sequences):
    engine = load(quick_weights(), sequences=sequences)
    few = play(engine)
    engine.close()
    says_the_same(run, few, reference)
    reference.assert_same_logits(few)


def test_more_calls_at_once_than_sequences_are_an_engine_error_with_the_remedy():
    engine = load(sequences=2)
    ask(engine, 0, POEM)
    ask(engine, 1, LETTER)
    with pytest.raises(EngineError, match=r"sequences=\.\.\."):
        ask(engine, 2, "Sing. =>")
    assert set(finish(engine, 0, 1)) == {0, 1}, "the calls that run are not harmed"
    engine.close()


def test_a_prompt_that_does_not_fit_is_an_engine_error_with_the_remedy(tmp_path):
    engine = load(context=512)
    path = tmp_path / "episode.jsonl"
    session = Session(engine, Kitchen(), prompt=load_prompt("textcraft"), path=path)
    session.run(progress=False)
    assert isinstance(session.error, EngineError)
    assert re.search(r"few-shot prompt takes \d+ tokens.*larger context=", str(session.error))
    assert Episode.load(path).status is Status.FAILED
    engine.close()


def test_a_thread_that_fills_its_context_ends_as_out_of_context(engine):
    engine = load(context=256)
    session = Session(engine, context="and on " * 115, new_tokens=1000, scope="none")
    episode = session.run(progress=False)
    assert episode.status is Status.OUT_OF_CONTEXT
    assert len(episode.threads[0].context) + len(episode.threads[0].sequence) <= 256
    assert episode.usage.generated > 0
    engine.close()


def test_a_context_that_does_not_fit_ends_its_thread_at_once(engine):
    session = Session(engine, context="and on " * 600, scope="none")
    assert session.run(progress=False).status is Status.OUT_OF_CONTEXT
    assert session.episode.usage.evaluated == 0


def test_threads_that_outgrow_the_cache_together_end_one_by_one():
    engine = load(context=256)
    for thread, text in ((0, POEM * 9), (1, LETTER * 9)):
        tokens = engine.tokenize(AGENT.context(text), first=True)
        assert 90 < len(tokens) < 115
        engine.begin(thread, tokens, stops={}, max_tokens=40)
    calls = finish(engine, 0, 1)
    stops = sorted(str(call.stop) for call in calls.values())
    assert stops in (["context", "length"], ["context", "end of stream"])
    engine.close()


def test_a_thread_says_whether_its_context_was_full_or_the_cells_that_all_share():
    with load(context=256) as engine:
        together = [Session(engine, context=text * 9, scope="none") for text in (POEM, LETTER)]
        details = [session.episode.detail for session in run_together(together, 2)]
        assert any(re.match(r"at \d+ tokens no cell of the cache was left", d) for d in details)
        alone = Session(engine, context=POEM * 9, scope="none", new_tokens=200)
        assert alone.run(progress=False).detail == "a thread sees at most 256 tokens"


# Many at once


def test_threads_in_one_batch_say_what_each_says_alone(engine, reference):
    texts = {0: POEM, 1: LETTER, 2: "find the mug. =>"}
    alone, contexts = {}, {}
    for thread, text in texts.items():
        contexts[thread] = ask(engine, thread, text)
        alone |= finish(engine, thread)
        engine.release(thread)
    for thread, text in texts.items():
        ask(engine, thread, text)
    together = finish(engine, *texts)
    for thread, context in contexts.items():
        one, other = alone[thread].tokens, together[thread].tokens
        if one != other:
            assert [reference.first_fault(context, t) for t in (one, other)] == ["", ""]


def test_two_children_that_nobody_waits_for_share_batches_and_say_what_each_says_alone(
    engine, reference, monkeypatch
):
    batches: list[int] = []  # how many threads were in each
    evaluate, begin = engine._evaluate, engine.begin

    def counted(work):
        batches.append(len(work))
        return evaluate(work)

    def one_at_a_time(*arguments, **options):
        if engine._running:
            raise EngineBusyError("a call is running")
        begin(*arguments, **options)

    def play_topics() -> tuple[Run, list[int]]:
        batches.clear()
        session = Session(engine, prompt=TELLS, main_prompt=ASKS, context=TOPICS, new_tokens=60)
        return Run(session, logits=False), list(batches)

    monkeypatch.setattr(engine, "_evaluate", counted)
    together, shared_batches = play_topics()
    monkeypatch.setattr(engine, "begin", one_at_a_time)
    alone, own_batches = play_topics()

    children = [event for event in together.events if isinstance(event, Spawned) and event.future]
    assert len(children) == 2
    assert max(own_batches) == 1
    assert max(shared_batches) == 3, "the parent and both children are in one batch"
    assert len(shared_batches) < 0.8 * len(own_batches)
    for thread in (0, 1, 2):
        one, other = (calls_of(run, thread) for run in (together, alone))
        for number, ((context, tokens), (its_context, its_tokens)) in enumerate(
            zip(one, other, strict=False)
        ):
            assert context == its_context
            if tokens != its_tokens:
                faults = [reference.first_fault(context, t) for t in (tokens, its_tokens)]
                assert faults == ["", ""], f"thread {thread}, call {number}: {faults}"
                break  # a tie: from here on they are different texts


def calls_of(run: Run, thread: int) -> list[tuple[list[int], list[int]]]:
    """The contexts and the tokens of the calls of one thread."""
    calls = zip(run.calls, run.contexts, run.sampled, strict=True)
    return [(context, sampled) for call, context, sampled in calls if call.thread == thread]


def test_one_step_takes_every_thread_one_token_further(engine):
    for thread, text in enumerate((POEM, LETTER)):
        ask(engine, thread, text)
    news = engine.step()
    assert {one.thread for one in news} == {0, 1}
    assert all(isinstance(one, Sampled) for one in news)


def test_a_long_context_does_not_hold_up_a_thread_that_generates():
    engine = load(batch=32, sequences=8)
    ask(engine, 0, POEM)
    while not any(isinstance(one, Sampled) for one in engine.step()):
        pass
    ask(engine, 1, LETTER * 10)
    news = engine.step()
    assert any(isinstance(one, Sampled) and one.thread == 0 for one in news)
    assert any(isinstance(one, Prefilled) and one.thread == 1 for one in news)
    engine.close()


def test_a_batch_that_is_smaller_than_a_context_says_the_same(engine, reference):
    small = load(quick_weights(), batch=16, sequences=8)
    context = ask(small, 0, LETTER)
    ask(engine, 0, LETTER)
    one, other = finish(small, 0)[0].tokens, finish(engine, 0)[0].tokens
    small.close()
    assert one == other or [reference.first_fault(context, t) for t in (one, other)] == ["", ""]


def test_two_sessions_in_two_workers_share_an_engine_and_say_the_same(engine, run, reference):
    sessions = [Session(engine, Kitchen(), **LIMITS) for _ in range(2)]
    events: list[list] = [[], []]
    workers = [Worker(one, events[n].append) for n, one in enumerate(sessions)]
    for worker in workers:
        worker.start()
    for n, worker in enumerate(workers):
        worker.wait(60)
        assert not worker.is_running
        seen = (event for event in events[n][:-1])  # what the worker saw, to be read as a run
        sessions[n]._events = seen
        says_the_same(run, Run(sessions[n], logits=False), reference)


def test_two_prefills_of_one_prompt_at_once_leave_it_in_the_cache_once():
    # As two workers would: each takes a step while the other is half-way.
    engine = load(batch=16, sequences=8)
    tokens = engine.tokenize(POEM * 5, first=True)
    assert len(tokens) > 3 * 16
    one, other = engine.prefill_prompt("one", tokens), engine.prefill_prompt("one", tokens)
    for _ in range(3):
        next(one), next(other)
    ends = [list(progress)[-1] for progress in (one, other)]
    # What one of them evaluated is reused by the other, and told once.
    assert all(end.evaluated > 0 < end.reused for end in ends)
    assert sum(end.evaluated for end in ends) == len(tokens)
    assert all(end.reused + end.evaluated == len(tokens) for end in ends)
    engine.begin(0, [*tokens, 1], stops={}, max_tokens=1)
    assert finish(engine, 0)[0].reused == len(tokens)
    engine.close()


def test_a_prompt_that_is_evicted_while_it_is_evaluated_is_evaluated_again():
    engine = load(batch=16, sequences=2)
    tokens = engine.tokenize(POEM * 5, first=True)
    prefill = engine.prefill(tokens)
    next(prefill), next(prefill)
    for thread, text in enumerate((LETTER, "Sing. =>")):  # another session takes the sequences
        ask(engine, thread, text, max_tokens=1)
        finish(engine, thread)
        engine.release(thread)
        ask(engine, thread + 2, "Dance. =>" + text, max_tokens=1)
        finish(engine, thread + 2)
    last = list(prefill)[-1]
    assert (last.done, last.total) == (len(tokens), len(tokens))
    engine.begin(9, [*tokens, 1], stops={}, max_tokens=1)
    assert finish(engine, 9)[9].reused == len(tokens)
    engine.close()


def test_prompts_side_by_side_that_do_not_fit_together_are_read_one_after_the_other():
    engine = load(context=128, batch=32)
    words = engine.tokenize(POEM * 2, first=True)
    prompts = [[words[(n + i * 7) % len(words)] for n in range(125)] for i in range(4)]
    alive, rounds, evaluated = [engine.prefill(prompt) for prompt in prompts], 0, 0
    while alive:
        rounds += 1
        for prefill in list(alive):
            if (progress := next(prefill, None)) is None:
                alive.remove(prefill)
            else:
                evaluated += progress.evaluated
    assert rounds < 40
    assert evaluated <= 2 * sum(map(len, prompts))  # each lost cells to those that are older
    engine.close()


def test_sessions_whose_prompts_do_not_fit_together_wait_and_none_fails():
    engine = load(context=256, batch=64)
    texts = [line * 6 for line in ("The sea is wide. ", "A cow eats grass. ", "Trains run late. ")]
    examples = "Prompt:\n{0}\n\nResponse:\n#START#\nprint('{1}')\n#END#\n\n\n"
    prompts = [
        parse_prompt(examples.format(text, text[:9]) + examples.format(text * 2, "yes"))
        for text in texts
    ]
    given = {"context": "Go.", "calls": 1, "new_tokens": 6, "scope": "none"}
    sessions = [Session(engine, prompt=prompt, **given) for prompt in prompts]
    sizes = [len(engine.tokenize(prompt.text, first=True)) for prompt in prompts]
    assert max(sizes) < 240
    assert sum(sorted(sizes)[:2]) > 256
    for _ in run_together(sessions):
        pass
    assert [session.error for session in sessions] == [None] * 3
    assert all(session.episode.usage.calls == 1 for session in sessions)
    engine.close()


def test_a_prompt_that_nobody_goes_on_to_read_gives_its_cells_up(monkeypatch):
    monkeypatch.setattr(prompt_readers, "LOOKS", 2)
    engine = load(context=256, batch=64)
    words = engine.tokenize(POEM * 2, first=True)
    prompt = [words[n % len(words)] for n in range(250)]
    paused = engine.prefill(prompt)
    next(paused), next(paused), next(paused)
    *_, last = engine.prefill(prompt[::-1])
    assert last.done == 250
    *_, last = paused  # and goes on
    assert last.done == 250
    assert not engine._readers
    engine.close()


def test_prompts_wait_for_sequences_too():
    engine = load(sequences=2, batch=16)
    words = engine.tokenize(POEM, first=True)
    alive = [engine.prefill(words[n : n + 40]) for n in range(3)]
    while alive:
        alive = [prefill for prefill in alive if next(prefill, None)]
    engine.close()


def test_where_a_paused_call_has_all_cells_a_prompt_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(llama, "PATIENCE", 0.1)
    engine = load(context=256, batch=64)
    words = engine.tokenize(POEM * 2, first=True)
    ask(engine, 0, POEM)
    engine.advance(0)
    with pytest.raises(EngineError, match=r"no cell is left .* or are paused; play fewer"):
        list(engine.prefill([words[-n % len(words)] for n in range(250)]))
    assert not engine._readers
    engine.close()


@pytest.mark.parametrize("victim", ["a", "b"])
def test_an_interrupt_in_the_middle_of_a_step_costs_nobody_a_token(
    engine, victim, monkeypatch, request
):
    texts = {"a": "Once upon a time there was a", "b": "The king was a man who"}

    # Whoever runs the tests in the background has interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def write() -> dict[str, Completion]:
        for thread, text in texts.items():
            ask(engine, thread, text)
        return finish(engine, *texts)

    alone = {thread: completion.text for thread, completion in write().items()}
    engine._completions = type(engine._completions)()
    sample, left = engine._sample, [9]

    def interrupted(row, call):
        if call.completion.thread == victim:
            left[0] -= 1
            if not left[0]:
                signal.raise_signal(signal.SIGINT)
        return sample(row, call)

    monkeypatch.setattr(engine, "_sample", interrupted)
    for thread in texts:
        engine.release(thread)
        ask(engine, thread, texts[thread])
    with pytest.raises(KeyboardInterrupt):
        finish(engine, *texts)
    assert {key: one.text for key, one in finish(engine, *texts).items()} == alone


@pytest.mark.parametrize("draft", [0, 4])
def test_a_token_that_a_broken_step_lost_is_evaluated_again(draft, monkeypatch):
    engine = load(quick_weights(), draft=draft)
    texts = {"a": "one two three one two three one two", "b": "The king was a man who"}
    for thread, text in texts.items():
        ask(engine, thread, text)
    alone = {thread: completion.text for thread, completion in finish(engine, *texts).items()}
    engine._completions = type(engine._completions)()
    for thread in texts:
        engine.release(thread)
        ask(engine, thread, texts[thread])
    for _ in range(3):
        engine.advance(*texts)
    with monkeypatch.context() as broken:
        broken.setattr(engine, "_sample", lambda row, call: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            [engine.advance(*texts) for _ in range(6)]
    told = finish(engine, *texts)
    assert {key: one.text for key, one in told.items()} == alone
    engine.close()


# Sampling


def sample(engine, thread: int, seed, temperature: float = 1.0):
    ask(engine, thread, POEM, temperature=temperature, seed=seed)
    call = finish(engine, thread)[thread]
    engine.release(thread)
    return call.tokens


def test_sampling_is_reproducible_by_its_seed(engine):
    assert sample(engine, 0, (1, 2)) == sample(engine, 5, (1, 2))
    drawn = {sample(engine, 0, (seed, 2)) for seed in range(3)}
    assert len(drawn) == 3, "another seed draws other tokens"
    assert sample(engine, 0, (2, 1)) != sample(engine, 0, (1, 2))


def test_a_draw_does_not_depend_on_what_else_runs(engine):
    alone = sample(engine, 0, (1,))
    ask(engine, 1, LETTER, temperature=1.0, seed=(7,))
    ask(engine, 2, "Sing. =>")
    engine.step()
    assert sample(engine, 0, (1,)) == alone


@pytest.mark.parametrize("temperature", [1e-4, 1e-7, 1e-38, 1e-300])
def test_a_temperature_near_zero_is_greedy(engine, temperature):
    greedy = sample(engine, 0, (1,), temperature=0.0)
    assert sample(engine, 0, (1,), temperature=temperature) == greedy


def test_every_place_has_a_draw_of_its_own(engine):
    # So hot that the draw alone decides: one and the same would give the same token everywhere.
    tokens = sample(engine, 0, (1,), temperature=1e6)
    assert len(set(tokens)) == len(tokens) > 5


def test_draws_follow_the_models_probabilities(engine, reference):
    context = engine.tokenize(AGENT.context(POEM), first=True)
    logits = reference.logits(context, [0])[0].astype(float)
    likely = np.argsort(logits)[-3:]
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    drawn = []
    for seed in range(100):  # the context stays in the cache, so that each costs one token
        engine.begin(0, context, stops={}, max_tokens=1, temperature=1.0, seed=(seed,))
        drawn += finish(engine, 0)[0].tokens
    for token in likely:
        p = probabilities[token]
        spread = 4 * np.sqrt(p * (1 - p) / len(drawn))
        assert abs(drawn.count(token) / len(drawn) - p) < spread


# Stopping and failing


def test_a_call_that_is_cancelled_keeps_its_tokens_and_can_be_asked_again(engine):
    tokens = ask(engine, 0, POEM)
    sampled = []
    while len(sampled) < 3:
        sampled += [one.token for one in engine.step() if isinstance(one, Sampled)]
    call = engine.cancel(0)
    assert (call.stop, list(call.tokens)) == (Stop.CANCELLED, sampled)
    assert engine.step() == []
    assert engine.cancel(0) is None
    ask(engine, 0, POEM)
    again = finish(engine, 0)[0]
    assert list(again.tokens[:3]) == sampled
    assert again.reused == len(tokens) - 1


def test_a_thread_that_generates_cannot_begin_again(engine):
    ask(engine, 0, POEM)
    with pytest.raises(ValueError, match="thread 0 is generating already"):
        ask(engine, 0, LETTER)
    engine.cancel(0)


def test_releasing_a_thread_ends_its_call_and_frees_its_cells(engine):
    tokens = ask(engine, 0, POEM)
    engine.step()
    engine.release(0)
    engine.release(0)
    assert engine.step() == []
    ask(engine, 1, POEM)
    assert finish(engine, 1)[1].reused < len(tokens) - 1


def abandon(engine) -> None:
    """A session whose call runs, and which only the garbage collector can still find."""
    session = Session(engine, context=LETTER, scope="none", new_tokens=40)
    while not isinstance(next(session), Token):
        pass


@pytest.mark.parametrize("where", ["_count_known", "_evaluate", "_sample"])
def test_a_session_that_is_collected_in_another_ones_step_ends_behind_it(
    where, monkeypatch, request
):
    with load(context=256) as engine:
        gc.collect()
        gc.disable()  # it comes when this test says so
        request.addfinalizer(gc.enable)
        abandon(engine)
        original, collected = getattr(engine, where), []

        def collecting(*arguments):
            if not collected:
                collected.append(gc.collect())
                assert len(engine._running) == 2, "both calls run, in the midst of the step"
            return original(*arguments)

        monkeypatch.setattr(engine, where, collecting)
        beside = Session(engine, context=POEM, scope="none", new_tokens=8).run(progress=False)
        assert collected
        assert (beside.status, beside.usage.generated) == (Status.TRUNCATED, 8)
        assert not engine._running
        memory = llama_cpp.llama_get_memory(engine._model.context)
        held = {one.number: len(one.tokens) for one in engine._cache._sequences.values()}
        for number in range(engine._model.sequences):
            cells = llama_cpp.llama_memory_seq_pos_max(memory, number) + 1
            assert cells == held.get(number, 0)


def test_a_session_can_be_stopped_while_the_model_writes(engine):
    session = Session(engine, context=POEM, new_tokens=500, scope="none")
    for event in session:
        if isinstance(event, Token) and len(event.text) >= 0:
            other = threading.Thread(target=session.stop)
            other.start()
            other.join()
    assert session.episode.status is Status.STOPPED
    assert 0 < session.episode.usage.generated <= 3
    assert engine.step() == []


def test_facts_about_the_engine_are_plain_data(engine):
    import json

    facts = engine.describe()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["context"] == engine.context_size <= facts["cells"]
    assert facts["file"] == engine.path.name, "the file's name and not where it lies"


@pytest.mark.parametrize("flash", [False, True])
def test_either_attention_says_what_the_reference_says(flash):
    one, other = load(flash_attention=flash), Reference(few_layers())
    assert one.describe()["flash_attention"] is flash
    context = ask(one, 0, POEM)
    written = finish(one, 0)[0].tokens
    other.measure_noise(context, written)
    assert not other.first_fault(context, written)
    one.close()
    other.close()


def test_another_attention_and_scores_that_no_machine_has_room_for_are_refused_in_words():
    with pytest.raises(EngineError, match="flash_attention='off': give True, False or None"):
        load(flash_attention="off")
    with pytest.raises(EngineError, match=r"of KV cache and scores .*smaller context"):
        load(flash_attention=False, context=300_000, batch=300_000)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no such limit on this system")
def test_a_process_that_may_use_one_core_takes_one():
    done = in_another_process(
        "import os; from thread_kit.engines.core_share import own_cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(len(own_cores()))"
    )
    assert done.stdout.strip() == b"1", done.stderr


def in_another_process(code: str) -> subprocess.CompletedProcess:
    """What a crash would end is not this process."""
    head = (
        "from thread_kit.engines.engine import EngineError\n"
        "from thread_kit.engines.models import load_model\n"
    )
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, timeout=600)


@pytest.mark.parametrize(
    "use",
    [
        "engine = load_model(cpu_threads=1, context=1)",
        "engine = load_model(cpu_threads=1, batch=16)",
        "engine = load_model(cpu_threads=1, context=512); engine.close(); engine.tokenize('x')",
        "engine = load_model(cpu_threads=1, context=512); engine.close()\n"
        "list(engine.prefill([1, 2, 3]))",
        "engine = load_model(cpu_threads=1, context=512)\n"
        "engine.begin(0, [], stops={}, max_tokens=3); engine.step()",
    ],
    ids=["a tiny context", "a tiny batch", "closed, tokenize", "closed, prefill", "no tokens"],
)
def test_no_use_of_an_engine_ends_the_process(use):
    # A crash here would be the crash of a person's notebook kernel.
    done = in_another_process(use)
    assert done.returncode in (0, 1), done.stderr[-300:]
    assert done.returncode == 0 or b"Error: " in done.stderr


def test_a_context_that_memory_cannot_hold_is_an_engine_error_with_the_remedy():
    done = in_another_process(
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))\n"
        "load_model(cpu_threads=1, context=10**6)"
    )
    assert b"EngineError: llama.cpp cannot make a context of 1000000 tokens" in done.stderr
    assert b"smaller one (context=" in done.stderr


def test_more_sequences_than_llama_cpp_allows_are_an_engine_error_with_the_remedy():
    with pytest.raises(EngineError, match="sequences"):
        load(sequences=300)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("cpu_threads=10**5", "allows 1 to 512"),
        ("cpu_threads=10**6", "allows 1 to 512"),
        ("cpu_threads='x'", "allows 1 to 512"),
        ("context='x'", "positive number of tokens"),
        ("context=1.5", "positive number of tokens"),
        ("batch=0.5", "positive number of tokens"),
        ("sequences='x'", "allows 1 to 256"),
        ("gpu_layers='x'", "give a number of layers"),
        ("batch=10**9", ""),
        ("gpu_layers=10**12", ""),
    ],
)
def test_options_that_would_end_the_process_are_refused_or_cut(option, words):
    options = f"{{'context': 256, 'cpu_threads': 1}} | dict({option})"
    done = in_another_process(
        f"engine = load_model(adapter=None, keep_prompts=False, **({options}))\n"
        "engine.begin(0, engine.tokenize('a'), stops={}, max_tokens=1); engine.step()"
    )
    assert done.returncode == bool(words), done.stderr[-300:]
    assert f"EngineError: {option.partition('=')[0]}=" in done.stderr.decode() or not words
    assert words in done.stderr.decode()


def test_closing_twice_does_nothing():
    engine = load(context=256)
    engine.close()
    engine.close()
    assert "few-layers" in repr(engine)
    assert ctypes.sizeof(ctypes.c_void_p) == 8
