"""The shop in a real JupyterLab: a purchase by mouse and keyboard, among hostile texts."""

from __future__ import annotations

import pytest
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import expect

from thread_kit.envs.webshop.env import WebShop
from thread_kit.envs.webshop.pages import BUY, PREVIOUS
from thread_kit.views.shop import Shop

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


def test_a_click_that_is_not_answered_at_once_says_so(browser):
    page = browser.new_page()
    shop = Shop(WebShop("train", 17))
    page.evaluate(
        """async ([source, state]) => {
            const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
            const heard = {};
            const model = { get: () => state, on: (name, f) => (heard[name] = f), send: () => {} };
            (await import(url)).default.render({ model, el: document.body });
            window.answer = heard["change:state"];
        }""",
        [shop._esm, shop.state],
    )
    search, notice = page.get_by_role("button", name="Search"), page.locator(".tk-shop-notice")
    search.click()
    expect(notice).to_have_text("Waiting for the kernel.")
    page.evaluate("() => answer()")
    expect(notice).to_be_empty()

    # An answer in time: nothing is said of it later.
    page.clock.install()
    search.click()
    page.evaluate("() => answer()")
    page.clock.run_for(1000)
    expect(notice).to_be_empty()
    page.close()


def test_a_purchase_by_mouse_and_keyboard(browser, lab):
    cells = ["before = 1", CELL.format(hostile=HOSTILE), "after = 1"]
    write_notebook(lab.folder / "shop.ipynb", cells)
    notebook = Notebook(browser, lab, "shop.ipynb")
    page = notebook.page
    page.set_viewport_size({"width": 1000, "height": 900})
    notebook.run_all()
    shop = page.locator(".tk-shop")
    cells = page.locator(".jp-Cell").count()

    # All the while a cell runs, until the kernel is restarted.
    page.evaluate(
        """() => void jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute(
            { code: "import time; time.sleep(3600)" })"""
    )

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
