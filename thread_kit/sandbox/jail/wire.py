"""Frames between the host, the jail's server and the process of one line of code.

A frame is a JSON object and a run of bytes, with the length of both in front. The process of a
line is not trusted, so a frame is read only up to a number of bytes, and JSON is parsed by the host
alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import struct
import time
from typing import Any

HEAD = struct.Struct("<IQ")  # bytes of the JSON text, bytes of the rest


class FrameError(Exception):
    """No frame: the other side is gone, it is too late, or the frame is too large."""


def pack(message: dict[str, Any], rest: bytes = b"") -> bytes:
    """A frame as bytes."""
    text = json.dumps(message).encode()
    return HEAD.pack(len(text), len(rest)) + text + rest


def name_file(data: bytes, ending: str) -> str:
    """The name of a saved file, from its content: nothing else has it, and a replay finds it."""
    return f"{hashlib.sha256(data).hexdigest()[:10]}.{ending}"


def send(to: int, frame: bytes, deadline: float | None = None) -> None:
    """Write a whole frame to a file descriptor, until `deadline` (of `time.monotonic`).

    Raises OSError if nobody reads it any more, FrameError "late" if nobody does so in time.
    """
    os.set_blocking(to, deadline is None)
    view = memoryview(frame)
    while view:
        _wait(to, select.POLLOUT, deadline)
        view = view[os.write(to, view) :]


def receive(of: int, limit: int | None = None, deadline: float | None = None) -> bytes:
    """Read a whole frame of at most `limit` bytes, until `deadline` (of `time.monotonic`).

    Raises FrameError: "gone", "late" or "large".
    """
    head = _read(of, HEAD.size, deadline)
    length = sum(HEAD.unpack(head))
    if limit is not None and length > limit:
        raise FrameError("large")
    return head + _read(of, length, deadline)


def unpack(frame: bytes, limit: int | None = None) -> tuple[dict[str, Any], bytes]:
    """What `pack` was given; raises ValueError for anything else.

    limit: bytes of the JSON text, which takes many times its length where it is parsed.
    """
    text, _ = HEAD.unpack_from(frame)
    if limit is not None and text > limit:
        raise ValueError(f"a message of more than {limit:,} bytes")
    try:
        message = json.loads(frame[HEAD.size : HEAD.size + text])
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(message, dict):
        raise ValueError("no JSON object")
    return message, frame[HEAD.size + text :]


def _read(of: int, length: int, deadline: float | None) -> bytes:
    parts = []
    while length:
        _wait(of, select.POLLIN, deadline)
        part = os.read(of, min(length, 2**20))
        if not part:
            raise FrameError("gone")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _wait(of: int, event: int, deadline: float | None) -> None:
    """Wait until there is something to read, or room to write."""
    if deadline is None:
        return
    poll = select.poll()  # unlike `select`, for any number of open files
    poll.register(of, event)
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(1000 * left):
        raise FrameError("late")
