"""The engine on a server: a fake one for what can go wrong, llama-server for what has to be true.

For the tests with llama-server: put one in the PATH, or set THREAD_KIT_LLAMA_SERVER to the command
that starts it, or install the package xllamacpp.
"""

import json
import socket
import threading
import time
from contextlib import suppress

import pytest
from helpers.fake_server import DONE, Fake, event, hangs_up, refuses, says, streams, written
from helpers.real_server import needs_server, start_server
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, Stop
from thread_kit.engines.engine import Completion, EngineError, Prefilled, Sampled
from thread_kit.engines.http_client import HttpClient
from thread_kit.engines.replay import ReplayEngine
from thread_kit.engines.server import ServerEngine
from thread_kit.engines.tokenizers import PieceTokenizer
from thread_kit.prompts import Example, Prompt
from thread_kit.requests import Status
from thread_kit.session.run_together import run_together
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, Idle, Prefilling

STOPS = AGENT.stops
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def connect():
    """Makes engines that are closed at the end."""
    made = []

    def one(server, **options):
        url = server if isinstance(server, str) else server.url
        made.append(ServerEngine(url, **({"backoff": 0.001, "timeout": 5.0} | options)))
        return made[-1]

    yield one
    for engine in made:
        engine.close()


def ask(engine, thread=0, text="Prompt:", **options):
    options = {"stops": STOPS, "max_tokens": 100} | options
    engine.begin(thread, engine.tokenize(text), **options)


def finish(engine, *threads):
    """Step until these calls are over; (the calls, all news)."""
    calls, news = {}, []
    while not all(thread in calls for thread in threads):
        new = engine.step()
        assert new, "nothing is running, and a call is missing"
        news += new
        calls |= {one.thread: one for one in new if isinstance(one, Completion)}
    return calls, news


def complete(engine, **options):
    ask(engine, **options)
    return finish(engine, 0)[0][0]


def failure(engine, **options):
    """The message of the error that a call ends with."""
    ask(engine, **options)
    with pytest.raises(EngineError) as error:
        finish(engine, 0)
    assert engine.step() == [], "a call that failed is over"
    message = str(error.value)
    assert "\n" not in message
    return message


# What is said


def test_a_call_ends_with_its_stop_string_and_says_which_it_was(fake, connect):
    engine = connect(fake)
    fake.replies += [says("Go", " =", "> no", " more"), says("x\n#EN", "D#"), says("all")]
    calls = [complete(engine) for _ in range(3)]
    assert [call.text for call in calls] == ["Go =>", "x\n#END#", "all"]
    assert [call.stop for call in calls] == [Stop.LISTEN, Stop.END, Stop.END_OF_STREAM]
    assert "stop" not in fake.asked[0], "the server would cut it off"


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.lists(st.text("=>#ENDé→🪓\u2028\x85\n x", max_size=6), max_size=6), st.integers(1, 9))
def test_the_news_add_up_to_the_text_however_the_bytes_arrive(texts, size):
    fake = Fake()
    fake.replies.append(streams(written(*texts), size))
    with ServerEngine(fake.url) as engine:
        ask(engine)
        calls, news = finish(engine, 0)
        call = calls[0]
    fake.close()
    whole = "".join(texts)
    ends = [whole.find(stop) + len(stop) for stop in STOPS if stop in whole]
    assert call.text == whole[: min(ends, default=None)]
    assert PieceTokenizer().detokenize(call.tokens) == call.text
    assert "".join(one.text for one in news if isinstance(one, Sampled)) == call.text


def test_every_token_is_news_before_the_call_is(fake, connect):
    engine = connect(fake)
    fake.replies.append(says("one", " two", " =>"))
    ask(engine)
    call, news = finish(engine, 0)
    *sampled, last = news
    assert all(isinstance(one, Sampled) for one in sampled)
    assert last is call[0]
    assert "".join(one.text for one in sampled) == call[0].text == "one two =>"


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_comments_fields_and_line_ends_of_event_streams_are_understood(fake, connect, ending):
    data = json.dumps({"choices": [{"text": "ok =>"}]})
    half = data.index(":") + 1
    lines = [": ping", "event: x", "", f"data:{data[:half]}", f"data: {data[half:]}", "", "id: 1"]
    fake.replies.append(streams(ending.join(lines).encode() + DONE))
    assert complete(connect(fake)).text == "ok =>"


def test_a_server_is_asked_for_what_the_call_asks(fake, connect):
    engine = connect(fake)
    fake.replies += [says("a =>")] * 4
    for options in ({}, {}, {"seed": (0, 1)}, {"text": "Longer"}):
        complete(engine, temperature=0.7, max_tokens=9, **options)
    first, again, other, longer = fake.asked
    asked = {name: first[name] for name in first if name != "seed"}
    assert asked == {
        "model": "gpt-fake",
        "prompt": "Prompt:",
        "max_tokens": 9,
        "temperature": 0.7,
        "stream": True,
    }
    assert first["seed"] == again["seed"]
    assert len({one["seed"] for one in (first, other, longer)}) == 3
    assert 0 <= first["seed"] < 2**31


def test_max_tokens_and_the_context_end_a_call(fake, connect):
    engine = connect(fake, context=12)
    fake.replies += [says("one two"), says("one two", finish="length"), says("a b c d e f g h i j")]
    assert complete(engine, max_tokens=1).stop is Stop.LENGTH
    assert complete(engine, max_tokens=5).stop is Stop.LENGTH
    call = complete(engine)
    assert (call.stop, len(call.tokens)) == (Stop.CONTEXT, 12 - len(engine.tokenize("Prompt:")))
    asked = len(fake.asked)
    call = complete(engine, text="too long " * 12)
    assert (call.stop, call.tokens, len(fake.asked)) == (Stop.CONTEXT, (), asked)


def test_threads_generate_at_the_same_time(fake, connect):
    engine = connect(fake)
    all_three = threading.Barrier(3, timeout=600)

    def together(handler):
        all_three.wait()
        says("x =>")(handler)

    fake.replies += [together] * 3
    for thread in range(3):
        ask(engine, thread)
    calls, _ = finish(engine, 0, 1, 2)
    assert [call.text for call in calls.values()] == ["x =>"] * 3


def test_sessions_side_by_side_ask_at_the_same_time(fake, connect):
    """None waits with its request until another's is answered."""
    engine, waiting = connect(fake), threading.Barrier(4, timeout=600)

    def together(handler):
        waiting.wait()
        says("done #END#")(handler)

    fake.replies += [together] * 4
    sessions = [Session(engine, context=f"Do {n}. =>") for n in range(4)]
    for session in run_together(sessions, 4):
        assert session.episode.status is Status.ENDED


def test_a_session_runs_on_a_server(fake, connect):
    fake.replies += [says("Find the axe. =>"), says("print('In the shed.')\n#END#"), says("#END#")]
    episode = Session(connect(fake), context="Sharpen the axe. =>").run(progress=False)
    assert episode.status is Status.ENDED
    assert fake.asked[2]["prompt"].endswith("Find the axe. =>In the shed.<=\n")


@pytest.mark.usefixtures("key")
def test_an_episode_on_a_server_can_be_recorded_and_replayed(fake, connect, tmp_path):
    path = tmp_path / "episode.jsonl"
    fake.replies += [says("Find the axe. =>"), says("print('In the shed.')\n#END#"), says("#END#")]
    one = Session(connect(fake), context="Sharpen it.", path=path).run(progress=False)
    replay = ReplayEngine(Episode.load(path))
    other = Session(replay, context="Sharpen it.").run(progress=False)
    assert [t.sequence for t in one.threads.values()] == [
        t.sequence for t in other.threads.values()
    ]
    assert one.usage == other.usage
    assert KEY not in path.read_text()


def test_a_session_can_be_stopped_while_the_server_is_silent(fake, connect):
    silent = threading.Event()
    fake.replies.append(streams(event("one"), end=lambda: silent.wait(600)))
    engine = connect(fake)
    session = Session(engine, context="x", scope="none")
    threading.Timer(0.1, session.stop).start()
    episode = session.run(progress=False)
    assert episode.status is Status.STOPPED
    assert episode.threads[0].sequence.text == "one"
    silent.set()


# llama-server


def counted(number, *, cached=0, prompt=7):
    return {"timings": {"cache_n": cached, "prompt_n": prompt, "predicted_n": number}}


def token(text, number, **more):
    """An event with the number of its token, as llama-server sends it."""
    log = [{"id": number, "token": text, "bytes": [*text.encode()]}]
    choice = {"text": text, "index": 0, "logprobs": {"content": log}, "finish_reason": None}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def progress(done, total, cached=0):
    report = {"total": total, "cache": cached, "processed": done, "time_ms": 0}
    return event(prompt_progress=report, **counted(0, cached=cached, prompt=done - cached))


def test_llama_server_gives_exact_tokens_and_says_what_it_reused(llama_fake, connect):
    engine = connect(llama_fake)
    assert engine.exact
    assert engine.tokenize("the ax") == (1000, ord(" "), ord("a"), ord("x"))
    raw = progress(4, 9, cached=4) + progress(9, 9, cached=4)
    raw += token("the", 1000, **counted(1, cached=4, prompt=5))
    raw += token(" =", 2000, **counted(2, cached=4, prompt=5))
    raw += token("> a", 2001, **counted(3, cached=4, prompt=5))
    llama_fake.replies.append(streams(raw))
    ask(engine, text="the prompt")
    calls, news = finish(engine, 0)
    assert news[0] == Prefilled(0, 4, 9)
    assert [one.token for one in news if isinstance(one, Sampled)] == [1000, 2000, 2001]
    assert calls[0].text == "the =>"
    assert calls[0].tokens == (1000, 2000, ord(">"))
    assert (calls[0].reused, calls[0].evaluated) == (4, 5 + 2)
    asked = llama_fake.asked[0]
    assert asked["prompt"] == [1000, *b" prompt"]
    assert asked["cache_prompt"] is True
    assert asked["samplers"] == ["temperature"]


def test_a_character_of_several_tokens_has_those_of_the_tokenizer(llama_fake, connect):
    raw = token("🪓", 147, **counted(4)) + token(" ", 216, **counted(5))
    raw += event("", **counted(6)) + event(finish="stop", **counted(6))
    llama_fake.replies.append(streams(raw + DONE))
    call = complete(connect(llama_fake))
    assert call.tokens == (*"🪓".encode(), 216)
    assert call.text == "🪓 "
    assert call.evaluated == 7 + 5, "the last one, which ended the text, was not evaluated"


def test_a_prompt_is_evaluated_ahead_and_its_progress_is_news(llama_fake, connect):
    engine = connect(llama_fake)
    raw = progress(2, 6, cached=2) + progress(5, 6, cached=2) + progress(6, 6, cached=2)
    llama_fake.replies.append(streams(raw + event("x", **counted(1)) + event(finish="length")))
    news = list(engine.prefill(range(6)))
    news = [one for one in news if one.done]  # before the first, a moment may pass
    assert news == [Prefilled(None, *counts) for counts in ((2, 6, 0), (5, 6, 3), (6, 6, 1))]
    assert llama_fake.asked[0]["max_tokens"] == 1
    with pytest.raises(EngineError, match=r"takes 100 tokens.* at most 100; start the server"):
        list(engine.prefill(range(100)))


def test_a_prompt_for_an_older_server_has_a_beginning_and_an_end(llama_fake, connect):
    reply = event("x", **counted(1, cached=3, prompt=3)) + event(finish="length") + DONE
    llama_fake.replies.append(streams(reply))
    news = [one for one in connect(llama_fake).prefill(range(6)) if one.done]
    assert news == [Prefilled(None, 3, 6, 0), Prefilled(None, 6, 6, 3)]


def test_a_first_batch_that_is_told_when_it_is_evaluated_was_not_in_the_cache(llama_fake, connect):
    """As llama-server did from its pull request 15827 to 18305."""
    raw = progress(4, 6) + progress(6, 6) + event(finish="length") + DONE
    llama_fake.replies.append(streams(raw))
    *_, cost = connect(llama_fake).prefill_prompt("sha", range(6))
    assert (cost.reused, cost.evaluated) == (0, 6)


@pytest.mark.parametrize(
    "raw",
    [
        progress(10**9, 6),
        progress(-1, 6),
        progress(5, 6, cached=6),
        progress(5, 6) + progress(3, 6),
        event("x", **counted(1, cached=-3)),
    ],
)
def test_counts_that_cannot_be_are_an_error(llama_fake, connect, raw):
    llama_fake.replies.append(streams(raw + event(finish="length") + DONE))
    with pytest.raises(EngineError, match="sent what no completion looks like"):
        list(connect(llama_fake).prefill(range(6)))
    llama_fake.replies.append(streams(event("x", **counted(1, prompt=-3)) + DONE))
    assert "no completion looks like" in failure(connect(llama_fake))


def test_a_session_can_be_stopped_while_the_server_reads_its_prompt(llama_fake, connect):
    begun, gone = threading.Event(), threading.Event()

    def silent(handler):
        begun.set()
        handler.head(200, {})
        with suppress(OSError):
            while True:
                handler.wfile.write(b": still here\n\n")
                time.sleep(0.005)
        gone.set()

    llama_fake.replies.append(silent)
    prompt = Prompt("one", (Example("a =>", "b#END#"),))
    session = Session(connect(llama_fake), context="Go.", prompt=prompt)
    assert isinstance(next(iter(session)), Prefilling)
    assert begun.wait(60)  # what was not sent yet is not stopped
    session.stop()
    session.run(progress=False)
    assert session.episode.status == "stopped"
    assert gone.wait(60), "the server was left to read on"


@pytest.mark.parametrize(
    "options", [{"timeout": None}, {"timeout": 0}, {"timeout": -1}, {"retries": "4"}]
)
def test_a_number_that_is_none_is_said_at_once(fake, options):
    (name,) = options
    with pytest.raises(EngineError, match=name):
        ServerEngine(fake.url, **options)
    with pytest.raises(EngineError, match="context='9'"):
        ServerEngine(fake.url, context="9")


def test_what_a_call_has_written_stays_where_its_stream_breaks(fake, connect):
    raw = event("one ") + event("two ") + b"data: {nonsense\n\n"
    fake.replies.append(streams(raw))
    session = Session(connect(fake), context="Go.")
    session.run(progress=False)
    (call,) = [e for e in session.episode.events if isinstance(e, GeneratedSpan)]
    assert (session.episode.status, call.span.text) == ("failed", "one two ")


def test_a_server_that_says_nothing_more_is_given_more_time_by_the_message(llama_fake, connect):
    def silent(handler):
        handler.head(200, {})
        handler.wfile.write(progress(0, 6))
        handler.wfile.flush()
        time.sleep(1)

    llama_fake.replies.append(silent)
    with pytest.raises(EngineError, match=r"said nothing for 0\.2 seconds; give it more"):
        list(connect(llama_fake, timeout=0.2, retries=0).prefill(range(6)))


def test_a_space_that_the_vocabulary_puts_in_front_is_no_part_of_a_continuation(
    llama_fake, connect
):
    llama_fake.spaced = True
    engine = connect(llama_fake)
    assert engine.tokenize("ax") == (*b"ax",)
    assert engine.tokenize("ax", first=True) == (*b" ax",)


def test_a_full_context_is_what_ends_the_call(llama_fake, connect):
    raw = token("a", 97, **counted(1)) + event(finish="length", **counted(1)) + DONE
    llama_fake.replies += [streams(raw), streams(raw)]
    engine = connect(llama_fake)
    engine.begin(0, [1] * 98, stops=STOPS, max_tokens=50)
    assert finish(engine, 0)[0][0].stop is Stop.CONTEXT
    assert llama_fake.asked[0]["max_tokens"] == 2
    assert complete(engine, max_tokens=50).stop is Stop.LENGTH


# Facts


def test_facts_are_plain_data_without_folders(llama_fake, fake, connect):
    for server, name in ((llama_fake, "tiny"), (fake, "gpt-fake")):
        engine = connect(server)
        facts = engine.describe()
        assert json.loads(json.dumps(facts)) == facts
        assert (engine.name, facts["url"]) == (name, server.url)
        assert "/home" not in json.dumps(facts) + repr(engine)
    assert connect(llama_fake).context_size == 100
    assert connect(fake).context_size == 4096


def test_a_server_with_several_models_wants_one_named(fake, connect):
    fake.pages["/v1/models"]["data"].append({"id": "other", "max_model_len": 77})
    with pytest.raises(EngineError, match=r"has gpt-fake, other; name the model: model="):
        connect(fake)
    assert connect(fake, model="other").context_size == 77


def test_another_name_than_the_one_model_has_is_for_llama_server_alone(fake, llama_fake, connect):
    with pytest.raises(EngineError, match="has gpt-fake and no model 'mine'; give the name"):
        connect(fake, model="mine")
    assert connect(fake, model="gpt-fake").name == "gpt-fake"
    assert connect(llama_fake, model="mine").name == "mine"


def test_a_server_that_lists_no_models_can_be_used_by_name(fake, connect):
    del fake.pages["/v1/models"]
    with pytest.raises(EngineError, match=r"no server of completions.*name the model"):
        connect(fake)
    fake.replies.append(says("a =>"))
    assert complete(connect(fake, model="mine")).text == "a =>"


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_in_v1(fake, connect, tail):
    assert connect(fake.url + tail).describe()["url"] == fake.url


# The key


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.usefixtures("key")
def test_the_key_is_sent_and_is_nowhere_else(fake, connect, tmp_path):
    fake.replies.append(says("#END#"))
    engine = connect(fake)
    path = tmp_path / "trace.jsonl"
    Session(engine, context="x", path=path).run(progress=False)
    assert {one.get("Authorization") for one in fake.headers} == {f"Bearer {KEY}"}
    assert KEY not in path.read_text() + repr(engine) + json.dumps(engine.describe())


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 429, 500])
def test_no_error_tells_the_key(fake, connect, status):
    fake.replies += [refuses(status, f"your key {KEY} ...")] * 5
    assert KEY not in failure(connect(fake))


@pytest.mark.usefixtures("key")
def test_the_key_is_not_sent_in_the_clear_to_another_machine():
    for url, sent in (
        ("http://models.example", False),
        ("https://models.example", True),
        ("http://127.0.0.1:9", True),
    ):
        client = HttpClient(url, key_name="OPENAI_API_KEY", timeout=1, retries=0, backoff=0)
        assert ("authorization" in client._client.headers) is sent
        client.close()


def test_a_password_in_the_address_is_sent_and_shown_nowhere(fake, connect):
    engine = connect(fake.url.replace("//", "//me:geheim@"))
    assert fake.headers[0]["Authorization"].startswith("Basic ")
    assert "geheim" not in repr(engine) + json.dumps(engine.describe())
    fake.replies.append(refuses(418, "not geheim"))
    assert "geheim" not in failure(engine)
    with pytest.raises(EngineError) as error:
        connect("ftp://me:geheim@host?key=geheim")
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_missing_or_wrong_is_an_error_with_the_remedy(
    fake, connect, status, monkeypatch
):
    fake.replies += [refuses(status)] * 2
    assert "put it into the environment variable OPENAI_API_KEY" in failure(connect(fake))
    monkeypatch.setenv("MY_KEY", KEY)
    message = failure(connect(fake, key_name="MY_KEY"))
    assert f"{fake.url} refuses the key in MY_KEY ({status})" in message


def test_a_wrong_key_is_noticed_at_the_start(fake, connect):
    fake.pages["/v1/models"] = refuses(401)
    with pytest.raises(EngineError, match="wants a key"):
        connect(fake)


# Trying again


@pytest.mark.parametrize(
    "fails",
    [refuses(408), refuses(429), refuses(500), refuses(503, Retry_After="0"), hangs_up],
    ids=["408", "429", "500", "503", "no answer"],
)
def test_what_may_pass_is_tried_again(fake, connect, fails):
    fake.replies += [fails, fails, says("a =>")]
    assert complete(connect(fake)).text == "a =>"
    assert len(fake.asked) == 3


@pytest.mark.slow
def test_a_pause_that_the_server_asks_for_is_kept(fake, connect):
    fake.replies += [refuses(429, Retry_After="1"), says("a =>")]
    begun = time.monotonic()
    assert complete(connect(fake)).text == "a =>"
    assert time.monotonic() - begun >= 1


def test_pauses_grow_and_differ(monkeypatch):
    client = HttpClient("http://127.0.0.1:9", key_name="X", timeout=1, retries=4, backoff=1.0)
    *waits, last = client._waits()
    assert last is None
    assert all(0.5 * 2**n <= wait <= 1.5 * 2**n for n, wait in enumerate(waits))
    assert [*client._waits()] != [*client._waits()]
    client.close()


@pytest.mark.parametrize(
    "pause",
    [
        "Wed, 21 Oct 2015 07:28:00 +99999999999999999999",
        "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
        "soon",
        "9" * 5_000,
    ],
)
def test_a_pause_that_no_clock_shows_is_no_crash(fake, connect, pause):
    fake.replies += [refuses(503, Retry_After=pause)] * 9
    assert "503" in failure(connect(fake, retries=1))


def test_a_pause_can_be_cut_short(fake, connect):
    fake.replies.append(refuses(429, Retry_After="600"))
    engine = connect(fake)
    ask(engine)
    while not fake.asked:
        time.sleep(0.01)
    assert engine.cancel(0).stop is Stop.CANCELLED
    engine.close()
    assert len(fake.asked) == 1  # as after the pause it would not have been


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refuses(429, "You exceeded insufficient_quota"), ["429", "insufficient_quota", "quota"]),
        (refuses(429, Retry_After="86400"), ["Retry-After 86400", "wait"]),
        (refuses(400, "maximum context length is 9 tokens"), ["too long", "9 tokens", "context="]),
        (refuses(404, "no model"), ["has no model 'gpt-fake'", "404", "model="]),
        (refuses(418, "teapot"), ["418", "teapot", "check"]),
    ],
    ids=["quota", "a long pause", "context", "model", "something else"],
)
def test_what_will_not_pass_is_an_error_at_once(fake, connect, reply, words):
    fake.replies.append(reply)
    message = failure(connect(fake))
    assert all(word in message for word in [fake.url, *words])
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        (refuses(429, "slow down"), ["429", "slow down"]),
        (refuses(500, "out of memory"), ["500", "out of memory", "log"]),
        (hangs_up, ["no server answers", "start one", "llama-server"]),
    ],
    ids=["429", "500", "no answer"],
)
def test_trying_again_ends(fake, connect, fails, words):
    fake.replies += [fails] * 9
    message = failure(connect(fake, retries=2))
    assert all(word in message for word in [fake.url, *words])
    assert len(fake.asked) == 3


def test_a_server_that_is_not_there_is_an_error_at_once(connect, monkeypatch):
    def sleep(seconds):
        raise AssertionError(f"a pause of {seconds} s")

    monkeypatch.setattr("thread_kit.engines.http_client.time.sleep", sleep)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(EngineError, match=rf"no server answers at http://127.0.0.1:{port} .*start"):
        connect(f"http://127.0.0.1:{port}", backoff=9.0)


def test_a_server_that_is_loading_its_model_is_waited_for(fake, connect):
    page, times = fake.pages["/v1/models"], []

    def loading(handler):
        times.append(1)
        (refuses(503, "Loading model") if len(times) < 3 else lambda h: h.answer(page))(handler)

    fake.pages["/v1/models"] = loading
    assert connect(fake).name == "gpt-fake"


@pytest.mark.parametrize("url", ["localhost:8080", "", "http://", "file:///x", "http://[", "::"])
def test_an_address_that_is_none_is_an_error_with_an_example(url, connect):
    with pytest.raises(EngineError, match=r"is no address of a server; give one such as 'http:"):
        connect(url)


def test_a_page_that_is_no_api_is_an_error(fake, connect):
    fake.pages["/v1/models"] = streams(b"<html>Welcome</html>")
    with pytest.raises(EngineError, match=r"<html>.*no OpenAI-compatible server"):
        connect(fake)


@pytest.mark.slow
def test_silence_is_an_error_that_names_the_limit(fake, connect):
    silent = threading.Event()
    fake.replies += [lambda handler: silent.wait(60)] * 2
    message = failure(connect(fake, timeout=0.5, retries=1))
    assert "said nothing for 0.5 seconds" in message
    assert "timeout=" in message
    assert len(fake.asked) == 2
    silent.set()


# Streams that break


def chunked(raw):
    """Sends a part of a chunk and closes, which HTTP can tell from an end."""

    def reply(handler):
        handler.protocol_version = "HTTP/1.1"
        handler.head(200, {"Transfer-Encoding": "chunked", "Connection": "close"})
        handler.wfile.write(b"%x\r\n" % (len(raw) + 50) + raw)
        handler.close_connection = True

    return reply


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (streams(event("one")), ["after 1 events", "before it was complete"]),
        (chunked(event("one") + event("two")), ["after 2 events", "RemoteProtocolError"]),
        (streams(event("one") + b"data: {oops\n\n"), ["'{oops' is no JSON"]),
        (streams(event("one") + b'data: ["oops"]\n\n'), ["is no event"]),
        (
            streams(event("one") + b'data: {"error": {"message": "slot died"}}\n\n'),
            ["the server says: slot died"],
        ),
        (streams(b"<html>Welcome</html>"), ["after 0 events"]),
        (
            streams(b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": null}]}\n\n'),
            ["as in a chat"],
        ),
        (streams(b'data: {"choices": [{"delta": {}, "finish_reason": "x"}]}\n\n'), ["in a chat"]),
        (streams(b'data: {"choices": [], "usage": {}}\n\ndata: [DONE]\n\n'), ["without a text"]),
        (says("x", finish="content_filter"), ["broke its text off (content_filter)"]),
        (streams(b"data: [DONE]\n\n"), ["without a text or a reason"]),
        (streams(b'data: {"choices": {"text": "x"}}\n\n'), ["no completion looks like"]),
    ],
    ids=[
        "ended",
        "cut",
        "no JSON",
        "no event",
        "an error",
        "a page",
        "a chat",
        "its end",
        "usage alone",
        "a filter",
        "nothing",
        "another shape",
    ],
)
def test_a_stream_that_breaks_is_an_error_and_not_the_end_of_a_text(fake, connect, reply, words):
    fake.replies.append(reply)
    message = failure(connect(fake))
    assert all(word in message for word in [fake.url, *words])
    assert len(fake.asked) == 1, "what was written cannot be taken back"


def test_an_error_belongs_to_its_call(fake, connect):
    engine = connect(fake)
    fake.replies += [refuses(418), says("a =>")]
    ask(engine, 0)
    while not fake.asked:
        time.sleep(0.01)
    ask(engine, 1)
    news = []
    while not any(isinstance(one, Completion) for one in news):
        news += engine.advance(1)
    assert news[-1].text == "a =>"
    with pytest.raises(EngineError, match="418"):
        engine.advance(0)


def test_no_call_begins_while_another_scheduler_goes_through_all(fake, connect):
    """A dictionary that grows while it is gone through ends the scheduler that does so."""
    engine, held = connect(fake), []

    class Calls(dict):
        def __setitem__(self, thread, call):
            held.append(engine._arrived._is_owned())
            super().__setitem__(thread, call)

    engine._running = Calls()
    fake.replies.append(says("a =>"))
    assert complete(engine).text == "a =>"
    assert held == [True]


def test_a_call_that_fails_takes_nothing_of_one_that_is_over(fake, connect):
    """Of one scheduler, which is told of both in one step."""
    engine = connect(fake)
    fake.replies += [says("done =>"), refuses(400)]
    ask(engine, 0)
    while engine._running[0].completion.stop is None:
        engine.advance(0)
    ask(engine, 1)
    while not engine._running[1].has_failed:
        time.sleep(0.01)
    with pytest.raises(EngineError, match="400"):
        engine.advance(0, 1)
    (call,) = engine.advance(0)
    assert call.text == "done =>"


def test_a_call_that_is_cancelled_keeps_what_was_handed_out_and_hangs_up(fake, connect):
    gone = threading.Event()

    def endless(handler):
        handler.head(200, {})
        with suppress(OSError):
            while True:
                handler.wfile.write(event("x "))
                time.sleep(0.005)
        gone.set()

    fake.replies.append(endless)
    engine = connect(fake, context=10**6)
    ask(engine, max_tokens=10**5)
    sampled = [engine.step()[0] for _ in range(3)]
    call = engine.cancel(0)
    assert call.tokens == tuple(one.token for one in sampled)
    assert engine.cancel(0) is None
    assert (engine.step(), engine.advance(0)) == ([], [Idle()])
    assert gone.wait(60), "the server was left to write on"


def test_a_stop_string_hangs_up(fake, connect):
    gone = threading.Event()

    def endless(handler):
        handler.head(200, {})
        with suppress(OSError):
            handler.wfile.write(event("a =>"))
            while True:
                handler.wfile.write(event("x "))
                time.sleep(0.005)
        gone.set()

    fake.replies.append(endless)
    assert complete(connect(fake)).text == "a =>"
    assert gone.wait(60)


# Misuse


def test_misuse_is_refused_as_by_every_engine(fake, connect):
    silent = threading.Event()
    fake.replies.append(lambda handler: silent.wait(60))
    engine = connect(fake)
    ask(engine)
    with pytest.raises(ValueError, match="thread 0 is generating already"):
        ask(engine)
    with pytest.raises(ValueError, match="no tokens"):
        engine.begin(1, [], stops=STOPS, max_tokens=3)
    with pytest.raises(EngineError, match="token 7 is no piece of text"):
        engine.begin(1, [7], stops=STOPS, max_tokens=3)
    engine.release(0)
    engine.release(0)
    assert engine.step() == []
    silent.set()
    with pytest.raises(EngineError, match="context=0"):
        connect(fake, context=0)


def test_a_closed_engine_says_so_and_closing_twice_does_nothing(fake, connect):
    engine = connect(fake)
    silent = threading.Event()
    fake.replies.append(lambda handler: silent.wait(60))
    ask(engine)
    engine.close()
    engine.close()
    silent.set()
    uses = (engine.step, lambda: engine.advance(0), lambda: engine.tokenize("a"))
    for use in (*uses, lambda: list(engine.prefill([1]))):
        with pytest.raises(EngineError, match="gpt-fake is closed"):
            use()
    assert not [one for one in threading.enumerate() if one.name.startswith("gpt-fake")]


# PieceTokenizer of text


@settings(deadline=None, max_examples=300)
@given(st.text() | st.text("é🪓→ =>#END\n\t\x00\u2028 abcdefghij", max_size=40))
def test_pieces_spell_every_text_and_mean_the_same_everywhere(text):
    spelled = PieceTokenizer().tokenize(text)
    assert PieceTokenizer().detokenize([token for token, _ in spelled]) == text
    assert b"".join(piece for _, piece in spelled).decode() == text
    assert all(0 < token < 2**53 for token, _ in spelled)
    assert all(len(piece) <= PieceTokenizer.SIZE for _, piece in spelled)


def test_pieces_are_about_as_many_as_a_models_tokens():
    text = "Next, I need to find the wooden axe in the shed, and then sharpen it. =>"
    assert 15 < len(PieceTokenizer().tokenize(text)) < 30


@pytest.mark.parametrize("token", [-1, 0, 1, 255, 256 + 2**10, 2**60])
def test_a_number_that_is_no_piece_is_an_error(token):
    with pytest.raises(EngineError, match=f"token {token} is no piece"):
        PieceTokenizer().detokenize([token])


# A real llama-server


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def engine(real):
    with ServerEngine(real) as one:
        yield one


@pytest.fixture(scope="module")
def here():
    from thread_kit.engines.models import load_model

    with load_model(cpu_threads=1, context=1024) as one:
        yield one


@pytest.mark.model
@needs_server
class TestLlamaServer:
    TEXT = AGENT.context("Count: one, two, three.")

    def test_it_is_known_for_what_it_is(self, engine):
        assert engine.exact
        assert engine.context_size == 1024, "two slots share 2048 tokens"
        assert engine.describe()["file"] == "SmolLM2-135M-Instruct.Q4_1.gguf"

    @pytest.mark.parametrize("text", ["", "Hi.", "é🪓→ =>", "<|im_start|>", "  \n\n x", "\x00"])
    def test_its_tokens_are_those_of_the_engine_here(self, engine, here, text):
        for first in (True, False):
            assert engine.tokenize(text, first=first) == here.tokenize(text, first=first)

    def test_it_says_what_the_engine_here_says(self, engine, here):
        # A text that can only go on in one way: elsewhere, the two builds of llama.cpp can differ.
        text = "a b c d e f g\n" * 8 + "a b"
        calls = []
        for one in (engine, here):
            ask(one, text=text, max_tokens=5)
            calls.append(finish(one, 0)[0][0])
            one.release(0)
        assert calls[0].text == calls[1].text == " c d e f g"
        assert calls[0].tokens == calls[1].tokens
        assert calls[0].stop is calls[1].stop is Stop.LENGTH
        assert calls[0].evaluated + calls[0].reused == calls[1].evaluated + calls[1].reused

    def test_stop_strings_are_kept_and_hang_up(self, engine):
        whole = complete(engine, text=self.TEXT, max_tokens=20, stops={}).text
        mark = whole[5:9]
        call = complete(engine, text=self.TEXT, max_tokens=20, stops={mark: Stop.LISTEN})
        assert call.text == whole[: whole.index(mark) + len(mark)]
        assert call.stop is Stop.LISTEN

    def test_what_was_seen_before_is_reused(self, engine):
        tokens = engine.tokenize(self.TEXT + "A new one, ", first=True)
        list(engine.prefill(tokens))
        engine.begin(0, [*tokens, *engine.tokenize("two")], stops=STOPS, max_tokens=2)
        call = finish(engine, 0)[0][0]
        assert call.reused >= len(tokens) - 1
        assert call.reused + call.evaluated == len(tokens) + 2

    def test_draws_repeat_with_their_seed(self, engine):
        def draw(seed):
            return complete(engine, text=self.TEXT, max_tokens=8, temperature=1.5, seed=seed).text

        assert draw((1,)) == draw((1,))
        assert len({draw((seed,)) for seed in range(4)}) > 1

    def test_two_threads_generate_at_once(self, engine):
        ask(engine, 0, self.TEXT, max_tokens=8, stops={})
        ask(engine, 1, self.TEXT + "Well, ", max_tokens=8, stops={})
        calls, news = finish(engine, 0, 1)
        assert all(len(call.tokens) == 8 for call in calls.values())
        order = [one.thread for one in news if isinstance(one, Sampled)]
        assert order != sorted(order), "they took turns"

    def test_a_character_of_several_tokens_is_spelled_in_full(self, engine):
        text = "Copy the signs.\n🪓é→ 🪓é→ 🪓é→\n🪓é→ 🪓é→ 🪓é→\n🪓é→ 🪓é→ 🪓"
        call = complete(engine, text=text, max_tokens=12)
        assert engine.tokenize(call.text) == call.tokens

    def test_a_context_that_is_too_long_is_refused_by_the_server_too(self, real):
        with ServerEngine(real, context=5000) as engine:
            message = failure(engine, text="one " * 1500)
        assert "too long" in message
        assert "llama-server -c" in message
