"""The lock of a file that one writer at a time has open: who waits for it, and how long."""

from __future__ import annotations

import pytest

from thread_kit.trace import lock
from thread_kit.trace.lock import LockedFile, LockError


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only where somebody sleeps; `clock.meanwhile` happens then."""

    class Clock:
        now, meanwhile = 0.0, staticmethod(lambda: None)

        def monotonic(self) -> float:
            return self.now

        def sleep(self, seconds: float) -> None:
            self.now += seconds
            self.meanwhile()

    clock = Clock()
    monkeypatch.setattr(lock, "time", clock)
    return clock


@pytest.mark.slow
def test_a_lock_that_is_given_back_a_moment_later_is_waited_for(tmp_path, clock):
    """What a killed process was about to start can hold its lock a little longer than itself."""
    holder = LockedFile(tmp_path / "r.jsonl")

    def release_in_the_end():
        if clock.now > lock.PATIENCE / 2:
            holder.close()

    clock.meanwhile = release_in_the_end
    LockedFile(tmp_path / "r.jsonl").close()
    assert lock.PATIENCE / 2 < clock.now < lock.PATIENCE


@pytest.mark.slow
def test_a_lock_that_is_kept_is_an_error_after_a_second(tmp_path, clock):
    holder = LockedFile(tmp_path / "r.jsonl")
    with pytest.raises(LockError, match="somebody else is writing"):
        LockedFile(tmp_path / "r.jsonl")
    assert lock.PATIENCE <= clock.now <= 1.1 * lock.PATIENCE == 1.1
    holder.close()


def test_a_free_lock_is_taken_at_once(tmp_path, clock):
    LockedFile(tmp_path / "r.jsonl").close()
    assert clock.now == 0
