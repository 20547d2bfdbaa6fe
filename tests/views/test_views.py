"""The view model of an episode, its text and its HTML."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from helpers.checker import check
from helpers.episodes import REPLIES, chain, session, span
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import Stop
from thread_kit.engines.engine import EngineError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.errors.first_error import find_first_error
from thread_kit.methods.react import react
from thread_kit.requests import Status
from thread_kit.sequence import Provenance
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, TraceError
from thread_kit.trace.events import (
    Acted,
    Closed,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Pictured,
    Restarted,
    Returned,
    Spawned,
)
from thread_kit.trace.shipped import open_episode
from thread_kit.views import palette
from thread_kit.views.formatting import sanitize
from thread_kit.views.html import TEXT, episode_html
from thread_kit.views.narration import describe_event, list_events
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.plot import supplemental_work_figure, usage_figure
from thread_kit.views.text import episode_text, read_text, thread_text
from thread_kit.views.tree_image import save_picture
from thread_kit.views.view_model import VALUE, Branch, view_episode


@pytest.fixture(scope="module")
def episode() -> Episode:
    return session().run(progress=False)


# Text


def test_the_tree_in_text(episode):
    assert episode_text(episode, width=100) == (
        """\
0 ended  Sharpen the axe.                                 generated  99 · evaluated 177 · reused 414
├─ 1 ended  I need to find the axe.                       generated 103 · evaluated 200 · reused 364
│  ├─ > open shed  =>  You open shed.
│  ├─ 2 ended  I need to look in the shed.                generated  39 · evaluated  96 · reused  55
│  └─ ! NameError: name 'nothing' is not defined  in  x = nothing
└─ 3 end of stream  I need to sharpen it.                 generated  25 · evaluated  77 · reused  55
   └─ ! the model ended its text without the end mark
ended · reward 0.5 · 4 threads · depth 2 · 8 calls · generated 266 · evaluated 550 · reused 888
few-shot prompt two: 55 tokens"""
    )


def test_one_thread_in_text(episode):
    assert thread_text(episode, 1) == (
        """\
Thread 1, depth 1, ended: I need to find the axe.
few-shot    │ (two: 55 tokens)
context     │ Prompt:
            │ I need to find the axe. =>
            │
            │ Response:
            │ #START#
generated   │ > open shed =>
observed    ┆ You open shed.<=
generated   │ x = nothing
            │ Next, I need to look in the shed. =>
spawned     │ (thread 2, ended: I need to look in the shed.)
returned 2  ┆ The shed holds a {tool}.<=
generated   │ print('The {tool} is in the shed.')
            │ #END#
variable    │ tool = 'axe'
error       │ NameError: name 'nothing' is not defined  in  x = nothing
3 calls · generated 103 · evaluated 200 · reused 364 · by threads below 39"""
    )


@pytest.mark.parametrize("said", ["> jump =>", "> jump\n#END#", "> jump"])
def test_an_action_that_nobody_executed_says_so(said):
    replies = ScriptedEngine([said, "Task failed!#END#"])
    running = Session(replies, context="Jump. =>", program=react)
    text = str(running.run(progress=False))
    assert "> jump (not executed)  =>  There is no environment to act in.<=" in text


def test_lines_keep_to_their_width_and_say_that_they_are_cut():
    running = Session(ScriptedEngine(["#END#"]), context="word " * 100)
    episode = running.run(progress=False)
    first = episode_text(episode).splitlines()[0]
    assert len(first) <= 92
    assert "…  generated 5 · " in first


def test_siblings_that_are_cut_differ_in_what_is_left():
    asks = [
        f"I need to check the cabinet {n} of the kitchen for a cloth or for a pan." for n in (1, 2)
    ]
    replies = [
        f"{asks[0]} =>",
        "print('No.')\n#END#",
        f"{asks[1]} =>",
        "print('No.')\n#END#",
        "#END#",
    ]
    episode = Session(ScriptedEngine(replies), context="Find it.").run(progress=False)
    first, second = (
        line
        for line in episode_text(episode).splitlines()
        if "1 ended" in line or "2 ended" in line
    )
    assert "1 ended  … 1 of the kitchen for" in first
    assert "2 ended  … 2 of the kitchen for" in second
    assert max(len(first), len(second)) <= 92
    assert asks[0] in episode_text(episode, width=200)


def test_two_hundred_levels_stay_readable():
    lines = episode_text(chain(200)).splitlines()
    assert max(map(len, lines)) <= 92
    deepest = lines[199]
    assert "[depth 199] 199 generating  l" in deepest
    assert deepest.endswith("reused 0")


def test_an_empty_episode_has_every_view():
    empty = Episode({})
    assert str(empty) == (
        "generating · reward none · 0 threads · depth 0 · 0 calls\n"
        "generated 0 · evaluated 0 · reused 0"
    )
    assert "0 threads" in episode_html(empty)
    assert len(usage_figure(empty).data) == 3
    with pytest.raises(KeyError):
        supplemental_work_figure(empty)


# The model


def test_a_child_stands_where_it_was_spawned_before_what_it_returned(episode):
    sequence = view_episode(episode).threads[1].sequence
    shape = [
        f"branch {item.branch}" if isinstance(item, Branch) else (str(item.provenance), item.child)
        for item in sequence
    ]
    assert shape == [
        ("generated", None),
        ("observed", None),
        ("generated", None),
        "branch 2",
        ("returned", 2),
        ("generated", None),
    ]


def test_work_below_is_what_the_trace_says(episode):
    assert view_episode(episode).work == {
        number: sum(below.usage.generated for below in episode.subtree(number)[1:])
        for number in episode.threads
    }


def test_a_long_value_says_how_much_was_cut():
    running = Session(ScriptedEngine(["x = 'a' * 3000\n#END#"]), context="go")
    view = view_episode(running.run(progress=False))
    ((name, value),) = view.threads[0].variables
    assert name == "x"
    assert value.endswith(f" … ({3002 - VALUE:,} more characters)")


def test_text_cannot_act_on_a_terminal_or_turn_a_line_round():
    assert sanitize("a\tb\n\x1b[2J\x00\r\x9b\u202e\ud800é") == "a\tb\n␛[2J␀␍\ufffd\ufffd\ufffdé"


def test_a_picture_of_codes_that_xml_cannot_hold_can_be_read(tmp_path):
    episode = Session(ScriptedEngine(["#END#"]), context="a\ufffe\uffff").run(progress=False)
    ElementTree.parse(save_picture(episode, tmp_path / "tree.svg"))


# HTML


def test_html_says_in_words_what_it_shows_in_colours(episode):
    checked = check(episode._repr_html_())
    for words in (
        "generated (39)",
        "returned by thread 2 (",
        "observed (",
        "context (",
        "few-shot prompt two: 55 tokens, read first by every thread",
        "end of stream",
        "NameError: name 'nothing' is not defined",
        "tool'axe'",
    ):
        assert words in checked.text.replace("\n", "")


def test_a_child_is_nested_before_what_it_returned(episode):
    html = episode._repr_html_()
    spawned = html.index("I need to look in the shed. =&gt;")
    child = html.index("<b>2</b>")
    returned = html.index("returned by thread 2")
    assert spawned < child < returned


def test_html_shows_supplemental_work_where_it_came_in(episode):
    text = check(episode_html(episode)).text
    for number in episode.threads:
        work = episode.supplemental_work(number)
        for child, (start, stop) in episode.threads[number].returned.items():
            if stop > start:
                place = f"tokens {start:,} to {stop - 1:,}, returned by thread {child}"
                assert f"{place}{work[start]:,} tokens" in text
    assert "supplemental work" not in check(episode_html(chain(2))).text, "nothing came back yet"


def test_html_is_folded_but_for_the_main_thread_and_what_failed():
    assert [line[0] for line in check(session().run(progress=False)._repr_html_()).open] == [
        "0",
        "l",  # lines that failed
    ]
    cut = session((*REPLIES[:3], "print('The shed " + "x" * 200), new_tokens=100)
    cut.run(progress=False)
    assert isinstance(cut.error, EngineError)
    opened = check(cut.episode._repr_html_()).open
    assert [line.split()[:2] for line in opened if line[0].isdigit()] == [
        ["0", "failed"],
        ["1", "failed"],
        ["2", "truncated"],
    ]


def test_html_of_a_deep_tree_is_no_deeper_than_browsers_go():
    html = episode_html(chain(200))
    checked = check(html)
    assert "Thread 40 is shown below." in checked.text
    depth = deepest = 0
    for part in html.split("<")[1:]:
        depth += -1 if part.startswith("/") else 1
        deepest = max(deepest, depth)
    assert deepest < 400


def test_html_says_how_much_it_cut():
    running = Session(ScriptedEngine(["#END#"]), context="x" * (TEXT + 1000))
    assert "more characters)" in episode_html(running.run(progress=False))


CHARACTERS = list("<>&\"'/\\`{}=#\n\r\t\x00\x1b\u202e\ud800é😀")
HOSTILE = st.text(st.sampled_from(CHARACTERS), min_size=1, max_size=30) | st.sampled_from(
    ["<script>alert(1)</script>", "</pre></details><img src=x onerror=a>", "<!--", "]]>"]
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_nothing_that_a_model_or_an_environment_says_becomes_markup(first, second, third):
    context = span(Provenance.CONTEXT, f"Prompt:\n{first}\n\nResponse:\n")
    hostile = Episode(
        {
            "model": {"name": first},
            "environment": second,
            "dialect": {"listen": "=>"},
            "prompts": {"p": {"name": first, "text": second, "tokens": [1]}},
        }
    )
    events: list[Event] = [
        Spawned(0, None, 0, context, "p"),
        GeneratedSpan(0, span(Provenance.GENERATED, second), Stop.LISTEN, 0, 1, 0.0),
        ExecutedLine(0, first, second, third, {first: second, second: {third: [first]}}),
        Acted(0, first, second, 0.0, False, False, {}),
        Observed(0, span(Provenance.OBSERVED, third)),
        Observed(0, span(Provenance.OBSERVED, first)),
        Spawned(1, 0, 0, context, "p"),
        Ended(1, Status.FAILED, second),
        Returned(0, 1, span(Provenance.RETURNED, first), {}),
        Ended(0, Status.ENDED, ""),
        Closed(Status.ENDED, 1.0, third, 0.0),
    ]
    for event in events:
        hostile.add(event)
    checked = check(hostile._repr_html_())
    assert sanitize(first).strip("\n") in checked.text
    text = str(hostile) + thread_text(hostile, 0)
    assert not set(text) & set(map(chr, [*range(9), *range(11, 32), 0x7F, 0x202E]))
    text.encode()
    json.dumps(FrameRecorder(hostile).frames, ensure_ascii=False).encode()
    supplemental_work_figure(hostile).to_json().encode()


ODD = [  # the event (None: the header), where in it, and what stands there instead
    (None, ("prompts", "p"), 5),
    (None, ("prompts", "p", "text"), 10**400),
    (None, ("prompts", "p", "tokens"), float("nan")),
    (None, ("prompts",), ["p"]),
    (None, ("exchange",), float("nan")),
    (None, ("exchange",), {"phi": [1], "psi": {"{x}": "{0"}}),
    (None, ("sampling",), {"temperature": float("inf")}),
    (None, ("sampling",), None),
    (None, ("environment",), [[]]),
    (None, ("model",), None),
    ("acted", ("reward",), 10**400),
    ("acted", ("reward",), float("nan")),
    ("closed", ("reward",), -(10**400)),
]
LOADS = [
    (None, ("exchange",), {}),
    (None, ("sampling",), {}),
    (None, ("model",), {}),
    (None, ("environment",), "x\x1b[2J"),
    (None, ("prompts", "p", "tokens"), []),
    ("acted", ("reward",), 1e308),
    ("closed", ("reward",), None),
]


def write_odd(kind: str | None, path: tuple[str, ...], value: Any) -> list[str]:
    """The lines of an episode with this value in that place."""
    episode = session().run(progress=False)
    lines = [json.loads(line) for line in episode.to_lines()]
    prompts = lines[0]["prompts"]
    lines[0]["prompts"] = {**prompts, "p": {"name": "p", "text": "x", "tokens": [1]}}
    place = next(line for line in lines if line.get("event") == kind)
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return [*map(json.dumps, lines)]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_what_no_view_could_show_is_refused(odd):
    with pytest.raises(TraceError):
        Episode.from_lines(write_odd(*odd), name="odd", torn=False)


@pytest.mark.parametrize("odd", LOADS, ids=range(len(LOADS)))
def test_whatever_loads_can_be_shown(odd):
    odd = Episode.from_lines(write_odd(*odd), name="odd", torn=False)
    assert "Sharpen the axe." in str(odd)
    assert all(thread_text(odd, number) for number in odd.threads)
    check(episode_html(odd))
    assert find_first_error(odd)
    supplemental_work_figure(odd).to_json()
    assert usage_figure(odd).to_json()
    recorder = FrameRecorder(odd)
    json.dumps([recorder.about, recorder.frames], allow_nan=False)


def test_what_a_model_has_read_is_safe_to_print():
    running = Session(ScriptedEngine(["a\x1b]0;title\x07 =>", "#END#", "#END#"]), context="go")
    episode = running.run(progress=False)
    assert "\x1b" in episode.seen(0)
    assert "go" in read_text(episode, 0)
    assert "a␛]0;title␇ =>" in read_text(episode, 0)
    with pytest.raises(KeyError):
        read_text(episode, 5)


# Colours


def test_no_two_provenances_share_a_colour_and_each_status_has_one():
    assert len(set(palette.PROVENANCE.values())) == len(Provenance)
    assert set(palette.STATUS) == set(Status)
    css = palette.css()
    assert ".tk-few-shot { --tk-colour: #999999; }" in css
    assert ".tk-out-of-context {" in css


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_picture_shows_every_thread_and_is_the_same_each_time(kind, tmp_path):
    episode = session().run(progress=False)
    first, second = (save_picture(episode, tmp_path / f"{n}.{kind}") for n in "ab")
    assert first.read_bytes() == second.read_bytes()
    if kind == "svg":
        text = "".join(ElementTree.parse(first).getroot().itertext())
        for thread in view_episode(episode).threads.values():
            assert f"{thread.id}  {thread.label}" in text
        view = view_episode(episode)
        assert f"{view.status} · {view.totals}" in text


@pytest.mark.slow
def test_a_picture_takes_any_text_and_any_depth(tmp_path):
    episode = chain(200)
    context = span(Provenance.CONTEXT, "Prompt:\n$x^2$ <&> \x1b[2J \ud800 =>\n\nResponse:\n")
    episode.add(Spawned(200, 0, 0, context, ""))
    file = save_picture(episode, tmp_path / "deep" / "tree.svg")
    text = "".join(ElementTree.parse(file).getroot().itertext())
    assert "199  level 199" in text
    assert "200  $x^2$ <&>" in text


def test_a_picture_of_another_kind_or_of_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.svg, \.pdf, \.png"):
        save_picture(session().run(progress=False), tmp_path / "tree.gif")
    with pytest.raises(ValueError, match="no thread to draw"):
        save_picture(Episode({}), tmp_path / "tree.svg")


# Events in words


def test_every_event_has_a_number_and_a_sentence():
    """A method that begins again says so: "choose one of these" is what forks ask for."""
    for name in ("blue-ice-lats", "blue-ice-reflexion"):
        episode = open_episode(name)
        lines = list_events(episode)
        assert len(lines) == len(episode.events)
        for number, (line, event) in enumerate(zip(lines, episode.events, strict=True)):
            assert re.match(rf"{number} {type(event).__name__}: \w.+\.$", line, re.DOTALL), line
        assert any(isinstance(event, Restarted) for event in episode.events)
    assert (
        describe_event(episode, Pictured(0, "a.png", ""), 0)
        == "Thread 0 saves the picture “a.png”."
    )
