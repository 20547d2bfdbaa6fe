"""Requests to an OpenAI-compatible server: retries, errors that say what helps, event streams.

The key never leaves this module: it is read from the environment, sent only over https or to this
machine itself, and cut out of whatever a server says (`HttpClient.clean`) before that is shown. No
answer is read beyond a limit, and none that is compressed, which would be the way around it.
"""

from __future__ import annotations

import base64
import email.utils
import html
import ipaddress
import json
import math
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import unquote

import httpx
from httpx_sse import EventSource

from thread_kit.engines.cancel_token import CancelToken
from thread_kit.engines.engine import EngineError
from thread_kit.trace.printable import sanitize

MAX_PAUSE = 120.0
"""Seconds: a server that asks for a longer pause than this (Retry-After) is not waited for."""

MAX_ANSWER = 16 * 2**20
"""Bytes of an answer."""

MAX_ERROR = 64 * 2**10
"""Bytes of an error page that are read; what is behind them is left there."""

LOOKED_AT = 8 * 2**10
"""Characters of what a server says that are looked at for the 300 that a message shows."""

WITHOUT_EVENT = 10
"""Times `timeout` after which a request has failed that brings signs of life alone: no end of its
headers or of its answer, no event of a completion."""

MAX_STREAM = 256 * 2**20
"""Bytes of all events of one completion."""

MAX_EVENT = 2**20
"""Characters of one event; of bytes that bring none four times as many are read."""

_NO_JSON = object()


class _BoundedBody(httpx.SyncByteStream):
    """What a server sends, up to a limit in bytes; raises EngineError beyond it.

    is_error: what is beyond is left there. patience: seconds for all of it, or for the next event.
    """

    def __init__(self, body: Any, limit: int, url: str, patience: float, *, is_error: bool) -> None:
        self._body, self._limit, self._url, self._patience = body, limit, url, patience
        self._is_error = is_error
        self._deadline = time.monotonic() + patience
        self._without_event = -math.inf  # bytes; of what has no events they do not count

    def note_event(self) -> None:
        """An event has come, or events begin: the next one may take as long, and as many bytes."""
        self._deadline = time.monotonic() + self._patience
        self._without_event = 0

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._body:
            size += len(chunk)
            self._without_event += len(chunk)
            if self._without_event > 4 * MAX_EVENT:
                raise EngineError(
                    f"{self._url} sends more than {4 * MAX_EVENT / 2**20:.0f} MiB without an "
                    "event of a completion; check base_url, and the server's log"
                )
            if time.monotonic() > self._deadline:
                raise httpx.ReadTimeout("no event")
            if self._is_error and size > MAX_ERROR:
                yield chunk[: MAX_ERROR - size]
                return
            if size > self._limit:
                raise EngineError(
                    f"{self._url} sends more than {self._limit / 2**20:.0f} MiB in one answer, "
                    "which is more than any completion needs; check base_url"
                )
            yield chunk

    def close(self) -> None:
        self._body.close()


class HttpClient:
    """The way to one server.

    base_url: its address, with or without /v1.
    key_name: the environment variable that holds the key.
    timeout: seconds without a byte after which a request has failed.
    retries: how often a request is sent again where that can help (no connection, a time-out, 429,
        5xx); `backoff`: seconds before the first time, doubled each time, give or take a half.

    Raises EngineError for an address that is none, and for a key that HTTP cannot carry.
    """

    def __init__(
        self, base_url: str, *, key_name: str, timeout: float, retries: int, backoff: float
    ) -> None:
        self.key_name = key_name
        self._key = os.environ.get(key_name, "").strip()
        self._secrets = [self._key] if self._key else []
        url = self._parse_address(base_url)
        local = _is_local(url.host)
        self._withheld = bool(self._key) and url.scheme == "http" and not local
        self._timeout, self._retries, self._backoff = timeout, retries, backoff
        bare = url.copy_with(username=None, password=None, query=None, fragment=None)
        self.url = str(bare).rstrip("/").removesuffix("/v1")
        login = (url.username, url.password) if url.username else None
        if login:
            encoded = base64.b64encode(":".join(login).encode()).decode()
            self._secrets += [url.password or url.username, encoded]
        sent = self._key and not self._withheld and not login
        if sent and not (self._key.isascii() and self._key.isprintable()):
            raise EngineError(
                f"the key in {key_name} holds a line break or a character that no key has; put it "
                "there again, as the server's page shows it"
            )
        bearer = {"Authorization": f"Bearer {self._key}"} if sent else {}
        self._client = httpx.Client(
            headers={"Accept-Encoding": "identity"} | bearer,
            auth=login,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            # Each request has a connection of its own, so that ending one ends no other.
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=not local,  # a proxy leads away from this machine
        )

    def _parse_address(self, base_url: str) -> httpx.URL:
        try:
            url = httpx.URL(base_url)
        except (httpx.InvalidURL, TypeError):
            url = httpx.URL()
        host = re.fullmatch(r"[\w.:-]+", url.host)
        if url.scheme in ("http", "https") and host and 0 <= (url.port or 0) < 2**16:
            return url
        # What precedes @ is a password, what follows ? may be a key.
        shown = self.clean(re.sub(r"^.*@|[?#].*$", "", str(base_url), flags=re.DOTALL))
        raise EngineError(
            f"base_url={shown!r} is no address of a server; give one such as "
            "'http://127.0.0.1:8080' (llama-server) or 'https://api.openai.com'"
        )

    def close(self) -> None:
        self._client.close()

    def clean(self, text: str) -> str:
        """A line of at most 300 characters that can be printed, without key and password."""
        text = text[:LOOKED_AT]
        for secret in self._secrets:
            text = text.replace(secret, "***")
        bare = _unescape(text)
        if any(_unescape(secret) in bare for secret in self._secrets):
            return "(not shown: it holds the key)"
        # Of a key at the end of what was looked at a part may be left: that half is never shown.
        return sanitize(" ".join(text[: LOOKED_AT // 2].split())[:300])

    @contextmanager
    def _send(
        self, method: str, path: str, body: Any, limit: int, token: CancelToken
    ) -> Iterator[httpx.Response]:
        patience = WITHOUT_EVENT * self._timeout
        with ExitStack() as stack:
            with token.expires(patience):  # a byte now and then is no time-out of httpx
                response = stack.enter_context(
                    self._client.stream(
                        method, self.url + path, json=body, extensions={"trace": token.watch}
                    )
                )
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise EngineError(
                    f"{self.url} compresses its answers, which it was asked not to do; check "
                    "base_url, and any proxy in front of the server"
                )
            is_error = response.status_code != 200
            response.stream = _BoundedBody(
                response.stream, limit, self.url, patience, is_error=is_error
            )
            response.encoding = "utf-8"  # as JSON and events are, whatever a header says
            yield response

    # Requests that are answered at once

    def get(self, path: str, *, patient: bool = True, missing: Any = None) -> Any:
        """The JSON at a path; `missing` where there is no such path.

        patient: False gives up at once where nobody listens. Raises EngineError.
        """
        return self._fetch("GET", path, None, patient, missing)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON that answers a body; raises EngineError."""
        return self._fetch("POST", path, body, True, None)

    def _fetch(self, method: str, path: str, body: Any, patient: bool, missing: Any) -> Any:
        for wait in self._waits():
            try:
                with self._send(method, path, body, MAX_ANSWER, CancelToken()) as response:
                    response.read()
            except httpx.HTTPError as error:
                fault = self._unreachable(error)
                if not patient and isinstance(error, httpx.ConnectError):
                    raise fault from None
            else:
                if response.status_code == 200:
                    return self._read(response.text, path)
                if response.status_code == 404 and missing is not None:
                    return missing
                fault = self._refusal(response, str((body or {}).get("model", "")))
                wait = _wait(response, wait)
            if wait is None:
                raise fault from None
            time.sleep(wait)
        raise AssertionError("the last wait is None")

    def _read(self, text: str, path: str) -> Any:
        answer = _parse(text)
        if answer is _NO_JSON:
            raise EngineError(
                f"{self.url}{path} answers with {self.clean(text)[:60]!r}, which is no JSON: this "
                "is no OpenAI-compatible server; check base_url"
            )
        return answer

    # Requests that are answered bit by bit

    def stream(self, body: dict[str, Any], token: CancelToken) -> Iterator[dict[str, Any]]:
        """The events that answer a completion request, until the server's [DONE].

        Ends early, without a word, when the request is cancelled. Nothing is sent again once an
        event has come: what was written cannot be taken back. Raises EngineError.
        """
        for wait in self._waits():
            number = 0
            try:
                path = "/v1/completions"
                with self._send("POST", path, body, MAX_STREAM, token) as response:
                    # 1. Answered: events, up to the last one, or to the end of the request.
                    if response.status_code == 200:
                        for data in _events(response):
                            if data == "[DONE]" or token.is_cancelled:
                                return
                            number += 1
                            yield self._read_event(data, number)
                        if not token.is_cancelled:
                            raise self._broken("it ended before it was complete", number)
                        return
                    response.read()
            # 2. Broken: by us, in the middle, or before anything has come.
            except httpx.HTTPError as error:
                if token.is_cancelled:
                    return
                fault = self._unreachable(error)
                if number:
                    if not isinstance(error, httpx.TimeoutException):
                        fault = self._broken(type(error).__name__, number)
                    raise fault from None
            else:
                fault = self._refusal(response, str(body.get("model", "")))
                wait = _wait(response, wait)
            # 3. Again, if that can help.
            if wait is None:
                raise fault from None
            if token.sleep(wait):
                return

    def _read_event(self, data: str, number: int) -> dict[str, Any]:
        if len(data) > MAX_EVENT:
            raise self._broken(f"an event of {len(data)} characters", number)
        event = _parse(data)
        if event is _NO_JSON:
            raise self._broken(f"{self.clean(data)[:60]!r} is no JSON", number)
        if not isinstance(event, dict):
            raise self._broken(f"{self.clean(data)[:60]!r} is no event", number)
        if event.get("error"):
            raise self._broken(f"the server says: {self._message(data)}", number)
        return event

    # What goes wrong

    def _waits(self) -> Iterator[float | None]:
        """Seconds to wait after each attempt that failed; None after the last."""
        for number in range(self._retries):
            yield min(self._backoff * 2**number, 30.0) * random.uniform(0.5, 1.5)
        yield None

    def _unreachable(self, error: httpx.HTTPError) -> EngineError:
        if isinstance(error, httpx.TimeoutException) and not isinstance(
            error, httpx.ConnectTimeout
        ):
            return EngineError(
                f"{self.url} said nothing for {self._timeout:g} seconds; give it more with "
                "timeout=..., or shorten the context"
            )
        return EngineError(
            f"no server answers at {self.url} ({type(error).__name__}: {self.clean(str(error))}); "
            "start one (llama-server -m MODEL.gguf --port 8080) or correct base_url=..."
        )

    def _broken(self, why: str, number: int) -> EngineError:
        return EngineError(
            f"the stream from {self.url} broke after {number} events ({why}); see the server's "
            "log, and run the episode again"
        )

    def _refusal(self, response: httpx.Response, model: str) -> EngineError:
        status, said = response.status_code, self._message(response.text)
        if pause := response.headers.get("Retry-After"):
            said += f"; it asks for a pause: Retry-After {self.clean(pause)}"
        if status in (401, 403):  # what such an answer says can hold a part of the key
            return EngineError(self._wrong_key(status))
        if status == 404:
            return EngineError(
                f"{self.url} has no model {model!r} for completions (404: {said}); give model=... "
                f"one of {self.url}/v1/models, and none that can only chat"
            )
        if status == 429:
            return EngineError(
                f"{self.url} refuses more requests (429: {said}); wait, run fewer episodes at "
                "once, or check the account's quota"
            )
        if status in (400, 413) and re.search(r"context|too long|maximum.*tokens", said, re.I):
            return EngineError(
                f"the context is too long for {model!r} at {self.url} ({status}: {said}); shorten "
                "it, give the model's true size with context=..., or start the server with a "
                "larger one (llama-server -c)"
            )
        if status >= 500:
            return EngineError(
                f"{self.url} fails ({status}: {said}); see the server's log, or try again later"
            )
        return EngineError(
            f"{self.url} refuses the request ({status}: {said}); check base_url, model and the "
            "sampling options"
        )

    def _wrong_key(self, status: int) -> str:
        if self._withheld:
            return (
                f"{self.url} wants a key ({status}), and the one in {self.key_name} is not sent "
                "over plain http to another machine; use an https address, or an ssh tunnel"
            )
        if not self._key:
            return (
                f"{self.url} wants a key ({status}); put it into the environment variable "
                f"{self.key_name}"
            )
        return (
            f"{self.url} refuses the key in {self.key_name} ({status}); put one there that it "
            "accepts for this model"
        )

    def _message(self, text: str) -> str:
        """What a server says of an error, without the JSON around it."""
        said = _parse(text)
        for name in ("error", "detail", "message"):
            if isinstance(said, dict):
                said = said.get(name, said)
        return self.clean(said if isinstance(said, str) else text)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wait(response: httpx.Response, wait: float | None) -> float | None:
    """Seconds before a refused request is sent again; None if that cannot help."""
    status = response.status_code
    if wait is None or not (status in (408, 429) or status >= 500):
        return None
    if "insufficient_quota" in response.text:
        return None
    pause = response.headers.get("Retry-After", "").strip()
    if pause:
        seconds = _seconds(pause)
        if seconds is not None:
            return seconds if seconds <= MAX_PAUSE else None
    return wait


def _seconds(pause: str) -> float | None:
    """A Retry-After, which is a number of seconds or a date."""
    if re.fullmatch(r"\d+(\.\d+)?", pause):
        return float(pause)
    try:
        return max(email.utils.parsedate_to_datetime(pause).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):  # no date, or one that no clock shows
        return None


def _events(response: httpx.Response) -> Iterator[str]:
    """The data of server-sent events."""
    response.headers["Content-Type"] = "text/event-stream"  # which not every server says
    body = response.stream
    assert isinstance(body, _BoundedBody)
    body.note_event()
    for event in EventSource(response).iter_sse():
        if event.data:
            yield event.data
            body.note_event()


def _parse(text: str) -> Any:
    """What JSON says, or `_NO_JSON`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def _unescape(text: str) -> str:
    """Text without what JSON, Python, HTML and URLs put for a character, and without spaces."""
    text = html.unescape(unquote(text))
    text = re.sub(r"\\(?:u00|x)([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), text)
    return re.sub(r"[\\\s]", "", text)
