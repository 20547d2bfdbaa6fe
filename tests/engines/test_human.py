"""Be the model: a person writes some calls, another engine writes the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import thread_kit as tk
from thread_kit.dialect import Stop
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import Completion, EngineBusyError
from thread_kit.engines.human import HumanEngine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.prompts import load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.views.player.track import Track
from thread_kit.views.player.widget import Player


def until(is_there: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def player():
    engine = HumanEngine(ScriptedEngine(["print('The axe is here.')\n#END#", "y = 2\n#END#"]))
    one = Player(tk.Session(engine, context="Sharpen the axe."))
    one.send = lambda message, buffers=None: None  # type: ignore[method-assign]
    yield one.start()
    one.stop()
    one.wait(60)


def ask(player: Player, **message) -> None:
    player._on_message(player, {"track": 0, **message}, [])


def now(player: Player) -> dict:
    return player._tracks[0].now


def test_a_fork_with_a_person_asks_on_the_same_page():
    player = Player(Session(ScriptedEngine(["#END#"]), context="go"))
    player.wait(30)
    engine = HumanEngine(ScriptedEngine(["#END#"]))
    player.fork(0, engine=engine)
    until(lambda: engine.waiting)
    until(lambda: player._tracks[1].now["asks"])
    assert player._tracks[1].now["asks"] == [0]
    player._tracks[1].stop()
    engine.listeners.add(player._on_waiting)
    assert len(engine.listeners._methods) == 1


def test_a_person_and_a_model_write_one_episode(player):
    until(lambda: now(player)["asks"] == [0])
    ask(player, do="write", thread=0, text="x = 1\nFirst, I need ")  # no mark: the call is open
    ask(player, do="write", thread=0, text="the axe. => and this is left out")
    until(lambda: now(player)["asks"] == [1])
    ask(player, do="pass", thread=1)
    until(lambda: now(player)["asks"] == [0])
    ask(player, do="pass", thread=0, always=True)
    episode = player.wait(60)
    assert episode.status is Status.ENDED
    assert episode.threads[0].sequence.text == (
        "x = 1\nFirst, I need the axe. =>The axe is here.<=\ny = 2\n#END#"
    )
    assert episode.threads[1].title == "I need the axe."
    assert episode.threads[0].variables == {"x": 1, "y": 2}
    assert episode.header["model"]["person"] is True


def test_nobody_can_write_where_no_call_waits_and_it_is_said(player):
    until(lambda: now(player)["asks"] == [0])
    ask(player, do="write", thread=3, text="no")
    assert "thread 3 does not wait" in now(player)["notice"]
    engine = player._tracks[0].session.engine
    engine.say("a")
    with pytest.raises(ValueError, match="you have begun to write"):
        engine.pass_on()


def test_a_session_that_waits_for_a_person_can_be_stopped(player):
    until(lambda: now(player)["asks"] == [0])
    player.stop()
    assert player.wait(60).status is Status.STOPPED
    assert now(player)["asks"] == []


def test_each_of_two_players_asks_for_its_own_calls():
    engine = HumanEngine(ScriptedEngine([]))
    players = [tk.watch(tk.Session(engine, context=f"go {n}")).start() for n in range(2)]
    until(lambda: len(engine.waiting) == 2)
    until(lambda: [now(player)["asks"] for player in players] == [[0], [0]])
    for n, player in enumerate(players):
        ask(player, do="write", thread=0, text=f"{n} #END#")
        assert player.wait(60).threads[0].sequence.text == f"{n} #END#"


def test_a_call_that_is_passed_on_waits_where_the_model_is_busy(monkeypatch):
    model = ScriptedEngine(["x#END#"])
    engine = HumanEngine(model)
    engine.begin("a", [1], stops={"#END#": Stop.END}, max_tokens=9)
    engine.pass_on("a")
    with monkeypatch.context() as busy:

        def refuse(*_):
            raise EngineBusyError("all sequences are generating")

        busy.setattr(model, "submit", refuse)
        assert engine.advance("a") == []
    news = [one for _ in range(9) for one in engine.advance("a")]
    assert [one.text for one in news if isinstance(one, Completion)] == ["x#END#"]


def test_who_waits_is_asked_and_shown_as_one_step(monkeypatch):
    """Without the lock an older answer is shown last, and a player waits for nobody for ever."""
    engine, free, look = HumanEngine(ScriptedEngine([])), [], Track.waiting_calls

    def try_the_lock(lock):
        free.append(lock.acquire(blocking=False))
        if free[-1]:
            lock.release()

    def look_and_try_the_lock(track):
        other = threading.Thread(target=try_the_lock, args=[track._throttle.lock])
        other.start()
        other.join()
        return look(track)

    monkeypatch.setattr(Track, "waiting_calls", look_and_try_the_lock)
    player = tk.watch(tk.Session(engine, context="go")).start()
    until(lambda: now(player)["asks"] == [0])
    player.stop()
    player.wait(60)
    assert free
    assert not any(free)


def test_more_than_a_call_may_have_is_cut():
    engine = HumanEngine(ScriptedEngine([]))
    worker = tk.Worker(tk.Session(engine, context="go", new_tokens=4)).start()
    until(lambda: engine.waiting)
    engine.say("abcdef")
    episode = worker.wait()
    assert episode.threads[0].status is Status.TRUNCATED


def test_a_person_takes_nothing_from_another_session_over_the_same_model():
    model = ScriptedEngine(["aaa#END#", "bbb#END#"])
    human, stops = HumanEngine(model), {"#END#": Stop.END}
    model.begin("other", model.tokenize("stay =>"), stops=stops, max_tokens=50)
    human.begin("own", model.tokenize("go =>"), stops=stops, max_tokens=50)
    human.pass_on(always=True)
    own, other = [], []
    while not any(isinstance(news, Completion) for news in own):
        own += human.advance("own")
    while not any(isinstance(news, Completion) for news in other):
        other += model.advance("other")
    assert {news.thread for news in own} == {"own"}
    assert {news.thread for news in other} == {"other"}


def test_a_person_before_two_models_asks_the_one_of_the_prompt():
    planner = load_prompt("adapt/textcraft-planner")
    models = EngineByPrompt(ScriptedEngine(["x#END#"]), {planner: ScriptedEngine(["y#END#"])})
    human = HumanEngine(models)
    human.assign("thread", planner.sha256)
    human.begin("thread", human.tokenize("go =>"), stops={"#END#": Stop.END}, max_tokens=50)
    human.pass_on()
    news = []
    while not any(isinstance(one, Completion) for one in news):
        news += human.advance("thread")
    assert news[-1].text.startswith("y")
    other = models.tokenizer(planner.sha256)
    assert human.tokenizer(planner.sha256) == other != human.tokenizer("")
