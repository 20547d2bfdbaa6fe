"""KV-true threads against an engine that evaluates every context from scratch (marker: model).

llama.cpp adds up in another order when more tokens are evaluated at once, or other sequences are in
the batch, so logits can differ in their last digits, and a near tie can go the other way. The tests
accept a different token only there: `NEAR` is the gap, in logits, between it and the likeliest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.episodes import PROMPT
from helpers.weights import few_layers, quick_weights
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thread_kit as tk
from thread_kit.dialect import Stop
from thread_kit.engines.engine import Completion, Sampled
from thread_kit.engines.kv_cache import PromptKey
from thread_kit.engines.llama import LlamaEngine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.method_registry import load_method
from thread_kit.trace.costs import distinct_prefixes, distinct_tokens
from thread_kit.trace.events import GeneratedSpan

pytestmark = pytest.mark.model

NEAR = 0.5
STOPS = {"\0": Stop.END}
WORDS = ["the axe", " is in", " the shed", ".\n", "First, I need", " 7", "print('", "=>", "<=\n"]


class Measured(LlamaEngine):
    """Tells the gap between the likeliest token and any other, by thread and place."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.logits: dict[tuple[int, int], np.ndarray] = {}

    def _sample(self, row, call):
        token = super()._sample(row, call)
        place = call.completion.thread, len(call.completion.tokens)
        self.logits[place] = self._logits(row).copy()
        return token


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[LlamaEngine, Measured]]:
    file = few_layers()
    options = {"keep_prompts": False, "context": 2048}
    with LlamaEngine(file, sequences=12, **options) as one, Measured(file, **options) as other:
        yield one, other


def finish(engine, *threads: int) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    while len(found) < len(threads):
        for news in engine.step():
            if isinstance(news, Completion):
                found[news.thread] = news.tokens
    return found


def from_scratch(engine: Measured, tokens: list[int], n: int) -> list[int]:
    engine.logits.clear()
    engine.begin(0, tokens, stops=STOPS, max_tokens=n)
    found = finish(engine, 0)[0]
    engine.release(0)
    return list(found)


def must_agree(engines, tokens: list[int], said: list[int], n: int) -> None:
    """Equal, or different first where the two tokens are nearly as likely."""
    brute = engines[1]
    expected = from_scratch(brute, tokens, n)
    if said == expected:
        return
    first = next(i for i, (a, b) in enumerate(zip(said, expected, strict=False)) if a != b)
    logits = brute.logits[0, first]
    gap = logits[expected[first]] - logits[said[first]]
    assert gap < NEAR, f"token {first}: {said[first]}, not {expected[first]}; {gap:.3f} logits"


operations = st.lists(
    st.tuples(
        st.sampled_from(["spawn", "join", "rewind", "fork", "end", "generate", "together"]),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    min_size=4,
    max_size=10,
)


@settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow], database=None
)
@given(operations)
def test_random_trees_say_what_scratch_says(engines, steps):
    """Spawn, join, rewind, fork and end in any order; what is generated is that of scratch."""
    engine = engines[0]
    prompt = list(engine.tokenize(PROMPT.text, first=True))
    list(engine.prefill(prompt))
    live: dict[int, list[int]] = {0: [*prompt, *engine.tokenize("Sharpen the axe. =>\n")]}
    number = 0

    def generate(keys: list[int], n: int) -> None:
        before = {key: list(live[key]) for key in keys}
        for key in keys:
            engine.begin(key, live[key], stops=STOPS, max_tokens=n)
        for key, tokens in finish(engine, *keys).items():
            must_agree(engines, before[key], list(tokens), n)
            live[key] += tokens

    for kind, a, b in steps:
        keys = list(live)
        key = keys[a % len(keys)]
        match kind:
            case "spawn":
                number += 1
                words = WORDS[b % 9] + WORDS[a % 9]
                live[number] = [*prompt, *engine.tokenize(f"I need {words}\n")]
                generate([number], 3)
            case "join":
                live[key] += engine.tokenize(WORDS[b % 9] + "<=\n")
                generate([key], 3)
            case "rewind":
                live[key] = live[key][: max(len(live[key]) - b % 12, len(prompt) + 1)]
                generate([key], 4)
            case "fork":
                number += 1
                cut = max(len(live[key]) - b % 9, len(prompt) + 1)
                live[number] = live[key][:cut]
                generate([number], 3)
            case "end" if len(live) > 1:
                engine.release(key, keep=bool(b % 2))
                del live[key]
            case "generate":
                generate([key], 2 + b % 5)
            case _:
                generate(keys[:4], 3)
    for key in live:
        engine.release(key)


def episode(engine, **options):
    """A real model, its own words, as a tree: whatever it says is a line that spawns."""
    return tk.Session(engine, prompt=PROMPT, calls=8, new_tokens=12, **options)


def test_a_rewound_thread_evaluates_nothing_that_the_cells_still_hold(engines):
    engine = engines[0]
    session = episode(engine, context="say a =>")
    session.keep_cells = True
    first = session.run(progress=False)
    call = next(n for n, e in enumerate(first.events) if isinstance(e, GeneratedSpan))
    span = first.events[call].span
    fork = session.fork(call, token=len(span) // 2)
    again = next(e for e in fork.run(progress=False).events if isinstance(e, GeneratedSpan))
    # The last token before the fork gives the logits; everything before it is in the cells.
    held = len(first.prompt(0)) + len(first.threads[0].context) + len(span) // 2
    assert again.reused == held - 1
    assert again.evaluated == 1 + len(again.span) - len(span) // 2 - 1


def test_an_episode_in_join_mode_evaluates_no_token_twice():
    with tk.load_model(cpu_threads=1, keep_prompts=False) as engine:
        session = tk.Session(engine, tk.TextCraft("dev", 54), new_tokens=300)
        session.keep_cells = True
        found = session.run(progress=False)
    assert found.reward == 1
    assert len(found.threads) > 3
    assert found.usage.evaluated <= distinct_tokens(found)
    assert found.usage.evaluated / distinct_tokens(found) > 0.99


def test_agents_that_come_up_again_evaluate_no_token_twice():
    """StateFlow's agents have hidden prompts: what one has seen is in no other one's cells."""
    stateflow = load_method("stateflow", "sql")
    with tk.load_model(adapter=None, cpu_threads=1, keep_prompts=False) as engine:
        env = tk.InterCodeSql("dev", 0)
        found = stateflow(engine, env, seed=0, path=None, new_tokens=30).run(progress=False)
        states = [one.prompt for one in found.threads.values()]
        assert len(states) > len(set(states)) + 1  # some come up again
        used = distinct_prefixes(found.prompt(one).tokens for one in found.threads)
        evaluated = found.usage.evaluated - found.prompting.evaluated
        assert evaluated <= distinct_tokens(found) - used
        held = engine._cache._sequences
        assert all(isinstance(key, PromptKey) for key in held)  # the threads' cells are free


def test_distinct_tokens_are_those_of_a_trie():
    replies = ["ab=>", "cd#END#", "ab=>", "cd#END#", "#END#"]
    session = tk.Session(ScriptedEngine(replies), context="go =>")
    found = session.run(progress=False)
    seen = {
        prefix
        for one in found.threads.values()
        for text in [found.seen(one.id)]
        for prefix in (text[:n] for n in range(1, len(text)))
    }
    assert distinct_tokens(found) == len(seen)


def test_a_token_behind_which_the_stream_ended_was_evaluated():
    """Without it no model could say that nothing follows."""
    ended = tk.Session(ScriptedEngine(["ab"]), context="go =>").run(progress=False)
    stopped = tk.Session(ScriptedEngine(["ab#END#"]), context="go =>").run(progress=False)
    assert distinct_tokens(ended) == len(ended.seen(0))
    assert distinct_tokens(stopped) == len(stopped.seen(0)) - 1


def test_greedy_words_do_not_depend_on_who_shares_the_batch(engines):
    """Or differ first at a near tie: each alone from scratch, against all in one batch."""
    engine = engines[0]
    texts = [f"{word} I need the {word}" for word in WORDS]
    asked = {n: list(engine.tokenize(text, first=True)) for n, text in enumerate(texts, 100)}
    for number, tokens in asked.items():
        engine.begin(number, tokens, stops=STOPS, max_tokens=8)
    for number, said in finish(engine, *asked).items():
        must_agree(engines, asked[number], list(said), 8)
        engine.release(number)


def test_a_forbidden_mark_is_not_written_before_the_line_ends():
    engine = LlamaEngine(quick_weights(), keep_prompts=False, context=256)
    tokens = engine.tokenize("a =>\nb =>\nc =>\nd", first=True)

    def said(**options) -> str:
        engine.begin(7, tokens, stops={"=>": Stop.LISTEN}, max_tokens=6, **options)
        text = ""
        while True:
            for news in engine.step():
                if isinstance(news, Sampled):
                    text += news.text
                if isinstance(news, Completion):
                    engine.release(7)
                    return text

    with engine:
        assert said().startswith(" =>")
        assert "=>" not in said(forbid=("=>",)).partition("\n")[0]
