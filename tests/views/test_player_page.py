"""The player's page: its pace, its room, its legends; nothing in it jumps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from helpers.episodes import chain
from playwright.sync_api import Page, expect

from thread_kit.bench.player import large_episode
from thread_kit.paths import resource
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan
from thread_kit.trace.shipped import open_episode
from thread_kit.views.export_html import save_page

pytestmark = pytest.mark.browser

GATE = "data/episodes/acacia-fence-gate.jsonl"


def opened(browser, tmp_path, episode: Episode, width: int = 1400) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 1000})
    page.goto(save_page(episode, tmp_path / "page.html").as_uri())
    return page


def test_a_recorded_episode_replays_at_a_pace_that_can_be_followed(browser, tmp_path):
    page = opened(browser, tmp_path, large_episode(6, 200))
    # A clock that only the test moves.
    page.evaluate(
        """() => {
            window.now = 0;
            performance.now = () => window.now;
            window.setInterval = (tick) => ((window.tick = tick), 1);
            window.clearInterval = () => {};
        }"""
    )
    speed, at = page.get_by_label("speed"), page.get_by_label("timeline")
    expect(speed).to_have_value("20 a second")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".tk-bar .tk-badge")).to_have_text("replaying")
    for pace, seconds, frames in (("20 a second", 2, 40), ("as it comes", 1, 60)):
        speed.select_option(pace)
        page.evaluate("(seconds) => { window.now += 1000 * seconds; window.tick(); }", seconds)
        expect(at).to_have_value(str(frames))
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".tk-bar .tk-badge")).to_have_text("rewound")
    page.close()


@pytest.mark.parametrize("width", [1400, 1000, 600])
def test_nothing_in_the_player_jumps(browser, tmp_path, width):
    page = opened(browser, tmp_path, Episode.load(resource(GATE)), width)
    page.locator(".tk-player").focus()
    body = page.locator(".tk-body")
    places = {body.bounding_box()["y"]}
    for keys in ("0", "t", "ssd", "eeeeeeeeeeeeee", "f", "?", "9", "f", "o"):
        for key in keys:
            page.keyboard.press(key)
            places.add(body.bounding_box()["y"])
    assert len(places) == 1
    # What a button has opened does not cover it: the middle of the button is where a mouse goes.
    keys, panel = (page.get_by_role("button", name="Keys and colours"), page.locator(".tk-keys"))
    page.keyboard.press("Escape")
    for shown in (True, False):
        keys.click(timeout=10_000)
        expect(panel).to_be_visible(visible=shown)
    page.close()


def test_the_totals_have_room_on_every_page(browser, tmp_path):
    page = opened(browser, tmp_path, open_episode("deodorant-regress"))
    totals = page.locator(".tk-line .tk-totals").first
    for width in (1400, 930, 680, 670, 520, 510, 400, 390, 320):
        page.set_viewport_size({"width": width, "height": 1000})
        assert totals.evaluate(
            "(e) => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight"
        ), width
    page.close()


def test_the_tree_is_indented_as_deep_as_there_is_room(browser, tmp_path):
    page = opened(browser, tmp_path, chain(40))
    starts = [row.locator("b").bounding_box()["x"] for row in page.locator(".tk-row").all()]
    levels = sum(a < b for a, b in pairwise(starts))
    assert levels >= 9
    assert starts[levels:] == [starts[levels]] * (len(starts) - levels)
    texts = page.locator(".tk-row").all_inner_texts()
    assert not any("[depth" in text for text in texts[: levels + 1])
    assert "[depth 39]" in texts[39]
    page.set_viewport_size({"width": 1000, "height": 1000})
    expect(page.locator(".tk-row").nth(levels)).to_contain_text(f"[depth {levels}]")
    page.close()


def test_what_is_coloured_is_explained(browser, tmp_path):
    page = opened(browser, tmp_path, Episode.load(resource(GATE)))
    page.get_by_role("button", name="Keys and colours").click()
    help_ = page.get_by_role("region", name="keys and colours")
    for word in ("few-shot", "returned", "observed", "supplemental work", "≈ 2", "✎", "failed"):
        expect(help_).to_contain_text(word)
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    page.locator(".tk-row").nth(2).click()
    expect(page.locator(".tk-pane .tk-legend").first).to_contain_text("supplemental work")
    page.locator("summary", has_text="phi and psi").first.click()
    marks = page.locator(".tk-edge").first
    for kind in ("taken", "value", "assigned"):
        expect(marks.locator(f".tk-legend .tk-{kind}")).to_be_visible()
    assert marks.locator("pre").first.locator(".tk-taken").all_inner_texts() == [
        *("I need to get ", " ", ". =>")
    ]
    page.close()


@pytest.mark.parametrize("close", ["?", "Escape"])
def test_the_keys_are_read_and_closed_with_the_keyboard(browser, tmp_path, close):
    page = opened(browser, tmp_path, chain(4))
    player, help_ = page.locator(".tk-player"), page.locator(".tk-keys")
    player.focus()
    page.keyboard.press("?")
    expect(help_).to_be_focused()
    page.keyboard.press("PageDown")
    page.wait_for_function("document.activeElement.scrollTop > 0")
    page.keyboard.press(close)
    expect(help_).to_be_hidden()
    expect(player).to_be_focused()
    page.keyboard.press("0")
    expect(page.get_by_label("timeline")).to_have_value("0")
    # What has the focus elsewhere keeps it.
    page.locator(".tk-description").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".tk-description")).to_be_focused()
    page.close()


def test_what_was_drafted_is_underlined(browser, tmp_path):
    recorded = chain(1)
    episode = Episode(recorded.header)
    for event in recorded.events:
        if isinstance(event, GeneratedSpan):
            rest = len(event.span.text) - len(event.span) + 1
            lengths = (*[1] * (len(event.span) - 1), rest)
            event = replace(event, lengths=lengths, came_true=(1, 2))
            text = event.span.text
        episode.add(event)
    page = opened(browser, tmp_path, episode)
    drafted = page.locator(".tk-pane .tk-drafted")
    assert drafted.all_inner_texts() == [text[1], text[2]]
    assert "dotted" in drafted.first.evaluate("(token) => getComputedStyle(token).textDecoration")
    page.get_by_role("button", name="Keys and colours").click()
    expect(page.get_by_role("region", name="keys and colours")).to_contain_text("was drafted")
    page.close()


def test_what_cannot_be_forked_or_shown_is_said_in_words_that_fit(browser, tmp_path):
    page = opened(browser, tmp_path, large_episode(4, 60))
    page.get_by_label("timeline").fill("0")
    expect(page.locator(".tk-pane")).to_contain_text("Nothing has happened yet")
    page.close()
