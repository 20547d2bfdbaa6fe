"""Two episodes beside one another, and the switches that choose them."""

from __future__ import annotations

import pytest
from helpers.checker import check
from helpers.programs import NO, YES, Lock
from helpers.suites import speak
from ipywidgets.widgets.widget import _instances as instances

from thread_kit.engines.engine import EngineError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.ablations import ABLATIONS
from thread_kit.experiments.compare_widget import CompareWidget
from thread_kit.experiments.method_registry import TAUGHT, load_method
from thread_kit.methods.react import react
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.views.columns import SideBySide
from thread_kit.views.html import episode_html
from thread_kit.views.text import episode_text

NAMES = ["thread", "thread, depth 2", "thread, shared scope"]


def switches(**options) -> CompareWidget:
    methods = {name: load_method(name, "textcraft", taught=True) for name in NAMES}
    about = {name: one.about for name, one in ABLATIONS.items()}
    engine = ScriptedEngine(speak)
    return CompareWidget(engine, TextCraft("dev", 47), methods, about=about, **options)


def test_both_episodes_are_played_from_the_start_of_the_same_task():
    seen = switches()
    assert seen.children[-1].children == ()
    both = seen.wait()
    assert list(both.episodes) == ["thread", "thread, depth 2"]
    assert [episode.header["task"]["number"] for episode in both.episodes.values()] == [47, 47]
    assert [episode.reward for episode in both.episodes.values()] == [1, 1]
    assert len(seen.children[-1].children) == 2


def test_what_is_played_again_leaves_no_widget_of_before_behind():
    seen = switches()

    def play() -> int:
        seen.start()
        seen.wait()
        return len(instances)

    assert play() == play()


def test_whatever_goes_wrong_is_said_below_the_button():
    def fail(*arguments, **options):
        raise ModuleNotFoundError("No module named 'textworld'")

    seen = switches()
    seen._methods["thread"] = fail
    seen.button.click()
    assert "No module named" in seen.children[1].value


def test_a_switch_says_what_it_takes_away_and_chooses_what_is_played():
    seen = switches()
    seen.right.value = "thread, shared scope"
    assert "overwrite what its parent" in seen.children[1].value
    seen.button.click()
    both = seen.wait()
    assert both.episodes["thread, shared scope"].header["scope"] == "shared"
    assert repr(seen).startswith(
        "CompareWidget('thread' beside 'thread, shared scope' on TextCraft"
    )


def test_playing_again_begins_anew():
    seen = switches()
    first = seen.wait().episodes["thread"]
    seen.button.click()
    second = seen.wait().episodes["thread"]
    assert first is not second
    assert str(first) == str(second)


def test_what_keeps_the_button_from_playing_is_shown_and_does_not_stay(monkeypatch):
    seen = switches()

    def fail(*arguments, **options):
        raise EngineError("the model is closed; load it again")

    note = seen.children[1]
    with monkeypatch.context() as patch:
        patch.setitem(seen._methods, "thread", fail)
        seen.button.click()
    assert 'role="alert"' in note.value
    assert "EngineError: the model is closed; load it again" in note.value
    seen.button.click()
    assert "alert" not in note.value
    assert len(seen.wait().episodes) == 2


def test_playing_again_after_an_episode_that_failed_begins_anew(monkeypatch):
    seen = switches()
    with monkeypatch.context() as patch:
        patch.setattr(seen._engine, "step", lambda: 1 / 0)
        seen.button.click()
        for player in seen._shown.values():
            assert "ZeroDivisionError" in player.wait().detail
    seen.button.click()
    assert [episode.reward for episode in seen.wait().episodes.values()] == [1, 1]


def test_the_same_method_on_both_sides_is_played_once():
    seen = switches()
    seen.right.value = "thread"
    assert list(seen.wait().episodes) == ["thread"]


def test_switches_need_two_methods():
    with pytest.raises(ValueError, match="at least two"):
        CompareWidget(ScriptedEngine([]), Lock(), {"thread": TAUGHT["thread"](TEXTCRAFT)})


def test_where_one_method_cannot_begin_neither_does():
    def refused(*arguments, **options):
        raise ValueError("no such prompt")

    begun = []

    def begin(*arguments, **options):
        begun.append(load_method("thread", "textcraft", taught=True)(*arguments, **options))
        return begun[-1]

    engine = ScriptedEngine(["#END#"] * 9)
    both = CompareWidget(engine, TextCraft("dev", 47), {"thread": begin, "other": refused})
    both.button.click()
    assert "no such prompt" in both.children[1].value
    assert both.children[-1].children == ()
    assert not begun[0].episode.events


def test_trees_stand_in_columns_and_as_text_below_one_another():
    episodes = {
        f"<{said}>": Session(ScriptedEngine([said]), Lock(), program=react, scope="none").run(
            progress=False
        )
        for said in (YES, NO)
    }
    both = SideBySide(episodes)
    page = check(both._repr_html_())
    for name, episode in episodes.items():
        assert episode_text(episode) in str(both)
        assert name in str(both)
        assert episode_html(episode) in both._repr_html_()
        assert name.replace("\n", " ") in page.text.replace("\n", " ")


@pytest.mark.parametrize("episodes", [[Episode()], {"a": 3}])
def test_what_stands_in_columns_has_names_and_is_episodes(episodes):
    with pytest.raises(ValueError, match=r"no episodes by name; give \{'NAME': episode"):
        SideBySide(episodes)
