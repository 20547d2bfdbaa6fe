"""Costs in US dollars, and InterCode's tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from thread_kit.analysis.intercode import (
    group_by_hardness,
    make_intercode_table,
    note_stateflow,
    note_weighed,
)
from thread_kit.analysis.prices import add_dollars, compute_dollars, load_prices
from thread_kit.analysis.published import compare_with_published, load_published
from thread_kit.envs.intercode_sql.questions import HARDNESS

MODELS = {"GPT-3.5": "gpt-3.5-turbo-1106", "GPT-4": "gpt-4-1106-preview"}


@pytest.mark.parametrize("table", ["Table 5", "Table 6", "Table 7"])
def test_published_costs_follow_from_published_tokens_and_our_prices(table):
    """The paper's tokens are rounded means, so the costs agree to what rounding leaves."""
    rows = load_published(paper="StateFlow")
    rows = rows[rows["table"] == table]
    for (model, name), group in rows.groupby(["model", "row"]):
        values = group.set_index("metric")["value"]
        tokens = [values.filter(like=kind).item() for kind in ("prompt", "completion")]
        n = group["n"].iloc[0]
        dollars = compute_dollars(n * tokens[0], n * tokens[1], MODELS[model])
        assert dollars == pytest.approx(values.filter(like="cost").item(), rel=0.02), (model, name)


def frame() -> pd.DataFrame:
    row = {"method": "react", "model": "m", "prompt_tokens": 1000, "generated": 500}
    return pd.DataFrame(
        [
            {**row, "solved": True, "reward": 1.0, "turns": 4, "error_rate": 0, "hardness": "easy"},
            {**row, "solved": False, "reward": None, "turns": 10, "error_rate": 0.5}
            | {"hardness": "extra"},
        ]
    ).assign(task=["a", "b"], seed=0)


def test_a_table_has_the_papers_columns():
    (row,) = make_intercode_table(frame()).to_dict("records")
    assert row == {"method": "react", "model": "m", "n": 2, "success": 50, "reward": 0.5} | {
        "turns": 7,
        "error_rate": 25,
        "dollars": 0.004,
        "prompt_tokens": 1000,
        "generated": 500,
    }


def test_a_question_that_was_never_started_counts_in_its_difficulty():
    """The other method's row tells which that is."""
    unstarted = frame().iloc[:1].assign(method="other", solved=False, hardness=None)
    table = group_by_hardness(pd.concat([frame(), unstarted])).set_index("method")
    assert table.loc["other", "easy"] == 0


@pytest.mark.parametrize("count", [make_intercode_table, group_by_hardness])
def test_no_episode_is_counted_twice(count):
    with pytest.raises(ValueError, match="2 episodes occur twice"):
        count(pd.concat([frame(), frame()]))
    with pytest.raises(ValueError, match="have no prompt_tokens"):
        make_intercode_table(frame().drop(columns="prompt_tokens"))


def test_turns_of_several_trials_are_those_of_all():
    """A row's own are of the last one."""
    several = frame().assign(trials=[1, 3], actions=[4, 25])
    (row,) = make_intercode_table(several).to_dict("records")
    assert row["turns"] == (4 + 25) / 2
    assert np.isnan(row["error_rate"])


def test_what_the_rounds_cut_stands_beside_the_rates():
    ended = frame().assign(status="ended", out_of_actions=[False, True])
    assert list(make_intercode_table(ended)["cut"]) == [1]
    assert list(group_by_hardness(ended)["cut"]) == [1]


def test_success_by_difficulty():
    (row,) = group_by_hardness(frame()).to_dict("records")
    assert np.isnan(row.pop("weighed")), "no question of two of the difficulties"
    assert row == {"method": "react", "model": "m", "easy": 100, "extra": 0, "all": 50}


def test_prices_of_ones_own(tmp_path):
    own = tmp_path / "prices.csv"
    own.write_text("model,input,output,date,source\nmine,5,7,2026-01-01,me\n")
    priced = add_dollars(frame(), priced_as="mine", prices=load_prices(own))
    assert list(priced["dollars"]) == [pytest.approx(0.0085)] * 2
    for path in (own, str(own)):
        assert add_dollars(frame(), priced_as="mine", prices=path).equals(priced)
        (row,) = make_intercode_table(frame(), priced_as="mine", prices=path).to_dict("records")
        assert row["dollars"] == pytest.approx(0.017)
    with pytest.raises(ValueError, match=r"no price of 'gpt-9'; known: gpt-3\.5-turbo-1106"):
        add_dollars(frame(), priced_as="gpt-9")
    own.write_text("model,input\nmine,5\n")
    with pytest.raises(ValueError, match="lacks date, output, source"):
        load_prices(own)
    own.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="lacks date, input, model, output, source"):
        load_prices(own)


def test_a_table_of_what_was_never_started_has_no_turns():
    (row,) = make_intercode_table(
        frame().drop(columns=["turns", "error_rate"]).assign(solved=False)
    ).to_dict("records")
    assert (row["n"], row["success"]) == (2, 0)
    assert row["turns"] != row["turns"]


def test_episodes_in_mariadb_are_rows_of_their_own():
    rows = pd.concat([frame(), frame().assign(mariadb=True)], ignore_index=True)
    rows = rows.assign(environment="sql", split="test", seed=0, task=list("abcd"))
    table = compare_with_published(rows)
    assert list(table["source"][:2]) == [
        "this file, 2 of 1034 tasks",
        "this file, 2 of 1034 tasks, in MariaDB",
    ]
    assert {"Plan & Solve", "ReAct_Refined", "Try Again"} <= set(table["method"])


def test_what_appendix_a2_counts_of_stateflow_is_counted_of_ours():
    row = {"method": "stateflow", "model": "m", "split": "test"}
    ways = {"easy": (["Observe", "Solve"], ["Solve", "Error"]), "extra": (["Error"], None)}
    rows = [
        {**row, "environment": "sql", "hardness": hardness, "states": way, "solved": True}
        for hardness, each in ways.items()
        for way in each
    ]
    rows += [
        {**row, "environment": env, "reward": reward, "solved": False}
        for env, reward in (("sql", 0.0), ("sql", 0.1), ("bash", 0.5), ("bash", 0.67))
    ]
    rows = [{"reward": 1.0, **one} for one in rows]
    played = pd.DataFrame([*rows, {**rows[-1], "method": "react"}])
    bash, sql, over = note_stateflow(played)
    of_two = "Of 2 failed tasks of StateFlow (m) 1 have a reward over"
    assert bash.startswith(f"{of_two} 0.5 (50.0%, and 50.0% of all 2; paper, A.2: 58.5%")
    assert sql.startswith(f"{of_two} 0 (50.0%, and 16.7% of all 6; paper, A.2: 0.5%")
    assert over.startswith("Solved questions that went over Error (m): 1 of 2 easy, 1 of 1 extra (")
    assert note_stateflow(played[played["method"] == "react"]) == ()
    assert note_stateflow(pd.DataFrame(rows[:4]).drop(columns="states")) == ()


def test_a_sample_with_as_many_of_each_difficulty_is_weighed_as_the_questions_are():
    row = {"environment": "sql", "split": "test", "method": "react", "model": "m", "seed": 0}
    solved = {"easy": [True, True], "medium": [True, False]}
    solved |= {hardness: [False, False] for hardness in ("hard", "extra")}
    played = pd.DataFrame(
        [
            {**row, "task": f"{hardness} {n}", "hardness": hardness, "solved": won}
            for hardness, results in solved.items()
            for n, won in enumerate(results)
        ]
    )
    (table,) = group_by_hardness(played).to_dict("records")
    assert table["all"] == 100 * 3 / 8
    assert table["weighed"] == pytest.approx(100 * (248 + 446 / 2) / 1034)
    (note,) = note_weighed(played)
    assert "166 extra): react 45.6." in note
    parts = played.assign(reward=None, turns=[3, 4, 5, 6, 10, 10, 10, 10], error_rate=0.5)
    parts.loc[played["solved"], "reward"] = 1.0
    assert note_weighed(parts, {"success rate", "reward", "turns", "error rate", "cost"}) == (
        note,
        "Reward, weighed so: react 0.46.",
        f"Turns, weighed so: react {(248 * 3.5 + 446 * 5.5 + 340 * 10) / 1034:.2f}.",
        "Error rate, weighed so: react 50.0.",
    )
    assert note_weighed(played[played["hardness"] != "hard"]) == ()
    assert note_weighed(played.assign(split="dev")) == ()
    assert sum(HARDNESS.values()) == 1034
