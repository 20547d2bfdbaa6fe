"""The published numbers: what can be recomputed, what the papers' texts say of their own tables."""

from __future__ import annotations

import csv
import math

import pandas as pd
import pytest

from thread_kit.analysis.intercode import BASH_A2, SQL_A2
from thread_kit.analysis.published import (
    PAPERS,
    PUBLISHED_NAMES,
    RATES,
    by_type,
    compare_with_published,
    list_published_names,
    load_published,
)
from thread_kit.analysis.statistics import wilson
from thread_kit.experiments.method_registry import BUILDERS, list_methods
from thread_kit.experiments.results import Results
from thread_kit.paths import resource

ALL = load_published()
GROUPS = ["paper", "table", "benchmark", "split", "model", "row"]


def value(paper: str, table: str, row: str, metric="success rate", group="All", **more) -> float:
    wanted = {"paper": paper, "table": table, "row": row, "metric": metric, "group": group, **more}
    values = ALL.loc[(ALL[list(wanted)] == pd.Series(wanted)).all(axis=1), "value"]
    assert len(values) == 1, wanted
    return values.item()


def rates() -> pd.DataFrame:
    return ALL[ALL["metric"].isin(RATES)]


def last_place(number: float) -> float:
    """What the last printed digit is worth."""
    return 0.1 if round(number, 1) == number else 0.01


# The data


def test_every_number_is_cited_and_occurs_once():
    assert set(ALL["paper"]) == set(PAPERS)
    cited = [*GROUPS, "group", "metric", "note"]
    named = ["paper", "table", "benchmark", "row", "method", "model", "metric"]
    assert (ALL[named] != "").to_numpy().all()
    assert (ALL["n"] > 0).all()
    assert not ALL.duplicated(cited).any()


@pytest.mark.parametrize(
    ("paper", "numbers"),
    [
        # rows x columns of Tables 1 to 8, less the cells that are printed as a dash
        ("THREAD v2", 13 * 7 - 6 + 18 + 21 + 60 + 20 + 20 + 15 + 21),
        ("THREAD v1", 11 * 7 - 6 + 15 + 17 + 52 + 16 + 16 + 5 + 21),
        ("StateFlow", 32 + 24 + 16 + 32 + 20 + 77 + 63 + 28 + 14 + 16 + 16 + 8),
        ("ADaPT", 35 + 11 + 8 + 4 + 35 + 14 + 4 + 2),
    ],
)
def test_no_cell_of_a_table_is_missing(paper, numbers):
    assert len(load_published(paper=paper)) == numbers


def test_standard_errors_are_those_of_table_7():
    rows = load_published(paper="THREAD v2").dropna(subset="stderr")
    printed = zip(rows["value"], rows["stderr"], strict=True)
    assert dict(zip(rows["benchmark"], printed, strict=True)) == {
        "DataCommons QA": (76.7, 0.17),
        "MIMIC-III ICU QA": (71.4, 0.36),
        "ALFWorld": (95.7, 0.28),
        "TextCraft": (93.7, 0.37),
        "WebShop": (48.6, 0.40),
    }


# What can be recomputed


def runs(note: str) -> int:
    return 3 if "3 attempts" in note else 5 if "5 runs" in note else 1


def test_every_rate_is_a_whole_number_of_tasks_or_says_that_it_is_not():
    odd = []
    for row in rates().itertuples():
        episodes = row.n * runs(row.note)
        nearest = 100 * round(row.value * episodes / 100) / episodes
        if abs(nearest - row.value) > last_place(row.value) / 2 + 1e-9:
            odd.append((row.paper, row.table, row.row, row.group))
            assert "as printed" in row.note, row
    assert odd == [
        ("StateFlow", "Table 1", "ReAct", "All"),
        ("StateFlow", "Table 4", "Plan & Solve", "Hard"),
        ("StateFlow", "Table 4", "Plan & Solve", "Extra"),
        ("StateFlow", "Table 4", "StateFlow", "Medium"),
        ("StateFlow", "Table 5", "ReAct", "All"),
        ("StateFlow", "Table 10", "StateFlow", "Clean"),
        ("ADaPT", "Table 1", "Try Again with ReAct", "Heat"),
        ("ADaPT", "Table 1", "Reflexion", "Heat"),
        ("ADaPT", "Table 1", "ADAPT (Ours)", "Heat"),
        ("ADaPT", "Table 6", "ReAct", "Cool"),
        ("ADaPT", "Table 6", "ADAPT (Ours)", "All"),
        ("ADaPT", "Table 4", "executor GPT-3.5, planner none", "All"),
        ("ADaPT", "Table 4", "executor LLaMA-2-70B, planner none", "All"),
    ]


def test_the_groups_weighted_by_their_tasks_give_the_total_or_the_note_says_so():
    checked, odd = 0, []
    for key, group in rates().groupby(GROUPS, sort=False):
        parts, total = group[group["group"] != "All"], group[group["group"] == "All"]
        if len(parts) < 4:
            continue
        checked += 1
        assert parts["n"].sum() == total["n"].item()
        mean = (parts["value"] * parts["n"]).sum() / parts["n"].sum()
        if abs(mean - total["value"].item()) > 0.1:
            odd.append(key[:2] + key[5:])
            assert group["note"].str.contains("as printed").any()
    assert checked == 15 + 13 + 12 + 10  # of the four papers, THREAD's later version first
    assert odd == [
        ("StateFlow", "Table 4", "Plan & Solve"),
        ("StateFlow", "Table 4", "StateFlow"),
        ("StateFlow", "Table 10", "StateFlow"),
        ("ADaPT", "Table 1", "Reflexion"),
    ]


def test_the_misprints_are_single_digits():
    # With the value that the note offers, the levels give the printed total.
    counts = {"Easy": 248, "Medium": 446, "Hard": 174, "Extra": 166}
    for row, group, offered in (("Plan & Solve", "Hard", 29.9), ("StateFlow", "Medium", 61.9)):
        levels = {name: value("StateFlow", "Table 4", row, group=name) for name in counts}
        levels[group] = offered
        mean = sum(levels[name] * n for name, n in counts.items()) / 1034
        assert mean == pytest.approx(value("StateFlow", "Table 4", row), abs=0.06)


def count_by_depth(row: str) -> int:
    """How many tasks of depth 2 and 3 a row of ADaPT's Table 3 solves."""
    rates = {n: value("ADaPT", "Table 3", row, group=at) for at, n in DEPTHS.items()}
    return sum(round(rate * n / 100) for n, rate in rates.items())


DEPTHS = {"depth 2": 78, "depth 3": 111}


def test_adapts_depths_give_its_total_if_it_solved_none_of_depth_4():
    total = value("ADaPT", "Table 2", "ADAPT (Ours)", benchmark="TextCraft")
    assert 100 * count_by_depth("ADaPT (d_max = 4)") / 200 == total


def test_reacts_depths_cannot_give_its_total_and_the_notes_say_so():
    most = 100 * (count_by_depth("ReAct") + 200 - sum(DEPTHS.values())) / 200
    assert most == 17 < value("ADaPT", "Table 2", "ReAct", benchmark="TextCraft") == 19
    rows = ALL[(ALL["paper"] == "ADaPT") & (ALL["benchmark"] == "TextCraft")]
    rows = rows[(rows["row"] == "ReAct") & (rows["metric"] == "success rate")]
    total, *depths = rows["note"]
    assert "17.0 in Table 3 at most, with 21 of 78, 2 of 111 and all eleven" in total
    assert len(depths) == 2
    assert all("19.0 in Table 2" in note for note in depths)


def test_the_percentages_of_appendix_a2_are_of_what_the_notes_say():
    """StateFlow's; an episode that fails has a reward under 1."""
    rate = value("StateFlow", "Table 6", "StateFlow", model="GPT-3.5")
    failed = 200 - round(200 * rate / 100)
    assert all(f"{k / failed:.1%}" != "58.5%" for k in range(failed + 1))
    assert f"{117 / 200:.1%}" == "58.5%"
    assert f"75 of the {failed} that failed are {75 / failed:.1%}" in BASH_A2
    rate = value("StateFlow", "Table 5", "StateFlow", model="GPT-3.5")
    reward = value("StateFlow", "Table 5", "StateFlow", "reward", model="GPT-3.5")
    solved = round(1034 * rate / 100)
    least = math.ceil((reward - 0.00005) * 1034 - solved)
    assert f"need {least} of the {1034 - solved}, {least / (1034 - solved):.1%}, or" in SQL_A2


def test_failures_by_ending_state_add_up():
    ends = ALL[ALL["metric"] == "failures by ending state"]
    for _, row in ends.groupby("row"):
        total = row.loc[row["group"] == "All", "value"].item()
        assert row.loc[row["group"] != "All", "value"].sum() == total


def test_two_contradictions_within_a_paper_have_their_notes():
    react = value("ADaPT", "Table 2", "ReAct", benchmark="WebShop")
    alone = value("ADaPT", "Table 7", "Iterative Executor-Only")
    assert (react, alone) == (32.0, 29.0)
    rows = ALL[(ALL["paper"] == "ADaPT") & (ALL["benchmark"] == "WebShop")]
    rows = rows[(rows["method"] == "ReAct") & (rows["metric"] == "success rate")]
    notes = rows.set_index("table")["note"]
    assert "29.0 in Table 7" in notes["Table 2"]
    assert "32.0 in Table 2" in notes["Table 7"]
    failures = ALL[(ALL["metric"] == "failures by ending state") & (ALL["group"] == "All")]
    (note,) = failures.loc[failures["row"] == "StateFlow (7-state)", "note"]
    assert "23 in the text of appendix B.2" in note


def test_no_cell_has_blanks_around_it():
    for file in PAPERS.values():
        text = resource(f"data/published/{file}").read_text("utf-8")
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        assert [cell for cell in cells if cell != cell.strip()] == []


def test_both_versions_of_the_thread_paper_print_the_same():
    same = ["benchmark", "group", "method", "model", "metric", "note"]
    older, newer = (load_published(paper=f"THREAD v{n}") for n in (1, 2))
    both = older.merge(newer, on=same, suffixes=("_1", "_2"))
    assert len(both) == len(older)
    assert (both["value_1"] == both["value_2"]).all()
    assert set(newer["method"]) - set(older["method"]) == {"DecomP"}


def test_stateflows_tables_print_the_same_numbers_to_fewer_places():
    flow = load_published(paper="StateFlow")
    pairs = 0
    for brief, full in (("Table 1", "Table 5"), ("Table 2", "Table 6"), ("Figure 4", "Table 7")):
        on = ["method", "model", "metric"]
        both = flow[flow["table"] == brief].merge(flow[flow["table"] == full], on=on)
        assert len(both) == (flow["table"] == brief).sum()
        assert (abs(both["value_x"] - both["value_y"]) <= 0.0501).all()
        pairs += len(both)
    assert pairs == 32 + 24 + 16


# What the texts say


def best_prior(table: str, model: str, metric="success rate") -> float:
    rows = load_published(paper="THREAD v2", model=model)
    rows = rows[(rows["table"] == table) & (rows["metric"] == metric)]
    return rows.loc[(rows["method"] != "THREAD") & (rows["group"] == "All"), "value"].max()


def thread(table: str, model: str, metric="success rate") -> float:
    return value("THREAD v2", table, "THREAD", metric, model=model)


@pytest.mark.parametrize(
    ("table", "model", "points"),
    [
        # THREAD v2, sections 4.1 ("over 9%"), 4.2 ("at least 20%, 40%, 30%"), 4.4 ("over 10%")
        ("Table 1", "GPT-3.5", 9),
        ("Table 3", "GPT-3.5", 20),
        ("Table 3", "Llama-3-8b", 40),
        ("Table 3", "CodeLlama-7b", 30),
    ],
)
def test_thread_leads_by_what_its_text_says(table, model, points):
    assert points <= thread(table, model) - best_prior(table, model) < points + 5


def test_threads_text_on_webshop_and_questions():
    # Section 4.3: 4% over prompt-only methods (the best is TDAG), 1% over RAP.
    assert thread("Table 4", "GPT-3.5") - best_prior("Table 4", "GPT-3.5") == 1
    assert thread("Table 4", "GPT-3.5") - value(
        "THREAD v2", "Table 4", "TDAG (Wang et al., 2024)", model="GPT-3.5"
    ) == pytest.approx(4)
    for model in ("GPT-3.5", "Llama-3-8b", "CodeLlama-7b"):  # section 4.4
        gain = thread("Table 5", model, "accuracy") - best_prior("Table 5", model, "accuracy")
        assert gain >= 9.99


def test_adapts_text_says_what_its_tables_say():
    def ours(table, **more):
        return value("ADaPT", table, "ADAPT (Ours)", **more)

    # Section 5: 28.3 over ReAct and Plan-and-Execute, 23.8 over Try Again, 14.1 over Reflexion
    rows = ("ReAct", 28.3), ("Plan-and-Execute", 28.3), ("Try Again with ReAct", 23.8)
    for row, gain in (*rows, ("Reflexion", 14.1)):
        assert ours("Table 1") - value("ADaPT", "Table 1", row) == pytest.approx(gain)
    # 33, 25 and 20 points on TextCraft
    for row, gain in {"ReAct": 33, "Plan-and-Execute": 25, "Reflexion": 20}.items():
        theirs = value("ADaPT", "Table 2", row, benchmark="TextCraft")
        assert ours("Table 2", benchmark="TextCraft") - theirs == gain
    # Appendix C: 23.1 and 12.6; appendix D: 20.0 and 22.5
    for row, gain in {"ReAct": 23.1, "Reflexion": 12.6}.items():
        assert ours("Table 6") - value("ADaPT", "Table 6", row) == pytest.approx(gain)
    for group, gain in {"3 products": 20.0, "10 products": 22.5}.items():
        adapt, react = (
            value("ADaPT", "Table 8", row, group=group) for row in ("ADAPT (d_max = 3)", "ReAct")
        )
        assert adapt - react == gain


def test_stateflows_text_says_what_its_tables_say():
    def sr(row, table="Table 1", model="GPT-3.5", metric="success rate"):
        return value("StateFlow", table, row, metric, model=model)

    # Section 4.1: 7% by the refined prompt, 6% more and 5 times less cost, 10% with GPT-4
    assert sr("ReAct_Refine") - sr("ReAct") == pytest.approx(7, abs=0.1)
    assert sr("StateFlow") - sr("ReAct_Refine") == pytest.approx(6, abs=0.1)
    assert sr("ReAct_Refine", metric="cost") / sr("StateFlow", metric="cost") == pytest.approx(
        5, 0.1
    )
    assert sr("StateFlow", model="GPT-4") - sr("ReAct", model="GPT-4") == pytest.approx(10, 0.1)
    # Section 4.2: 28% over ReAct, 15% over ALFChat with three agents, 2.5 times less cost
    assert sr("StateFlow", "Table 3") - sr("ReAct", "Table 3") == pytest.approx(28, abs=0.3)
    assert sr("StateFlow", "Table 3") - sr("ALFChat (3 agents)", "Table 3") > 15
    cost = sr("ReAct", "Table 3", metric="cost") / sr("StateFlow", "Table 3", metric="cost")
    assert cost == pytest.approx(2.5, abs=0.05)


# Asking for them


def test_numbers_are_found_by_name_in_any_letters():
    rows = load_published(benchmark="textcraft", method="thread", model="llama-3-8B")
    assert list(rows["paper"]) == ["THREAD v2", "THREAD v1"]
    assert list(rows["value"]) == [92.0, 92.0]
    assert list(rows["n"]) == [200, 200]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"benchmark": "chess"}, "benchmark 'chess'; known: ALFWorld, TextCraft"),
        ({"benchmark": "TextCraft", "model": "GPT-4"}, "model 'GPT-4'; known: GPT-3.5, Llama-3-8b"),
    ],
)
def test_what_was_never_published_is_refused_with_what_was(filters, message):
    with pytest.raises(ValueError, match=message):
        load_published(**filters)


# Ours beside theirs


def ours(model="smollm2-135m", method="thread", n=200, solved=150, split="test") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": method,
            "model": model,
            "environment": "textcraft",
            "task": [f"t{at}" for at in range(n)],
            "split": split,
            "seed": 0,
            "solved": [at < solved for at in range(n)],
            "solvable": [at != 0 for at in range(n)],
        }
    )


def test_ours_and_theirs_name_method_model_n_interval_and_source():
    table = compare_with_published(ours())
    first = table.iloc[0]
    assert (first["kind"], first["method"], first["model"]) == ("own run", "thread", "smollm2-135m")
    assert (first["n"], first["success"]) == (200, 75)
    assert (first["low"], first["high"]) == tuple(100 * end for end in wilson(150, 200))
    assert "the oracle solves 199 of these 200 tasks" in first["note"]
    theirs = table[(table["method"] == "THREAD") & (table["model"] == "Llama-3-8b")].iloc[0]
    assert (theirs["kind"], theirs["n"], theirs["success"]) == ("published", 200, 92)
    assert theirs["source"] == "THREAD v2, Table 3"
    assert (theirs["low"], theirs["high"]) == tuple(100 * end for end in wilson(184, 200))
    assert set(table.loc[1:, "kind"]) == {"published"}
    assert (table[["method", "model", "source"]] != "").to_numpy().all()
    assert "THREAD v1" not in " ".join(table["source"])


def test_a_mean_over_runs_has_no_wilson_interval():
    table = compare_with_published(ours(), method="thread")
    mean = table[table["source"] == "THREAD v2, Table 7"].iloc[0]
    assert mean["success"] == 93.7
    assert pd.isna(mean["low"])
    assert pd.isna(mean["high"])


@pytest.mark.parametrize(
    ("changes", "same", "kind", "note"),
    [
        ({}, {}, "own run", "another model"),
        ({"model": "Llama-3-8b"}, {}, "own run", "another model"),
        ({"model": "mine"}, {"mine": "Llama-3-8b"}, "reproduction", "weights of Llama-3-8b"),
        ({"model": "mine", "n": 40, "solved": 30}, {"mine": "Llama-3-8b"}, "own run", "40 tasks"),
        ({"model": "mine", "split": "dev"}, {"mine": "Llama-3-8b"}, "own run", "nothing is"),
        ({"model": "mine", "method": "mine"}, {"mine": "Llama-3-8b"}, "own run", "nothing is"),
        ({"model": "mine"}, {"mine": "GPT-4"}, "own run", "nothing is published of thread"),
    ],
    ids=["other", "same name", "same", "fewer tasks", "other split", "other method", "unpublished"],
)
def test_only_the_same_weights_tasks_and_method_make_a_reproduction(changes, same, kind, note):
    row = compare_with_published(ours(**changes), same_model=same).iloc[0]
    assert row["kind"] == kind
    assert note in row["note"]


def household(method="thread", n=134, split="valid_unseen", **more) -> pd.DataFrame:
    return ours(method=method, n=n, solved=n // 2).assign(
        environment="alfworld", split=split, game=[f"heat-{at}" for at in range(n)], **more
    )


@pytest.mark.parametrize(
    ("method", "n", "split", "kind", "source"),
    [
        ("thread", 134, "valid_unseen", "reproduction", "this file"),
        ("stateflow", 134, "valid_unseen", "reproduction", "this file"),
        ("stateflow, 10 states", 134, "valid_unseen", "reproduction", "this file"),
        ("stateflow, 10 states", 67, "valid_unseen", "own run", "this file, 67 of 134 tasks"),
        ("adapt-atomic", 134, "valid_unseen", "own run", "this file"),
        ("thread", 134, "generated", "own run", "this file"),
    ],
)
def test_alfworlds_unseen_games_are_the_papers_test_and_half_of_them_are_half(
    method, n, split, kind, source
):
    table = compare_with_published(
        household(method, n, split), same_model={"smollm2-135m": "GPT-3.5"}
    )
    assert (table.iloc[0]["kind"], table.iloc[0]["source"]) == (kind, source)


def test_each_method_of_ours_is_printed_under_a_name_that_the_papers_have():
    printed = set(ALL["method"].str.casefold())
    for method in PUBLISHED_NAMES:
        assert method in list_methods()
        assert set(list_published_names(method)) <= printed
    for method in BUILDERS.keys() & printed:
        assert method in list_published_names(method)


@pytest.mark.parametrize("benchmark", ["InterCode SQL", "InterCode Bash"])
def test_try_again_is_stateflows_only_where_the_reward_is_shown(benchmark):
    """And ReAct there is the whole method, not the ADaPT paper's executor."""
    assert list_published_names("try again", benchmark) == []
    assert list_published_names("try again, visible reward", benchmark) == ["try again"]
    assert list_published_names("react-hybrid", benchmark) == []
    assert list_published_names("react", benchmark) == ["react"]
    assert list_published_names("try again", "WebShop") == ["try again"]
    assert list_published_names("react-hybrid", "WebShop") == ["react"]


def test_episodes_with_the_nearest_action_are_rows_of_their_own():
    plain, mapped = household(), household(nearest=True).assign(solved=True)
    mapped["task"] += " nearest"
    table = compare_with_published(pd.concat([plain, mapped]))
    assert list(table["success"][:2]) == [50, 100]
    assert list(table["source"][:2]) == ["this file", "this file, nearest actions"]


def test_goals_that_were_played_with_other_pages_are_rows_of_their_own():
    """ADaPT paper, Table 8: three products a page, and ten."""
    rows = Results.load(resource("data/results/webshop-products-qwen.jsonl")).frame
    table = compare_with_published(rows)
    own = table[(table["kind"] == "own run") & (table["method"] == "adapt")]
    assert list(own["n"]) == [10, 10]
    assert [source.endswith(", 10 products a page") for source in own["source"]] == [False, True]


@pytest.mark.parametrize(
    ("environment", "table", "best"),
    [("datacommons", "THREAD v2, Table 5", 77.1), ("icu", "THREAD v2, Table 6", 71.3)],
)
def test_questions_stand_beside_their_table_and_are_never_a_reproduction(environment, table, best):
    frame = pd.concat([ours(model="mine", method=one, n=40) for one in ("thread", "nlep+react")])
    table_with_ours = compare_with_published(
        frame.assign(environment=environment), same_model={"mine": "Llama-3-8b"}
    )
    assert set(table_with_ours["kind"]) == {"own run", "published"}
    assert {"this file, other questions", table} <= set(table_with_ours["source"])
    methods = set(table_with_ours["method"])
    assert {"THREAD", "DecomP", "NLEP", "NLEP+ReAct", "Reflexion"} < methods
    assert table_with_ours.loc[table_with_ours["source"] == table, "success"].max() == best
    assert "these questions are not" in table_with_ours["note"].iloc[0]


def test_alfworld_by_task_type_has_ours_above_the_papers_tables():
    games = ["heat-1", "heat-2", "pick_two_obj_and_place-CD-None-Safe-308/trial_1"]
    played = pd.DataFrame(
        {
            "method": "thread",
            "model": "mine",
            "game": games,
            "task": games,
            "seed": 0,
            "split": "valid_unseen",
            "solved": [True, False, True],
            "evaluated": [100, 300, 200],
            "generated": [10, 30, 20],
            "calls": [1, 3, 2],
        }
    )
    table = by_type(played)
    first = table.iloc[0]
    assert (first["kind"], first["Heat"], first["Pick2"], first["n"]) == ("own run", 50, 100, 3)
    assert first["All"] == pytest.approx(200 / 3)
    assert pd.isna(first["Clean"])
    assert (first["split"], first["source"]) == ("valid_unseen", "this file, 3 of 134 tasks")
    assert (first["evaluated"], first["calls"]) == (200, 2)
    assert table.iloc[1:].equals(by_type().set_axis(range(1, len(table))))
    tables = {source.rpartition(", ")[::2] for source in table["source"][1:]} - {("", "")}
    assert tables == {
        *(("THREAD v2", f"Table {n}") for n in (1, 2, 7, 8)),
        *(("ADaPT", f"Table {n}") for n in (1, 4, 6)),
        *(("StateFlow", f"Table {n}") for n in (3, 9, 10)),
    }
    flow = table[table["source"] == "StateFlow, Table 9"].iloc[1]
    assert (flow["method"], flow["All"], flow["Pick2"]) == ("StateFlow (10-state)", 88.8, 58.8)
    assert flow["cost"] == 2.2
