"""Methods by name."""

from __future__ import annotations

import pytest

from thread_kit.experiments.method_registry import find_base


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("plan-and-execute-by-type", "plan-and-execute"),
        ("plan-and-solve", "plan-and-solve"),
        ("try again, visible reward", "try again"),
        ("try-again-by-type", "try again"),
        ("adapt-d2", "adapt"),
        ("react+reflexion", "react"),
        ("stateflow, 10 states, no_observe", "stateflow"),
        ("thread, no variables", "thread"),
        ("reflexion", "reflexion"),
    ],
)
def test_a_variant_is_of_the_method_whose_name_it_begins_with(name, base):
    assert find_base(name) == base
