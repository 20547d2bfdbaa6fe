"""Snippets of recorded episodes, run again; and two methods on the same tasks."""

from __future__ import annotations

import pandas as pd
import pytest

from thread_kit.analysis.statistics import pair_by_task, summarize_pairs
from thread_kit.bench.snippets import main
from thread_kit.dialect import QA
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.session.session import Session


@pytest.mark.jail
@pytest.mark.statistics
def test_what_threads_ran_is_run_again_with_their_tasks_functions(tmp_path, capsys):
    lines = ["found = find_places('Ohio')", "print(found)", "print(1 / 0)", "x = 'y' * 10**11"]
    code = "\n".join([*lines, "#END#"])
    path = tmp_path / "episode.jsonl"
    env = DataCommonsQA("train", 15)
    Session(ScriptedEngine([code]), env, dialect=QA, path=path).run(progress=False)
    assert main([str(path), str(path)]) == 0
    first, *limits = capsys.readouterr().out.splitlines()
    assert first.startswith("8 snippets, 4 of them different: 4 ran, 2 failed, 2 met a limit; the")
    assert limits == ["limit: MemoryError: the code needs more memory than it may have"] * 2


def test_a_trace_that_is_none_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path / "nothing.jsonl")]) == 2
    assert "nothing.jsonl" in capsys.readouterr().err


def played(**changed) -> pd.DataFrame:
    given = {
        "method": ["a", "a", "b", "b"],
        "model": "m",
        "task": ["1", "2", "2", "3"],
        "seed": 0,
        "solved": [True, False, True, True],
        "generated": [10, 20, 40, 80],
        "evaluated": 5,
        "calls": 1,
        "seconds": [1.0, 2.0, 3.0, 4.0],
    }
    return pd.DataFrame({**given, **changed})


def test_only_tasks_that_both_have_played_are_compared():
    both = pair_by_task(played(), "a", "b")
    assert both.index.get_level_values("task").tolist() == ["2"]
    assert both["generated"].to_dict("records") == [{"a": 20, "b": 40}]
    short = summarize_pairs(both).set_index("method")
    assert short["solved"].to_dict() == {"a": 0, "b": 1}
    assert short["seconds"].to_dict() == {"a": 2.0, "b": 3.0}
    with pytest.raises(ValueError, match="no episode of 'c' is here; known: a, b"):
        pair_by_task(played(), "a", "c")
