"""ADaPT's own studies: the success heuristic against the reward."""

from __future__ import annotations

import pandas as pd
import pytest

from thread_kit.analysis.adapt_studies import claims_figure, compare_claims
from thread_kit.analysis.statistics import wilson
from thread_kit.envs.textcraft.env import tasks


def row(method: str, number: int, solved: bool, k_max: int | None, claimed: bool | None) -> dict:
    return {
        "method": method,
        "model": "m",
        "split": "test",
        "number": number,
        "seed": 0,
        "solved": solved,
        "k_max": k_max,
        "claimed": claimed,
        "error": "",
        "task": str(number),
        **dict.fromkeys(("calls", "evaluated", "generated", "seconds"), 1),
    }


def numbers(depth: int) -> list[int]:
    return [task.number for task in tasks("test") if task.depth == depth]


@pytest.fixture
def frame() -> pd.DataFrame:
    two, three = numbers(2), numbers(3)
    return pd.DataFrame(
        [
            row("adapt", two[0], True, 1, True),
            row("adapt", two[1], True, 2, True),
            row("adapt", two[2], False, 4, True),
            row("adapt", three[0], True, 3, True),
            row("react", two[0], True, 1, False),
            row("react", three[0], False, 1, False),
            row("thread", two[0], True, None, None),
        ]
    )


def test_claims_stand_beside_rewards(frame):
    table = compare_claims(frame).set_index("method")
    assert list(table.index) == ["adapt", "react"]
    assert table.loc["adapt", ["n", "claimed", "solved", "over", "under"]].tolist() == [
        *(4, 1.0, 0.75, 0.25, 0.0)
    ]
    assert table.loc["react", ["claimed", "under"]].tolist() == [0.0, 0.5]
    low, high = table.loc["adapt", ["solved, low", "solved, high"]]
    assert (low, high) == pytest.approx(wilson(3, 4))
    cut = compare_claims(frame.assign(status="out of calls")).set_index("method")["cut"]
    assert cut.tolist() == [1, 1]


def test_where_nobody_judges_there_is_nothing_to_compare(frame):
    assert compare_claims(frame.assign(claimed=None)).empty
    assert compare_claims(frame, "method").equals(compare_claims(frame, ["method"]))
    with pytest.raises(ValueError, match="no column 'claimed'"):
        compare_claims(frame.drop(columns="claimed"))


def test_an_episode_under_two_settings_is_not_counted_twice(frame):
    twice = pd.concat([frame.assign(settings="a"), frame.assign(settings="b")])
    with pytest.raises(ValueError, match="episodes occur twice"):
        compare_claims(twice)


def test_the_figure_has_a_bar_for_each(frame):
    figure = claims_figure(frame)
    assert [list(trace.y) for trace in figure.data] == [[100, 0], [75, 50]]
    assert list(figure.data[0].x) == ["adapt, m", "react, m"]
