"""What all environments do alike with the numbers of tasks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import thread_kit as tk


@pytest.mark.parametrize(
    "make",
    [
        lambda number: tk.TextCraft("dev", number),
        lambda number: tk.WebShop("dev", number, products=np.int64(3)),
        lambda number: tk.DataCommonsQA("train", number),
        lambda number: tk.InterCodeSql("dev", number),
        pytest.param(lambda n: tk.InterCodeBash("dev", n), marks=pytest.mark.jail, id="bash"),
        pytest.param(lambda n: tk.AlfWorld("generated", n), marks=pytest.mark.alfworld, id="alf"),
    ],
)
def test_a_number_of_numpys_is_the_same_task_and_one_that_json_can_hold(make):
    """As the rows of a table have them: a trace has to be read back as the same task."""
    env, same = make(np.int64(3)), make(3)
    assert json.loads(json.dumps(env.task)) == same.task
    assert env.again().task == same.task


@pytest.mark.parametrize("options", [{"products": 2.5}, {"products": "3"}, {"max_actions": "5"}])
def test_what_is_no_whole_number_is_one_error_from_the_start(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        tk.WebShop("dev", 0, **options)
