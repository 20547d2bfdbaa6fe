"""The shop in a real JupyterLab: a purchase by mouse and keyboard, among hostile texts."""

from __future__ import annotations

import pytest
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import expect

from thread_kit.envs.webshop.pages import BUY, PREVIOUS

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='hit'\"><b>bold</b>"
CELL = """\
from dataclasses import replace
import thread_kit as tk
from thread_kit.envs.webshop.catalogue import Catalogue, load_catalogue
from thread_kit.envs.webshop.env import WebShop
from thread_kit.views.shop import Shop, place_beside

hostile = {hostile!r}
products = [
    replace(
        product,
        title=f"{{product.title}} {{hostile}}",
        features=(hostile,),
        options={{hostile: (f"one {{hostile}}", "two"), **product.options}},
    )
    for product in load_catalogue().products
]
shop = Shop(WebShop("train", 17, catalogue=Catalogue("hostile", tuple(products))))
place_beside(shop)"""


def test_a_purchase_by_mouse_and_keyboard(browser, lab):
    cells = ["before = 1", CELL.format(hostile=HOSTILE), "after = 1"]
    write_notebook(lab.folder / "shop.ipynb", cells)
    notebook = Notebook(browser, lab, "shop.ipynb")
    page = notebook.page
    page.set_viewport_size({"width": 1000, "height": 900})
    notebook.run_all()
    shop = page.locator(".tk-shop")
    cells = page.locator(".jp-Cell").count()

    # The keyboard: letters are letters, and Enter searches.
    shop.get_by_role("searchbox").click()
    page.keyboard.type("xx dd bold running shoes")
    page.keyboard.press("Enter")
    first = shop.locator("ul button").first
    expect(first).to_be_focused()
    expect(shop.locator("ul li").first).to_contain_text("<b>bold</b>")
    for key in "xdd00abmy":
        page.keyboard.press(key)
    page.keyboard.press("Enter")

    # The mouse: a page behind the product's, and back; an option.
    option = shop.get_by_role("button", name="two", exact=True)
    shop.get_by_role("button", name="Features").click()
    expect(option).to_have_count(0)  # the kernel has answered; until then no other click counts
    expect(shop.locator(".tk-shop-page")).to_contain_text("<img src=x")
    shop.get_by_role("button", name=PREVIOUS).click()
    option.click()
    expect(option).to_have_attribute("aria-pressed", "true")
    expect(option).to_be_focused()
    shop.locator("summary").click()
    expect(shop.locator("pre")).to_have_text("You have clicked two.")

    buy = shop.get_by_role("button", name=BUY)
    buy.focus()
    page.keyboard.press("Space")
    expect(shop.locator(".tk-shop-reward")).to_contain_text("Reward")
    kinds = shop.locator("td:nth-child(2)").all_inner_texts()
    assert [kind for kind in kinds if kind in ("price", "type")] == ["price", "type"]
    assert page.title() != "hit"
    assert page.locator(".tk-shop img, .tk-shop h4 b").count() == 0
    assert page.locator(".jp-Cell").count() == cells
    assert page.evaluate("() => document.querySelector('.tk-shop').scrollWidth <= 1000")

    shop.get_by_role("button", name="Start again").click()
    expect(shop.get_by_role("searchbox")).to_be_visible()

    # The kernel is restarted: the page says so, and stays as it is.
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(shop.get_by_role("status")).to_contain_text("run the cell again")
    shop.get_by_role("button", name="Search").click()
    expect(shop.get_by_role("status")).to_contain_text("run the cell again")
    assert not notebook.outside
    notebook.close()
