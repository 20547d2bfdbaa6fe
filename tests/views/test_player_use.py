"""What people do with the player, in a real JupyterLab: step, rewind, fork, look closely."""

from __future__ import annotations

import pytest
from helpers.jupyter import CONTRAST, Notebook, write_notebook
from playwright.sync_api import expect

from thread_kit.bench.player import large_episode
from thread_kit.paths import resource
from thread_kit.trace.episode import Episode
from thread_kit.views.export_html import save_page

pytestmark = pytest.mark.browser

STEPPED = """\
import thread_kit as tk

def speak(seen):
    asked = seen.rpartition("Prompt:")[2]
    if "<=" in asked:
        return "#END#" if "shed" in asked else "Oh.\\n#END#"
    if "I need the" in asked:
        return "print('in the shed')\\n#END#"
    return "n = 3\\nSo, I need the axe. =>"

session = tk.Session(tk.ScriptedEngine(speak), context="Sharpen the axe. =>")
player = tk.watch(session, paused=True)
player"""

LENS = """\
import thread_kit as tk

model = tk.load_model()
player = tk.watch(tk.Session(model, tk.TextCraft("test", 110), calls=1, logprobs=True))
player"""

PERSON = """\
import thread_kit as tk

person = tk.HumanEngine(tk.ScriptedEngine(["print('the axe')\\n#END#", "#END#"]))
player = tk.watch(tk.Session(person, context="Sharpen it. =>"))
player"""


@pytest.fixture(scope="module")
def lab(lab):
    for name, cell in {"stepped": STEPPED, "lens": LENS, "person": PERSON}.items():
        write_notebook(lab.folder / f"{name}.ipynb", [cell])
    return lab


def test_step_rewind_fork_and_a_kernel_that_is_killed(browser, lab):
    notebook = Notebook(browser, lab, "stepped.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player")
    says, rows = player.locator(".tk-description"), player.locator(".tk-row")
    expect(player.locator(".tk-badge").first).to_have_text("paused")

    # The model writes one token, and then up to the next spawn.
    page.get_by_role("button", name="step by token").click()
    expect(says).to_contain_text("Thread 0")
    expect(rows).to_have_count(1)
    player.focus()
    page.keyboard.press("s")
    expect(says).to_contain_text("phi makes its context from the last line of thread 0")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(player.locator(".tk-bar .tk-ended")).to_be_visible()

    # Back through the past, by keyboard and by the timeline; nothing of it is the kernel's.
    player.focus()
    page.keyboard.press("0")
    expect(rows).to_have_count(0)
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(rows).to_have_count(2)
    page.keyboard.press("Shift+S")
    expect(rows).to_have_count(1)
    player.locator(".tk-timeline input").fill("20")
    expect(says).to_contain_text("20 of")
    expect(rows.first).to_contain_text("generating")
    page.keyboard.press("9")

    # Where nothing can be forked the page says why, as long as that moment is shown.
    for key, why in (("9", "The episode is over here: step back"), ("0", "Nothing has happened")):
        page.keyboard.press(key)
        expect(player.get_by_role("alert")).to_have_count(0)
        page.keyboard.press("f")
        expect(player.get_by_role("alert")).to_contain_text(why)
    page.keyboard.press("9")

    # A fork in which something else comes back, beside the original.
    rows.first.click()
    piece = player.locator(".tk-piece.tk-returned")
    piece.get_by_role("button", name="Change").click()
    form = player.get_by_role("form", name="fork")
    field = player.locator("textarea[name=returned]")
    forks = form.get_by_role("button", name="Fork", exact=True)
    assert abs(forks.bounding_box()["x"] - form.bounding_box()["x"]) < 20  # left, as all else
    field.fill("nowhere")
    player.get_by_role("button", name="Fork", exact=True).click()
    expect(player.get_by_role("tab", selected=True)).to_contain_text("Fork 1")
    expect(player.locator(".tk-pane")).to_have_count(2)
    expect(rows.first).to_contain_text("went otherwise")
    expect(rows.nth(1)).not_to_contain_text("otherwise")
    expect(player.locator(".tk-pane").nth(1)).to_contain_text("nowhere<=")
    expect(player.locator(".tk-pane").nth(1)).to_contain_text("Oh.")

    # A fork at a token, which was chosen by a click, and a value that Python does not know.
    page.get_by_role("tab", name="Original").click()
    expect(player.locator(".tk-pane")).to_have_count(1)
    player.locator(".tk-token[data-t='6']").first.click()
    player.locator("textarea[name=text]").fill("At once.\n#END#")
    player.get_by_role("button", name="Fork", exact=True).click()
    expect(player.get_by_role("tab", selected=True)).to_contain_text("Fork 2")
    expect(rows.nth(1)).to_contain_text("not in the fork")
    page.get_by_role("tab", name="Original").click()

    # A variable, at a moment of the past; first a value that is none.
    player.focus()
    for key in ("0", "s", "s"):
        page.keyboard.press(key)
    rows.first.click()
    player.locator(".tk-pane summary", has_text="variables: 1").click()
    for value in ("four", "4"):
        player.get_by_role("button", name="Change n").click()
        player.locator("textarea[name=value]").fill(value)
        player.get_by_role("button", name="Fork", exact=True).click()
        if value == "four":
            expect(player.get_by_role("alert")).to_contain_text("is no value as Python writes it")
    expect(player.get_by_role("tab", selected=True)).to_contain_text("Fork 3")
    expect(rows.first).to_contain_text("✎")
    page.get_by_role("tab", name="Original").click()
    assert notebook.errors == []

    # Without its kernel the page still goes through the past.
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.wait_for_timeout(1000)
    page.keyboard.press("9")
    expect(rows).to_have_count(2)
    page.keyboard.press("Shift+T")
    expect(says).to_contain_text("Thread 0 is over")
    notebook.close()


def test_a_saved_notebook_that_nobody_runs_shows_the_episode(browser, lab):
    notebook = Notebook(browser, lab, "stepped.ipynb")
    notebook.run_all()
    page = notebook.page
    page.locator(".tk-player").focus()
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator(".tk-bar .tk-ended").wait_for()
    static = page.locator("[class^='tk-']:has(> div > p)", has_text="Text by where it comes from")
    static.wait_for(state="attached")
    assert static.is_hidden()
    page.evaluate(
        """async () => {
            await jupyterapp.commands.execute('docmanager:save');
            await jupyterapp.shell.currentWidget.sessionContext.shutdown();
        }"""
    )
    notebook.reload()
    shown = page.get_by_text("Text by where it comes from")
    expect(shown).to_be_visible()
    expect(page.get_by_text("So, I need the axe. =>").first).to_be_visible()
    lost = page.get_by_text("Error displaying widget")
    lost.wait_for(state="attached")
    assert lost.is_hidden()
    expect(page.get_by_text("Player(")).to_have_count(0)
    notebook.close()


@pytest.mark.model
def test_the_lens_shows_what_the_model_weighed(browser, lab):
    notebook = Notebook(browser, lab, "lens.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player")
    player.locator(".tk-bar .tk-out-of-calls").wait_for()
    player.locator(".tk-row").first.click()
    expect(player.locator(".tk-strip")).to_have_count(1)
    assert "=> 100%" in player.locator(".tk-strip").get_attribute("aria-label")
    legend = player.locator(".tk-legend", has_text="chance at each token, at most")
    for mark in ("=>", "#END#", "<="):
        expect(legend).to_contain_text(mark)
    player.locator(".tk-token[data-t='3']").click()
    expect(player.locator(".tk-likely button")).to_have_count(5)
    page.keyboard.press("Escape")
    expect(player.locator(".tk-likely")).to_have_count(0)
    assert notebook.errors == []
    notebook.close()


def test_a_person_is_the_model(browser, lab):
    notebook = Notebook(browser, lab, "person.ipynb")
    notebook.run_all()
    page = notebook.page
    player = page.locator(".tk-player")
    expect(player.locator(".tk-status")).to_have_text("your turn")
    # A line without a mark leaves the call open, and the page says so; the keyboard goes on.
    area = page.get_by_label("write as thread 0")
    area.fill("First, I need")
    area.press("Control+Enter")
    hint = player.locator(".tk-ask [role=status]")
    expect(hint).to_contain_text("it is still your turn: a call goes on until => or #END#")
    expect(hint).to_contain_text("goes on in the same line")
    page.get_by_role("button", name="Let the model write this").click()
    expect(player.get_by_role("alert")).to_contain_text("you have begun to write")
    area.focus()
    page.keyboard.type(" the axe. =>")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("write as thread 1")).to_be_focused()
    player.locator(".tk-ask", has_text="thread 1").wait_for()
    page.get_by_role("button", name="Let the model write this").click()
    player.locator(".tk-ask", has_text="thread 0").wait_for()
    page.get_by_role("button", name="and the rest of this thread").click()
    player.locator(".tk-bar .tk-ended").wait_for()
    expect(player.locator(".tk-pane")).to_contain_text("the axe<=")
    assert notebook.errors == []
    notebook.close()


# The same page without a kernel


def opened(browser, path, **options):
    page = browser.new_page(**options)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda asked: errors.append(asked.url) if "http" in asked.url else None)
    page.goto(path.as_uri())
    return page, errors


def test_a_page_in_a_file_replays_and_offers_nothing_that_needs_a_kernel(browser, tmp_path):
    page, errors = opened(browser, save_page(large_episode(60, 600), tmp_path / "page.html"))
    rows = page.locator(".tk-row")
    expect(rows).to_have_count(60)
    expect(page.get_by_role("button", name="Fork here")).to_be_disabled()
    page.locator(".tk-player").focus()
    page.keyboard.press("0")
    expect(rows).to_have_count(0)
    page.get_by_label("speed").select_option("1,000 a second")
    page.locator(".tk-player").focus()
    page.keyboard.press("Space")
    expect(rows).to_have_count(60)
    assert page.get_by_role("button", name="Change").count() == 0
    assert errors == []
    page.close()


def test_the_exact_prompt_of_a_thread_can_be_copied(browser, tmp_path):
    episode = Episode.load(resource("data/episodes/acacia-fence-gate.jsonl"))
    page, errors = opened(browser, save_page(episode, tmp_path / "page.html"))
    page.evaluate(
        """() => Object.defineProperty(navigator, "clipboard", {
            value: { writeText: async (text) => { window.copied = text; } },
        })"""
    )
    for thread in (0, 4):
        page.locator(".tk-row").nth(thread).click()
        page.get_by_role("button", name="Copy the exact prompt").click()
        page.locator(".tk-tools [role=status]", has_text="copied").wait_for()
        assert page.evaluate("window.copied") == episode.seen(thread)
    assert errors == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tree_of_200_levels_can_be_read_at_900_pixels_in_both_themes(browser, tmp_path, scheme):
    from helpers.episodes import chain

    episode: Episode = chain(200)
    path = save_page(episode, tmp_path / "deep.html")
    size = {"width": 900, "height": 800}
    page, errors = opened(browser, path, viewport=size, color_scheme=scheme)
    last = page.locator(".tk-row").last
    last.scroll_into_view_if_needed()
    assert last.get_attribute("aria-level") == "200"
    assert last.locator(".tk-title").bounding_box()["width"] > 100
    assert "[depth 199]" in last.inner_text()
    assert page.evaluate("() => document.body.scrollWidth <= innerWidth")
    assert page.evaluate(CONTRAST) > 7
    assert errors == []
    page.close()


def test_the_tree_tells_assistive_technology_its_shape(browser, tmp_path):
    page, errors = opened(browser, save_page(large_episode(30, 300), tmp_path / "page.html"))
    tree = page.get_by_role("tree", name="threads")
    items = tree.get_by_role("treeitem")
    assert items.count() == 30
    assert [items.nth(n).get_attribute("aria-level") for n in (0, 1, 2)] == ["1", "2", "3"]
    assert items.first.get_attribute("aria-expanded") == "true"
    assert items.nth(1).get_attribute("aria-setsize") == "3"
    assert [items.nth(n).get_attribute("tabindex") for n in (0, 1)] == ["0", "-1"]
    items.first.focus()
    page.keyboard.press("ArrowLeft")
    assert items.first.get_attribute("aria-expanded") == "false"
    assert tree.locator(".tk-row:visible").count() == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert items.last.evaluate("(row) => row === document.activeElement")
    assert errors == []
    page.close()
