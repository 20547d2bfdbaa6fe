"""Switches in the player: the episode once more from its start, and both trees side by side."""

from __future__ import annotations

import pytest
from helpers.bare_page import show_player
from helpers.episodes import Shed
from helpers.jupyter import Notebook, write_notebook
from playwright.sync_api import expect

import thread_kit as tk
from thread_kit.dialect import QA
from thread_kit.exchange import phi_full_sequence
from thread_kit.experiments.ablations import adapt_to_prompts
from thread_kit.prompts import EMPTY
from thread_kit.views.export_html import save_page
from thread_kit.views.player.widget import Player, watch

CLERK = """\
import thread_kit as tk

def clerk(seen):
    asked, _, written = seen.rpartition("Prompt:")[2].partition("Response:")
    if "<=" in written:
        return "#END#"
    if "price" in asked:
        return f"print('It is 3{', and you have enough' * ('euros' in asked)}.')\\n#END#"
    return "drink = 'tea'\\nThere are 20 euros.\\nFirst, I need the price of {drink}. =>"

player = tk.watch(tk.Session(tk.ScriptedEngine(clerk), context="Can I buy something?"))
player"""


def clerk_player() -> Player:
    names: dict = {}
    exec(CLERK, names)
    names["player"].wait()
    return names["player"]


def test_an_episode_is_played_again_from_its_start_without_variables():
    player = clerk_player()
    session = player.ablate(scope="none", phi=phi_full_sequence)
    fork = player.wait(of=1)
    assert fork.header["fork"]["event"] == 0
    assert fork.header["scope"] == "none"
    assert fork.header["exchange"]["phi"] == "phi_full_sequence"
    assert fork.threads[0].variables == {}
    assert "{drink}" in fork.threads[1].context.text
    assert "euros" in fork.threads[1].context.text
    assert session.episode is fork
    assert player.episode.threads[0].variables == {"drink": "tea"}


def test_in_its_middle_an_episode_keeps_its_variables():
    player = clerk_player()
    with pytest.raises(ValueError, match="scope cannot change in the middle"):
        player.fork(1, scope="none")


def test_a_few_shot_prompt_without_the_part_is_read_instead():
    prompt = tk.load_prompt("textcraft")
    env = tk.TextCraft("dev", 47)
    session = tk.Session(tk.ScriptedEngine(["#END#"]), env, prompt=prompt)
    changes = adapt_to_prompts(session.run(progress=False), {"scope": "none"})
    assert changes["prompt"].name == changes["main_prompt"].name == "textcraft-no-variables"
    changes = adapt_to_prompts(session.episode, {"phi": phi_full_sequence})
    assert changes["prompt"].name == "textcraft-whole-sequence"
    assert "prompt" not in adapt_to_prompts(session.episode, {"temperature": 1.0})
    fork = session.fork(0, **changes).run(progress=False)
    assert [p["name"] for p in fork.header["prompts"].values()] == ["textcraft-whole-sequence"]


def test_threads_that_compute_have_variables_of_their_own_and_none_of_others():
    session = tk.Session(tk.ScriptedEngine(["#END#"]), context="go", prompt=EMPTY, dialect=QA)
    episode = session.run(progress=False)
    assert adapt_to_prompts(episode, {"scope": "none"}) == {"scope": "own"}


def test_an_episode_of_a_task_is_played_on_the_same_task():
    session = tk.Session(tk.ScriptedEngine(["> open shed =>", "#END#"] * 2), Shed())
    player = watch(session)
    player.wait()
    player.ablate(scope="none")
    fork = player.wait(of=1)
    assert fork.header["task"] == player.episode.header["task"]
    assert [action.action for action in fork.threads[0].actions] == ["open shed"]


@pytest.mark.browser
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
    page.close()


@pytest.mark.browser
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


@pytest.mark.browser
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
