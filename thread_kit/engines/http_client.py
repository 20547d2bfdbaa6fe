"""Requests to an OpenAI-compatible server: retries, errors that say what helps, event streams.

The key never leaves this module: it is read from the environment, sent only over https or to this
machine itself, and cut out of whatever a server says before that becomes an error.
"""

from __future__ import annotations

import email.utils
import ipaddress
import json
import os
import random
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import httpx

from thread_kit.engines.engine import EngineError

PATIENCE = 120.0
"""Seconds: a server that asks for a longer pause than this (Retry-After) is not waited for."""


class Exchange:
    """One request under way; `end` breaks it off, from any thread."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._socket: Any = None

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def watch(self, name: str, info: dict[str, Any]) -> None:
        """Told by httpx of each step of the request: a step that opens a connection returns it."""
        opened: Any = info.get("return_value")
        if hasattr(opened, "get_extra_info"):
            self._socket = opened.get_extra_info("socket")
            if self.over:
                self.end()

    def end(self) -> None:
        self._over.set()
        if self._socket is not None:
            with suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def pause(self, seconds: float) -> bool:
        """Wait, but not beyond the end; whether it came."""
        return self._over.wait(seconds)


class Wire:
    """The way to one server.

    base_url: its address, with or without /v1.
    key_name: the environment variable that holds the key.
    timeout: seconds without a byte after which a request has failed.
    retries: how often a request is sent again where that can help (no connection, a time-out, 429,
        5xx); `backoff`: seconds before the first time, doubled each time, give or take a half.

    Raises EngineError for an address that is none.
    """

    def __init__(
        self, base_url: str, *, key_name: str, timeout: float, retries: int, backoff: float
    ) -> None:
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not re.fullmatch(r"[\w.:-]+", url.host):
            # What precedes @ is a password, what follows ? may be a key.
            shown = re.sub(r"^.*@|\?.*$", "", base_url)
            raise EngineError(
                f"base_url={shown!r} is no address of a server; give one such as "
                "'http://127.0.0.1:8080' (llama-server) or 'https://api.openai.com'"
            )
        local = _is_local(url.host)
        self.key_name = key_name
        self._key = os.environ.get(key_name, "").strip()
        self._withheld = bool(self._key) and url.scheme == "http" and not local
        self._timeout, self._retries, self._backoff = timeout, retries, backoff
        bare = url.copy_with(username=None, password=None, query=None, fragment=None)
        self.url = str(bare).rstrip("/").removesuffix("/v1")
        login = (url.username, url.password) if url.username else None
        self._secrets = [secret for secret in (self._key, url.password) if secret]
        sent = self._key and not self._withheld and not login
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"} if sent else {},
            auth=login,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            # Each request has a connection of its own, so that ending one ends no other.
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=not local,  # a proxy leads away from this machine
        )

    def close(self) -> None:
        self._client.close()

    # Requests that are answered at once

    def get(self, path: str, *, patient: bool = True, missing: Any = None) -> Any:
        """The JSON at a path; `missing` where there is no such path.

        patient: False gives up at once where nobody listens. Raises EngineError.
        """
        return self._answer("GET", path, None, patient, missing)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON that answers a body; raises EngineError."""
        return self._answer("POST", path, body, True, None)

    def _answer(self, method: str, path: str, body: Any, patient: bool, missing: Any) -> Any:
        for wait in self._waits():
            try:
                response = self._client.request(method, self.url + path, json=body)
            except httpx.TransportError as error:
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
        try:
            return json.loads(text)
        except ValueError:
            raise EngineError(
                f"{self.url}{path} answers with {self._clean(text)[:60]!r}, which is no JSON: this "
                "is no OpenAI-compatible server; check base_url"
            ) from None

    # Requests that are answered bit by bit

    def stream(self, body: dict[str, Any], exchange: Exchange) -> Iterator[dict[str, Any]]:
        """The events that answer a completion request, until the server's [DONE].

        Ends early, without a word, when the exchange is ended. Nothing is sent again once an event
        has come: what was written cannot be taken back. Raises EngineError.
        """
        for wait in self._waits():
            number = 0
            try:
                with self._client.stream(
                    "POST",
                    f"{self.url}/v1/completions",
                    json=body,
                    extensions={"trace": exchange.watch},
                ) as response:
                    if response.status_code == 200:
                        for data in _events(response.iter_bytes()):
                            if data == "[DONE]" or exchange.over:
                                return
                            number += 1
                            yield self._event(data, number)
                        if not exchange.over:
                            raise self._broken("it ended before it was complete", number)
                        return
                    response.read()
            except httpx.TransportError as error:
                if exchange.over:
                    return
                if number:
                    raise self._broken(type(error).__name__, number) from None
                fault = self._unreachable(error)
            else:
                fault = self._refusal(response, str(body.get("model", "")))
                wait = _wait(response, wait)
            if wait is None:
                raise fault from None
            if exchange.pause(wait):
                return

    def _event(self, data: str, number: int) -> dict[str, Any]:
        try:
            event = json.loads(data)
        except ValueError:
            raise self._broken(f"{self._clean(data)[:60]!r} is no JSON", number) from None
        if not isinstance(event, dict):
            raise self._broken(f"{self._clean(data)[:60]!r} is no event", number)
        if event.get("error"):
            raise self._broken(f"the server says: {self._message(data)}", number)
        return event

    # What goes wrong

    def _waits(self) -> Iterator[float | None]:
        """Seconds to wait after each attempt that failed; None after the last."""
        for number in range(self._retries):
            yield min(self._backoff * 2**number, 30.0) * random.uniform(0.5, 1.5)
        yield None

    def _unreachable(self, error: httpx.TransportError) -> EngineError:
        if isinstance(error, httpx.TimeoutException) and not isinstance(
            error, httpx.ConnectTimeout
        ):
            return EngineError(
                f"{self.url} said nothing for {self._timeout:g} seconds; give it more with "
                "timeout=..., or shorten the context"
            )
        return EngineError(
            f"no server answers at {self.url} ({type(error).__name__}: {self._clean(str(error))}); "
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
            said += f"; it asks for a pause: Retry-After {self._clean(pause)}"
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
        said: Any = text
        with suppress(ValueError):
            said = json.loads(text)
        for name in ("error", "detail", "message"):
            if isinstance(said, dict):
                said = said.get(name, said)
        return self._clean(said if isinstance(said, str) else json.dumps(said))

    def _clean(self, text: str) -> str:
        """One line of at most 300 characters, without the key or a password."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())[:300]


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
    asked = response.headers.get("Retry-After", "").strip()
    if asked:
        seconds = _seconds(asked)
        if seconds is not None:
            return seconds if seconds <= PATIENCE else None
    return wait


def _seconds(asked: str) -> float | None:
    """A Retry-After, which is a number of seconds or a date."""
    if re.fullmatch(r"\d+(\.\d+)?", asked):
        return float(asked)
    try:
        return max(email.utils.parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def _events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of server-sent events.

    Lines end at a line feed only: `iter_lines` would also cut at characters such as U+2028, which
    stand unescaped in the JSON that a model's text is sent in.
    """
    rest, data = b"", []
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r").decode("utf-8", "replace")
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                yield "\n".join(data)
                data = []
