"""Statistics: textbook values, and what has to hold for any data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from thread_kit.analysis.statistics import (
    calls,
    compare,
    holm,
    mcnemar,
    pair_by_task,
    paired_bootstrap,
    repeats,
    success,
    success_by_cost,
    summarize_pairs,
    wilson,
)
from thread_kit.experiments.results import Results

outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)


def frame(**solved: str) -> pd.DataFrame:
    """Episodes from marks, a method each: "+" solved, "-" not; "|" parts one seed from the next."""
    rows = []
    for method, marks in solved.items():
        for seed, run in enumerate(marks.split("|")):
            for number, mark in enumerate(run):
                rows.append(
                    {
                        "method": method,
                        "model": "m",
                        "task": f"t{number}",
                        "seed": seed,
                        "solved": mark == "+",
                        "depth": number,
                        "calls": 10 + number,
                        "evaluated": 100 * (number + 1),
                    }
                )
    return pd.DataFrame(rows)


# Wilson


@pytest.mark.parametrize(
    ("solved", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, Table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_has_the_textbooks_values(solved, n, low, high):
    assert wilson(solved, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_rate_and_mirrors(n, data):
    solved = data.draw(st.integers(0, n))
    low, high = wilson(solved, n)
    assert -1e-12 <= low <= solved / n <= high <= 1 + 1e-12
    assert (low == 0) == (solved == 0)
    mirrored = wilson(n - solved, n)
    assert mirrored == pytest.approx((1 - high, 1 - low))
    assert wilson(2 * solved, 2 * n)[1] - wilson(2 * solved, 2 * n)[0] < high - low
    wider = wilson(solved, n, 0.99)
    assert wider[1] - wider[0] > high - low


@pytest.mark.parametrize(("solved", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_what_is_no_proportion_is_refused(solved, n):
    with pytest.raises(ValueError, match=f"{solved} of {n} is no proportion"):
        wilson(solved, n)


# McNemar


def pairs(both, only_first, only_second, neither):
    return (
        [True] * (both + only_first) + [False] * (only_second + neither),
        [True] * both + [False] * only_first + [True] * only_second + [False] * neither,
    )


def test_mcnemar_has_the_textbooks_value():
    # Fay 2010, The R Journal 2(1): 2 against 9 discordant pairs
    test = mcnemar(*pairs(21, 2, 9, 12))
    assert (test.both, test.only_first, test.only_second, test.neither) == (21, 2, 9, 12)
    assert test.p == pytest.approx(0.06543, abs=5e-6)


@given(outcomes, st.lists(st.booleans()))
def test_mcnemar_is_the_sign_test_of_the_pairs_that_differ(played, agreed):
    first, second = map(list, zip(*played, strict=True))
    test = mcnemar(first, second)
    only_first, only_second = test.only_first, test.only_second
    fewer = min(only_first, only_second)
    assert test.p == pytest.approx(min(1, 2 * binom.cdf(fewer, only_first + only_second, 0.5)))
    assert mcnemar(second, first).p == test.p
    assert mcnemar(first + agreed, second + agreed).p == test.p
    assert test.both + test.neither + only_first + only_second == len(played)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [([1, 0], [1], "one value a task"), ([], [], "no task in common"), ([0.5], [1], "between")],
)
def test_what_makes_no_pairs_is_refused(first, second, message):
    with pytest.raises(ValueError, match=message):
        mcnemar(first, second)


# The bootstrap


def test_the_bootstrap_has_the_interval_of_a_mean_of_many():
    # 200 pairs, of which 60 differ in favour of the first and 20 of the second: by the normal
    # approximation 0.2 with a standard error of sqrt((0.3 + 0.1 - 0.04) / 200).
    difference = paired_bootstrap(*pairs(60, 60, 20, 60))
    error = np.sqrt(0.36 / 200)
    assert difference.mean == pytest.approx(0.2)
    assert difference.low == pytest.approx(0.2 - 1.96 * error, abs=0.01)
    assert difference.high == pytest.approx(0.2 + 1.96 * error, abs=0.01)


@given(outcomes)
def test_the_bootstrap_is_the_same_every_time_and_changes_sides(played):
    assume(len({a - b for a, b in played}) > 1)
    first, second = map(list, zip(*played, strict=True))
    difference = paired_bootstrap(first, second, resamples=200)
    assert difference == paired_bootstrap(first, second, resamples=200)
    assert difference.low <= difference.mean <= difference.high or difference.low == pytest.approx(
        difference.mean, abs=0.2
    )
    swapped = paired_bootstrap(second, first, resamples=200)
    assert (swapped.mean, swapped.low, swapped.high) == pytest.approx(
        (-difference.mean, -difference.high, -difference.low)
    )


def test_methods_that_differ_everywhere_or_nowhere_have_no_spread():
    """Drawn with replacement they are always the same, which says nothing of other tasks."""
    for first, second, mean in (([1] * 5, [0] * 5, 1), ([1, 0, 1], [1, 0, 1], 0)):
        difference = paired_bootstrap(first, second)
        assert difference.mean == mean
        assert np.isnan([difference.low, difference.high]).all()


def test_differences_that_rounding_alone_tells_apart_have_no_spread():
    difference = paired_bootstrap([2 / 3, 1 / 3, 1], [1 / 3, 0, 2 / 3])
    assert difference.mean == pytest.approx(1 / 3)
    assert np.isnan([difference.low, difference.high]).all()


def test_one_task_is_too_few_to_resample():
    with pytest.raises(ValueError, match="at least two tasks"):
        paired_bootstrap([1], [0])


# Holm


def test_holm_has_the_values_of_its_definition():
    # Four tests: the smallest p four times, the next three times ..., never less than before it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_raises_keeps_the_order_and_starts_with_bonferroni(p):
    adjusted = holm(p)
    assert all(a <= b <= 1 for a, b in zip(p, adjusted, strict=True))
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= -1e-12).all()
    assert min(adjusted) == pytest.approx(min(1, len(p) * min(p)))


def test_a_test_that_was_not_made_does_not_count():
    assert holm([0.02, float("nan"), 0.04]) == pytest.approx([0.04, np.nan, 0.04], nan_ok=True)
    assert np.isnan(holm([float("nan")])).all()
    assert holm([]) == []


# Frames


def test_success_counts_episodes_and_tasks():
    table = success(frame(a="++-+|+--+", b="----"))
    assert list(table["method"]) == ["a", "b"]
    assert list(table["n"]) == [8, 4]
    assert list(table["tasks"]) == [4, 4]
    assert list(table["rate"]) == [5 / 8, 0]
    assert np.isnan([table["low"][0], table["high"][0]]).all()  # a task twice says one thing
    assert (table["low"][1], table["high"][1]) == wilson(0, 4)
    assert list(success(frame(a="+-"), ["task"])["rate"]) == [1, 0]


def test_a_curve_of_repeated_tasks_has_no_interval_either():
    table = success_by_cost(frame(a="++-|+--", b="+-+"), budgets=[1000])
    low = table.set_index("method")["low"]
    assert np.isnan(low["a"])
    assert low["b"] == wilson(2, 3)[0]


def test_what_a_proportion_and_a_bootstrap_cannot_take_is_refused():
    with pytest.raises(ValueError, match=r"2\.5 of 5 is no proportion"):
        wilson(2.5, 5)
    with pytest.raises(ValueError, match="a task without one"):
        paired_bootstrap([np.nan, 1, 0], [1, 0, 0])


def test_methods_without_common_tasks_are_not_passed_over_in_silence():
    played = frame(a="+-+", b="--+")
    played.loc[played["method"] == "b", "task"] += ", split test"
    with pytest.warns(UserWarning, match="a and b are not compared: they have 0 tasks in common"):
        assert compare(played).empty


def test_compare_pairs_what_both_have_played():
    played = frame(a="++++--", b="+---+-", c="++")
    table = compare(played).set_index(["first", "second"])
    row = table.loc["a", "b"]
    assert (row["tasks"], row["only_first"], row["only_second"]) == (6, 3, 1)
    assert row["difference"] == pytest.approx(2 / 6)
    assert row["p"] == mcnemar([1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 1, 0]).p
    assert table.loc["a", "c"]["tasks"] == 2
    assert list(table["p_holm"]) == pytest.approx(holm(list(table["p"])))
    assert set(table["model"]) == {"m"}


def test_pairs_are_of_episodes_that_occur_once_whatever_their_costs():
    played = frame(a="++--", b="+---")
    cheap = played.drop(columns="generated", errors="ignore")
    short = summarize_pairs(pair_by_task(cheap, "a", "b"))
    assert list(short["solved"]) == [2, 1]
    with pytest.raises(ValueError, match="1 episodes occur twice"):
        pair_by_task(pd.concat([played, played[:1]]), "a", "b")


def test_compare_takes_the_mean_of_repeats_and_makes_no_mcnemar_test_of_them():
    table = compare(frame(a="++--|+---", b="----|----"))
    assert table["difference"][0] == pytest.approx((1 + 0.5) / 4)
    assert np.isnan(table["p"][0])
    assert np.isnan(table["p_holm"][0])


def test_repeats_of_another_method_take_no_test_from_a_pair():
    alone = compare(frame(a="++++--", b="+---+-"))
    beside = compare(frame(a="++++--", b="+---+-", c="+-|+-")).set_index(["first", "second"])
    assert beside.loc["a", "b"]["p"] == alone["p"][0]
    assert np.isnan(beside.loc["a", "c"]["p"])


def test_compare_of_one_method_is_empty():
    alone = compare(frame(a="+-"))
    assert alone.empty
    assert {"first", "second", "p", "p_holm"} <= set(alone)


def test_at_equal_cost_what_cost_more_is_not_solved():
    played = frame(a="++++--", b="+---+-").assign(prompt_tokens=[1, 9, 1, 1, 1, 1] + [2] * 6)
    table = compare(played, within={"prompt_tokens": 5})
    assert table[["only_first", "only_second"]].values.tolist() == [[2, 1]]
    assert compare(played)[["only_first", "only_second"]].values.tolist() == [[3, 1]]
    spent = played.assign(status="out of tokens")
    assert compare(spent, within={"prompt_tokens": 5})[
        ["cut_first", "cut_second"]
    ].values.tolist() == [[2, 4]]
    unknown = played.assign(prompt_tokens=[float("nan")] + [1.0] * 11)
    assert compare(unknown, within={"prompt_tokens": 5})["tasks"].tolist() == [5]
    with pytest.raises(ValueError, match="'tokens' is no cost of an episode; choose one of"):
        compare(played, within={"tokens": 5})


def test_what_an_engine_broke_is_told_and_is_no_error_where_it_was_solved_before():
    played = frame(a="++--", b="----").assign(error=["x", "", "", "x"] + [""] * 4)
    assert success(played)["errors"].tolist() == [1, 0]
    with pytest.warns(UserWarning, match="1 of 8 episodes broke down .* Suite.run\\(retry=True\\)"):
        compare(played)


def test_repeats_has_mean_and_standard_error_of_runs_and_depths():
    table = repeats(frame(a="++++|++--|+++-", b="+-+-"))
    row = table.set_index("method").loc["a"]
    assert (row["runs"], row["tasks"], row["mean"]) == (3, 4, 75)
    assert row["stderr"] == pytest.approx(25 / np.sqrt(3))  # the rates are 100, 50 and 75
    assert (row["average_depth"], row["maximum_depth"]) == (1.5, 3)
    assert np.isnan(table.set_index("method").loc["b"]["stderr"])


def test_repeats_refuses_runs_over_different_tasks():
    with pytest.raises(ValueError, match=r"different tasks \(2 to 3 a run\)"):
        repeats(frame(a="+-+|+-"))


def test_an_episode_that_occurs_twice_is_refused():
    twice = pd.concat([frame(a="+-"), frame(a="-")])
    for function in (success, compare, repeats, calls, success_by_cost):
        with pytest.raises(ValueError, match="1 episodes occur twice, the first is method a"):
            function(twice)


def test_what_tells_two_rows_of_one_episode_apart_is_said():
    one, other = (frame(a="+").assign(settings=name) for name in "xy")
    with pytest.raises(
        ValueError, match=r"by settings: frame\[frame\['settings'\] == 'x'\] or frame"
    ):
        success(pd.concat([one, other]))


def test_benchmarks_are_not_added_up():
    both = pd.concat(
        [frame(a="+-").assign(environment="sql"), frame(a="+").assign(environment="x")]
    )
    for function in (success, compare, repeats, calls, success_by_cost):
        with pytest.raises(ValueError, match="episodes of sql and x"):
            function(both)
    assert list(success(both, by=["environment", "method"])["n"]) == [2, 1]


def test_models_are_compared_like_methods():
    one, other = frame(a="+++-", b="----"), frame(a="---+", b="----").assign(model="n")
    both = pd.concat([one, other])
    table = compare(both, of="model")
    assert list(table["method"]) == ["a", "b"]
    assert (table["first"][0], table["second"][0]) == ("m", "n")
    assert (table["only_first"][0], table["only_second"][0]) == (3, 1)
    assert table["p"][0] == compare(pd.concat([frame(a="+++-"), frame(b="---+")]))["p"][0]
    with pytest.raises(ValueError, match="cannot be paired; choose one of method, model"):
        compare(both, of="task")


def test_a_frame_of_something_else_is_refused():
    with pytest.raises(ValueError, match="no column seed"):
        success(frame(a="+").drop(columns="seed"))


def test_a_group_may_be_named_by_one_column():
    played = frame(a="+-", b="--")
    assert success(played, "method").equals(success(played, ["method"]))
    for by in ("task number", [], ["method", "colour"]):
        with pytest.raises(ValueError, match="names no columns to group by; give some of method,"):
            success(played, by)


def test_results_are_not_their_frame_and_a_limit_has_the_name_of_its_cost():
    results = Results([])
    for function in (success, compare, repeats, calls, success_by_cost):
        with pytest.raises(ValueError, match=r"is no frame .* give the `frame` of Results"):
            function(results)
    with pytest.raises(ValueError, match=r"within=60000 limits no cost; give \{'prompt_tokens'"):
        compare(frame(a="+-", b="--"), within=60000)


def test_success_by_cost_counts_what_was_solved_so_cheaply():
    table = success_by_cost(frame(a="+-++", b="----"), budgets=[99, 100, 350, 1000])
    a, b = table[table["method"] == "a"], table[table["method"] == "b"]
    assert list(a["solved"]) == [0, 1, 2, 3]  # for 100, 300 and 400 tokens
    assert set(a["n"]) == {4}
    assert list(b["solved"]) == [0] * 4
    assert (a["low"].iloc[2], a["high"].iloc[2]) == wilson(2, 4)
    whole = success_by_cost(frame(a="+-++", b="----"))
    # Also b, which solved none, begins and ends where all do.
    assert list(whole["budget"]) == [100, 300, 400, 100, 400]
    assert list(whole["rate"]) == [0.25, 0.5, 0.75, 0, 0]
    with pytest.raises(
        ValueError, match="'money' is no cost of an episode; choose one of evaluated"
    ):
        success_by_cost(frame(a="+"), "money")
    for none in (float("nan"), float("inf"), -1, None):  # one of which counted as nothing solved
        with pytest.raises(ValueError, match="is no limit of evaluated; give a number, 0 or more"):
            success_by_cost(frame(a="+-"), budgets=[none])
        with pytest.raises(ValueError, match="is no limit of evaluated; give a number, 0 or more"):
            compare(frame(a="+-", b="-+"), within={"evaluated": none})


def test_calls_are_averaged_over_episodes():
    table = calls(frame(a="+-+", b="+"))
    assert list(table["mean"]) == [11, 10]
    assert list(table["maximum"]) == [12, 10]
    assert table["stderr"][0] == pytest.approx(1 / np.sqrt(3))
    assert np.isnan(table["stderr"][1])


# Two methods on the same tasks


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


def test_an_episode_of_unknown_cost_is_left_out():
    """Of one that was interrupted nobody knows the seconds."""
    played = frame(a="++-+").assign(seconds=[1.0, 2.0, 3.0, None])
    table = success_by_cost(played, "seconds")
    assert list(table["budget"]) == [1, 2, 3]
    assert list(table["rate"]) == [1 / 3, 2 / 3, 2 / 3]
    assert set(table["n"]) == {3}
