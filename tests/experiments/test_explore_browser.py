"""The panel in a real JupyterLab: by mouse and keyboard, and after a restart of the kernel."""

from __future__ import annotations

import shutil

import pytest
from helpers.jupyter import PATIENCE, Notebook
from playwright.sync_api import expect

from thread_kit.paths import resource
from thread_kit.views.player.keys import NO_KERNEL

pytestmark = [pytest.mark.browser, pytest.mark.model]

LONG = PATIENCE * 1000
"""Milliseconds."""


def test_by_mouse_and_keyboard_and_after_a_restart_of_the_kernel(browser, lab):
    shutil.copy(resource("notebooks/00_explore.ipynb"), lab.folder)
    notebook = Notebook(browser, lab, "00_explore.ipynb")
    page, panel = notebook.page, notebook.page.locator(".tk-explore")
    notebook.run_all()
    expect(panel.locator("pre").first).to_contain_text("Goal: craft", timeout=LONG)
    expect(page.locator(".tk-explore-static")).to_be_hidden()

    # Played: a short task, beside a notebook whose cells stay.
    panel.get_by_label("split").select_option("dev")
    expect(panel.locator("pre").first).to_contain_text("warped door", timeout=LONG)
    panel.get_by_label("task").fill("47")
    panel.get_by_label("task").press("Enter")
    expect(panel.locator("pre").first).to_contain_text("emerald block", timeout=LONG)
    panel.get_by_label("task").fill("4.7e1")
    panel.get_by_label("task").press("Tab")
    expect(panel.get_by_label("task")).to_have_value("47", timeout=LONG)
    expect(panel.locator("pre").first).to_contain_text("emerald block", timeout=LONG)
    run = panel.get_by_role("button", name="Run", exact=True).first
    run.click()
    expect(page.locator(".tk-player .tk-status")).to_have_text("ended", timeout=LONG)
    run.focus()
    for key in "xa":
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == 2

    # An error is a sentence in the panel, and the kernel's end is said.
    panel.get_by_label("calls", exact=True).fill("many")
    panel.get_by_label("calls", exact=True).press("Tab")
    expect(panel.get_by_role("alert")).to_contain_text("calls is 'many'", timeout=LONG)
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(page.locator(".tk-explore.jupyter-widgets-disconnected").first).to_be_visible(
        timeout=LONG
    )
    expect(run).to_have_css("pointer-events", "none")
    notebook.wait_until_idle()
    notebook.run_all()
    saved = panel.get_by_label("saved episode").locator("option")
    expect(saved.first).to_contain_text("textcraft dev 47", timeout=LONG)
    assert notebook.errors == []
    assert notebook.outside == []

    # Ended and not restarted: the buttons can still be pressed, and say why nothing comes of it.
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    run.click()
    expect(panel.get_by_role("alert")).to_have_text(NO_KERNEL)
    notebook.close()
