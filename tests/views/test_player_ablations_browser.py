"""Switches in the player, in a browser: by keyboard, both trees, and where there are none."""

from __future__ import annotations

import pytest
from helpers.bare_page import show_player
from helpers.clerk import CLERK, clerk_player
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import expect

from thread_kit.exchange import phi_full_sequence
from thread_kit.views.export_html import save_page

pytestmark = pytest.mark.browser


def test_the_switches_by_keyboard_and_both_trees_with_their_difference(browser, lab):
    write_notebook(lab.folder / "clerk.ipynb", [CLERK])
    notebook = Notebook(browser, lab, "clerk.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player")
    form = page.get_by_role("form", name="ablations")
    player.locator(".tk-bar .tk-ended").wait_for()

    # Nothing turned: that is said, and nothing is played.
    player.focus()
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(player.get_by_role("alert")).to_contain_text("No switch was turned")
    expect(player.get_by_role("tab")).to_have_count(0)

    # A box and its menu are one switch.
    page.keyboard.press("a")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(form.get_by_label("phi", exact=True)).to_have_value("phi_full_sequence")
    form.get_by_label("phi", exact=True).select_option("phi_last_line")
    expect(form.get_by_label("the whole sequence to the child (phi)")).not_to_be_checked()
    form.get_by_label("the whole sequence to the child (phi)").check()
    form.get_by_label("no variables").check()
    page.keyboard.press("Enter")
    expect(player.get_by_role("tab", selected=True)).to_have_text(
        "Fork 1: no variables, phi_full_sequence"
    )
    expect(player.locator(".tk-sums")).to_contain_text("reward none → none")
    expect(player.locator(".tk-sums")).to_contain_text("tokens generated 100 → 121 (+21)")
    expect(player.locator(".tk-figure")).to_have_count(2)
    expect(player.locator(".tk-node")).to_have_count(4)
    expect(player.locator(".tk-otherwise")).to_have_count(4)

    # A second one, of psi; Escape leaves the form without a fork.
    player.get_by_role("tab", name="Original").click()
    player.focus()
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    page.keyboard.press("a")
    form.get_by_label("the whole sequence back (psi)").check()
    form.get_by_role("button", name="Play beside it").click()
    expect(player.get_by_role("tab", selected=True)).to_have_text("Fork 2: psi_full_sequence")
    expect(player.locator(".tk-pane").nth(1)).to_contain_text("print('It is 3.')")
    assert notebook.errors == []

    # After a restart of the kernel: a word, and no traceback.
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    notebook.wait_until_idle()
    page.wait_for_timeout(500)
    page.keyboard.press("Escape")
    player.focus()
    page.keyboard.press("a")
    expect(player.get_by_role("alert")).to_contain_text("run the cell again")
    expect(form).to_be_hidden()
    expect(player.get_by_role("button", name="Fork here")).to_be_disabled()
    expect(player.locator(".tk-node")).to_have_count(4)
    notebook.close()


def test_a_page_shows_the_comparison_and_offers_no_switches(browser, tmp_path):
    player = clerk_player()
    player.ablate(phi=phi_full_sequence)
    player.wait(of=1)
    page = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme="dark")
    page.goto(save_page(player, tmp_path / "page.html").as_uri())
    page.get_by_role("tab", name="Fork 1").click()
    expect(page.locator(".tk-sums")).to_contain_text("evaluated")
    expect(page.locator(".tk-figure")).to_have_count(2)
    expect(page.get_by_role("button", name="Ablations")).to_be_disabled()
    page.locator(".tk-player").focus()
    page.keyboard.press("a")
    expect(page.get_by_role("form", name="ablations")).to_be_hidden()
    page.close()


def test_another_method_has_no_phi_and_psi_to_exchange(browser):
    player = clerk_player()
    for track in player._tracks:
        track.recorder.episode.header["exchange"] = {}
    text = player.snapshot_json().replace('"offline": true', "")
    page = browser.new_page()
    show_player(page, text)
    page.get_by_role("button", name="Ablations").click()
    expect(page.get_by_role("alert")).to_contain_text("no phi and psi to exchange")
    page.close()
