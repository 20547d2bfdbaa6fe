"""A server as an enemy: what it sends becomes an EngineError, bounded, and never tells the key."""

from __future__ import annotations

import base64
import gzip
import html
import json
import logging
import threading
import traceback
from contextlib import suppress
from urllib.parse import quote

import pytest
from helpers.fake_server import event, refuses, says, streams

import thread_kit as tk
from thread_kit.dialect import AGENT
from thread_kit.engines import http_client
from thread_kit.engines.engine import Completion, EngineError
from thread_kit.engines.server import ServerEngine
from thread_kit.engines.tokenizers import ServerTokenizer

KEY = 'sk-can"ary\\/0123<&>'
"""A key that JSON, Python, HTML and URLs all write in another way."""

FORMS = {
    "as it is": KEY,
    "JSON": json.dumps(KEY)[1:-1],
    "JSON, with slashes": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "code points": "".join(f"\\u{ord(c):04x}" for c in KEY),
    "repr": repr(KEY.encode()),
    "HTML": html.escape(KEY),
    "URL": quote(KEY, safe=""),
    "cut by line breaks": "\n".join(KEY),
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def connect(server, **options):
    url = server if isinstance(server, str) else server.url
    return ServerEngine(url, **({"backoff": 0.001, "timeout": 5.0, "retries": 1} | options))


def complete(engine) -> Completion:
    engine.begin(0, engine.tokenize("Prompt:"), stops=AGENT.stops, max_tokens=50)
    while True:
        for news in engine.step():
            if isinstance(news, Completion):
                return news


def assert_clean(error: BaseException, *secrets: str) -> None:
    """Nothing that an error shows, by itself or as a traceback, holds a secret in any form."""
    assert isinstance(error, EngineError)
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    shown = "\n".join(line for line in shown.splitlines() if not line.startswith("    "))
    for form in (*FORMS.values(), *secrets):
        assert form not in shown
    assert "canary" not in shown.replace("\\", "").replace('"', "")


def failure(server, **options) -> EngineError:
    """The error of a constructor, or of its first call."""
    with pytest.raises(EngineError) as error, connect(server, **options) as engine:
        complete(engine)
    return error.value


# The key


@pytest.mark.parametrize("bad", ["sk-canary\nsecond line", "sk-canary…", "sk-canary\x7f"])
def test_a_key_that_http_cannot_carry_is_an_error_that_does_not_tell_it(fake, monkeypatch, bad):
    monkeypatch.setenv("OPENAI_API_KEY", bad)
    error = failure(fake)
    assert "the key in OPENAI_API_KEY holds a line break or a character" in str(error)
    assert_clean(error, bad, repr(bad))
    assert not fake.headers, "nothing was sent"


def where_a_server_can_say_it(text: str) -> dict:
    """By name: what makes a server that says this text, wherever it can say one."""

    def page(path, answer):
        def change(server):
            server.pages[path] = answer

        return change

    def reply(answer):
        def change(server):
            server.replies += [answer] * 9

        return change

    word = text.replace("\n", " ")
    header = word.encode("latin-1", "replace").decode("latin-1")
    listed = {"data": [{"id": text}, {"id": "other"}]}
    wrong = {"timings": {"predicted_n": text}}
    return {
        "models": page("/v1/models", listed),
        "no JSON": page("/v1/models", streams(f"<html>{text}".encode())),
        "a refusal at the start": page("/v1/models", refuses(418, text)),
        "a refusal": reply(refuses(418, text)),
        "a plain refusal": reply(lambda h: (h.head(500, {}), h.wfile.write(text.encode()))),
        "no such model": reply(refuses(404, text)),
        "a pause": reply(refuses(429, "slow", Retry_After=header)),
        "an error in the stream": reply(streams(event("a") + event(error={"message": text}))),
        "no event": reply(streams(event("a") + b"data: [" + json.dumps(text).encode() + b"]\n\n")),
        "no JSON in the stream": reply(streams(b"data: {" + text.encode() + b"\n\n")),
        "no number": reply(streams(event("a", **wrong))),
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", where_a_server_can_say_it(""))
def test_no_error_tells_the_key_whatever_it_looks_like(fake, caplog, form, place):
    caplog.set_level(logging.DEBUG)
    where_a_server_can_say_it(FORMS[form])[place](fake)
    assert_clean(failure(fake))
    if "stream" not in place and place != "a pause":  # httpcore logs the headers of answers
        assert KEY not in caplog.text


@pytest.mark.parametrize("place", where_a_server_can_say_it(""))
def test_no_error_acts_on_the_console(fake, place):
    where_a_server_can_say_it("\x1b[2Jx\x9b31m\u202e")[place](fake)
    assert not {"\x1b", "\x9b", "\u202e"} & {*str(failure(fake))}


@pytest.mark.parametrize("user", ["me:gehe%40im", "gehe%40im"])
def test_no_form_of_a_login_in_the_address_is_told(fake, user):
    secrets = ["gehe@im", "gehe%40im", base64.b64encode(b"me:gehe@im").decode()]
    secrets.append(base64.b64encode(b"gehe@im:").decode())
    address = fake.url.replace("//", f"//{user}@")
    assert connect(address).tokenize("a")
    assert fake.headers[0]["Authorization"].removeprefix("Basic ") in secrets
    fake.replies.append(refuses(400, "your headers: " + ", ".join(secrets)))
    assert_clean(failure(address), *secrets)


@pytest.mark.parametrize(
    "address", [KEY, "ftp://me:geheim\n@host", "ftp://host#geheim", "http://me:geheim@host:99999"]
)
def test_an_address_that_is_none_is_shown_without_what_may_be_secret(address):
    assert_clean(failure(address), "geheim")


def test_what_a_server_calls_itself_does_not_bring_the_key_into_a_trace(llama_fake, tmp_path):
    llama_fake.pages["/v1/models"]["data"][0]["id"] = f"/models/{KEY}.gguf"
    llama_fake.pages["/props"] |= {"build_info": f"b1 {KEY}", "model_path": f"/x/{KEY}"}
    llama_fake.replies.append(says("#END#"))
    path = tmp_path / "trace.jsonl"
    with connect(llama_fake) as engine:
        tk.Session(engine, context="x", path=path).run(progress=False)
        shown = path.read_text() + repr(engine) + repr(engine.describe()) + engine.name
    for form in FORMS.values():
        assert form not in shown


# What is no answer


def deep(size: int = 10**5) -> bytes:
    return b"[" * size + b"]" * size


@pytest.mark.parametrize(
    "models",
    [
        {"data": 5},
        {"data": {"id": "a"}},
        {"data": [5, {"id": 5}, {"id": ""}, None]},
        streams(deep()),
        streams(b"\xff\xfe"),
        lambda h: (h.head(200, {"Content-Encoding": "gzip"}), h.wfile.write(b"no gzip")),
        lambda h: (h.head(200, {"Content-Encoding": "gzip"}), h.wfile.write(gzip.compress(b"{}"))),
        lambda h: (h.head(200, {"Content-Type": "text/plain; charset=hex"}), h.wfile.write(b"zz")),
    ],
    ids=["a number", "a dict", "no models", "deep", "no text", "bad gzip", "gzip", "charset"],
)
def test_models_that_are_none_are_an_engine_error(fake, models):
    fake.pages["/v1/models"] = models
    assert fake.url in str(failure(fake))


@pytest.mark.parametrize("settings", [None, 5, [], {}, {"n_ctx": True}, {"n_ctx": -5}])
def test_properties_that_are_none_leave_what_is_assumed(llama_fake, settings):
    llama_fake.pages["/props"]["default_generation_settings"] = settings
    with connect(llama_fake) as engine:
        assert engine.context_size == 4096
        assert engine.exact is isinstance(settings, dict)


@pytest.mark.parametrize("size", [True, -1, 0, 1e9, "9", None])
def test_a_context_that_is_no_number_of_tokens_is_not_believed(fake, size):
    fake.pages["/v1/models"]["data"][0]["max_model_len"] = size
    with connect(fake) as engine:
        assert engine.context_size == 4096


@pytest.mark.parametrize(
    "data",
    [
        {"prompt_progress": {}},
        {"prompt_progress": 5},
        {"prompt_progress": {"processed": "x"}},
        {"prompt_progress": {"processed": float("inf")}},
        {"timings": {"cache_n": "x"}},
        {"timings": []},
        {"choices": 5},
    ],
    ids=["empty", "number", "no number", "infinity", "text", "list", "no choices"],
)
def test_malformed_progress_of_a_prompt_is_an_engine_error(llama_fake, data):
    llama_fake.replies.append(streams(b"data: " + json.dumps(data).encode() + b"\n\n"))
    with connect(llama_fake) as engine, pytest.raises(EngineError, match=llama_fake.url):
        list(engine.prefill(range(6)))


@pytest.mark.parametrize(
    "token",
    [
        {"id": 1, "piece": 3_000_000_000},
        {"id": 1, "piece": [300]},
        {"id": float("inf"), "piece": "a"},
        {"id": "x", "piece": "a"},
        {"piece": "a"},
        5,
    ],
)
def test_tokens_that_are_none_are_an_engine_error(token):
    class Client:
        url = "http://x"

        def post(self, path, body):
            return {"tokens": [token]}

    with pytest.raises(EngineError, match="does not answer as llama-server does"):
        ServerTokenizer(Client())


def test_a_token_of_three_billion_bytes_is_not_made(llama_fake):
    log = {"content": [{"id": 7, "bytes": 3_000_000_000}]}
    choice = {"text": "a", "logprobs": log, "finish_reason": "stop"}
    data = json.dumps({"choices": [choice], "timings": {"predicted_n": 1}})
    llama_fake.replies.append(streams(f"data: {data}\n\n".encode()))
    with connect(llama_fake) as engine:
        assert complete(engine).tokens == (ord("a"),)


# What does not end


def endless(chunk: bytes, status: int = 200, headers: dict | None = None):
    def reply(handler):
        handler.head(status, headers or {"Content-Type": "text/event-stream"})
        try:
            while True:
                handler.wfile.write(chunk)
        except OSError:
            pass  # the client has gone

    return reply


@pytest.fixture
def small(monkeypatch):
    for name, size in {"MAX_ANSWER": 10**5, "MAX_STREAM": 10**6, "MAX_EVENT": 10**4}.items():
        monkeypatch.setattr(http_client, name, size)


@pytest.mark.usefixtures("small")
def test_an_endless_list_of_models_is_an_error(fake):
    fake.pages["/v1/models"] = endless(b" " * 1000)
    assert "sends more than 0 MiB in one answer" in str(failure(fake))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("status", [200, 418, 500])
def test_an_endless_page_instead_of_a_completion_is_an_error(fake, status):
    fake.replies.append(endless(b"x" * 1000, status))
    said = "without an event of a completion" if status == 200 else f"({status}: xxx"
    assert said in str(failure(fake, retries=0))


@pytest.mark.usefixtures("small")
def test_an_event_of_any_size_is_an_error(fake):
    fake.replies.append(streams(event("x" * 20_000)))
    assert "an event of 2" in str(failure(fake))


def test_a_server_that_writes_on_is_not_read_beyond_what_was_asked_for(fake):
    fake.replies.append(endless(event("x ")))
    with connect(fake) as engine:
        engine.begin(0, engine.tokenize("Prompt:"), stops=AGENT.stops, max_tokens=5)
        worker = engine._running[0].worker
        worker.join(60)
        assert not worker.is_alive(), "it reads on, while nobody takes what it has read"
        assert len(engine._running[0].news) <= 6


def test_of_an_error_page_no_more_is_read_than_a_message_can_show(fake, monkeypatch):
    """Sixty megabytes of HTML's escapes took 38 s and 2 GB to clean."""
    sent = []

    def endless(handler):
        handler.head(400, {})
        for _ in range(1000):
            sent.append(handler.wfile.write(b"&amp;%41x" * 10_000))

    fake.replies += [endless]
    looked_at = []
    unescape = http_client._unescape
    monkeypatch.setattr(http_client, "_unescape", lambda t: looked_at.append(len(t)) or unescape(t))
    assert "refuses the request (400: &amp;%41x" in str(failure(fake))
    assert max(looked_at) <= 8 * 2**10
    assert sum(sent) < 50 * 2**20


@pytest.mark.parametrize("before", [100, 8 * 2**10 - 172, 8 * 2**10 - 20, 8 * 2**10 - 5, 20_000])
def test_a_key_that_a_long_page_is_cut_in_is_not_shown(fake, before):
    fake.replies += [lambda handler: (handler.head(400, {}), handler.wfile.write(page))] * 8
    for form in FORMS.values():
        page = b"no" + b" " * before + form.encode()
        error = failure(fake, retries=0)
        assert "(400: " in str(error)
        assert_clean(error)


@pytest.mark.parametrize("number", [-5, 10**30])
def test_numbers_with_which_no_trace_can_be_read_are_an_error(llama_fake, number):
    said = event("a", timings={"predicted_n": number, "prompt_n": 1})
    llama_fake.replies += [streams(said)]
    assert f"ValueError('{number} is no number from 0 to" in str(failure(llama_fake))


@pytest.mark.usefixtures("small")
def test_an_event_of_many_lines_is_an_error(fake):
    fake.replies.append(endless(b"data:ab\n"))
    assert "without an event of a completion" in str(failure(fake))


@pytest.mark.parametrize("path", ["/v1/models", "/v1/completions"])
@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    ],
)
def test_a_byte_now_and_then_is_no_answer(fake, monkeypatch, path, head, drop):
    monkeypatch.setattr(http_client, "WITHOUT_EVENT", 0.1)
    stop = threading.Event()

    def drips(handler):
        handler.wfile.write(head)
        with suppress(OSError):
            while not stop.wait(0.05):
                handler.wfile.write(drop)
                handler.wfile.flush()

    if path == "/v1/models":
        fake.pages[path] = drips
    else:
        fake.replies += [drips]
    error = failure(fake, retries=0, timeout=5.0)
    stop.set()
    assert "said nothing for 5 seconds" in str(error)


@pytest.mark.parametrize("sign", [b": ping\n\n", b"event: ping\n\n"])
def test_signs_of_life_are_no_event(fake, monkeypatch, sign):
    monkeypatch.setattr(http_client, "WITHOUT_EVENT", 0.05)
    stop = []

    def pings(handler):
        handler.head(200, {"Content-Type": "text/event-stream"})
        while not stop:
            handler.wfile.write(sign)
            handler.wfile.flush()

    fake.replies += [pings]
    error = failure(fake, retries=0, timeout=2.0)
    stop.append(True)
    assert "said nothing for 2 seconds" in str(error)
