"""The tree as a drawing, and the plot of supplemental work, in the player."""

from __future__ import annotations

from itertools import pairwise

import pytest
from helpers.bare_page import call_module
from helpers.episodes import chain
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import Browser, Page, expect

import thread_kit as tk
from thread_kit.bench.player import large_episode
from thread_kit.trace.episode import Episode
from thread_kit.views.export_html import save_page
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.tree_layout import layout_boxes
from thread_kit.views.view_model import view_episode

pytestmark = pytest.mark.browser

GATE = "data/episodes/acacia-fence-gate.jsonl"

LIVE = """\
import thread_kit as tk

engine = tk.ScriptedEngine(["n = 1\\nFirst, I need {n}. =>", "print('It is 1.')\\n#END#", "#END#"])
player = tk.watch(tk.Session(engine, context="Count. =>"), paused=True)
player"""


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def open_page(browser: Browser, tmp_path, errors):
    """Opens an episode as a page; what goes wrong there is in `errors`."""
    pages = []

    def open_page(episode: Episode, **options) -> Page:
        page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda asked: errors.append(asked.url) if "http" in asked.url else None)
        page.goto(save_page(episode, tmp_path / "page.html").as_uri())
        page.locator(".tk-node").first.wait_for()
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []


def gate() -> Episode:
    return Episode.load(tk.resource(GATE))


def node(page: Page, thread: object):
    return page.locator(f"[data-node='{thread}']")


def layout(page: Page, recorder: FrameRecorder, options: str = "{ most: Infinity }") -> dict:
    return call_module(
        page,
        """({ Recording, layoutDrawing }, about, frames, options) => {
            const recording = new Recording(about, frames);
            const { threads } = recording.at(recording.length);
            const { nodes, width, levels } = layoutDrawing(threads, eval(`(${options})`));
            const shown = nodes.map(({ id, x, level, hidden }) => [id, x, level, hidden]);
            return { nodes: shown, width, levels };
        }""",
        *(recorder.about, recorder.frames, options),
    )


@pytest.mark.parametrize("threads", [1, 9, 200])
def test_page_and_picture_place_the_nodes_alike(browser, threads):
    episode = gate() if threads == 9 else large_episode(threads, 400)
    page = browser.new_page()
    drawn = layout(page, FrameRecorder(episode))["nodes"]
    page.close()
    places = layout_boxes(view_episode(episode))
    assert {int(id): (x, level) for id, x, level, _ in drawn} == places
    for level in range(episode.depth + 1):
        xs = sorted(x for x, at in places.values() if at == level)
        assert all(b - a >= 1 for a, b in pairwise(xs)), "no two nodes overlap"


def test_of_a_thousand_threads_forty_and_the_way_to_the_open_one_are_drawn(browser):
    page = browser.new_page()
    recorder = FrameRecorder(large_episode(1000, 4000))
    first = layout(page, recorder, "{}")["nodes"]
    threads = [id for id, *_ in first if id]
    assert len(threads) == 40
    assert len(threads) + sum(hidden for *_, hidden in first) == 1000
    last = layout(page, recorder, "{ path: ['0', '981', '982'] }")["nodes"]
    assert {"981", "982"} < {id for id, *_ in last}
    folded = layout(page, recorder, "{ folds: new Map([['0', true]]) }")["nodes"]
    assert [[id, hidden] for id, _, _, hidden in folded] == [["0", 0], [None, 999]]
    page.close()


def test_the_drawing_the_outline_the_text_and_the_timeline_are_one(open_page):
    page = open_page(gate())
    expect(page.locator(".tk-node")).to_have_count(9)
    assert page.locator(".tk-psi[d^=M]").count() == 8

    # From the drawing to the outline and the text.
    node(page, 4).click()
    expect(page.locator(".tk-row[aria-selected=true]")).to_have_attribute("data-id", "4")
    expect(page.locator(".tk-pane h4")).to_contain_text("Thread 4")
    # From the outline to the drawing.
    page.locator(".tk-row[data-id='6']").click()
    expect(page.locator(".tk-node[aria-selected=true]")).to_have_attribute("data-node", "6")
    node(page, 2).hover()
    expect(page.locator(".tk-row[data-id='2']")).to_have_class("tk-row tk-pointed")
    # The timeline: a double click goes to the spawn; a moment before it has no such thread.
    node(page, 6).dblclick()
    expect(page.locator(".tk-description")).to_contain_text("spawns thread 6")
    expect(node(page, 6)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".tk-node")).to_have_count(7)
    page.keyboard.press("Shift+E")
    expect(node(page, 6)).to_have_count(0)


def test_an_edge_says_what_phi_took_and_psi_gave_back(open_page):
    page = open_page(gate())
    caption = page.locator(".tk-caption")
    expect(caption).to_be_hidden()
    page.locator("[data-link='3'] .tk-hit").hover()
    expect(caption).to_contain_text("phi thread 2 → 3: I need to get 4 stick. =>")
    expect(caption).to_contain_text("psi thread 3 → 2: ")
    assert caption.locator("mark.tk-taken, mark.tk-value").count() >= 2
    page.locator("[data-link='3'] .tk-hit").click()
    expect(page.locator(".tk-pane h4")).to_contain_text("Thread 2")
    expect(page.locator(".tk-pane details[open] .tk-edge")).to_have_count(2)
    page.locator(".tk-bar").hover()
    expect(caption).to_be_hidden()


def test_a_fold_in_the_drawing_is_one_in_the_outline(open_page):
    page = open_page(gate())
    rows = page.locator(".tk-row:visible")
    node(page, 3).hover()
    node(page, 3).locator(".tk-handle").click()
    expect(node(page, "+3")).to_contain_text("+2")
    expect(rows).to_have_count(7)
    node(page, "+3").click()
    expect(rows).to_have_count(9)
    expect(page.locator(".tk-node")).to_have_count(9)
    page.locator(".tk-row[data-id='2'] .tk-twist").click()
    expect(node(page, "+2")).to_contain_text("+6")


def test_the_keyboard_does_all_in_the_drawing(open_page):
    page = open_page(gate())
    node(page, 0).focus()
    tree = page.get_by_role("tree", name="drawing")
    box, other = node(page, 0).bounding_box(), node(page, 1).bounding_box()
    down = "ArrowRight" if other["x"] - box["x"] > 20 else "ArrowDown"  # as it lies
    along = "ArrowDown" if down == "ArrowRight" else "ArrowRight"
    for key in (down, down, down, along):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.node") == "6"
    expect(page.locator(".tk-caption")).to_contain_text("phi thread 2 → 6")
    page.keyboard.press("Enter")
    expect(page.locator(".tk-pane h4")).to_contain_text("Thread 6")
    page.keyboard.press("c")
    expect(node(page, 6)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("c")
    expect(node(page, 6)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("j")
    expect(page.locator(".tk-description")).to_contain_text("spawns thread 6")
    page.keyboard.press("9")
    wide = tree.bounding_box()["width"]
    page.keyboard.press("z")
    assert tree.bounding_box()["width"] > wide
    page.keyboard.press("r")
    assert tree.bounding_box()["width"] == wide
    page.keyboard.press("v")
    assert tree.bounding_box()["width"] < wide
    page.keyboard.press("g")
    expect(page.locator(".tk-figure")).to_have_count(0)
    page.keyboard.press("g")
    expect(page.locator(".tk-figure")).to_have_count(1)


def test_a_thousand_threads_can_be_drawn_searched_and_read(open_page):
    page = open_page(large_episode(1000, 10_000), viewport={"width": 1000, "height": 900})
    threads = page.locator(".tk-node:not(.tk-more)")
    stage = page.locator(".tk-stage").bounding_box()

    def is_in_view(thread: int) -> bool:
        box = node(page, thread).bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        ends = [stage["x"] + stage["width"], stage["y"] + stage["height"]]
        starts = [stage["x"], stage["y"]]
        return all(a <= at <= b for a, at, b in zip(starts, middle, ends, strict=True))

    expect(threads).to_have_count(40)
    page.locator(".tk-row[data-id='985']").click()
    expect(node(page, 985)).to_have_attribute("aria-selected", "true")
    assert is_in_view(985)
    page.get_by_role("button", name="All threads").click()
    expect(threads).to_have_count(1000)
    assert page.locator(".tk-stage").evaluate("(stage) => stage.scrollWidth <= stage.clientWidth")
    for _ in range(8):
        page.get_by_role("button", name="larger").click()
    assert is_in_view(985)
    assert node(page, 985).locator("text").first.bounding_box()["height"] > 6
    node(page, 985).click()
    expect(page.locator(".tk-pane h4")).to_contain_text("Thread 985")
    assert page.evaluate("() => document.body.scrollWidth <= innerWidth")


def test_a_chain_lies_on_its_side(open_page):
    page = open_page(chain(12))
    first, last = node(page, 0).bounding_box(), node(page, 11).bounding_box()
    assert last["x"] > first["x"] + 100
    page.get_by_role("button", name="Turn").click()
    first, last = node(page, 0).bounding_box(), node(page, 11).bounding_box()
    assert last["y"] > first["y"] + 100


def test_the_plot_has_the_work_of_figure_3(open_page):
    episode = gate()
    page = open_page(episode)
    page.locator(".tk-player").focus()
    page.keyboard.press("w")
    for thread in (0, 2):
        page.locator(f".tk-row[data-id='{thread}']").click()
        work = episode.supplemental_work(thread)
        plot = page.locator(".tk-plot")
        label = f"supplemental work in thread {thread}: {len(work):,} tokens, at most {max(work):,}"
        expect(plot).to_have_attribute("aria-label", f"{label} of other threads for one of them")
        bars = page.locator(".tk-work-done")
        expect(bars).to_have_count(len(episode.threads[thread].returned))
    # The axis has whole numbers, each once, also where no thread below has generated anything.
    labels, top = page.locator(".tk-plot .tk-left"), max(work)
    assert labels.all_text_contents() == [f"{n:,}" for n in (0, top // 2, top)]
    page.locator(".tk-row[data-id='5']").click()
    expect(labels).to_have_text(["0", "1"])
    page.locator(".tk-row[data-id='2']").click()
    page.locator(".tk-plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tk-caption")).to_contain_text("Thread 3 and those below it generated")
    page.keyboard.press("Enter")
    expect(page.locator(".tk-pane h4")).to_contain_text("Thread 3")


def test_both_grow_while_the_episode_runs(browser, lab):
    write_notebook(lab.folder / "live.ipynb", [LIVE])
    notebook = Notebook(browser, lab, "live.ipynb")
    notebook.run_all()
    page = notebook.page
    page.get_by_role("button", name="step by token").click()
    expect(page.locator(".tk-node")).to_have_count(1)
    page.locator(".tk-player").focus()
    page.keyboard.press("s")
    expect(page.locator(".tk-node")).to_have_count(2)
    expect(page.locator(".tk-phi[d^=M]")).to_have_count(1)
    expect(page.locator(".tk-psi[d^=M]")).to_have_count(0)
    expect(page.locator(".tk-working")).to_have_attribute("data-node", "1")

    # The work of a child that runs, and what comes back.
    page.keyboard.press("w")
    page.locator(".tk-row").first.click()
    expect(page.locator(".tk-work-open")).to_have_count(1)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".tk-work-done")).to_have_count(1)
    expect(page.locator(".tk-work-open")).to_have_count(0)
    page.keyboard.press("w")
    expect(page.locator(".tk-psi[d^=M]")).to_have_count(1)
    expect(node(page, 1)).to_have_class("tk-node tk-ended")
    assert notebook.errors == []
    notebook.close()
