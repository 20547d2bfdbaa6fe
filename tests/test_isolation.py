"""The tests' own guard (conftest.py): no other machine, and folders of their own."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest


def test_other_machines_cannot_be_reached():
    # Connecting a datagram socket sends nothing, nor does looking up a numeric host.
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened,
        pytest.raises(pytest.fail.Exception, match="is not this machine"),
    ):
        opened.connect(("192.0.2.1", 9))
    with pytest.raises(pytest.fail.Exception, match="is not this machine"):
        socket.getaddrinfo("kit.invalid", 80, flags=socket.AI_NUMERICHOST)
    with (
        socket.socket() as opened,
        pytest.raises(pytest.fail.Exception, match="is not this machine"),
    ):
        opened.bind(("", 0))


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(("localhost", server.getsockname()[1]))
        assert client.getpeername() == server.getsockname()
    left, right = socket.socketpair()
    left.close()
    right.close()


def test_tests_have_a_cache_and_a_models_folder_of_their_own(tmp_path_factory):
    for name in ("THREAD_KIT_CACHE", "THREAD_KIT_MODELS"):
        assert Path(os.environ[name]).is_relative_to(tmp_path_factory.getbasetemp())
    assert not Path(os.environ["THREAD_KIT_MODELS"]).exists()
    cache = Path(os.environ["THREAD_KIT_CACHE"])
    assert sorted(path.name for path in cache.iterdir()) == ["hashes", "weights"]  # are shared
    assert not Path(os.environ["HF_HOME"]).is_relative_to(Path.home() / ".cache")
