"""Both sandboxes against random hostile code and forged answers: what holds after every attempt.

A longer run by hand, of so many times more examples:
THREAD_KIT_FUZZ=50 python -m pytest --hypothesis-seed=1 tests/sandbox/test_hostile.py
"""

from __future__ import annotations

import json
import os

import pytest
from helpers import hostile
from helpers.hostile import LIMITS, must_hold
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thread_kit.exchange import mentioned
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.namespace import PythonNamespace

pytestmark = pytest.mark.slow


def thorough(examples: int):
    """Settings for so many examples, or for so many times more in a run by hand."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    times = int(os.environ.get("THREAD_KIT_FUZZ", "1"))
    return settings(deadline=None, max_examples=times * examples, suppress_health_check=checks)


def look_up(place, year=None):
    return [{"date": year or 2000, "value": 1.5}]


@pytest.fixture(scope="module")
def monty():
    with MontySandbox(seconds=1, **LIMITS) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def jail():
    with BubblewrapSandbox({"look_up": look_up}, seconds=1, calls=20, **LIMITS) as sandbox:
        yield sandbox


def play(sandbox, lines: list[str]) -> None:
    """Lines of a child, whose variables all come up to its parent."""
    parent = PythonNamespace(sandbox, blocks=True)
    child = parent.child()
    for line in lines:
        ran = child.run(line)
        json.dumps(ran.changed, allow_nan=False).encode()
    everything = mentioned(" ".join(map("{{{}}}".format, child.variables)), child.variables)
    assert list(everything) == list(child.variables)
    ran = parent.define(child.variables)
    assert ran.error is None or ran.error.startswith(("MemoryError", "TimeoutError"))
    str(parent.variables).encode()


@thorough(40)
@given(st.lists(hostile.blocks, min_size=1, max_size=3))
def test_monty_gives_only_what_may_be_kept(monty, codes):
    state = None
    for code in codes:
        result = monty.execute(state, code)
        must_hold(result, state)
        state = result.state
    assert monty.execute(None, "x = 1").variables == {"x": "1"}


@thorough(40)
@given(st.lists(hostile.lines, min_size=1, max_size=4))
def test_what_a_child_made_in_monty_can_always_come_up(monty, lines):
    play(monty, lines)


@pytest.mark.jail
@thorough(15)
@given(st.lists(hostile.lines, min_size=1, max_size=3))
def test_what_a_child_made_in_the_jail_can_always_come_up(jail, lines):
    play(jail, lines)


@pytest.mark.jail
@thorough(25)
@given(hostile.blocks | hostile.forgeries)
def test_the_jail_gives_only_what_may_be_kept(jail, code):
    before = jail.execute(None, "before = 1").state
    result = jail.execute(before, code)
    must_hold(result, before)
    server = jail._server
    assert jail.execute(before, "print(before)").printed == "1\n"
    assert jail._server is server  # nobody had to replace it


@pytest.mark.jail
@thorough(200)
@given(hostile.frames)
def test_a_forged_frame_is_at_most_an_error_of_its_line(jail, frame):
    must_hold(jail._read_result(b"before", frame, "/scratch"), b"before")
    answer = json.loads(jail._answer(frame)[12:])
    assert answer.keys() in ({"value"}, {"error"})
