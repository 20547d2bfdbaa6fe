"""Scores: hand-made rewards with known means, and what has to hold for any."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.analysis.scores import EXACT, compare_scores, permutation_p, score
from thread_kit.analysis.statistics import holm, repeats, success, success_by_cost


def frame(**rewards: list[float | None]) -> pd.DataFrame:
    """Episodes from rewards, a method each."""
    return pd.DataFrame(
        [
            {
                "method": method,
                "model": "m",
                "task": f"t{number}",
                "seed": 0,
                "reward": reward,
                "solved": reward == 1,
                "status": "ended",
            }
            for method, each in rewards.items()
            for number, reward in enumerate(each)
        ]
    )


def test_a_score_is_a_hundred_times_the_mean_reward_and_what_broke_down_counts_as_nothing():
    row = score(frame(a=[1, 0.5, 0, None])).iloc[0]
    assert (row["score"], row["n"], row["solved"], row["cut"]) == (37.5, 4, 1, 0)
    assert 0 <= row["low"] < 37.5 < row["high"] <= 100


def test_an_episode_of_no_group_is_not_lost():
    """One that was not started does not know its environment, say."""
    rows = frame(a=[1, None]).assign(environment=["sql", None])
    for count in (score, success):
        assert count(rows, by=["environment"])["n"].tolist() == [1, 1]
        assert count(rows, by="environment")["n"].tolist() == [1, 1]


def test_what_a_budget_cut_stands_beside_the_score():
    played = frame(a=[1, 0.5, 0])
    played.loc[2, "status"] = "out of calls"
    assert score(played).iloc[0]["cut"] == 1


def test_repeats_of_a_task_count_as_one_task():
    once = frame(a=[1, 0, 0.5])
    again = pd.concat([once, once.assign(seed=1)], ignore_index=True)
    first, second = score(once).iloc[0], score(again).iloc[0]
    assert (second["n"], second["score"]) == (6, first["score"])
    assert (second["low"], second["high"]) == (first["low"], first["high"])


def test_a_single_task_has_no_interval():
    assert np.isnan(score(frame(a=[0.5])).iloc[0][["low", "high"]].astype(float)).all()


def test_methods_are_compared_on_the_tasks_that_both_have_played():
    table = compare_scores(frame(a=[1, 1, 1, 1, 0.5], b=[0, 0, 0, 0.5], c=[1, 0]))
    row = table.set_index(["first", "second"]).loc[("a", "b")]
    assert (row["tasks"], row["difference"]) == (4, 87.5)
    assert (row["better_first"], row["better_second"]) == (4, 0)
    assert row["p"] == pytest.approx(2 / 2**4)  # all signs alike: two of the sixteen
    assert list(table["p_holm"]) == pytest.approx(holm(list(table["p"])))


def test_two_that_get_the_same_everywhere_do_not_differ():
    row = compare_scores(frame(a=[1, 0.2], b=[1, 0.2])).iloc[0]
    assert (row["difference"], row["p"]) == (0, 1)
    assert np.isnan(row["low"])


def test_of_one_method_there_is_nothing_to_compare():
    assert compare_scores(frame(a=[1, 0])).empty


def test_an_episode_that_occurs_twice_is_refused():
    twice = pd.concat([frame(a=[1, 0]), frame(a=[0])])
    for function in (score, compare_scores):
        with pytest.raises(ValueError, match="1 episodes occur twice, the first is method a"):
            function(twice)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=8))
def test_the_other_way_round_is_the_same_with_the_other_sign(pairs):
    a, b = (list(rewards) for rewards in zip(*pairs, strict=True))
    there = compare_scores(frame(a=a, b=b)).iloc[0]
    back = compare_scores(frame(a=b, b=a)).iloc[0]
    assert there["difference"] == pytest.approx(-back["difference"], abs=1e-9)
    assert there["p"] == pytest.approx(back["p"], abs=1e-9)
    assert there["better_first"] == back["better_second"]
    assert 0 <= there["p"] <= 1


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([0, 100 / 3, -100 / 3, 50, -50, 20, -100]), max_size=9))
def test_the_permutation_test_counts_all_ways_to_change_places(differences):
    ways = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=len(differences))]
    at_least = np.array(ways) >= abs(sum(differences)) - 1e-9
    assert permutation_p(np.array(differences)) == pytest.approx(at_least.mean())


def test_of_many_that_differ_some_are_drawn_and_come_close():
    few = np.random.default_rng(0).normal(3, 10, EXACT)
    exact = permutation_p(few)
    drawn = [permutation_p(np.append(few, 2e-9), seed) for seed in (0, 1)]  # one more, of no weight
    assert drawn == pytest.approx([exact] * 2, abs=0.005)
    assert len({exact, *drawn}) == 3


def test_what_a_budget_cut_and_what_broke_down_stands_beside_scores():
    rows = frame(a=[1, 0, 0], b=[0.5, 0, 1])
    rows["status"] = ["ended", "out of calls", "ended", "ended", "ended", "ended"]
    (pair,) = compare_scores(rows).to_dict("records")
    assert (pair["cut_first"], pair["cut_second"]) == (1, 0)
    rows["error"] = ["", "", "ServerError: 503", "", "", ""]
    for function in (score, compare_scores):
        with pytest.warns(UserWarning, match="1 of 6 episodes broke down"):
            table = function(rows)
        if function is score:
            assert list(table["errors"]) == [1, 0]


@pytest.mark.parametrize("function", [score, success, repeats, success_by_cost])
def test_of_no_episode_there_is_no_table(function):
    with pytest.raises(ValueError, match="there is no episode in this frame"):
        function(frame(a=[1]).iloc[:0])
