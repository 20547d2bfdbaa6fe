"""The spawn lens: what a model weighed for each token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

import thread_kit as tk
from thread_kit.dialect import ASYNC
from thread_kit.engines.engine import EngineError, Sampled
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.engines.token_probs import MarkTokens, top_k
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import UNKNOWN, GeneratedSpan, Token, TokenProbs

PIECES = [b"=", b">", b" =>", b"a", b"#", b" #", b"END", b"E", b"#\n", b"x =>y", b""]


def leading(mark: bytes, first: bytes, written: bytes, pieces: list[bytes] = PIECES) -> list[bytes]:
    return [pieces[n] for n in MarkTokens(pieces).leading_to(mark, first, written)]


def test_a_mark_that_is_one_token_is_not_begun_by_a_part_of_it():
    assert leading(b"=>", b"=", b"n") == [b" =>", b"x =>y"]


def test_behind_its_beginning_a_mark_is_led_to_by_what_completes_it():
    assert leading(b"=>", b"=", b"n =") == [b">", b" =>", b"x =>y"]


def test_a_mark_of_several_tokens_is_begun_by_the_first_and_then_carried_on():
    assert leading(b"#END#", b"#", b"done\n") == [b"#", b" #"]
    assert leading(b"#END#", b"#", b"done\n#") == [b"END", b"E"]
    assert leading(b"#END#", b"#", b"#END") == [b"#", b"#\n"]


def test_chances_are_a_softmax_and_the_likeliest_come_first():
    shares = softmax(np.log(np.array([1, 5, 2, 4, 3, 6, 1], dtype=np.float32)))
    assert shares.sum() == pytest.approx(1)
    assert shares[1] == pytest.approx(5 / 22)
    assert top_k(shares) == [5, 1, 3, 4, 2]


def test_an_engine_that_cannot_tell_says_so():
    session = tk.Session(ScriptedEngine(["#END#"]), context="go", logprobs=True)
    session.run(progress=False)
    assert isinstance(session.error, EngineError)
    assert "does not tell what it weighed" in session.episode.detail


class Telling(ScriptedEngine):
    """Tells a chance with each token."""

    def _refuse_logprobs(self, marks):
        pass

    def _write_token(self, thread):
        news = super()._write_token(thread)
        if isinstance(news, Sampled):
            news = replace(news, logprobs=TokenProbs(0.5, {}, ()))
        return news


def test_tokens_that_nobody_was_told_of_leave_a_trace_that_can_be_read(tmp_path):
    """Closed between the tokens of two threads that were sampled in one step."""
    path = tmp_path / "t.jsonl"
    replies = ["a ~>", "longer text\n#END#", "of a child\n#END#"]
    engine = Telling(replies)
    session = tk.Session(engine, context="do", dialect=ASYNC, logprobs=True, path=path)
    told = 0
    for event in session:
        told += isinstance(event, Token) and len(session.episode.threads) == 2 and not event.thread
        if told == 5:
            break
    session.close()
    calls = [e for e in Episode.load(path).events if isinstance(e, GeneratedSpan)]
    assert {call.logprobs[-1].chance for call in calls} == {0.5, 0.0}
    assert all(len(call.logprobs) == len(call.span) for call in calls)


@pytest.mark.model
def test_a_model_tells_what_it_weighed_and_says_the_same_as_without_being_asked(tmp_path):
    path = tmp_path / "lens.jsonl"
    with tk.load_model() as model:
        task = tk.TextCraft("test", 110)
        plain = tk.Session(model, task.again(), calls=1).run(progress=False)
        session = tk.Session(model, task.again(), calls=1, logprobs=True, path=path)
        seen: list[TokenProbs] = [event.logprobs for event in session if isinstance(event, Token)]
        call = next(e for e in session.episode.events if isinstance(e, GeneratedSpan))
        assert call.span == next(e for e in plain.events if isinstance(e, GeneratedSpan)).span
        assert call.logprobs == tuple(seen[: len(call.span)])
        assert len(call.logprobs) == len(call.span) == len(call.lengths)
        for one in call.logprobs:
            assert set(one.marks) == {"=>", "#END#", "<="}
            assert one.top[0][1] == one.chance  # greedy: it writes the likeliest
        assert call.logprobs[-1].marks["=>"] == pytest.approx(call.logprobs[-1].chance, abs=1e-3)
        assert max(one.marks["=>"] for one in call.logprobs[:-1]) < 0.5
        assert Episode.load(path).events == session.episode.events
        # What a fork has taken over, nobody weighed.
        at = session.episode.events.index(call)
        fork = session.fork(at, token=5, calls=1).run(progress=False)
        again = next(e for e in fork.events if isinstance(e, GeneratedSpan))
        assert again.span == call.span
        assert again.logprobs[:5] == (UNKNOWN,) * 5
        assert again.logprobs[5].marks == pytest.approx(call.logprobs[5].marks, abs=0.01)
