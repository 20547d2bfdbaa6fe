"""What all engines have in common: any key for a thread, and an end that nobody waits behind."""

from __future__ import annotations

import threading

import pytest

import thread_kit as tk
from thread_kit.dialect import AGENT, Stop
from thread_kit.engines.engine import Completion, Engine, EngineError
from thread_kit.engines.human import HumanEngine
from thread_kit.engines.models import load_model
from thread_kit.engines.scripted import ScriptedEngine

KEYS = [0, (1, 0), ("a", (2, None)), "b", frozenset({3})]
"""Keys that cannot be compared with one another."""


def finish(engine: Engine, *threads) -> dict:
    completions: dict = {}
    while not all(thread in completions for thread in threads):
        for news in engine.advance(*threads):
            if isinstance(news, Completion):
                completions[news.thread] = news
    return completions


def use_keys(engine: Engine) -> None:
    """Several threads at once, by keys of all kinds; one is cancelled, one goes on."""
    tokens = engine.tokenize("Say a: a a a a", first=True)
    for key in KEYS:
        engine.begin(key, tokens, stops={}, max_tokens=2)
    with pytest.raises(ValueError, match="is generating already"):
        engine.begin(KEYS[1], tokens, stops={}, max_tokens=2)
    assert engine.cancel(KEYS[0]).thread == KEYS[0]
    completions = finish(engine, *KEYS[1:])
    assert set(completions) == set(KEYS[1:])
    again = [*tokens, *completions[KEYS[1]].tokens]
    engine.begin(KEYS[1], again, stops={}, max_tokens=1)
    assert finish(engine, KEYS[1])[KEYS[1]].stop in (Stop.LENGTH, Stop.END_OF_STREAM)
    for key in KEYS:
        engine.release(key, keep=key == KEYS[1])


def test_a_thread_of_a_script_may_have_any_key():
    class Patient(ScriptedEngine):
        """A thread that generates cannot begin again, as with any other engine."""

        def submit(self, thread, request):
            self._must_be_idle(thread, self._running)
            super().submit(thread, request)

    use_keys(Patient(lambda seen: "aaaa"))


def test_a_persons_thread_may_have_any_key():
    engine = HumanEngine(ScriptedEngine([]))
    for key in KEYS:
        engine.begin(key, engine.tokenize("go"), stops=AGENT.stops, max_tokens=9)
    assert engine.waiting == KEYS
    for key in reversed(KEYS):
        engine.say(f"{len(str(key))} =>", key)
    completions = finish(engine, *KEYS)
    assert all(completions[key].text == f"{len(str(key))} =>" for key in KEYS)


@pytest.mark.model
def test_a_models_thread_may_have_any_key_and_costs_what_a_number_would():
    with load_model(adapter=None, context=512, cpu_threads=1, keep_prompts=False) as engine:
        prompt = engine.tokenize("Say a: a a", first=True)
        list(engine.prefill(prompt))
        use_keys(engine)
        engine.begin((7, 7), [*prompt, *prompt], stops={}, max_tokens=2)
        completion = finish(engine, (7, 7))[7, 7]
        assert completion.reused + completion.evaluated == 2 * len(prompt) + 1
        assert completion.reused >= len(prompt)


# Closing


@pytest.mark.parametrize("engine_of", [lambda: ScriptedEngine([]), lambda: ScriptedEngine(["x"])])
def test_a_closed_script_says_so(engine_of):
    engine = engine_of()
    engine.close()
    engine.close()
    uses = (engine.step, lambda: engine.advance(0), lambda: list(engine.prefill([1])))
    uses += (lambda: engine.tokenize("x"),)
    for use in (*uses, lambda: engine.begin(0, [1], stops={}, max_tokens=1)):
        with pytest.raises(EngineError, match="scripted is closed"):
            use()
    engine.release(0)
    assert engine.cancel(0) is None


def test_a_session_does_not_wait_for_a_person_whose_engine_is_closed():
    asked = threading.Event()
    engine = HumanEngine(ScriptedEngine([]))
    engine.listeners.add(asked.set)
    worker = tk.Worker(tk.Session(engine, context="go")).start()
    assert asked.wait(60)
    engine.close()
    engine.close()
    assert "is closed" in worker.wait(60).detail
    assert isinstance(worker.error, EngineError)
    assert not worker.is_running


def test_a_session_does_not_wait_for_a_script_that_is_closed():
    engine = ScriptedEngine(["x" * 100 + "#END#"])
    session = tk.Session(engine, context="go")
    while not engine._running:
        next(session)
    engine.close()
    assert "is closed" in session.run(progress=False).detail
    assert isinstance(session.error, EngineError)


def test_a_call_that_another_scheduler_has_brought_to_its_end_is_not_lost_by_cancelling_it():
    engine = ScriptedEngine(["aaa#END#", "bbbb#END#"])
    for key in ("first", "second"):
        engine.begin(key, engine.tokenize("go =>"), stops=AGENT.stops, max_tokens=50)
    assert finish(engine, "second")["second"].text == "bbbb#END#"
    over = engine.cancel("first")
    assert (over.text, over.stop) == ("aaa#END#", Stop.END)
    assert engine.cancel("first") is None


def test_a_call_is_not_given_up_within_the_step_of_another_scheduler():
    """The step goes through all calls; one that is gone before its turn ended the scheduler."""
    engine, owners = ScriptedEngine(["aaa#END#", "bbb#END#"]), []

    class Calls(dict):
        def pop(self, *key):
            owners.append(engine.lock._owner)
            return super().pop(*key)

    engine._running = Calls()
    for key in ("first", "second"):
        engine.begin(key, engine.tokenize("go =>"), stops=AGENT.stops, max_tokens=50)
    engine.cancel("first")
    engine.release("second")
    assert owners == [threading.get_ident()] * 2


def test_a_new_call_is_not_told_of_one_that_was_cancelled():
    engine = ScriptedEngine(["AAAA#END#", "B#END#"])
    options = {"stops": AGENT.stops, "max_tokens": 99}
    for thread in (0, 1):
        engine.begin(thread, engine.tokenize("c"), **options)
    with pytest.raises(ValueError, match="is generating already"):
        engine.begin(1, engine.tokenize("c"), **options)
    engine.advance(0)  # which also brings what thread 1 has written
    engine.cancel(1)
    assert engine._mail.get(1) is None
