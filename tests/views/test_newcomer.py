"""What somebody does who has read the notebooks and docs/class.md, and nothing else.

Eleven tasks in a real JupyterLab. Every control is found by the words that these texts have for it:
one that is renamed here or there fails.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from functools import cache

import pytest
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import Locator, expect

from thread_kit.paths import resource

pytestmark = [pytest.mark.browser, pytest.mark.model]

PANEL, PLAYER = "00_explore.ipynb", "02_step_rewind_fork.ipynb"
DEEP = "Nine levels deep", "light-gray-terracotta"


def read_cells(name: str, kind: str) -> list[str]:
    cells = json.loads(resource(f"notebooks/{name}").read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


@cache
def texts() -> str:
    """All that a newcomer has read, with one space between words."""
    names = PANEL, "01_first_episode.ipynb", PLAYER
    read = [text for name in names for text in read_cells(name, "markdown")]
    read += [
        resource(f"docs/{name}").read_text("utf-8") for name in ("class.md", "howto/lecture.md")
    ]
    return " ".join(" ".join(read).split())


def named(words: str) -> str:
    """These words, which a text has set apart as those of a control: *Run*, **Run** or `s`."""
    assert re.search(rf"([*`]){re.escape(words)}\1", texts()), f"no text speaks of {words!r}"
    return words


def press(where: Locator, words: str) -> None:
    where.get_by_role("button", name=named(words), exact=True).first.click()


def choose(where: Locator, label: str, option: str) -> None:
    """The option of a choice that has these words in it."""
    choice = where.get_by_label(named(label), exact=True)
    choice.locator("option", has_text=option).first.wait_for(state="attached")
    choice.select_option(label=choice.locator("option", has_text=option).first.inner_text())


def keys(where: Locator, *pressed: str) -> None:
    for key in pressed:
        *held, letter = (named(part) for part in key.split("+"))
        letter = letter.capitalize() if held or letter == "space" else letter
        where.page.keyboard.press("+".join([*held, letter]))


@pytest.fixture(scope="module")
def lab(lab):
    """The panel's notebook, and of the player's the cells that ten minutes need."""
    shutil.copy(resource(f"notebooks/{PANEL}"), lab.folder)
    code = read_cells(PLAYER, "code")
    cells = [
        cell
        for cell in code
        if re.search(
            r"^import|watch\(episode|def clerk|watch\(session\)\n"
            r"player$",
            cell,
        )
        and "logprobs" not in cell
    ]
    person = re.search(r"`(tk\.watch\(tk\.Session\(tk\.HumanEngine[^`]*)`", texts())[1]
    model = next(cell for cell in code if "load_model" in cell).splitlines()[0]
    write_notebook(lab.folder / PLAYER, [*cells, f"{model}\n{person}"])
    return lab


def open_and_run(browser, lab, name: str) -> Iterator[Notebook]:
    notebook = Notebook(browser, lab, name)
    notebook.run_all()
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def explore(browser, lab):
    yield from open_and_run(browser, lab, PANEL)


@pytest.fixture
def panel(explore) -> Locator:
    panel = explore.page.locator(".tk-explore")
    expect(panel.locator("pre").first).to_contain_text("Goal: craft")
    return panel


@pytest.fixture(scope="module")
def notebook(browser, lab):
    yield from open_and_run(browser, lab, PLAYER)


def player_of(where, number: int = 0) -> Locator:
    return where.get_by_role("group", name="player of an episode").nth(number)


def rows(player: Locator) -> Locator:
    return player.get_by_role("tree", name="threads", exact=True).get_by_role("treeitem")


def says(player: Locator) -> Locator:
    """The sentence below the timeline."""
    return player.get_by_label("what happened")


def phase(player: Locator) -> Locator:
    return player.get_by_role("status").first


def wait_for_player(panel: Locator, name: str) -> Locator:
    """The player below a name, which stays while another model loads."""
    panel.locator(".tk-explore-stage b", has_text=name).wait_for()
    return player_of(panel)


def open_saved(panel: Locator, title: str, name: str) -> Locator:
    choose(panel, "saved episode", title)
    press(panel, "Open")
    return wait_for_player(panel, name)


def run_task(panel: Locator, split: str, number: str, text: str) -> Locator:
    choose(panel, "split", split)
    # The kernel answers another split with its first task: a number before that would be lost.
    expect(panel.locator(".tk-explore-code")).to_contain_text(f"'{split}'")
    panel.get_by_label(named("task"), exact=True).fill(number)
    panel.get_by_label("task", exact=True).press("Enter")
    expect(panel.locator("pre").first).to_contain_text(text)
    press(panel, "Run")
    return wait_for_player(panel, f"textcraft-{split}-{number}-")


def test_open_a_saved_episode_and_replay_it(panel):
    player = open_saved(panel, *DEEP)
    expect(rows(player)).to_have_count(13)
    player.focus()
    keys(player, "0")
    expect(rows(player)).to_have_count(0)
    player.get_by_label(named("speed")).select_option("1,000 a second")
    player.focus()
    keys(player, "space")
    expect(rows(player)).to_have_count(13)
    expect(phase(player)).to_have_text("ended")
    rows(player).last.click()
    expect(player.locator(".tk-pane")).not_to_contain_text("terracotta")


def test_run_a_task_and_watch_the_tree_grow(panel):
    player = run_task(panel, "dev", "47", "emerald block")
    expect(phase(player)).to_have_text("ended")
    expect(player).to_contain_text("reward 1")
    assert rows(player).count() > 1


def test_pause_in_the_middle_and_stop(panel):
    player = run_task(panel, "dev", "4", "light gray terracotta")
    press(player, "Pause")
    expect(phase(player)).to_have_text("paused")
    rows(player).first.click()
    expect(player.locator(".tk-pane")).to_contain_text("Goal: craft")
    press(player, "Run")
    press(player, "Pause")
    expect(phase(player)).to_have_text("paused")
    press(player, "Stop")
    expect(phase(player)).to_have_text("stopped")


def test_rewind_and_go_through_it_one_decision_at_a_time(notebook):
    player = player_of(notebook.page)
    rows(player).first.click()  # "click into it"
    keys(player, "0")
    expect(says(player)).to_contain_text("The beginning")
    keys(player, "s")
    expect(rows(player)).to_have_count(1)
    keys(player, "s")
    expect(says(player)).to_contain_text("phi makes its context from the last line of thread 0")
    keys(player, "t")
    expect(says(player)).to_contain_text("Thread 1 writes")
    keys(player, "e")
    before = says(player).inner_text()
    keys(player, "d")
    expect(says(player)).not_to_have_text(before)
    keys(player, "Shift+d", "Shift+s")
    expect(rows(player)).to_have_count(1)


def show_original(player: Locator) -> None:
    """As it is at its end; there are tabs where another test has made forks."""
    for tab in player.get_by_role("tab", name=named("Original")).all():
        tab.click()
    player.focus()
    keys(player, "9")


def fork_with_the_other_phi(player: Locator) -> None:
    """Notebook 02, section 2, to the letter."""
    show_original(player)
    rows(player).first.click()
    keys(player, "0", "s", "s", "Shift+e")
    press(player, "Fork here")
    form = player.get_by_role("form", name="fork")
    form.get_by_text(named("from there on, with")).click()
    form.get_by_label(named("phi")).select_option("phi_full_sequence")
    press(form, "Fork")
    expect(player.get_by_role("tab", selected=True)).to_contain_text("Fork")


def test_fork_with_another_phi(notebook):
    player = player_of(notebook.page, 1)
    fork_with_the_other_phi(player)
    expect(player.locator(".tk-heads .tk-cell").nth(1)).to_contain_text("ended")
    rows(player).nth(1).click()
    panes = player.locator(".tk-pane")
    expect(panes).to_have_count(2)
    expect(panes.first).to_contain_text("Have you enough?")
    expect(panes.nth(1)).to_contain_text("and you have enough")


def test_compare_a_fork_with_its_original(notebook):
    player = player_of(notebook.page, 1)
    fork_with_the_other_phi(player)
    heads = player.locator(".tk-heads .tk-cell")
    for number, name in enumerate(("Original", "Fork 1")):
        expect(heads.nth(number)).to_contain_text(named(name).rstrip("1"))
        expect(heads.nth(number)).to_contain_text("ended")
    expect(rows(player).nth(1)).to_contain_text(named("≠"))
    player.focus()
    keys(player, "0", "s")
    expect(rows(player)).to_have_count(1)
    expect(rows(player)).not_to_contain_text("≠")


def test_compare_two_saved_episodes(panel):
    open_saved(panel, *DEEP)
    choose(panel, "saved episode", "The same gate, in one thread")
    press(panel, "Open")
    wait_for_player(panel, "acacia-fence-gate-react")
    choose(panel, "beside it", DEEP[1])
    expect(panel.get_by_role("group", name="player of an episode")).to_have_count(2)
    assert panel.get_by_label(named("shown"), exact=True).is_visible()
    choose(panel, "beside it", "nothing")
    expect(panel.get_by_role("group", name="player of an episode")).to_have_count(1)


def test_change_what_comes_back(notebook):
    player = player_of(notebook.page, 1)
    show_original(player)
    rows(player).first.click()
    returned = player.locator(".tk-piece.tk-returned")
    press(returned, "Change …")
    form = player.get_by_role("form", name="fork")
    form.get_by_label(named("Instead")).fill("It is 50, and you are poor.")
    press(form, "Fork")
    expect(player.locator(".tk-pane").last).to_contain_text("It is 50, and you are poor.<=")
    expect(rows(player).first).to_contain_text("✎")


def test_be_the_model(notebook):
    player = player_of(notebook.page, 2)
    write = player.get_by_label("write as thread 0")
    expect(phase(player)).to_have_text("your turn")
    write.fill("First, I need to get 9 emerald. =>")
    press(player, "Write")
    player.get_by_label("write as thread 1").wait_for()
    press(player, "Let the model write this")
    expect(rows(player).nth(1)).to_contain_text("I need to get 9 emerald.")
    player.get_by_text("what does thread 1 write next?").or_(
        player.get_by_text("what does thread 0 write next?")
    ).wait_for()
    press(player, "Stop")
    expect(phase(player)).to_have_text("stopped")


def test_export_a_page_that_replays_without_python_and_network(panel, browser):
    open_saved(panel, *DEEP)
    press(panel, "Save page")
    note = panel.get_by_role("status").filter(has_text="the page is in")
    path = note.inner_text().removeprefix("the page is in ")
    page = browser.new_page(offline=True)
    page.goto(f"file://{path}")
    player = player_of(page)
    expect(rows(player)).to_have_count(13)
    player.get_by_label(named("speed")).select_option("1,000 a second")
    press(player, "Replay")
    expect(phase(player)).to_have_text("replaying")
    expect(phase(player)).to_have_text("ended")
    page.close()


def test_open_it_again_after_the_kernel_was_restarted(panel, explore):
    expect(phase(run_task(panel, "dev", "47", "emerald block"))).to_have_text("ended")
    explore.page.evaluate(
        "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    lost = explore.page.locator(".tk-explore.jupyter-widgets-disconnected")
    expect(lost).to_be_visible()
    explore.wait_until_idle()
    explore.run_all()
    player = open_saved(panel, "textcraft dev 47", "textcraft-dev-47-")
    expect(phase(player)).to_have_text("ended")
    assert explore.errors == []
    assert explore.outside == []
