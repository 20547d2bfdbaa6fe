"""The player in a real JupyterLab; where there is no Chromium, these are skipped."""

from __future__ import annotations

import json
import re

import pytest
from helpers.bare_page import call_module, show_player
from helpers.frames import strip_details, view_as_json
from helpers.jupyter import CONTRAST, Notebook, write_notebook
from playwright.sync_api import expect

from thread_kit.dialect import ASYNC
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.methods.react import react
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.events import GeneratedSpan, Token, Waiting
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.player.widget import CSS, watch

pytestmark = pytest.mark.browser

SESSION = """\
import time
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.session.session import Session
from thread_kit.views.player.widget import watch

class Slow(ScriptedEngine):
    def step(self):
        time.sleep(0.002)
        return super().step()

replies = [
    "tool = 'axe <b>&amp;</b>'\\nFirst, I need to find the {tool}. =>",
    "places = ['shed', 'barn']\\nNext, I need to look in the shed. =>",
    "print('The shed holds a {tool}.')\\n#END#",
    "> open shed =>",
    "print('The {tool} is in the shed.')\\n#END#",
    "Then, I need to sharpen it. =>",
    "This will take a while, because",
    "print('Done.')\\n#END#",
]
session = Session(Slow(replies), context="Sharpen the axe. =>")
player = watch(session)
player"""


BUSY = """\
from pathlib import Path
import time
from IPython.display import display
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.session.session import Session
from thread_kit.views.player.widget import watch

class Gated(ScriptedEngine):
    steps = 0

    def step(self):
        self.steps += 1
        while self.steps == 50 and not Path("go").exists():
            time.sleep(0.01)
        return super().step()

replies = ["First, I need to find it. =>", "I am writing this while the kernel is busy.", "#END#"]
player = watch(Session(Gated(replies), context="Sharpen the axe. =>"))
display(player)
print(player.wait())"""

ENDLESS = """\
import time
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.session.session import Session
from thread_kit.views.player.widget import watch

class Slow(ScriptedEngine):
    def step(self):
        time.sleep(0.01)
        return super().step()

session = Session(Slow(["on and " * 100_000]), context="Go on. =>", new_tokens=1_000_000)
player = watch(session)
player"""


@pytest.fixture(scope="module")
def lab(lab):
    notebooks = {
        "watch": [SESSION, "player.wait(60)", "player", "print(player)"],
        "busy": [BUSY],
        "endless": [ENDLESS],
        "waiting": [ENDLESS, "print(player.wait().status)"],
    }
    for name, cells in notebooks.items():
        write_notebook(lab.folder / f"{name}.ipynb", cells)
    return lab


def row(notebook: Notebook, thread: int, output: int = 0):
    return notebook.page.locator(".tk-player").nth(output).locator(f".tk-row[data-id='{thread}']")


def pane(notebook: Notebook, output: int = 0) -> str:
    return notebook.page.locator(".tk-player").nth(output).locator(".tk-pane").inner_text()


def test_an_episode_in_jupyterlab(browser, lab, tmp_path):
    notebook = Notebook(browser, lab, "watch.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player").first
    player.locator(".tk-bar .tk-ended").wait_for()

    assert "4 threads · depth 2" in player.locator(".tk-bar").inner_text()
    assert "Player(4 threads, depth 2, " in page.locator(".jp-OutputArea").last.inner_text()

    row(notebook, 1).click()
    page.wait_for_function("() => document.querySelector('.tk-pane').textContent.includes('shed')")
    text = pane(notebook)
    assert "returned by thread 2" in text
    assert "observed, not executed" in text
    assert "The shed holds a {tool}." in text

    # What a model writes is text, never markup, here and in the static form below.
    row(notebook, 0).click()
    assert "axe <b>&amp;</b>" in pane(notebook)
    assert page.locator(".tk-pane pre b").count() == 0

    # The keyboard: down the tree, fold, unfold, open.
    row(notebook, 0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert row(notebook, 1).get_attribute("aria-expanded") == "false"
    assert row(notebook, 2).is_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert row(notebook, 2).get_attribute("aria-selected") == "true"
    assert row(notebook, 2).evaluate("(row) => row === document.activeElement")
    assert "Thread 2" in pane(notebook)

    # A second view, shown after the end, holds everything, and is a view of its own.
    assert row(notebook, 3, output=1).inner_text() == row(notebook, 3).inner_text()
    assert "Thread 0" in pane(notebook, output=1)

    grounds: list[str] = []
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        notebook.theme(theme)
        page.wait_for_function(f"() => ({CONTRAST})() > 7")
        ground = "() => getComputedStyle(document.querySelector('.tk-player')).backgroundColor"
        grounds.append(page.evaluate(ground))
        picture = tmp_path / f"{theme.split()[1].lower()}.png"
        page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 20_000
    assert len(set(grounds)) == 2, "light and dark"
    assert notebook.errors == []
    assert notebook.outside == []
    notebook.close()


def test_a_page_that_is_opened_again_shows_the_whole_episode(browser, lab):
    notebook = Notebook(browser, lab, "watch.ipynb")
    notebook.run_all()
    notebook.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    notebook.reload()
    # ipywidgets (8.1.9) looks for a widget's model for two seconds; where the page is busy just
    # then, it finds none that has been restored meanwhile, says so, and never looks again.
    ended = notebook.page.locator(".tk-player .tk-bar .tk-ended").first
    ended.or_(notebook.page.get_by_text("model not found").first).first.wait_for()
    if not ended.is_visible():
        notebook.reload()
    ended.wait_for()
    row(notebook, 1).click()
    assert "returned by thread 2" in pane(notebook)
    notebook.close()


def test_a_busy_kernel_shows_each_token_and_the_page_can_be_used(browser, lab):
    notebook = Notebook(browser, lab, "busy.ipynb")
    notebook.start()
    page = notebook.page
    page.locator(".tk-pane", has_text="I am writing this w").wait_for()
    assert "while the kernel is busy." not in pane(notebook)
    assert page.locator(".jp-InputPrompt", has_text="[*]").count() == 1
    row(notebook, 0).click()
    assert "First, I need to find it. =>" in pane(notebook)
    row(notebook, 1).click()
    (lab.folder / "go").touch()
    notebook.wait_until_run()
    assert "while the kernel is busy." in pane(notebook)
    assert notebook.errors == []
    notebook.close()


def test_the_buttons_pause_and_stop(browser, lab):
    notebook = Notebook(browser, lab, "endless.ipynb")
    notebook.run_all()
    page = notebook.page
    page.locator(".tk-pane", has_text="on and on").wait_for()
    page.get_by_role("button", name="Pause").click()
    page.locator(".tk-bar .tk-badge", has_text="paused").wait_for()
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator(".tk-bar .tk-badge", has_text="generating").wait_for()

    # Rewound, the page says that the model writes on.
    page.locator(".tk-player").focus()
    page.keyboard.press("0")
    page.locator(".tk-bar .tk-badge", has_text="rewound").wait_for()
    expect(page.locator(".tk-bar .tk-totals")).to_contain_text("the model writes on")
    page.keyboard.press("9")
    expect(page.locator(".tk-bar .tk-totals")).not_to_contain_text("the model writes on")
    page.get_by_role("button", name="Stop").click()
    page.locator(".tk-bar .tk-stopped").wait_for()
    assert "stopped by the user" in page.locator(".tk-bar .tk-error").inner_text()
    assert notebook.errors == []
    notebook.close()


def test_pause_step_fork_and_stop_are_done_while_the_next_cell_waits(browser, lab):
    notebook = Notebook(browser, lab, "waiting.ipynb")
    notebook.start()
    page = notebook.page
    waits = page.locator(".jp-InputPrompt", has_text="[*]")
    player = page.locator(".tk-player")
    badge = player.locator(".tk-bar .tk-badge")
    page.locator(".tk-pane", has_text="on and on").wait_for()
    page.get_by_role("button", name="Pause").click()
    expect(badge).to_have_text("paused")
    before = int(page.get_by_label("timeline").get_attribute("max"))
    page.get_by_role("button", name="step by token").click()
    # A token, and the one that may have been on its way when it was paused.
    one = re.compile(f"^({before + 1}|{before + 2})$")
    expect(page.get_by_label("timeline")).to_have_attribute("max", one)
    page.get_by_label("timeline").fill("1")
    page.get_by_role("button", name="Fork here").click()
    page.get_by_role("button", name="Fork", exact=True).click()
    expect(player.get_by_role("tab", selected=True)).to_contain_text("Fork 1")
    assert waits.count() == 1
    player.get_by_role("tab", name="Original").click()
    page.get_by_role("button", name="Stop").click()
    notebook.wait_until_run()
    assert page.locator(".jp-OutputArea").last.inner_text().strip().endswith("stopped")
    assert notebook.errors == []
    notebook.close()


def test_after_a_restart_of_the_kernel_the_page_says_so_and_replays(browser, lab):
    notebook = Notebook(browser, lab, "endless.ipynb")
    notebook.run_all()
    page = notebook.page
    page.locator(".tk-pane", has_text="on and on").wait_for()
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    badge = page.locator(".tk-bar .tk-badge")
    expect(badge).to_have_text("no kernel")
    page.get_by_role("button", name="step by token").click()
    expect(page.get_by_role("alert")).to_contain_text("run the cell again")
    page.get_by_role("button", name="Replay").click()
    expect(badge).to_have_text("replaying")
    page.close()


def test_the_page_folds_frames_as_python_does(browser):
    engine = ScriptedEngine(["a = 'é'\nSo, b =>", "print('1')\n#END#", "x =>", "#END#", "#END#"])
    episode = Session(engine, context="start =>").run(progress=False)
    recorder = FrameRecorder(episode)
    page = browser.new_page()
    after = call_module(
        page,
        """({ Recording }, about, frames) => {
            const recording = new Recording(about, frames);
            const last = JSON.stringify(recording.at(recording.length));
            for (let n = recording.length; n >= 0; n -= 7) recording.at(n);
            const again = JSON.stringify(recording.at(recording.length));
            if (again !== last) throw new Error("not the same");
            return JSON.parse(last);
        }""",
        recorder.about,
        recorder.frames,
    )
    page.close()
    assert strip_details(after) == view_as_json(episode)


def test_a_fork_within_a_call_counts_the_tokens_that_were_written_before_it_was_watched(browser):
    running = Session(ScriptedEngine(["int('hello')\nprint('yes')\n#END#"]), context="start")
    written = [next(running) for _ in range(9)]
    recorder = FrameRecorder(running.episode)
    for event in running:
        recorder.add(event)
    (call,) = (e for e in running.episode.events if isinstance(e, GeneratedSpan))
    tokens = [n for n, frame in enumerate(recorder.frames) if "token" in frame]
    missed = sum(isinstance(event, Token) for event in written)
    assert 0 < missed == len(call.span) - len(tokens)
    page = browser.new_page()
    places = call_module(
        page,
        """({ Recording }, about, frames, tokens) => {
            const recording = new Recording(about, frames);
            return tokens.map((n) => recording.fork(n + 1).token);
        }""",
        *(recorder.about, recorder.frames, tokens),
    )
    page.close()
    assert places == list(range(missed + 1, len(call.span) + 1))


def test_a_page_that_missed_a_message_asks_once(browser):
    player = watch(Session(ScriptedEngine(["#END#"]), context="go"))
    player.wait(60)
    page = browser.new_page()
    show_player(page, player.snapshot_json())
    page.evaluate("() => { window.now = 0; performance.now = () => window.now; }")
    for n, now in (
        (107, 0),
        (108, 10),
        (109, 20),
        (110, 9000),
    ):  # the last when nobody has answered
        page.evaluate(f"() => {{ window.now = {now}; window.hear({{ n: {n}, tracks: {{}} }}); }}")
    asked = [sent for sent in page.evaluate("window.sent") if "shown" in sent]
    page.close()
    assert len(asked) == 3  # when it was opened, of what it has missed, and once more


def test_pictures_and_the_fields_of_a_token_are_there_by_keyboard_too(browser):
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAAB"
    png += "JRU5ErkJggg=="
    state = recorded("a" * 30 + " =>", "#END#", "#END#")
    (track,) = state["tracks"]
    last = track["frames"][-1]
    last["changes"].append(["push", ["threads", "0", "pictures"], [["/scratch/a.png", png]]])
    page = browser.new_page()
    show_player(page, json.dumps(state))
    page.locator(".tk-row").first.click()
    expect(page.get_by_role("img", name="the picture /scratch/a.png")).to_be_visible()
    page.get_by_label("timeline").fill("5")
    page.locator(".tk-player").focus()
    page.keyboard.press("f")
    form = page.get_by_role("form", name="fork")
    expect(form.get_by_label("Write this next")).to_be_visible()
    form.get_by_role("button", name="Fork", exact=True).press("Enter")
    (fork,) = [sent for sent in page.evaluate("window.sent") if sent.get("do") == "fork"]
    page.close()
    assert list(fork["changes"]) == ["token"]


def own_phi(Y, variables, dialect):
    return "x"


@pytest.mark.parametrize("options", [{}, {"program": react}, {"phi": own_phi}])
def test_a_fork_that_nobody_changed_asks_for_no_change(browser, options):
    """Another method has no phi to exchange, and a phi of one's own is none of the choices."""
    small, large = (ScriptedEngine(["a =>", "#END#", "#END#"]) for _ in range(2))
    player = watch(Session(large, context="go", **options), engines={"small": small})
    player.wait(60)
    player.fork(1, engine=small)
    player.wait(60, of=1)
    page = browser.new_page()
    show_player(page, player.snapshot_json())
    page.get_by_role("tab", name="Fork 1").click()
    page.get_by_label("timeline").fill("1")
    page.get_by_role("button", name="Fork here").click()
    form = page.get_by_role("form", name="fork")
    form.locator("summary").click()
    expect(form.locator("select[name=phi]")).to_have_count(0 if "program" in options else 1)
    expect(form.locator("select[name=engine]")).to_have_value("small")
    form.get_by_role("button", name="Fork", exact=True).click()
    (fork,) = [sent for sent in page.evaluate("window.sent") if sent.get("do") == "fork"]
    page.close()
    assert fork["changes"] == {}


def test_who_changes_tabs_halts_the_replay_and_resumes_nothing(browser):
    """A paused fork at its end would go on as soon as a replay came there."""
    session = Session(ScriptedEngine(["a =>", "b" * 300 + "#END#", "#END#"]), context="go")
    player = watch(session)
    player.wait(60)
    player.fork(1)
    player.wait(60, of=1)
    state = json.loads(player.snapshot_json())
    state["tracks"][1]["now"]["phase"] = "paused"
    page = browser.new_page()
    show_player(page, json.dumps(state))
    page.get_by_role("tab", name="Original").click()
    page.get_by_label("timeline").fill("3")
    page.get_by_role("button", name="Replay").click()
    badge = page.locator(".tk-bar .tk-badge")
    expect(badge).to_have_text("replaying")
    page.get_by_role("tab", name="Fork 1").click()
    page.get_by_role("tab", name="Original").click()
    expect(badge).to_have_text("rewound")
    sent = page.evaluate("window.sent")
    page.close()
    assert [message["do"] for message in sent if message.get("do") == "resume"] == []


def recorded(*replies: str, **options) -> dict:
    """What a player of an episode that is over shows."""
    player = watch(Session(ScriptedEngine([*replies]), context="go =>", **options))
    player.wait(60)
    return json.loads(player.snapshot_json())


def test_a_step_at_a_slow_speed_starts_no_model(browser):
    state = recorded("a" * 30 + " =>", "#END#", "#END#")
    (track,) = state["tracks"]
    now = {**track["now"], "phase": "paused"}
    rest, track["frames"], track["now"] = track["frames"][2:], track["frames"][:2], now
    page = browser.new_page()
    show_player(page, json.dumps(state))
    page.get_by_label("speed").select_option("100 a second")
    page.get_by_role("button", name="step by thread").click()
    parts = rest[:10], rest[10:20], rest[20:]
    for n, (frames, phase) in enumerate(zip(parts, ("running", "running", "paused"), strict=True)):
        news = {
            "n": state["n"] + n + 1,
            "tracks": {"0": {"frames": frames, "now": {**now, "phase": phase}}},
        }
        page.evaluate("(news) => window.hear(news)", news)
    expect(page.locator(".tk-bar .tk-badge")).to_have_text("paused")
    sent = [message["do"] for message in page.evaluate("window.sent") if "do" in message]
    # Whom a person lets run at an earlier moment, runs on from the end.
    page.get_by_label("timeline").fill("1")
    page.get_by_role("button", name="Replay").click()
    page.wait_for_function("() => window.sent.at(-1).do === 'resume'")
    page.close()
    assert sent == ["step"]


@pytest.mark.parametrize("offline", [True, False])
def test_without_a_kernel_a_run_that_is_not_over_can_be_replayed(browser, offline):
    state = recorded("abc =>", "#END#", "#END#") | {"offline": offline}
    state["tracks"][0]["now"]["phase"] = "running"
    page = browser.new_page()
    show_player(page, json.dumps(state))
    if not offline:
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Pause")).to_have_attribute("aria-disabled", "true")
        page.evaluate("() => window.die()")
    expect(page.locator(".tk-bar .tk-badge")).to_have_text("no kernel")
    expect(page.get_by_role("button", name="Stop")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".tk-bar .tk-badge")).to_have_text("replaying")
    page.close()


def test_a_look_back_keeps_what_is_half_written(browser):
    state = recorded("abc =>", "#END#", "#END#")
    state["tracks"][0]["now"] |= {"phase": "running", "asks": [0]}
    page = browser.new_page()
    show_player(page, json.dumps(state))
    area = page.get_by_label("write as thread 0")
    area.fill("my long answer")
    page.locator(".tk-player").focus()
    page.keyboard.press("0")
    expect(area).to_be_hidden()
    page.keyboard.press("9")
    expect(area).to_have_value("my long answer")
    page.close()


def test_the_pane_counts_what_threads_below_write_while_its_own_waits(browser):
    state = recorded("abc =>", "b" * 20 + "#END#", "#END#")
    (track,) = state["tracks"]
    kinds = [frame.get("kind") for frame in track["frames"]]
    spawned, returned = kinds.index("spawned", 1), kinds.index("returned")
    rest, track["frames"] = track["frames"][spawned + 1 : returned], track["frames"][: spawned + 1]
    track["now"]["phase"] = "running"
    page = browser.new_page()
    show_player(page, json.dumps(state))
    page.locator(".tk-row[data-id='0']").click()
    totals, branch = page.locator(".tk-pane .tk-totals"), page.locator(".tk-pane .tk-branch")
    expect(totals).to_contain_text("by threads below 0")
    expect(branch).to_contain_text("generating")
    news = {"n": state["n"] + 1, "tracks": {"0": {"frames": rest}}}
    page.evaluate("(news) => window.hear(news)", news)
    expect(totals).not_to_contain_text("by threads below 0 ")
    shown = totals.inner_text(), branch.inner_text()
    page.locator(".tk-row[data-id='1']").click()
    page.locator(".tk-row[data-id='0']").click()  # built anew
    assert (totals.inner_text(), branch.inner_text()) == shown
    page.close()


def half_written(call: str) -> tuple[dict, list[dict]]:
    """A player while the model is in the middle of its first call, and the frames that follow."""
    state = recorded(call, "#END#", "#END#")
    (track,) = state["tracks"]
    half = 2 + len(call) // 2
    rest, track["frames"] = track["frames"][half:], track["frames"][:half]
    track["now"]["phase"] = "running"
    return state, rest


def test_follow_stays_at_the_end_of_the_text_where_the_layout_changes(browser):
    state, rest = half_written("word\n" * 120 + "=>")
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.add_style_tag(content=CSS)
    show_player(page, json.dumps(state))
    page.locator(".tk-player").focus()
    pane = page.locator(".tk-pane")
    at_end = """() => {
        const { scrollTop, clientHeight, scrollHeight } = document.querySelector(".tk-pane");
        return scrollHeight - clientHeight - scrollTop < 8;
    }"""

    def hear(frame: dict) -> None:
        state["n"] += 1
        news = {"n": state["n"], "tracks": {"0": {"frames": [frame]}}}
        page.evaluate("(news) => window.hear(news)", news)

    def narrow() -> None:
        page.set_viewport_size({"width": 600, "height": 900})
        page.wait_for_function("() => innerWidth === 600")

    for change in (lambda: None, *[lambda: page.keyboard.press("g")] * 3, narrow):
        change()
        for _ in range(6):
            hear(rest.pop(0))
        page.wait_for_function(at_end)

    # Who reads further up stays there.
    pane.evaluate("(pane) => { pane.scrollTop = 30; }")
    page.keyboard.press("g")
    hear(rest.pop(0))
    assert pane.evaluate("(pane) => pane.scrollTop") == 30
    page.close()


@pytest.mark.parametrize("end", ["the call", "the session", "the kernel"])
def test_that_the_model_is_in_a_call_is_said_as_long_as_it_is(browser, end):
    state, rest = half_written("a" * 30 + " =>")
    first, *more = rest
    page = browser.new_page()
    show_player(page, json.dumps(state))
    page.locator(".tk-player").focus()
    page.keyboard.press("f")
    said = page.get_by_role("alert")
    hear = "([n, change]) => window.hear({ n, tracks: { 0: change } })"
    page.evaluate(hear, [state["n"] + 1, {"frames": [first]}])
    expect(said).to_contain_text("in the middle of this call")
    if end == "the kernel":
        page.evaluate("window.die()")
    else:
        now = state["tracks"][0]["now"]
        over = {"frames": [], "now": {**now, "phase": "over"}}
        page.evaluate(hear, [state["n"] + 2, {"frames": more} if end == "the call" else over])
    expect(said).to_have_count(0)
    page.close()


def test_a_token_without_text_is_no_step_and_is_not_said(browser):
    state = recorded("abcd =>", "#END#", "#END#")
    frames = state["tracks"][0]["frames"]
    first, *others = [frame for frame in frames if frame.get("thread") == 0 and "token" in frame]
    first["token"] += "".join(other["token"] for other in others[:3])
    for other in others[:3]:  # as the tokens of what a person wrote are
        other["token"] = ""
    place = frames.index(first) + 1
    page = browser.new_page()
    show_player(page, json.dumps(state))
    at, says = page.get_by_label("timeline"), page.locator(".tk-description")
    at.fill(str(place + 2))
    expect(says).to_contain_text('Thread 0 writes "abcd"')
    page.locator(".tk-player").focus()
    for key, there in (("Shift+T", place), ("t", place + 4), ("Shift+T", place)):
        page.keyboard.press(key)
        expect(at).to_have_value(str(there))
    page.close()


def test_a_page_without_a_clipboard_says_whether_it_has_copied(browser):
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    show_player(page, json.dumps(recorded("abc =>", "#END#", "#END#")))
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy the exact prompt").click()
    said = page.locator(".tk-tools [role=status]")
    expect(said).to_have_text(re.compile("copied|could not copy"))
    expect(page.get_by_role("button", name="Copy the exact prompt")).to_be_focused()
    page.close()
    assert errors == []


def test_two_children_grow_at_once_and_the_pane_stays_with_the_one_that_it_follows(browser):
    child = "word by word\nprint('1')\n#END#"
    engine = ScriptedEngine(["a ~>", "b ~>", child, "print('{t1}')\n#END#", child])
    session = Session(engine, context="start =>", dialect=ASYNC)
    player = watch(session)
    recorder = player._tracks[0].recorder
    messages: list[dict] = []
    for event in session:
        frames = recorder.add(event)
        if isinstance(event, Waiting):
            before = player.snapshot_json()
        elif isinstance(event, Token) and session.episode.threads[0].status is Status.WAITING:
            news = {"frames": frames, "now": {**player._tracks[0].now, "phase": "running"}}
            messages.append({"n": len(messages) + 1, "tracks": {"0": news}})
            if len(messages) == 8:
                break
    session.close()
    page = browser.new_page()
    show_player(page, before)
    panes = page.evaluate(
        """(messages) => messages.map((message) => {
            hear(message);
            return document.querySelector(".tk-pane").getAttribute("aria-label");
        })""",
        messages,
    )
    rows = page.locator(".tk-row").all_text_contents()
    page.close()
    assert {one["tracks"]["0"]["frames"][0]["thread"] for one in messages} == {1, 2}
    assert len(set(panes)) == 1
    assert panes[0] in ("thread 1", "thread 2")
    assert "waiting for 1" in rows[0]
    assert "generating{t1} a" in rows[1]
    assert "generating{t2} b" in rows[2]
