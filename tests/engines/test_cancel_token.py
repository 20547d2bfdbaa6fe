"""What breaks off a request: when it is cancelled, and when its time is over."""

from __future__ import annotations

import socket
import time

import pytest

from thread_kit.engines.cancel_token import CancelToken


class Opened:
    """A connection, as httpx tells of it."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def get_extra_info(self, name: str) -> socket.socket:
        return self.end


def test_a_connection_that_is_made_when_its_time_is_over_is_broken_off():
    ours, theirs = socket.socketpair()
    token = CancelToken()
    with ours, theirs, token.expires(0.01):
        time.sleep(0.3)  # before there is a connection
        token.watch("connection.connect_tcp.complete", {"return_value": Opened(ours)})
        assert theirs.recv(1) == b""


def test_what_has_come_in_time_is_not_broken_off():
    ours, theirs = socket.socketpair()
    token = CancelToken()
    with ours, theirs:
        with token.expires(60):
            token.watch("connection.connect_tcp.complete", {"return_value": Opened(ours)})
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"
        token.cancel()
        assert theirs.recv(1) == b""


def test_another_error_stays_what_it_is():
    with pytest.raises(ValueError, match="no header"), CancelToken().expires(60):
        raise ValueError("no header")
