"""Interrupts: the first stops, the second interrupts, and both wait where something is written."""

from __future__ import annotations

import signal
from signal import SIGINT, getsignal, raise_signal

import pytest

from thread_kit.interrupt import hold_interrupts, stop_on_interrupt


def test_interrupts_wait_for_the_outermost_hold_and_each_is_what_it_would_have_been():
    before, said = getsignal(SIGINT), []

    def work():
        with stop_on_interrupt(lambda: said.append("stop")):
            with hold_interrupts() as outer:
                raise_signal(SIGINT)
                with hold_interrupts() as inner:
                    said.append((outer(), inner()))
                    raise_signal(SIGINT)
                    said.append(inner())
                said.append("held")
            said.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert said == [(True, False), True, "held", "stop"]
    assert getsignal(SIGINT) is before


def test_without_a_stop_an_interrupt_comes_at_the_end_of_the_hold():
    said = []

    def work():
        with hold_interrupts() as has_come:
            raise_signal(SIGINT)
            said.append(has_come())
        said.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert said == [True]


def test_the_innermost_stop_is_the_one_that_stops_and_the_outer_one_is_there_behind_it():
    before, said = getsignal(SIGINT), []
    with stop_on_interrupt(lambda: said.append("outer")):
        with stop_on_interrupt(lambda: said.append("inner")), hold_interrupts() as has_come:
            raise_signal(SIGINT)
            said.append(has_come())
        said.append("behind")
        with hold_interrupts() as has_come:
            raise_signal(SIGINT)
            said.append(has_come())
    assert said == [True, "inner", "behind", True, "outer"]
    assert getsignal(SIGINT) is before


def test_an_interrupt_as_a_stop_begins_leaves_none_behind(monkeypatch):
    place = signal.signal

    def interrupt(number, handler):
        monkeypatch.setattr(signal, "signal", place)
        raise KeyboardInterrupt  # as `signal.signal` does where an interrupt waits

    monkeypatch.setattr(signal, "signal", interrupt)
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt(lambda: None):
        pass
    said = []

    def work():
        with hold_interrupts():
            raise_signal(SIGINT)
            said.append("whole")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert said == ["whole"]
