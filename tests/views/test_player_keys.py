"""Keys that are pressed in a widget of the kit never reach a command of JupyterLab."""

from __future__ import annotations

import re

import pytest
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import Locator, expect

from thread_kit.views.player.keys import NO_KERNEL

pytestmark = pytest.mark.browser

PLAYER = """\
import thread_kit as tk

def speak(seen):
    asked = seen.rpartition("Prompt:")[2]
    if "<=" in asked:
        return "#END#"
    if "I need the" in asked:
        return "print('in the {place}')\\n#END#"
    return "place = 'shed'\\nSo, I need the axe. =>"

player = tk.watch(tk.Session(tk.ScriptedEngine(speak), context="Sharpen the axe. =>"))
player"""

BOXES = """\
import thread_kit as tk
from IPython.display import display
from thread_kit.errors.review_widget import Reviewer
from thread_kit.experiments.compare_widget import CompareWidget

def play(engine, env, **options):
    return tk.Session(engine, context="Sharpen the axe. =>")

failed = tk.Session(tk.ScriptedEngine(["#END#"]), context="go").run(progress=False)
compare = CompareWidget(
    tk.ScriptedEngine(lambda seen: "#END#"), tk.TextCraft("dev", 47), {"one": play, "two": play}
)
display(compare, Reviewer("you", {"failed": failed}, path="runs/reviews.jsonl"))"""

PERSON = """\
import thread_kit as tk

person = tk.HumanEngine(tk.ScriptedEngine(["#END#"] * 9))
player = tk.watch(tk.Session(person, context="Sharpen it. =>"))
player"""

SHOP = """\
from thread_kit.envs.webshop.env import WebShop
from thread_kit.views.shop import Shop

shop = Shop(WebShop("train", 17))
shop"""

KEYS = [
    *"xabcvmyrz",
    *("d", "d", "0", "0", "i", "i"),
    *"hlost1",
    *("Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "Enter"),
    *("Shift+Enter", "Control+Enter", "Alt+Enter", "Shift+M", "Shift+V", "Shift+Z", "Delete"),
    *("Escape", "Control+Shift+ArrowUp"),
]

SOME = 5

KIND = """(part) => ["class", "role", "type"].map((name) => part.getAttribute(name))
    .concat(part.tagName).join()"""

FOCUSABLE = "button, input, select, textarea, summary, [tabindex]"

_COMMANDS = """async () => {
    await jupyterapp.commands.execute('notebook:enter-command-mode');
    if (!window.executed)
        jupyterapp.commands.commandExecuted.connect((_, { id }) => window.executed.push(id));
    window.executed = [];
}"""

_CELLS = """() => jupyterapp.shell.currentWidget.content.widgets
    .map(({ model }) => [model.type, model.sharedModel.getSource()])"""


@pytest.fixture(scope="module")
def lab(lab):
    cells = {"player": PLAYER, "boxes": BOXES, "person": PERSON, "shop": SHOP}
    for name, cell in cells.items():
        write_notebook(lab.folder / f"{name}.ipynb", ["before = 1", cell, "after = 1"])
    return lab


def press_all_keys_in_all_parts(
    notebook: Notebook, widget: Locator, keys: list[str] = KEYS
) -> None:
    """AssertionError if a key that is pressed in a part of a widget runs a command.

    All keys in the first part of each kind (tag, class, role), and some in the others.
    """
    page = notebook.page
    page.evaluate(_COMMANDS)
    cells = page.evaluate(_CELLS)
    focus = "(element) => (element.focus(), element === document.activeElement)"
    parts = [widget, *widget.locator(FOCUSABLE).all()]
    kinds, pressed = set(), 0
    for part in parts:
        if not part.count() or not part.is_visible() or not part.evaluate(focus):
            continue
        pressed += 1
        what = part.evaluate("(part) => part.outerHTML.slice(0, 120)")
        kind = part.evaluate(KIND)
        for key in keys if kind not in kinds else keys[:SOME]:
            page.keyboard.press(key)
        kinds.add(kind)
        assert page.evaluate("() => window.executed") == [], what
    assert pressed >= 3
    assert page.evaluate(_CELLS) == cells
    assert page.locator(".jp-Dialog").count() == 0


def test_no_key_in_any_part_of_the_player_reaches_jupyterlab(browser, lab):
    notebook = Notebook(browser, lab, "player.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player")
    player.locator(".tk-bar .tk-ended").wait_for()
    player.get_by_role("treeitem", name="thread 1").click()
    player.locator(".tk-row").first.click()
    player.locator("summary", has_text="phi and psi").click()
    player.locator("summary", has_text="variables").click()
    page.get_by_role("button", name="Keys and colours").click()
    press_all_keys_in_all_parts(notebook, player)

    # The form of a fork, which Escape and Enter close.
    player.focus()
    page.keyboard.press("9")
    player.locator(".tk-row").first.click()
    player.locator(".tk-token[data-t='3']").first.click()
    closing = {"Escape", "Enter", "Shift+Enter", "Control+Enter", "Alt+Enter"}
    keys = [key for key in KEYS if key not in closing]
    press_all_keys_in_all_parts(notebook, player.locator(".tk-fork"), keys)
    player.locator(".tk-fork").get_by_role("button", name="Cancel").click()
    player.get_by_role("button", name="Ablations").click()
    press_all_keys_in_all_parts(notebook, player.locator(".tk-ablations"), keys)
    page.evaluate("() => (window.executed = [])")
    player.get_by_role("button", name="Follow").focus()
    page.keyboard.press("Control+s")  # to save is JupyterLab's, wherever one is
    page.wait_for_function("() => window.executed.includes('docmanager:save')")
    notebook.close()


@pytest.mark.parametrize("name", ["boxes", "person"])
def test_no_key_in_another_widget_of_the_kit_reaches_jupyterlab(browser, lab, name):
    notebook = Notebook(browser, lab, f"{name}.ipynb")
    notebook.run_all()
    page = notebook.page
    if name == "person":
        page.get_by_label("write as thread 0").wait_for()
        press_all_keys_in_all_parts(notebook, page.locator(".tk-player"))
    else:
        expect(page.locator(".tk-keeps-keys")).to_have_count(2)
        for box in page.locator(".tk-keeps-keys").all():
            box.locator("button").first.wait_for()
            press_all_keys_in_all_parts(notebook, box)

        # The kernel ends: a click says so, and no longer what one before has come to.
        review = page.locator(".tk-keeps-keys").last
        review.get_by_role("button", name="save, next").click()
        expect(review.get_by_role("alert")).to_contain_text("choose the")
        page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        for box in page.locator(".tk-keeps-keys").all():
            box.locator("button", has_text=re.compile("play both|save, next")).click()
            expect(box.get_by_role("alert")).to_have_text(NO_KERNEL)
            expect(box.get_by_role("alert")).to_be_visible()
    notebook.close()


def test_the_keyboard_goes_on_when_what_had_the_focus_is_gone(browser, lab):
    notebook = Notebook(browser, lab, "player.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player")
    rows = player.locator(".tk-row")
    player.locator(".tk-bar .tk-ended").wait_for()

    # Notebook 02 says: click into it, press 0, and then step; a click may hit a row.
    rows.nth(1).click()
    page.keyboard.press("0")
    expect(rows).to_have_count(0)
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(rows).to_have_count(2)

    # A step back behind the spawn of the thread that has the focus; a button that can do no more.
    rows.nth(1).click()
    page.keyboard.press("Shift+S")
    expect(rows).to_have_count(1)
    page.keyboard.press("s")
    expect(rows).to_have_count(2)
    player.get_by_role("button", name="Stop").focus()
    page.keyboard.press("Space")
    page.keyboard.press("0")
    expect(rows).to_have_count(0)

    # A button of the open thread, at a moment at which it has none.
    page.keyboard.press("9")
    rows.first.click()
    player.get_by_role("button", name="Copy the exact prompt").focus()
    page.keyboard.press("0")
    page.keyboard.press("s")
    expect(rows).to_have_count(1)
    notebook.close()


def click(shop: Locator, button: Locator) -> None:
    """Click when the kernel has answered what was asked before, and wait for its answer."""
    expect(shop).not_to_have_attribute("aria-busy", "true")
    button.click()
    expect(shop).not_to_have_attribute("aria-busy", "true")


def test_no_key_in_any_page_of_the_shop_reaches_jupyterlab(browser, lab):
    notebook = Notebook(browser, lab, "shop.ipynb")
    notebook.run_all()
    shop = notebook.page.locator(".tk-shop")
    quiet = [key for key in KEYS if not key.endswith("Enter")]  # which leads to the next page
    shop.get_by_role("searchbox").wait_for()
    press_all_keys_in_all_parts(notebook, shop)
    click(shop, shop.get_by_role("button", name="Start again"))
    shop.get_by_role("searchbox").fill("running shoes")
    click(shop, shop.get_by_role("button", name="Search"))
    for there in ("ul button", ".tk-shop-options button"):
        shop.locator(there).first.wait_for()
        press_all_keys_in_all_parts(notebook, shop, quiet)
        click(shop, shop.locator(there).first)
    click(shop, shop.get_by_role("button", name="Buy Now"))
    shop.locator(".tk-shop-reward").wait_for()
    press_all_keys_in_all_parts(notebook, shop, quiet)
    notebook.close()
