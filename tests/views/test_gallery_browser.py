"""The pages of the gallery in a browser: all is there, nobody is asked, no fault for axe-core."""

from __future__ import annotations

import pytest
from helpers.axe import SCHEMES, find_faults
from playwright.sync_api import expect

from thread_kit.trace.shipped import list_episodes

pytestmark = pytest.mark.browser

ENTRIES = list_episodes()


def test_pages_show_what_is_to_be_seen_and_ask_nobody(browser, gallery_folder):
    page = browser.new_page(viewport={"width": 1000, "height": 1000})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto((gallery_folder / "index.html").as_uri())
    expect(page.locator("main li svg rect").first).to_be_visible()
    expect(page.locator("main li")).to_have_count(len(ENTRIES))
    for entry in ENTRIES:
        page.get_by_role("link", name=entry.title, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(entry.title)
        expect(page.locator("header")).to_contain_text(entry.sentences)
        expect(page.locator(".tk-row").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1000
        page.get_by_role("link", name="Gallery", exact=True).click()
    assert all(address.startswith("file:") for address in asked)
    page.close()


def test_the_keys_of_a_page_work_at_once(browser, gallery_folder):
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    page.goto((gallery_folder / "mojang-banner.html").as_uri())
    timeline = page.get_by_label("timeline")
    expect(timeline).not_to_have_value("0")
    page.keyboard.press("0")
    expect(timeline).to_have_value("0")
    page.keyboard.press("e")
    expect(timeline).not_to_have_value("0")
    assert page.evaluate("scrollY") == 0
    # A page in a frame leaves the focus where it is.
    page.goto((gallery_folder / "index.html").as_uri())
    page.get_by_role("link", name="Nine levels deep").focus()
    framed = gallery_folder.joinpath("mojang-banner.html").read_text("utf-8")
    page.evaluate(
        """(text) => document.body.append(
            Object.assign(document.createElement("iframe"), { srcdoc: text }))""",
        framed,
    )
    page.frame_locator("iframe").locator(".tk-row").first.wait_for()
    expect(page.get_by_role("link", name="Nine levels deep")).to_be_focused()
    page.close()


@SCHEMES
def test_axe_core_finds_no_fault(browser, gallery_folder, scheme):
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    # The index, and a page of each status and of a method with a panel of its own.
    for name in ("index", "mojang-banner", "warm-mug", "shop-on-harbour-street", "blue-ice-lats"):
        page.goto((gallery_folder / f"{name}.html").as_uri())
        page.locator("main").first.wait_for()
        assert find_faults(page) == [], name
    page.close()
