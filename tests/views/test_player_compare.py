"""A fork beside its original: both at the same moment, in columns, on one timeline."""

from __future__ import annotations

import json

import pytest
from helpers.bare_page import call_module, show_player
from helpers.clerk import clerk_player
from playwright.sync_api import Browser, Page, expect

import thread_kit as tk
from thread_kit.exchange import phi_full_sequence
from thread_kit.trace.events import Returned, Spawned
from thread_kit.views.export_html import save_page
from thread_kit.views.player.widget import CSS, Player, watch

pytestmark = pytest.mark.browser


def forked() -> Player:
    """Notebook 02, section 2: the same spawn, with another phi."""
    player = clerk_player()
    events = player.episode.events
    at = next(n for n, event in enumerate(events) if isinstance(event, Spawned) and n > 1)
    player.fork(at, phi=phi_full_sequence)
    player.wait(of=1)
    return player


@pytest.fixture
def page(browser: Browser, tmp_path):
    path = save_page(forked(), tmp_path / "fork.html")
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(path.as_uri())
    page.get_by_role("tab", name="Fork 1").click()
    yield page
    page.close()


def moments(page: Page) -> list[str]:
    return page.locator(".tk-heads .tk-cell").all_inner_texts()


def test_a_fork_and_its_original_share_their_frames_up_to_the_fork():
    first, second = (track.recorder.frames for track in forked()._tracks)
    event = next(n for n, frame in enumerate(second) if frame.get("kind") == "spawned" and n > 2)
    assert [f for f in first[:event] if "token" in f] == [f for f in second[:event] if "token" in f]
    assert [f.get("kind") for f in first[:event]] == [f.get("kind") for f in second[:event]]


def test_both_sides_are_at_their_ends_and_then_at_the_same_moment(page):
    rows = page.locator(".tk-row")
    expect(rows).to_have_count(2)
    assert all("ended" in text for text in moments(page))
    expect(rows.nth(1)).to_contain_text("asked otherwise")
    page.locator(".tk-player").focus()
    for key, threads in (("0", 0), ("s", 1), ("s", 2)):
        page.keyboard.press(key)
        expect(rows).to_have_count(threads)
        first, second = (text.split()[-3] for text in moments(page))
        assert first == second
    expect(rows.nth(0)).not_to_contain_text("≠")
    page.keyboard.press("Shift+E")
    expect(rows).to_have_count(1)


BEGINNING = """(message) => {
    document.querySelectorAll("[role=tab]")[1].click();
    hear(message);
    return [...document.querySelectorAll(".tk-pane")].map((pane) => pane.ariaLabel);
}"""


def test_beside_a_fork_that_has_just_begun_the_originals_main_thread_is_open(browser):
    state = json.loads(forked().snapshot_json())
    fork = state["tracks"][1]
    frames, fork["frames"] = fork["frames"][:3], []
    fork["now"]["phase"] = "running"
    page = browser.new_page()
    show_player(page, json.dumps(state))
    message = {"n": state["n"] + 1, "tracks": {"1": {"frames": frames}}}
    panes = page.evaluate(BEGINNING, message)
    page.close()
    assert [pane.startswith("thread 0") for pane in panes] == [True, True]


def test_the_columns_have_heads_and_stand_below_one_another(page):
    heads = page.locator(".tk-heads .tk-cell")
    assert ["Original" in text for text in moments(page)] == [True, False]
    assert ["Fork 1" in text for text in moments(page)] == [False, True]
    for side in (0, 1):
        left = heads.nth(side).bounding_box()["x"]
        for row in page.locator(".tk-row").all():
            assert abs(row.locator(".tk-cell").nth(side).bounding_box()["x"] - left) < 1


def test_a_narrow_page_has_room_for_two_episodes(browser):
    state = json.loads(forked().snapshot_json())
    for track in state["tracks"]:  # long ones, that are not over
        track["now"]["phase"] = "running"
        many = ["set", ["threads", "0", "usage", "generated"], 123_456]
        track["frames"][-1]["changes"].append(many)
    page = browser.new_page(viewport={"width": 500, "height": 1500})
    page.add_style_tag(content=CSS)
    show_player(page, json.dumps(state))
    page.get_by_role("tab", name="Fork 1").click()
    page.locator(".tk-player").focus()
    page.keyboard.press("w")
    expect(page.locator(".tk-plot")).to_have_count(2)
    for cell in page.locator(".tk-cell").all():
        assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")
    pair = page.locator(".tk-row").nth(1)
    below = pair.locator(".tk-difference")
    expect(below).to_contain_text("asked otherwise")
    cell = pair.locator(".tk-cell").first.bounding_box()
    assert below.bounding_box()["y"] >= cell["y"] + cell["height"]
    for plot in page.locator(".tk-plot").all():
        assert plot.locator("text").first.bounding_box()["height"] > 9
    page.close()


def test_a_thread_of_the_original_alone_is_not_marked_where_another_one_is_pointed_at(
    browser, tmp_path
):
    replies = [f"Then, I need to do {name}. =>" for name in "abc"]
    replies = [part for one in replies for part in (one, "print('done')\n#END#")] + ["#END#"] * 5
    player = watch(tk.Session(tk.ScriptedEngine(replies), context="Go. =>"))
    events = player.wait().events
    at = next(n for n, event in enumerate(events) if isinstance(event, Returned)) + 1
    player.fork(at, engine=tk.ScriptedEngine(["#END#"] * 5))
    player.wait(of=1)
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(save_page(player, tmp_path / "fork.html").as_uri())
    page.get_by_role("tab", name="Fork 1").click()
    pointed = page.locator(".tk-figure .tk-pointed")
    page.locator(".tk-figure").first.locator("[data-node='3']").hover()
    assert pointed.count() <= 1
    assert pointed.evaluate_all("nodes => nodes.map(node => node.dataset.node)") in ([], ["3"])
    page.mouse.move(5, 890)
    expect(pointed).to_have_count(0)
    page.close()


def test_what_a_side_has_not_done_yet_is_no_difference(browser):
    page = browser.new_page()
    differences = call_module(
        page,
        """({ difference }) => {
            const thread = (text, status) =>
                ({ context: { text: 'c' }, status, writing: '', sequence: [{ text }] });
            const [whole, half] = [thread('a b', 'ended'), thread('a', 'generating')];
            const other = thread('x', 'generating');
            return [
                difference(whole, null, [true, false]), difference(whole, null, [true, true]),
                difference(null, whole, [false, true]), difference(null, whole, [true, true]),
                difference(whole, half, [true, false]), difference(whole, other, [true, false]),
                difference(half, half, [false, false]), difference(whole, half, [true, true]),
            ];
        }""",
    )
    page.close()
    assert differences == [
        *("not yet in the fork", "not in the fork"),
        *("not yet in the original", "only in the fork"),
        *("not so far yet", "went otherwise"),
        *("", "went otherwise"),
    ]
