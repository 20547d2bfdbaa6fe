"""Figures as answers (THREAD paper, Figure 8): from the jail into the trace and the HTML view."""

from __future__ import annotations

import base64
import json
import re

import pytest
from helpers.frames import fold, strip_details, view_as_json

from thread_kit.dialect import QA
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Pictured, from_json, to_json
from thread_kit.views.html import episode_html
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.text import thread_text

REPLIES = (
    "A figure of the data is shown below: =>",
    "figure, axes = plt.subplots(figsize=(2, 1))\naxes.plot([1, 2], [3, 4])\n"
    "figure_path = save(figure)\nprint('{figure_path}')\n#END#",
    "\n# > print(1 + 1) =>",
    "\nprint('done')\n#END#",
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "trace.jsonl"
    with BubblewrapSandbox() as sandbox:
        session = Session(
            ScriptedEngine(REPLIES), context="Draw it.", dialect=QA, sandbox=sandbox, path=path
        )
        return session.run(progress=False), path


@pytest.mark.jail
def test_a_thread_returns_a_picture_and_the_trace_stores_it(saved):
    episode, path = saved
    assert episode.threads[0].sequence.spans[1].text == "{figure_path}<="
    ((name, png),) = episode.pictures.items()
    assert episode.threads[0].variables["figure_path"] == name
    assert base64.b64decode(png).startswith(b"\x89PNG")
    assert Episode.load(path).pictures == episode.pictures


@pytest.mark.jail
def test_the_html_view_shows_it_once_and_tells_where_in_the_threads_that_have_it(saved):
    episode, _ = saved
    ((path, png),) = episode.pictures.items()
    html = episode_html(episode)
    assert html.count(f"data:image/png;base64,{png}") == 1
    assert f"{path}: shown with thread 0" in html
    assert "not executed" not in html


@pytest.mark.jail
def test_the_frames_hold_it_once_in_each_thread_that_has_it(saved):
    episode, _ = saved
    recorder = FrameRecorder(episode)
    state = json.loads(json.dumps(recorder.about["start"]))
    for frame in recorder.frames:
        fold(state, frame)
    assert strip_details(state) == view_as_json(episode)
    assert json.dumps(recorder.frames).count(*episode.pictures.values()) == len(episode.threads)


@pytest.mark.jail
def test_an_action_of_code_is_shown_with_what_it_printed(saved):
    assert re.search(r"# > print\(1 \+ 1\) =>\nobserved +┆ 2<=", thread_text(saved[0], 0))


def test_the_event_reads_back_as_it_was_written():
    event = Pictured(1, "/scratch/a.png", "aGk=")
    assert from_json(to_json(event)) == event
