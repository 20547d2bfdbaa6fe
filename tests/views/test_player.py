"""The player: its frames, its messages, and its Python side."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import programs
from helpers.episodes import REPLIES, session
from helpers.frames import fold, strip_details, view_as_json
from helpers.random_episodes import play
from hypothesis import given, settings
from hypothesis import strategies as st
from ipywidgets import Widget

import thread_kit as tk
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.exchange import phi_full_sequence, psi_full_sequence, psi_print
from thread_kit.methods.adapt import adapt
from thread_kit.prompts import load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, Prompted, Returned, Spawned, Token
from thread_kit.views.export_html import render_page, save_page
from thread_kit.views.html import episode_html
from thread_kit.views.narration import list_events
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.player.throttle import INTERVAL, Throttle
from thread_kit.views.player.widget import Player, watch
from thread_kit.views.view_model import name_exchange

# Frames


def fold_all(recorder: FrameRecorder) -> dict[str, Any]:
    """The state behind all frames."""
    state = json.loads(json.dumps(recorder.about["start"]))
    for frame in recorder.frames:
        fold(state, frame)
    return state


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["exported", "shared"]))
def test_the_frames_fold_into_the_view_of_the_episode_at_each_event(seed, futures, scope):
    running = play(seed, futures, scope="exported" if futures else scope)
    recorder = FrameRecorder(running.episode)
    state = json.loads(json.dumps(recorder.about["start"]))
    for event in running:
        for frame in json.loads(json.dumps(recorder.add(event))):
            fold(state, frame)
        if not event.passing:
            assert strip_details(state) == view_as_json(running.episode)
    # A recorded episode has the same frames.
    assert fold_all(FrameRecorder(running.episode)) == state


def test_frames_show_each_token_once_and_are_no_larger_than_a_few_times_the_episode():
    episode = session().run(progress=False)
    recorder = FrameRecorder(episode)
    text = "".join(frame["token"] for frame in recorder.frames if "token" in frame)
    assert text == "".join(e.span.text for e in episode.events if isinstance(e, GeneratedSpan))
    assert len(json.dumps(recorder.frames)) < 12 * len(json.dumps(view_as_json(episode)))


def test_variables_are_in_frames_once_each_and_not_again_with_each_line():
    sizes = []
    for lines in (50, 200):
        text = "".join(f"x{n} = {'y' * 200!r}\nprint(x{n})\n" for n in range(lines))
        engine = ScriptedEngine([f"{text}#END#"])
        episode = Session(engine, context="go", new_tokens=10**6).run(progress=False)
        recorder = FrameRecorder(episode)
        assert strip_details(fold_all(recorder)) == view_as_json(episode)
        sizes.append(len(json.dumps([one for one in recorder.frames if "event" in one])))
    assert sizes[1] < 5 * sizes[0]


def test_what_a_child_that_broke_off_or_failed_gives_back_is_described_as_that():
    cut = Session(ScriptedEngine(["go on =>", "#END#"]), context="go", depth=0)
    failed = Session(ScriptedEngine(["go on =>", "y = 1 / 0\n#END#", "#END#"]), context="go")
    said = []
    for running in (cut, failed):
        episode = running.run(progress=False)
        said += [text for text in tk.list_events(episode) if "stands in thread 0" in text]
    at = next(n for n, e in enumerate(failed.episode.events) if isinstance(e, Returned))
    edited = failed.fork(at, engine=ScriptedEngine(["#END#"]), returned="yes").run(progress=False)
    said += [text for text in tk.list_events(edited) if "stands in thread 0" in text]
    for text, start in zip(
        said,
        (
            "Thread 1 did not end by itself",
            "A line of thread 1 failed",
            "What a person has written",
        ),
        strict=True,
    ):
        assert start in text


def test_each_event_is_described_and_so_is_what_phi_and_psi_did():
    frames = FrameRecorder(session().run(progress=False)).frames
    descriptions = [frame["description"] for frame in frames if "description" in frame]
    assert all(descriptions)
    assert any("behind its first comma: “I need to find the axe.”" in text for text in descriptions)
    assert any(
        text.startswith("psi takes what the last print of thread 2") for text in descriptions
    )
    assert any("failed in thread 1: “NameError" in text for text in descriptions)


def test_what_a_fork_repeats_was_made_by_what_was_phi_and_psi_then():
    first = session()
    first.run(progress=False)
    at = next(n for n, event in enumerate(first.episode.events) if isinstance(event, Returned)) + 1
    engine = ScriptedEngine(["Then, I need a rest. =>", *["#END#"] * 9])
    fork = first.fork(at, engine=engine, phi=phi_full_sequence, psi=psi_full_sequence)
    episode = fork.run(progress=False)
    before, after = (
        [line for line in list_events(episode)[part] if "phi makes its context" in line]
        for part in (slice(at), slice(at, None))
    )
    assert before
    assert all("behind its first comma" in line for line in before)
    assert after
    assert all("has in its sequence" in line for line in after)
    frames = [frame for frame in FrameRecorder(episode).frames if "description" in frame]
    for frame, line in zip(frames, list_events(episode), strict=True):
        assert line.startswith(f"{frame['event']} ")
        assert line.endswith(frame["description"])
    assert name_exchange(episode, "psi", at - 1) == "psi_print"
    assert name_exchange(episode, "psi", at) == "psi_full_sequence"


def test_a_prompt_that_a_fork_pays_for_in_its_midst_moves_nothing():
    """A fork goes on by another engine: what is repeated comes first, and then its prompt."""

    def find_returns(session: Session) -> list[int]:
        return [n for n, event in enumerate(session.episode.events) if isinstance(event, Returned)]

    script = ["I need one. =>", "#END#"] * 3 + ["#END#"] * 9
    session = Session(ScriptedEngine(script), prompt=load_prompt("textcraft"), context="go =>")
    session.run(progress=False)
    at = find_returns(session)[0] + 1
    session = session.fork(at, engine=ScriptedEngine(script), psi=psi_full_sequence)
    session.run(progress=False)
    at = find_returns(session)[-1] + 1
    session = session.fork(at, engine=ScriptedEngine(script), psi=psi_print)
    session.run(progress=False)
    events = session.episode.events
    assert any(isinstance(event, Prompted) for event in events[at // 2 :])
    psis = [name_exchange(session.episode, "psi", number) for number in find_returns(session)]
    assert psis == [
        "psi_print",
        *["psi_full_sequence"] * (len([n for n in find_returns(session) if n < at]) - 1),
        *["psi_print"] * len([n for n in find_returns(session) if n >= at]),
    ]


def test_a_piece_keeps_the_text_that_the_model_read_where_it_cannot_be_shown():
    running = tk.Session(ScriptedEngine(["a\x1bb =>", "#END#", "#END#"]), context="go")
    piece = fold_all(FrameRecorder(running.run(progress=False)))["threads"]["0"]["sequence"][0]
    assert (piece["text"], piece["exact"]) == ("a␛b =>", "a\x1bb =>")


# Messages


class Clock:
    """A time that stands until it is told to go on, and what was asked to be called later."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.waiting.append((self.now + seconds, call))

    def go(self, seconds: float) -> None:
        self.now += seconds
        due = [call for when, call in self.waiting if when <= self.now]
        self.waiting = [call for call in self.waiting if call[0] > self.now]
        for call in due:
            call()


def test_at_most_ten_messages_a_second_and_nothing_is_lost():
    clock, sent, times = Clock(), [], []
    throttle = Throttle(
        lambda message: (sent.append(message), times.append(clock.now)),
        clock=clock,
        later=clock.later,
    )
    for number in range(1000):  # a thousand tokens in five seconds, in two episodes
        throttle.add(number % 2, [{"token": number}], now=number)
        clock.go(0.005)
    assert len(sent) <= 10 * 5
    assert min(b - a for a, b in pairwise(times)) >= INTERVAL - 1e-9
    clock.go(INTERVAL)
    assert [message["n"] for message in sent] == list(range(1, len(sent) + 1))
    for track in (0, 1):
        parts = [m["tracks"][str(track)] for m in sent if str(track) in m["tracks"]]
        frames = [frame["token"] for part in parts for frame in part["frames"]]
        assert frames == list(range(track, 1000, 2))
        assert parts[-1]["now"] == 998 + track


# The widget


def messages_of(player: Player) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    player.send = lambda content, buffers=None: messages.append(  # type: ignore[method-assign]
        json.loads(json.dumps(content))
    )
    return messages


def snapshot(player: Player) -> dict[str, Any]:
    return json.loads(player.get_state("snapshot")["snapshot"])


def test_what_all_threads_share_is_in_a_frame_once():
    sizes = []
    for children in (20, 60):
        replies = [r for n in range(children) for r in (f"child {n} =>", f"x{n} = {n}\n#END#")]
        engine = ScriptedEngine([*replies, "#END#"])
        player = watch(Session(engine, context="go =>", scope="shared", calls=200))
        assert len(player.wait(60).threads) == children + 1
        sizes.append(len(player.snapshot_json()))
    assert sizes[1] < 5 * sizes[0]  # with their square, and not with their cube


def test_the_messages_of_a_player_fold_into_the_last_state_of_the_episode():
    player = watch(session())
    assert repr(player) == "Player(0 threads, depth 0, 0 tokens generated, not started)"
    messages = messages_of(player)
    state = snapshot(player)["tracks"][0]["about"]["start"]
    episode = player.wait(60)
    assert repr(player) == "Player(4 threads, depth 2, 266 tokens generated, ended)"
    for message in messages:
        for frame in message["tracks"]["0"]["frames"]:
            fold(state, frame)
    assert strip_details(state) == view_as_json(episode)
    assert messages[-1]["tracks"]["0"]["now"]["phase"] == "over"
    # A page that is opened only now:
    late = snapshot(player)
    assert late["n"] == len(messages)
    assert late["tracks"][0]["frames"] == [
        frame for message in messages for frame in message["tracks"]["0"]["frames"]
    ]


def test_a_session_that_has_begun_is_shown_from_its_beginning():
    running = session()
    for event in running:
        if isinstance(event, Spawned) and event.parent is not None:
            break
    player = watch(running)
    episode = player.wait(60)
    assert strip_details(fold_all(player._tracks[0].recorder)) == view_as_json(episode)


def test_an_error_of_the_session_is_shown():
    player = watch(session(REPLIES[:2]))
    assert "the script is over" in player.wait(60).detail
    track = snapshot(player)["tracks"][0]
    assert track["now"]["error"].startswith("EngineError: the script is over")
    state = fold_all(player._tracks[0].recorder)
    assert state["status"] == state["threads"]["0"]["status"] == "failed"
    assert repr(player) == "Player(2 threads, depth 1, 63 tokens generated, failed)"


def test_a_saved_notebook_holds_a_stable_form_and_in_the_end_the_episode():
    player = watch(session())
    assert "needs a running kernel" in player.static
    assert "not started" in repr(player)
    episode = player.wait(60)
    assert episode_html(episode) in player.static


def test_the_page_pauses_goes_on_and_stops():
    player = Player(session())
    messages = messages_of(player)
    ask = lambda **message: player._on_message(player, message, [])  # noqa: E731
    ask(do="pause", track=0)  # before the first event: it stays there
    ask(shown=0)
    assert player.wait(0.2).status is Status.GENERATING
    assert len(player.episode.events) <= 1
    ask(do="stop", track=0)
    assert player.wait(60).status is Status.STOPPED
    assert repr(player).endswith("stopped)")
    assert messages[-1]["tracks"]["0"]["now"]["phase"] == "over"


@pytest.mark.parametrize(
    ("unit", "is_there"),
    [
        ("token", lambda event: isinstance(event, Token) or not event.passing),
        ("event", lambda event: not event.passing),
        ("thread", lambda event: type(event).__name__ in ("Spawned", "Ended")),
        ("spawn", lambda event: isinstance(event, Spawned)),
    ],
)
def test_a_step_goes_as_far_as_its_unit_and_waits_there(unit, is_there):
    ends = [number for number, event in enumerate(session()) if is_there(event)]
    running = session()
    taken: list[Any] = []
    player = watch(running, paused=True)
    messages_of(player)
    take = player._tracks[0].worker._on_event
    player._tracks[0].worker._on_event = lambda event: (taken.append(event), take(event))
    for end in ends[:6]:
        player.step(unit)
        wait_for(lambda: player._tracks[0].now["phase"] == "paused")
        assert len(taken) == end + 1
    assert player.wait().status is Status.ENDED


def test_a_step_that_there_is_not_plays_nothing():
    player = watch(session(), paused=True)
    with pytest.raises(ValueError, match="no step 'tokens'; choose one of token, event"):
        player.step("tokens")
    assert player._tracks[0].now["phase"] == "not started"
    player.close()


def wait_for(is_there: Callable[[], bool]) -> None:
    import time

    end = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_view_that_missed_something_gets_everything():
    player = Player(session())
    player.wait(60)
    sent: list[str] = []
    player.send_state = sent.append  # type: ignore[method-assign]
    player._on_message(player, {"shown": player._throttle.sent}, [])
    assert sent == []
    player._on_message(player, {"shown": 0}, [])
    assert sent == ["snapshot"]


def test_no_message_overtakes_what_a_view_has_asked_for():
    """It would be one too early for that view, which would ask again, and so on."""
    player = Player(session())
    player.wait(60)
    lock, could = player._throttle.lock, []

    def send(name: str) -> None:
        other = threading.Thread(target=lambda: could.append(lock.acquire(blocking=False)))
        other.start()
        other.join()

    player.send_state = send  # type: ignore[method-assign]
    player._on_message(player, {"shown": 0}, [])
    assert could == [False]


def test_the_page_forks_with_a_change_and_shows_the_fork_beside_the_original():
    running = tk.Session(
        ScriptedEngine(["a = 1\nSo, I need {a}. =>", "print('x')\n#END#", "#END#", "Ah.\n#END#"]),
        context="go",
    )
    player = watch(running)
    messages = messages_of(player)
    episode = player.wait(60)
    at = next(n for n, event in enumerate(episode.events) if isinstance(event, GeneratedSpan))
    changes = {"token": 6, "text": "Oh, ", "temperature": 0.5, "psi": "psi_full_sequence"}
    player._on_message(player, {"do": "fork", "track": 0, "at": at, "changes": changes}, [])
    fork = player.wait(60, of=1)
    assert [fork] == player.forks
    assert fork.threads[0].sequence.text == "a = 1\nOh, Ah.\n#END#"
    assert fork.header["exchange"]["psi"] == "psi_full_sequence"
    assert fork.header["sampling"]["temperature"] == 0.5
    assert repr(player).endswith("ended, 1 fork)")
    track = next(m["tracks"]["1"] for m in messages if "1" in m["tracks"])
    assert track["parent"] == 0
    assert track["about"]["fork"]["event"] == at
    assert player.static.count("<b>Fork 1, from event") == 1


def test_what_cannot_be_done_is_said_to_the_page():
    player = watch(session())
    player.wait(60)
    ask = lambda **message: player._on_message(player, message, [])  # noqa: E731
    for at, changes, words in (
        (999, {}, "no such event"),
        (4, {"variables": {"tool": "not a value"}}, "is no value as Python writes it"),
    ):
        ask(do="fork", track=0, at=at, changes=changes)
        assert words in player._tracks[0].now["notice"]
    assert player.forks == []


def test_a_saved_episode_is_watched_and_forked_with_a_model_that_is_given(tmp_path):
    script = ScriptedEngine(["One, two. =>", "print('x')\n#END#", "#END#"])
    path = tk.Session(script, context="go").run(progress=False).save(tmp_path / "e.jsonl")
    saved = Episode.load(path)
    assert repr(watch(saved)) == repr(watch(saved)).replace("not started", "")
    with pytest.raises(ValueError, match=r"give one, and where .* tk\.watch"):
        watch(saved).fork(1, token=0)
    player = watch(saved, engines={"mine": ScriptedEngine(["No.\n#END#"])})
    messages_of(player)
    player.fork(1, token=4)
    assert player.wait(60, of=1).threads[0].sequence.text == "One,No.\n#END#"


def test_a_session_that_is_paused_leaves_its_threads_in_the_saved_notebook():
    player = watch(session())
    messages_of(player)
    for _ in range(2):
        player.step("spawn")
        wait_for(lambda: player._tracks[0].now["phase"] == "paused")
    assert "it needs a running kernel" in player.static
    assert episode_html(player.episode) in player.static
    player.stop()
    player.wait()


NOTEBOOKS = sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))
WIDGETS = ("tk.watch(", "CompareWidget(", "Reviewer(")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_run_all_leaves_a_widget_its_model_and_its_files(path):
    """A model that a widget plays with stays open, and its verdicts are in no scratch folder."""
    book = json.loads(path.read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    with_widget = [cell for cell in cells if any(widget in cell for widget in WIDGETS)]
    for cell in with_widget:
        assert "TemporaryDirectory" not in cell
        assert ".name" not in cell
    plays = [cell for cell in with_widget if "Reviewer(" not in cell]
    if plays:
        assert not [cell for cell in cells if ".close()" in cell]


# Without a kernel


def test_a_page_holds_the_whole_episode_and_no_text_can_leave_its_element():
    running = tk.Session(ScriptedEngine(["</script><b>x =>", "#END#", "#END#"]), context="go")
    text = render_page(running.run(progress=False))
    data = text.partition('id="snapshot">')[2].partition("</script>")[0]
    recording = json.loads(data)
    assert recording["offline"] is True
    assert "</script><b>x =>" in "".join(
        f.get("token", "") for f in recording["tracks"][0]["frames"]
    )
    assert "http" not in text.replace("http://www.w3.org/", "")


def test_a_page_leaves_no_widget_behind():
    episode = session().run(progress=False)
    before = set(Widget.get_manager_state()["state"])
    render_page(episode)
    assert set(Widget.get_manager_state()["state"]) == before


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    episode = session().run(progress=False)
    assert save_page(episode, path) == path
    before = path.read_text("utf-8")

    def fail(self, text, **options):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    with pytest.raises(OSError, match="No space left"):
        save_page(episode, path)
    assert path.read_text("utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_exact_prompt_is_kept_where_it_cannot_be_shown():
    header = {"prompts": {"p": {"name": "p", "text": "a\x1bb", "tokens": [1]}}}
    prompt = FrameRecorder(Episode(header)).about["prompts"]["p"]
    assert (prompt["text"], prompt["exact"]) == ("a␛b", "a\x1bb")


def test_of_another_method_nothing_is_said_of_phi_and_psi():
    """ADaPT says itself what its children are given."""
    replies = [programs.NO, "Step 1: open.\n#END#", "> open =>"]
    episode = programs.play(partial(adapt, planner=programs.PLANNER), replies)
    frames = FrameRecorder(episode)
    said = " ".join(frame.get("description", "") for frame in frames.frames)
    assert "Its context is “" in said
    assert not re.search(r"\b(phi|psi)\b", said)
    assert frames.about["exchange"] == {}


@pytest.mark.parametrize(
    ("scope", "gets"),
    [
        ("exported", "gets a copy of 1 variable"),
        ("shared", "shares 1 variable with it"),
        ("own", "begins without its variables"),
        ("none", "it sees nothing else."),
    ],
)
def test_what_a_child_gets_of_its_parent_depends_on_the_scope(scope, gets):
    replies = ["tool = 'axe'\nI need to find it. =>", "print('Here.')\n#END#", "#END#"]
    one = Session(ScriptedEngine(replies), context="Chop. =>", scope=scope)
    said = [frame.get("description", "") for frame in FrameRecorder(one.run(progress=False)).frames]
    assert any(gets in text for text in said)


@pytest.mark.parametrize(
    ("scope", "gets"),
    [
        ("exported", "gets a copy of 2 variables"),
        ("shared", "shares 2 variables with it"),
        ("own", "begins without its variables, but for the environment's"),
        ("none", "it sees nothing else."),
    ],
)
def test_variables_of_the_environment_are_in_the_trace_from_the_start(scope, gets, tmp_path):
    env = tk.TextCraft("dev", 0)
    replies = ["tool = 'axe'\nI need to find it. =>", "print('Here.')\n#END#", "#END#"]
    live = Session(ScriptedEngine(replies), env, scope=scope).run(progress=False)
    episode = Episode.load(live.save(tmp_path / "one.jsonl"))
    expected = {} if scope == "none" else {"commands": list(env.commands)}
    assert episode.at_first == expected
    assert expected.items() <= episode.threads[0].variables.items()
    assert ("commands" in episode.threads[1].variables) == bool(expected)
    said = [frame.get("description", "") for frame in FrameRecorder(episode).frames]
    assert said[0].endswith("The environment gives it the variables commands.") == bool(expected)
    assert any(gets in text for text in said)
