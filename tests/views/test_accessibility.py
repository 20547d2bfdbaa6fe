"""No serious or critical finding of axe-core in the player and the panel, light and dark.

The gallery's pages are looked at in test_gallery_browser.py.
"""

from __future__ import annotations

import shutil

import pytest
from helpers.axe import SCHEMES, find_faults
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import expect

import thread_kit as tk
from thread_kit.paths import resource
from thread_kit.views.export_html import save_page

pytestmark = pytest.mark.browser


def test_a_fault_is_found(browser):
    page = browser.new_page()
    page.set_content('<html lang="en"><title>a</title><main><button></button></main></html>')
    (fault,) = find_faults(page)
    assert fault.startswith("button-name: ")
    page.close()


def open_everything(player) -> None:
    """All that a player shows at once: the keys, what passed, variables, the form of a fork."""
    player.locator(".tk-row").nth(1).click()
    for summary in player.locator(".tk-pane summary").all():
        summary.click()


@SCHEMES
@pytest.mark.parametrize("figure", ["Tree", "Supplemental work"])
def test_a_page_in_a_file(browser, tmp_path, scheme, figure):
    episode = tk.Episode.load(resource("data/episodes/acacia-fence-gate.jsonl"))
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    page.goto(save_page(episode, tmp_path / "page.html").as_uri())
    player = page.locator(".tk-player")
    open_everything(player)
    page.get_by_role("button", name=figure).first.click()
    assert find_faults(page) == []
    page.get_by_role("button", name="Keys and colours").click()
    expect(page.get_by_role("region", name="keys and colours")).to_be_visible()
    assert find_faults(page) == []
    page.keyboard.press("Escape")
    page.get_by_label("timeline").fill("200")
    assert find_faults(page) == []
    page.close()


@SCHEMES
def test_a_page_with_a_fork_beside_its_original(browser, tmp_path, scheme):
    player = tk.watch(
        tk.Session(
            tk.ScriptedEngine(["So, I need it. =>", "print('x')\n#END#", "#END#", "#END#"]),
            context="go",
        )
    )
    player.wait()
    player.fork(2, calls=1)
    player.wait(of=1)
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    page.goto(save_page(player, tmp_path / "page.html").as_uri())
    page.get_by_role("tab", name="Fork 1").click()
    assert find_faults(page) == []
    page.close()


SESSION = """\
import thread_kit as tk

person = tk.HumanEngine(tk.ScriptedEngine(["print('4')\\n#END#"] * 4))
player = tk.watch(tk.Session(person, context="Sharpen it. =>"))
player"""


@pytest.fixture(scope="module")
def lab(lab):
    shutil.copy(resource("notebooks/00_explore.ipynb"), lab.folder)
    write_notebook(lab.folder / "player.ipynb", [SESSION])
    return lab


def test_the_panel_and_a_saved_episode_in_it(browser, lab):
    notebook = Notebook(browser, lab, "00_explore.ipynb")
    notebook.run_all()
    page, panel = notebook.page, notebook.page.locator(".tk-explore")
    expect(panel.locator("pre").first).to_contain_text("Goal: craft")
    panel.get_by_role("button", name="Python code").click()
    panel.get_by_role("button", name="Open", exact=True).click()
    panel.locator(".tk-row").first.wait_for()
    open_everything(panel.locator(".tk-player"))
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        notebook.theme(theme)
        assert find_faults(page, ".tk-explore") == [], theme
    notebook.close()


def test_the_player_its_forms_and_a_person_who_writes(browser, lab):
    notebook = Notebook(browser, lab, "player.ipynb")
    notebook.run_all()
    page, player = notebook.page, notebook.page.locator(".tk-player")
    page.get_by_label("write as thread 0").fill("n = 4\nSo, I need {n}. =>")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_label("write as thread 1").wait_for()
    open_everything(player)
    for button in ("Ablations", "Fork here"):
        page.get_by_label("timeline").fill("3")
        player.get_by_role("button", name=button).click()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        notebook.theme(theme)
        assert find_faults(page, ".tk-player") == [], theme
    notebook.close()
