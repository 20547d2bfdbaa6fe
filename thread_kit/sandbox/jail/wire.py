"""Frames between the host, the jail's server and the process of one line of code.

A frame is a JSON object and a run of bytes, with the length of both in front. The process of a
line is not trusted, so a frame is read only up to a number of bytes, and JSON is parsed by the host
alone.
"""

from __future__ import annotations

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


def send(to: int, frame: bytes) -> None:
    """Write a whole frame to a file descriptor; raises OSError if nobody reads it."""
    view = memoryview(frame)
    while view:
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


def unpack(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """What `pack` was given; raises ValueError for anything else."""
    text, _ = HEAD.unpack_from(frame)
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
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([of], [], [], left)[0]:
                raise FrameError("late")
        part = os.read(of, min(length, 2**20))
        if not part:
            raise FrameError("gone")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
