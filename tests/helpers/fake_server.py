"""A small server that speaks OpenAI's completions, or llama-server's, and says what it is told."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Handler"], None]


def event(text: str = "", finish: str | None = None, **more: Any) -> bytes:
    """One server-sent event of a completion; characters are left as they are."""
    data = {"choices": [{"text": text, "index": 0, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def written(*texts: str, finish: str = "stop") -> bytes:
    """A whole completion, one event for each text."""
    return b"".join(map(event, texts)) + event(finish=finish) + DONE


def streams(raw: bytes, size: int | None = None, end: Callable[[], Any] | None = None) -> Reply:
    """Sends these bytes, `size` at a time, and calls `end` before the connection is closed."""

    def reply(handler: Handler) -> None:
        handler.head(200, {"Content-Type": "text/event-stream"})
        for at in range(0, len(raw), size or max(len(raw), 1)):
            handler.wfile.write(raw[at : at + (size or len(raw))])
            handler.wfile.flush()
        if end:
            end()

    return reply


def says(*texts: str, finish: str = "stop") -> Reply:
    return streams(written(*texts, finish=finish))


def refuses(status: int, message: str = "no", **headers: str) -> Reply:
    """Answers with an error; a header's name has _ for -."""

    def reply(handler: Handler) -> None:
        body = json.dumps({"error": {"message": message, "code": status}}).encode()
        handler.head(status, {name.replace("_", "-"): value for name, value in headers.items()})
        handler.wfile.write(body)

    return reply


def hangs_up(handler: Handler) -> None:
    """Closes the connection without a word."""
    handler.connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    server: Fake  # type: ignore[assignment]
    body: dict[str, Any]

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, data: Any) -> None:
        self.head(200, {"Content-Type": "application/json"})
        self.wfile.write(json.dumps(data).encode())

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.headers.append(dict(self.headers))
        answer = self.server.pages.get(self.path)
        if callable(answer):
            answer(self)
        elif answer is None:
            refuses(404, "no such page")(self)
        else:
            self.answer(answer)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.append(self.path)
        if self.path == "/tokenize":
            return self.answer(tokenized(body["content"], self.server.spaced))
        self.server.headers.append(dict(self.headers))
        self.server.asked.append(body)
        self.body = body
        self.server.replies.popleft()(self)
        return None

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def tokenized(text: str, spaced: bool) -> dict[str, Any]:
    """Bytes as tokens; "the" is one token (1000). `spaced`: with a space in front of everything."""
    raw, tokens, at = (" " * spaced + text).encode(), [], 0
    while at < len(raw):
        if raw.startswith(b"the", at):
            tokens.append({"id": 1000, "piece": "the"})
            at += 3
        else:
            piece = chr(raw[at]) if raw[at] < 128 else [raw[at]]
            tokens.append({"id": raw[at], "piece": piece})
            at += 1
    return {"tokens": tokens}


class Fake(ThreadingHTTPServer):
    """replies: one for each completion that is asked for. asked: the bodies, in order."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, model: str = "gpt-fake", **facts: Any) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, Any] = {"/v1/models": {"data": [{"id": model, **facts}]}}
        self.replies: deque[Reply] = deque()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.spaced = False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that has gone, which is what the tests are about

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


def llama(context: int = 100) -> Fake:
    """One that says it is llama-server."""
    fake = Fake("/models/models/tiny.gguf", owned_by="llamacpp")
    fake.pages["/props"] = {
        "default_generation_settings": {"n_ctx": context},
        "model_path": "/models/models/tiny.gguf",
        "build_info": "b1-fake",
    }
    return fake
