"""Servers that say what they are told to say."""

from __future__ import annotations

import pytest
from helpers.fake_server import Fake, llama


@pytest.fixture
def fake():
    server = Fake()
    yield server
    server.close()


@pytest.fixture
def llama_fake():
    server = llama()
    yield server
    server.close()
