"""What the tests of sessions share: a sandbox for a module, an episode that is checked."""

from __future__ import annotations

import pytest
from helpers.episodes import is_on_disk

from thread_kit.sandbox.monty import MontySandbox
from thread_kit.trace.episode import Episode


@pytest.fixture(scope="module")
def sandbox():
    with MontySandbox(seconds=0.3) as sandbox:
        yield sandbox


@pytest.fixture
def run(start, tmp_path):
    """The episode of these replies; what is on disk has been compared with it.

    start: a module's own fixture, which makes the session.
    """

    def make(*replies: str, **options) -> Episode:
        episode = start(*replies, **options).run(progress=False)
        is_on_disk(episode, tmp_path / "episode.jsonl")
        return episode

    return make
