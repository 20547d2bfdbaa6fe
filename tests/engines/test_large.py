"""A capable model on a real task; set THREAD_KIT_LARGE_MODEL to its GGUF file."""

import os

import pytest

from thread_kit.engines.models import load_model
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.prompts import load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session


@pytest.mark.large
def test_a_capable_model_solves_a_task_of_two_steps_by_spawning(tmp_path):
    engine = load_model(os.environ["THREAD_KIT_LARGE_MODEL"])
    session = Session(
        engine,
        TextCraft("dev", 18),
        prompt=load_prompt("textcraft"),
        path=tmp_path / "episode.jsonl",
    )
    episode = session.run()
    engine.close()
    assert (episode.status, episode.reward) == (Status.ENDED, 1.0)
    assert episode.depth >= 3
    distinct = len(episode.prompt(0)) + sum(
        len(one.context) + len(one.sequence) for one in episode.threads.values()
    )
    assert episode.usage.evaluated <= distinct, "no token may be evaluated twice"
