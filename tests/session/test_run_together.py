"""Many sessions over one engine: side by side in one thread, or each in a thread of its own."""

from __future__ import annotations

import threading
import time

import pytest

from thread_kit.distill.textcraft_teacher import speak_thread
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import EngineBusyError
from thread_kit.engines.lock import FairLock, when_free
from thread_kit.engines.models import load_model
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.requests import Status
from thread_kit.session.run_together import run_together
from thread_kit.session.session import Session
from thread_kit.session.worker import Worker


def sessions(engine, count, made=None):
    for number in range(count):
        if made is not None:
            made.append(number)
        yield Session(engine, TextCraft("dev", number))


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_sessions_side_by_side_do_what_they_do_alone(at_once):
    alone = [s.run(progress=False) for s in sessions(ScriptedEngine(speak_thread), 12)]
    engine = ScriptedEngine(speak_thread)
    over = list(run_together(sessions(engine, 12), at_once))
    episodes = {session.env.task["number"]: session.episode for session in over}
    assert [str(episodes[n]) for n in range(12)] == [str(episode) for episode in alone]
    assert all(episode.reward == 1 for episode in episodes.values())


@pytest.mark.parametrize(
    ("in_threads", "wrap"),
    [(False, lambda engine: engine), (True, lambda engine: EngineByPrompt(engine, {}))],
)
def test_sessions_wait_where_the_calls_of_others_take_all_the_room(in_threads, wrap):
    class Two(ScriptedEngine):
        def submit(self, thread, request):
            if len(self._running) >= 2:
                raise EngineBusyError("all 2 sequences are generating")
            super().submit(thread, request)

    some = list(sessions(wrap(Two(speak_thread)), 4))
    if in_threads:
        workers = [Worker(session).start() for session in some]
        episodes = [worker.wait(60) for worker in workers]
    else:
        episodes = [session.episode for session in run_together(some, 4)]
    assert [(one.status, one.reward) for one in episodes] == [(Status.ENDED, 1.0)] * 4
    assert some[0].engine.steps_taken > 0, "by which those that wait see that others go on"


def test_no_more_sessions_are_made_than_run_at_once():
    made = []
    for over, _ in enumerate(run_together(sessions(ScriptedEngine(speak_thread), 9, made), 2), 1):
        assert len(made) <= over + 1


def test_sessions_share_the_steps_of_the_engine():
    def steps(at_once):
        class Counting(ScriptedEngine):
            taken = 0

            def step(self):
                Counting.taken += 1
                return super().step()

        list(run_together(sessions(Counting(speak_thread), 6), at_once))
        return Counting.taken

    assert steps(6) < steps(1) / 2


class Broken(Env):
    """A task whose steps raise something."""

    name, task = "broken", {}

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def reset(self):
        return "Go."

    def step(self, action):
        raise self.error("the game is gone")

    def again(self) -> Env:
        return Broken(self.error)

    def oracle(self):
        return None


def beside_a_broken_one(error: type[BaseException]) -> list[Session]:
    engine = ScriptedEngine(lambda text: "> go =>" if "Go." in text else "a " * 200)
    others = [Session(engine, context="Write. =>") for _ in range(2)]
    return [*others, Session(engine, Broken(error))]


def test_an_environment_that_fails_ends_its_own_episode_and_no_other():
    sessions = beside_a_broken_one(OSError)
    list(run_together(sessions, 3))
    statuses = [session.episode.status for session in sessions]
    assert statuses == [Status.END_OF_STREAM, Status.END_OF_STREAM, Status.FAILED]
    assert sessions[2].episode.detail == "OSError: the game is gone"
    assert [session.error for session in sessions[:2]] == [None, None]


def test_an_interrupt_in_one_session_closes_the_others():
    sessions = beside_a_broken_one(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt, match="the game is gone"):
        list(run_together(sessions, 3))
    assert {session.episode.status for session in sessions} == {Status.STOPPED}


def test_at_once_is_a_positive_number():
    with pytest.raises(ValueError, match="at_once is 0"):
        list(run_together([], 0))


@pytest.mark.model
def test_episodes_side_by_side_on_the_embedded_model_come_to_the_same_end():
    with load_model(cpu_threads=1) as engine:
        three = [Session(engine, TextCraft("dev", number)) for number in (42, 47, 58)]
        over = list(run_together(three, 3))
    assert [session.episode.reward for session in over] == [1, 1, 1]


# The lock


def test_the_lock_is_handed_on_in_the_order_in_which_it_was_asked_for():
    lock, order, started = FairLock(), [], []

    def take(name):
        started.append(name)
        with lock:
            order.append(name)

    with lock:
        threads = []
        for name in range(5):
            threads.append(threading.Thread(target=take, args=(name,)))
            threads[-1].start()
            while len(lock._waiting) <= name:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_what_waits_until_a_lock_is_free_is_done_behind_the_last_hold_of_its_thread():
    one, other, done = FairLock(), FairLock(), []
    when_free(lambda: done.append("at once"))
    with one:
        with other, other:
            when_free(lambda: done.append("behind"))
            when_free(lambda: one.acquire() and one.release())  # as the end of a session does
        assert done == ["at once"]
        elsewhere = threading.Thread(target=lambda: when_free(lambda: done.append("elsewhere")))
        elsewhere.start()
        elsewhere.join()
    assert done == ["at once", "elsewhere", "behind"]


def test_what_waited_for_a_lock_and_fails_is_nobody_elses_error(caplog):
    lock, done = FairLock(), []
    with lock:
        when_free(lambda: 1 / 0)
        when_free(lambda: done.append("and the next"))
    assert done == ["and the next"]
    assert "what waited for a lock failed" in caplog.text


def test_an_interrupted_wait_for_a_lock_leaves_nothing_waiting(monkeypatch):
    lock, done = FairLock(), []

    def interrupted():
        when_free(lambda: done.append("behind the interrupt"))
        raise KeyboardInterrupt

    monkeypatch.setattr(lock, "_acquire", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lock.acquire()
    assert done == ["behind the interrupt"]
    when_free(lambda: done.append("at once"))
    assert done[-1] == "at once"


def test_a_busy_loop_does_not_keep_the_lock_from_others():
    lock, stop, got = FairLock(), threading.Event(), threading.Event()

    def hog():
        while not stop.is_set():
            with lock:
                time.sleep(0.001)

    def other():
        with lock:
            got.set()

    threads = [threading.Thread(target=hog), threading.Thread(target=other)]
    for thread in threads:
        thread.start()
    assert got.wait(30)
    stop.set()
    for thread in threads:
        thread.join()


def test_the_lock_is_reentrant_and_belongs_to_its_thread():
    lock = FairLock()
    with lock, lock:
        pass
    with pytest.raises(RuntimeError, match="another thread"):
        lock.release()
    with lock:
        refused = []

        def release():
            try:
                lock.release()
            except RuntimeError as error:
                refused.append(error)

        thread = threading.Thread(target=release)
        thread.start()
        thread.join()
        assert refused
