"""StateFlow's machine in the player, in a browser: the state of the moment that is shown."""

from __future__ import annotations

import pytest
from helpers.axe import find_faults
from helpers.jupyter import Notebook, write_notebook
from helpers.state_ways import WAY, WAYS, WORDS, named
from playwright.sync_api import expect

import thread_kit as tk
from thread_kit.envs.alfworld.machine import MACHINES
from thread_kit.methods.stateflow import TAG
from thread_kit.paths import resource
from thread_kit.views.machine_table import read_table
from thread_kit.views.state_machine import draw_machine, watch_machine

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='hit'\">"


@WAYS
def test_a_start_with_an_agent_is_one_state_in_the_page_too(browser, states, way):
    table = read_table(MACHINES["alfworld-heat"])
    pieces = [
        {"provenance": "instruction", "text": event.span.text, "event": number}
        for number, event in enumerate(named(*states), 1)
    ]
    code = resource("thread_kit/views/state_machine.js").read_text("utf-8")
    page = browser.new_page()
    found = page.evaluate(
        f"""([states, tag, pieces]) => {{
            const PANELS = [];
            {code}
            const panel = {{ states, start: "Init", final: "End", pattern: new RegExp(tag) }};
            const threads = [{{ sequence: pieces, status: "running" }}];
            return MachinePanel.prototype.wayOf.call(panel, {{ threads }});
        }}""",
        [list(table.states), TAG.pattern, pieces],
    )
    page.close()
    assert found == way


WATCH = """\
import thread_kit as tk
from thread_kit.experiments.method_registry import load_method
from thread_kit.views.state_machine import watch_machine
from thread_kit.envs.intercode_sql.machine import MACHINE
words = {words!r}
session = load_method({method!r}, "sql")(
    tk.ScriptedEngine(words), tk.InterCodeSql("dev", 0), seed=0, path=None
)
player = watch_machine(session, whole=MACHINE)
player"""


def test_the_state_follows_the_moment_that_is_shown(browser, lab):
    hostile = [f"think: {HOSTILE}\n> DESC bok =>", *WORDS[1:]]
    cells = [
        WATCH.format(words=hostile, method="stateflow"),
        "player.wait()",
        WATCH.format(words=[*WORDS[1:]], method="stateflow, no_verify"),
        "player.wait()",
    ]
    write_notebook(lab.folder / "watch.ipynb", cells)
    notebook = Notebook(browser, lab, "watch.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player").first
    player.locator(".tk-bar .tk-ended").wait_for()
    now = player.locator(".tk-state.tk-now")
    expect(now).to_have_attribute("data-state", "End")

    # The keyboard: from the start to the end by events, and back.
    player.focus()
    page.keyboard.press("0")
    expect(now).to_have_count(0)
    caption, seen = player.locator(".tk-machine-caption"), []
    timeline = player.get_by_label("timeline")
    while timeline.input_value() != timeline.get_attribute("max"):
        page.keyboard.press("e")
        seen.append(now.get_attribute("data-state") if now.count() else None)
    assert list(dict.fromkeys(seen)) == [None, *WAY]
    expect(caption).to_have_text("state 6: Verify → End (the task is over)")
    back = []
    while timeline.input_value() != "0":
        page.keyboard.press("Shift+E")
        back.append(now.get_attribute("data-state") if now.count() else None)
    assert list(dict.fromkeys(back)) == [*WAY[::-1], None][: len(set(back))]

    # The timeline, by hand.
    timeline.evaluate("(e) => { e.value = e.max; e.dispatchEvent(new Event('input')); }")
    expect(now).to_have_attribute("data-state", "End")
    expect(player.locator(".tk-edge.tk-now")).to_have_attribute("data-from", "Verify")
    assert page.title() != "hit"
    assert page.locator(".tk-player img").count() == 0

    # A state that is left out is there, and never lit.
    second = page.locator(".tk-player").nth(1)
    expect(second.locator(".tk-state.tk-out")).to_have_attribute("data-state", "Verify")
    expect(second.locator(".tk-state.tk-was.tk-out")).to_have_count(0)
    assert not notebook.errors
    assert not notebook.outside
    notebook.close()


@pytest.mark.parametrize("show", [watch_machine, lambda episode: episode])
def test_a_saved_page_has_the_machine(browser, tmp_path, show):
    episode = tk.open_episode("shop-on-harbour-street")
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(tk.save_page(show(episode), tmp_path / "page.html").as_uri())
    now = page.locator(".tk-state.tk-now")
    expect(now).to_have_attribute("data-state", draw_machine(episode).way[-1])
    page.keyboard.press("0")
    expect(now).to_have_count(0)
    page.keyboard.press("s")
    expect(now).to_have_attribute("data-state", "Init")
    assert page.locator(".tk-machine").evaluate("(e) => getComputedStyle(e).paddingLeft") == "10px"
    assert errors == []
    page.close()


def test_a_narrow_page_shows_the_state_of_the_moment_in_letters_that_can_be_read(browser, tmp_path):
    path = tk.save_page(watch_machine(tk.open_episode("books-never-lent")), tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 480, "height": 900})
    page.goto(path.as_uri())
    picture, now = page.locator(".tk-machine-picture"), page.locator(".tk-state.tk-now")
    room = picture.bounding_box()
    seen = set()
    for key in ("", "0", "s", "s", "s", "9"):
        if key:
            page.keyboard.press(key)
        if key == "0":
            continue
        box, name = now.bounding_box(), now.get_attribute("data-state")
        seen.add(name)
        assert room["x"] <= box["x"], name
        assert box["x"] + box["width"] <= room["x"] + room["width"], name
        size = now.locator("text").first.evaluate("(e) => 14 * e.getScreenCTM().a")
        assert size >= 10, name
    assert {"Init", "End"} <= seen
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    assert find_faults(page) == []
    # With the keyboard to the other states.
    at = picture.evaluate("(e) => e.scrollLeft")
    picture.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "(at) => document.querySelector('.tk-machine-picture').scrollLeft < at", arg=at
    )
    page.close()
