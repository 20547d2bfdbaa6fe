"""What is played for an item: methods, tasks, settings and splits, and which rows are its own."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from helpers.stored import stored_rows

from thread_kit.analysis.item_differences import _has_loop, list_differences
from thread_kit.analysis.item_page import make_page
from thread_kit.analysis.item_states import State, find_state
from thread_kit.analysis.item_tables import make_our_table, select_rows
from thread_kit.analysis.paper_items import find_item, load_items
from thread_kit.analysis.plan import list_parts
from thread_kit.analysis.results_card import summarize_rows
from thread_kit.analysis.studies import make_outcome
from thread_kit.analysis.task_counts import count_tasks
from thread_kit.envs.registry import find_benchmark
from thread_kit.experiments.episode_facts import list_loop_limits
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.reproduce import _list_tasks
from thread_kit.trace.header import describe_program

MIMIC = "mimic3-benchmarks (33798 stays)"
ICU_QA = "mimiciii_icu_qa_benchmark.txt"


def make_rows(tasks: int = 2, **columns: object) -> pd.DataFrame:
    """Episodes of one method, each of another task; the first is solved."""
    common = {"seed": 0, "model": "m", "status": "ended", "date": "2026-01-01", "reward": 1.0}
    rows = [
        {**common, "task": f"{columns} {place}", "number": place, "solved": place == 0, **columns}
        for place in range(tasks)
    ]
    return pd.DataFrame(rows)


def test_every_prompt_only_method_is_in_the_figures_of_failures():
    """THREAD v2, appendix E: DecomP is in Figures 4 and 5; what has a memory is in none."""
    figures = {name: find_item("thread-v2", name).methods for name in ("figure-4", "figure-5")}
    assert all("decomp" in methods for methods in figures.values())
    assert not [name for name in find_item("thread-v2", "figure-6").methods if "reflexion" in name]


@pytest.mark.parametrize("item", ["table-2", "figure-6", "figure-7"])
def test_react_beside_adapt_is_its_executor_alone(item):
    """ADaPT paper, section 4.2: all of its methods share the executor."""
    item = find_item("adapt", item)
    for benchmark in item.find_benchmarks():
        methods = item.find_methods(benchmark)
        other = "react-hybrid" if benchmark.name == "textcraft" else "react"
        assert other not in methods
        assert {"react", "react-hybrid"} & set(methods), benchmark.name


def test_rows_of_another_executor_are_none_of_the_items():
    rows = make_rows(environment="webshop", split="test", method="react")
    assert select_rows(find_item("adapt", "table-2"), rows).empty
    assert len(select_rows(find_item("thread-v2", "table-4"), rows)) == 2


def test_rows_of_two_models_are_of_the_item_that_asks_for_two():
    rows = make_rows(environment="alfworld", split="generated", method="adapt", game="heat-0")
    rows["model"] = ["m", "m, planner n"]
    assert list(select_rows(find_item("adapt", "figure-5"), rows)["model"]) == ["m"]
    assert len(select_rows(find_item("adapt", "table-4"), rows)) == 2


def test_rows_that_were_sampled_are_of_runs_that_repeat():
    """THREAD paper, Table 7; its other tables are greedy."""
    rows = stored_rows()
    sampled = rows[rows["temperature"] > 0]
    assert set(sampled["model"]) == {"qwen2.5-coder-1.5b, temperature 0.7"}
    for item, share in (("table-5", 0), ("figure-6", 0), ("table-7", len(sampled))):
        assert len(select_rows(find_item("thread-v2", item), sampled)) == share
    assert "temperature" not in "".join(summarize_rows(rows)["model"])
    told = list_differences(find_item("thread-v2", "table-7"), sampled)
    assert "played at temperature 0.7, where the papers print 0 or none" in told


def test_what_prints_no_numbers_is_planned_with_all_models_that_it_names():
    """ADaPT paper, 6.2; THREAD v1, Figure 4."""
    for paper, item, models in (
        ("adapt", "figure-6", {"gpt-4", "Llama-2-70b-hf", "lemur-70b-chat-v1"}),
        ("thread-v1", "figure-4", {"Meta-Llama-3-8B"}),
    ):
        parts = list_parts([find_item(paper, item)])
        for name in {part.environment for part in parts}:
            planned = [part.model for part in parts if part.environment == name]
            assert models < {*planned}
            assert len({*planned} - models) == 1  # of the paper's own the benchmark's alone


@pytest.mark.parametrize(
    ("paper", "item", "counts"),
    [
        ("adapt", "figure-4", {"alfworld": 60, "webshop": 40, "textcraft": 220}),
        ("adapt", "table-8", {"webshop": 80}),
        ("adapt", "table-2", {"webshop": 100, "textcraft": 200}),
        ("thread-v1", "figure-4", {"datacommons": 140, "icu": 160, "webshop": 100}),
        ("stateflow", "figure-6", {"alfworld": 134}),
    ],
)
def test_an_item_has_as_many_tasks_as_its_paper(paper, item, counts):
    item = find_item(paper, item)
    own = {benchmark.name: count_tasks(item, benchmark) for benchmark in item.find_benchmarks()}
    assert {name: own[name] for name in counts} == counts


def test_as_many_are_played_as_the_plan_has():
    """Where the kit lists as many; ALFWorld's games are those of a folder."""
    for item in load_items():
        episodes = {part.environment: part.episodes for part in list_parts([item])}
        for benchmark in item.find_benchmarks() if item.study else ():
            if benchmark.name == "alfworld" or benchmark.name not in episodes:
                continue
            split = item.find_split(benchmark)
            played = len(_list_tasks(item, benchmark, None, (), split))
            listed = len(benchmark.tasks(split)) * (len(item.settings) or 1)
            assert played == min(episodes[benchmark.name] // item.runs, listed), item.label


def test_the_papers_play_webshops_first_hundred_goals():
    """Sessions fixed_0 to fixed_99 of both papers' released code."""
    item, webshop = find_item("adapt", "table-2"), find_benchmark("webshop")
    tasks = _list_tasks(item, webshop, None, ("by_people",), "test")
    assert [task["number"] for task in tasks] == [*range(100)]
    shop = {"catalogue": "official (1181436 products)", "by_people": True}
    columns = {"environment": "webshop", "split": "test", "method": "adapt", **shop}
    rows = make_rows(100, **columns)
    assert not [told for told in list_differences(item, rows) if "tasks of" in told]
    others = rows.assign(number=rows["number"] * 2)
    assert "50 of 100 tasks of WebShop" in list_differences(item, others)


def test_a_task_is_played_in_every_setting_of_an_item():
    item = find_item("adapt", "table-8")
    tasks = _list_tasks(item, find_benchmark("webshop"), 2, (), "dev")
    assert [task["products"] for task in tasks] == [3, 3, 10, 10]
    assert find_item("stateflow", "table-3").settings == ({"nearest": True},)


def test_ten_products_have_a_column_of_their_own():
    item = find_item("adapt", "table-8")
    common = {"environment": "webshop", "split": "dev", "method": "adapt"}
    few = make_rows(4, **common)  # as rows of before, which do not say how many
    many = make_rows(2, **common, products=10)
    table = make_our_table(item, select_rows(item, pd.concat([few, many], ignore_index=True)))
    assert list(table[["3 products", "10 products"]].iloc[0]) == [25, 50]
    assert "'adapt' without products 10" in list_differences(item, few)
    # The same goals with three products and with ten are no independent episodes.
    both = pd.concat([few.iloc[:2], many], ignore_index=True)
    assert make_our_table(item, select_rows(item, both))[["low", "high"]].isna().all(axis=None)
    assert not make_our_table(item, select_rows(item, few))[["low", "high"]].isna().any(axis=None)


def test_benchmarks_of_one_table_are_counted_apart():
    item = find_item("adapt", "table-2")
    common = {"split": "test", "method": "adapt"}
    here = make_rows(4, environment="textcraft", **common)
    there = make_rows(2, environment="webshop", **common)
    table = make_our_table(item, pd.concat([here, there], ignore_index=True))
    table = table.set_index("benchmark")
    assert table["n"].to_dict() == {"TextCraft": 4, "WebShop (stand-in)": 2}
    rates = table.filter(like="TextCraft", axis="columns").iloc[:, 0]
    assert rates["TextCraft"] == 25
    assert pd.isna(rates["WebShop (stand-in)"])


def test_react_without_nearest_actions_is_not_statflows_react():
    item = find_item("stateflow", "table-10")
    common = {"environment": "alfworld", "split": "valid_unseen", "game": "pick-0"}
    rows = pd.concat([make_rows(method=name, **common) for name in ("react", "stateflow")])
    rows = rows.reset_index(drop=True)
    assert "'react' without nearest" in list_differences(item, rows)
    assert not [
        line for line in list_differences(item, rows.assign(nearest=True)) if "near" in line
    ]


@pytest.mark.parametrize(
    ("paper", "item", "actions", "fits"),
    [
        ("stateflow", "table-10", 50, True),
        ("stateflow", "table-10", None, False),
        ("thread-v2", "table-1", 50, True),
        ("thread-v2", "table-1", None, False),
        ("adapt", "table-6", 50, False),
        ("adapt", "table-6", None, True),
    ],
)
def test_budgets_are_those_of_the_paper_of_the_item(paper, item, actions, fits):
    """ReAct's on ALFWorld: StateFlow, appendix B.1; THREAD, Table 10; ADaPT, appendix A."""
    item = find_item(paper, item)
    method = next(name for name in item.methods if name.startswith("react"))
    limits = json.dumps({"calls": None, "new_tokens": 800, "actions": actions})
    common = {"environment": "alfworld", "split": "valid_unseen", "game": "pick-0"}
    rows = make_rows(**common, method=method, limits=limits)
    told = f"budgets other than the paper's of '{method}'"
    assert (told in list_differences(item, rows)) is not fits


def test_trials_and_iterations_are_budgets_too():
    """ADaPT, 4.2: d_max - 1 trials behind the first one; rows of before do not tell."""
    item = find_item("thread-v2", "table-3")
    common = {"environment": "textcraft", "split": "test", "method": "reflexion"}
    common |= {"limits": json.dumps({"calls": None, "new_tokens": 1000})}
    told = "budgets other than the paper's of 'reflexion'"
    for trials in (4, 1, None):
        loop = {"trials": trials, "actor iterations": 20} if trials else None
        rows = make_rows(**common, loop=json.dumps(loop))
        assert (told in list_differences(item, rows)) is (trials == 1)


@pytest.mark.parametrize(("paper", "iterations"), [("stateflow", 100), ("thread-v2", 60)])
def test_iterations_are_those_of_the_paper_of_the_item(paper, iterations):
    """ReAct on ALFWorld: StateFlow, B.1; ADaPT, appendix A."""
    item = find_item(paper, {"stateflow": "table-3", "thread-v2": "table-1"}[paper])
    common = {"environment": "alfworld", "split": "valid_unseen", "game": "pick-0"}
    method = load_method("react", "alfworld-pick", iterations=iterations)
    loop = list_loop_limits(describe_program(method.fixed["program"]))
    for used in (iterations, 7):
        rows = make_rows(**common, method="react", loop=json.dumps({**loop, "iterations": used}))
        told = [line for line in list_differences(item, rows) if "budgets other" in line]
        own = _has_loop(item, "react", "alfworld-pick", rows["loop"].iloc[0])
        assert own is (used == iterations), told


def test_an_episode_without_a_reward_counts_as_none():
    item = find_item("adapt", "table-7")
    rows = make_rows(4, environment="webshop", split="test", method="adapt", number=0)
    table = make_our_table(item, rows.assign(reward=[1.0, 1.0, None, None]))
    assert table.filter(like="score").iloc[0, 0] == 50


def test_generated_games_stand_in_for_those_of_development():
    item = find_item("adapt", "figure-5")
    rows = make_rows(environment="alfworld", split="generated", method="adapt", game="heat-0")
    assert len(select_rows(item, rows)) == 2
    assert "games made here instead of valid_seen" in list_differences(item, rows)
    told = list_differences(item, rows.assign(split="valid_seen"))
    assert "other games of valid_seen than those that the paper has drawn" in told
    assert select_rows(find_item("adapt", "table-1"), rows).empty


@pytest.mark.parametrize(
    ("name", "task", "expected"),
    [
        ("icu", {"stays": MIMIC, "questions": ICU_QA}, False),
        ("icu", {"stays": MIMIC}, True),
        ("icu", {"stays": MIMIC, "questions": "mine.txt"}, True),
        ("icu", {"stays": "made up (60 stays)", "questions": ICU_QA}, True),
        ("icu", {"stays": "PhysioNet 2012 (3996 stays)"}, True),
        ("icu", {"stays": "made up (60 stays)"}, True),
        ("webshop", {"catalogue": "official (1181436 products)", "by_people": True}, False),
        ("webshop", {"catalogue": "official (1181436 products)"}, True),
        ("webshop", {"catalogue": "official (1000 products)", "by_people": True}, True),
        ("datacommons", {}, True),
        ("textcraft", {}, False),
        *((name, {"number": 0}, False) for name in ("sql", "bash")),
        *((name, {"number": 0, "files": math.nan}, False) for name in ("sql", "bash")),
        *((name, {"number": 0, "files": "62676b7b336c"}, True) for name in ("sql", "bash")),
    ],
)
def test_whether_tasks_stand_in_for_others_is_of_the_data_that_was_played(name, task, expected):
    assert find_benchmark(name).stands_in(task) is expected


def test_the_released_programs_questions_can_be_a_reproduction_and_those_made_here_cannot():
    item = find_item("thread-v2", "table-6")
    row = {"environment": "icu", "split": "test", "weights": "Meta-Llama-3-8B.Q8_0.gguf"}
    row |= {"limits": '{"new_tokens": 1000}', "stays": MIMIC, "questions": ICU_QA}
    rows = pd.concat([make_rows(160, **row, method=name) for name in item.methods])
    assert find_state(item, rows.reset_index(drop=True)).state == State.REPRODUCED
    for other in ({"stays": "PhysioNet 2012 (3996 stays)"}, {"questions": None}):
        others = rows.assign(**other).reset_index(drop=True)
        assert "stand-in for MIMIC-III ICU QA" in str(find_state(item, others))


def test_the_papers_own_shop_goals_and_database_are_no_difference():
    """WebShop's people's goals in the whole shop; a MySQL (StateFlow, section 4.1)."""
    webshop = find_item("thread-v2", "table-4")
    here = {"environment": "webshop", "split": "test", "method": "thread"}
    own = make_rows(100, **here, catalogue="official (1181436 products)", by_people=True)
    told = list_differences(webshop, own)
    assert not [line for line in told if "people" in line or "stand-in" in line]

    sql = find_item("stateflow", "table-1")
    rows = make_rows(1034, environment="sql", split="test", method="stateflow")
    assert "played in SQLite instead of MySQL" in list_differences(sql, rows)
    told = list_differences(sql, rows.assign(mariadb=True))
    assert not [line for line in told if "SQL" in line or "mariadb" in line]


@pytest.mark.parametrize("item", ["table-3", "table-8", "table-9", "table-10"])
def test_stateflows_tables_share_their_episodes(item):
    """Section 4.2 there: the nearest action in "all experiments"; Table 9 has Table 3's row."""
    item = find_item("stateflow", item)
    here = {"environment": "alfworld", "split": "valid_unseen", "game": "pick-0"}
    rows = pd.concat(make_rows(2, **here, method=one, nearest=True) for one in item.methods)
    assert not [line for line in list_differences(item, rows) if "nearest" in line]


def test_another_limit_of_actions_is_another_budget_whether_or_not_a_row_names_it():
    """ADaPT has none on ALFWorld, THREAD's tables have the game's own 50, which no row names."""
    limits = {"calls": None, "depth": 30, "new_tokens": 800, "seconds": None, "tokens": None}
    here = {"environment": "alfworld", "split": "valid_unseen", "game": "pick-0", "method": "adapt"}
    item = find_item("adapt", "table-1")
    told = {
        name: "budgets other than the paper's of 'adapt'"
        in list_differences(item, make_rows(2, **here, limits=json.dumps(limits | more)))
        for name, more in (("own", {"actions": None}), ("game's", {}))
    }
    assert told == {"own": False, "game's": True}


def test_a_run_that_was_broken_off_is_none():
    here = {"environment": "textcraft", "split": "test", "method": "thread"}
    rows = [make_rows(4 if seed == 0 else 1, **here, seed=seed) for seed in range(5)]
    item = find_item("thread-v2", "table-7")
    assert "1 of 5 runs" in list_differences(item, pd.concat(rows, ignore_index=True))
    outcome = make_outcome(item, pd.concat(rows, ignore_index=True))
    assert outcome.table[["runs", "n"]].values.tolist() == [[1, 4]]
    assert "4 episodes of runs that are not over are left out." in outcome.notes


@pytest.mark.parametrize("by_people", [False, True])
def test_runs_are_counted_whatever_the_settings_of_their_rows(by_people):
    here = {"environment": "webshop", "split": "test", "method": "thread", "depth": 2}
    shop = {"catalogue": "official (1181436 products)", "by_people": by_people, "products": 3}
    rows = [make_rows(6, **here, **shop, seed=seed) for seed in range(5)]
    rows = pd.concat(rows, ignore_index=True)
    rows["task"] = rows["number"].astype(str)
    table = make_outcome(find_item("thread-v2", "table-7"), rows).table
    assert table["runs"].tolist() == [5]
    assert table["depth, average"].tolist() == [2]


def test_textcrafts_development_tasks_are_the_kits_own():
    rows = make_rows(2, environment="textcraft", split="dev", method="adapt-d1")
    assert "stand-in for TextCraft" in list_differences(find_item("adapt", "figure-4"), rows)


def test_a_closed_models_table_can_be_played_on_a_server_that_has_it():
    item = find_item("stateflow", "table-1")
    rows = make_rows(2, environment="sql", split="test", method="stateflow")
    reason = "cannot be reproduced here"
    assert reason in str(list_differences(item, rows.assign(weights="Llama.gguf")))
    name = sorted(set(item.load_numbers()["checkpoint"]) - {""})[0]
    assert reason not in str(list_differences(item, rows.assign(weights=name)))


def test_an_episode_that_could_not_be_started_has_no_budget():
    """Its limits are null, and ended every command that lists the items."""
    here = {"environment": "textcraft", "split": "test", "method": "thread", "limits": "null"}
    told = list_differences(find_item("thread-v2", "table-3"), make_rows(2, **here))
    assert "budgets other than the paper's of 'thread'" in told


def test_of_a_method_that_needs_external_memory_the_papers_row_is_the_one_that_has_it():
    """THREAD paper, Tables 1 and 2: AdaPlanner; the kit comes without a memory of skills."""
    here = {"environment": "alfworld", "split": "valid_unseen", "game": "pick-0"}
    rows = make_rows(2, **here, method="adaplanner")
    told = list_differences(find_item("thread-v2", "table-2"), rows)
    assert [line for line in told if "'adaplanner, skills'" in line]


@pytest.mark.parametrize(
    ("paper", "item", "options"),
    [
        ("thread-v2", "table-3", "--model MODEL"),
        ("thread-v2", "table-7", "--model MODEL --temperature 0.7"),
        ("adapt", "table-4", "--model MODEL --planner-model OTHER"),
        ("adapt", "figure-1", ""),
    ],
)
def test_the_command_of_an_item_has_all_that_it_needs(paper, item, options):
    expected = f"python -m thread_kit reproduce {paper} {item} {options}".strip()
    assert find_item(paper, item).command == expected


def test_what_no_benchmark_or_method_of_the_kit_can_play_cannot_be_here():
    item = find_item("adapt", "figure-5")
    for absent in ({"benchmarks": ("Atari",)}, {"methods": ("alphago",)}):
        state = find_state(
            replace(item, **absent), make_rows(environment="x", split="", method="y")
        )
        assert state.state == State.CANNOT
        assert re.search("no (Atari|'alphago') here", str(state))
    assert find_state(item, stored_rows()[:0]).state == State.NOT_YET


def test_closed_models_are_called_a_reason_why_not():
    state = find_state(find_item("adapt", "table-2"), stored_rows())
    assert any(
        reason.startswith("cannot be reproduced here: its models") for reason in state.reasons
    )


@pytest.mark.parametrize(
    ("paper", "item", "weights", "only_closed"),
    [
        ("thread-v1", "figure-4", "Meta-Llama-3-8B.Q8_0.gguf", False),
        ("thread-v2", "figure-4", "gpt-3.5-turbo-instruct", True),
        ("thread-v2", "figure-5", "gpt-3.5-turbo-instruct", True),
        ("thread-v2", "figure-6", "Meta-Llama-3-8B.Q4_K_M.gguf", False),
        ("adapt", "figure-4", "text-davinci-003", True),
        ("adapt", "figure-6", "lemur-70b-chat-v1.Q4_0.gguf", False),
        ("adapt", "figure-7", "gpt-3.5-turbo", True),
        ("adapt", "figure-12", "gpt-3.5-turbo-instruct", True),
        ("stateflow", "table-1", "gpt-4-1106-preview", True),  # which the paper calls otherwise
    ],
)
def test_the_papers_own_models_are_known_where_no_number_names_them(
    paper, item, weights, only_closed
):
    item = find_item(paper, item)
    own = item.find_benchmarks()[0]
    here = {"environment": own.name, "split": item.list_splits(own)[0], "game": "pick-0"}
    rows = make_rows(2, **here, method=item.find_methods(own)[0], weights=weights)
    assert "another model" not in str(list_differences(item, rows))
    told = list_differences(item, rows.assign(weights="other.gguf"))
    assert "another model: m" in told
    assert told[0].startswith("cannot be reproduced here") == only_closed


def test_no_row_of_the_kit_is_read_twice():
    rows = stored_rows()
    assert not rows.duplicated(["path", "task", "method", "model", "seed"]).any()


def test_figures_of_failures_say_of_how_many_and_what_was_cut():
    page = make_page(find_item("thread-v2", "figure-4"), stored_rows())
    table = page.ours.set_index("method")
    row = table.loc["react, qwen2.5-coder-1.5b, textcraft"]
    assert (row["n"], row["cut"]) == (40, 22)  # as data/results/README.md has it
    assert "react<br>textcraft (40)" in page.figure.data[0].x


def test_a_figure_of_rates_counts_what_was_cut_as_a_table_does():
    page = make_page(find_item("thread-v1", "figure-4"), stored_rows())
    row = page.ours.set_index(["environment", "method", "model"]).loc[
        ("ALFWorld", "thread", "qwen2.5-coder-1.5b")
    ]
    assert (row["n"], row["solved"], row["cut"]) == (24, 8, 11)


def test_questions_of_two_kinds_are_added_up_only_where_all_methods_have_the_same():
    item = find_item("thread-v2", "figure-6")
    rows = select_rows(item, stored_rows())
    rows = rows[(rows["method"] != "thread") | (rows["environment"] != "icu")]
    apart = make_outcome(item, rows[rows["method"].isin(["thread", "nlep"])])
    assert set(apart.table["n"]) == {40}
    both = rows[rows["method"].isin(["nlep", "decomp"])].copy()
    assert set(make_outcome(item, both).table["n"]) == {80}
    others = both["method"].eq("decomp") & both["environment"].eq("icu")
    both.loc[others, "task"] = "another one: " + both.loc[others, "task"]
    assert set(make_outcome(item, both).table["n"]) == {40}  # as many, and not the same


def test_our_cost_is_that_of_as_many_tasks_as_the_paper_has():
    """StateFlow paper, Table 6: 200 tasks; a dollar a million tokens in, two out."""
    item = find_item("stateflow", "table-6")
    here = {"environment": "bash", "method": "react", "split": "test", "depth": 0}
    rows = make_rows(2, **here).assign(prompt_tokens=[3_000, 1_000], generated=[100, 300])
    (row,) = make_our_table(item, rows).to_dict("records")
    assert row["cost"] == pytest.approx(200 * (2_000 * 1 + 200 * 2) / 1e6)
    page = make_page(item, stored_rows())
    assert any("all of the paper's tasks" in note for note in page.notes)


@pytest.mark.parametrize(
    ("item", "checkpoint", "dollars"),
    [("table-3", "gpt-3.5-turbo-1106", 1.0), ("table-10", "gpt-3.5-turbo-instruct", 1.5)],
)
def test_our_cost_is_at_the_price_of_the_items_own_model(item, checkpoint, dollars):
    """StateFlow paper: 134 games; Table 10 is GPT-3.5-turbo-instruct's, at another price."""
    item = find_item("stateflow", item)
    here = {"environment": "alfworld", "method": "react", "split": "valid_unseen"}
    rows = make_rows(2, **here, game="pick-0", nearest=True, depth=0)
    rows = rows.assign(prompt_tokens=[3_000, 1_000], generated=[100, 300])
    (row,) = make_our_table(item, rows).to_dict("records")
    assert row["All, cost"] == pytest.approx(134 * (2_000 * dollars + 200 * 2) / 1e6)
    notes = make_page(item, stored_rows()).notes
    assert any(f"all of the paper's tasks, at {checkpoint}'s price" in note for note in notes)


def test_beside_the_last_trial_stands_what_all_trials_cost():
    """StateFlow paper, Figure 6: $8.6 and $27.9 in all; rows do not tell what each trial cost."""
    item = find_item("stateflow", "figure-6")
    here = {"environment": "alfworld", "method": "react+reflexion", "split": "valid_unseen"}
    rows = make_rows(2, **here, game="pick-0", nearest=True, depth=0)
    rows = rows.assign(prompt_tokens=[3_000, 1_000], generated=[100, 300], trials=[1, 3])
    outcome = make_outcome(item, rows)
    assert outcome.table["trial"].tolist() == [1, 2, 3]
    assert outcome.table["cost"].isna().tolist() == [True, True, False]
    assert outcome.table["cost"].iloc[-1] == pytest.approx(134 * (2_000 + 200 * 2) / 1e6)
    assert "all trials together" in outcome.notes[0]


def test_failures_are_counted_in_one_run_of_each_task():
    """StateFlow paper, B.2: "the 23 failed tasks of one attempt"; Table 9 has three of each."""
    here = {"environment": "alfworld", "method": "stateflow", "split": "valid_unseen"}
    here |= {"game": "pick-0", "nearest": True, "state": "Put", "solved": False}
    runs = [make_rows(2, **here).assign(seed=seed) for seed in (0, 1, 2)]
    rows = pd.concat(runs, ignore_index=True)
    outcome = make_outcome(find_item("stateflow", "table-8"), rows)
    assert outcome.table[["failures", "n"]].to_numpy().tolist() == [[2, 2]]
    assert "4 episodes of later ones are left out" in outcome.notes[-1]


def test_figure_4_has_the_papers_types_and_calls_all_others_other():
    """THREAD paper, Tables 9 and 10: the maximum number of actions, and the context, are Other."""
    page = make_page(find_item("thread-v2", "figure-4"), stored_rows())
    types = ["inadequate plan", "invalid action", "misread observation", "other"]
    assert list(page.ours.columns) == ["method", "n", "cut", *types]
    row = page.ours.set_index("method").loc["react, qwen2.5-coder-1.5b, textcraft"]
    assert row["other"] == 5  # the iterations of ReAct's own that were used up
    assert any(note.startswith("Counted as the paper's other: out of bud") for note in page.notes)


def test_figure_6_has_the_papers_types_of_questions():
    """THREAD paper, Table 11: a runtime error is a type of its own there."""
    columns = make_page(find_item("thread-v2", "figure-6"), stored_rows()).ours.columns
    types = ["wrong information", "wrong analysis", "misread results", "runtime error"]
    assert [name for name in columns if name not in ("method", "n", "cut", "other")] == types
