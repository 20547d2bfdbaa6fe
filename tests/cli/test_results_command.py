"""`python -m thread_kit results`, on rows that are stored and on rows that were just played."""

import json

import pytest

from thread_kit.__main__ import main
from thread_kit.analysis.scores import score
from thread_kit.analysis.statistics import compare, success
from thread_kit.experiments.results import Results
from thread_kit.paths import resource

ROWS = {
    name: resource(f"data/results/{name}.jsonl")
    for name in ("textcraft-qwen", "textcraft-decomp-qwen", "sql-sf-chat-qwen", "webshop-qwen")
}


def said(capsys, *words) -> str:
    assert main(["results", *map(str, words)]) == 0
    return capsys.readouterr().out


def line(text: str, *words: str) -> list[str]:
    """The words of the one line that begins with these."""
    (found,) = [one.split() for one in text.splitlines() if one.split()[: len(words)] == [*words]]
    return found


@pytest.fixture
def played(tmp_path):
    """Two files: of three tasks a method solves one in the first, and two in the second."""
    rows = [json.loads(one) for one in ROWS["textcraft-decomp-qwen"].read_text().splitlines()]
    tasks = {row["solved"]: row["task"] for row in rows}
    assert len(tasks) == 2
    files = []
    for name, solved in (("before", (True, False, False)), ("after", (True, True, False))):
        path = tmp_path / f"{name}.jsonl"
        given = [
            {**row, "solved": is_solved, "reward": float(is_solved), "prompt": name}
            for row, is_solved in zip(rows, solved, strict=False)
        ]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in given))
        files.append(path)
    return files


def test_several_files_are_one_table_with_its_pairs(capsys):
    files = [ROWS["textcraft-qwen"], ROWS["textcraft-decomp-qwen"]]
    text = said(capsys, *files)
    frame = Results.load(*files).frame
    for _, row in success(frame).iterrows():
        found = line(text, row["method"], row["model"])
        assert found[2:5] == [str(row[name]) for name in ("tasks", "n", "solved")]
    pairs = compare(frame)
    assert len(pairs) == 6
    for _, pair in pairs.iterrows():
        found = line(text, pair["model"], pair["first"], pair["second"])
        assert float(found[-2]) == pytest.approx(pair["p"], rel=0.01)
    assert "THREAD v2, Table 3" in text
    assert "Scores" not in text


def test_each_benchmark_has_its_own_tables_and_scores_where_rewards_are_in_part(capsys):
    text = said(capsys, ROWS["webshop-qwen"], ROWS["sql-sf-chat-qwen"])
    sql, _, shop = text.partition("== webshop")
    assert "== sql" in sql
    assert "sf_chat" in sql
    assert "sf_chat" not in shop
    scores = score(Results.load(ROWS["webshop-qwen"]).frame)
    table = shop.partition("Scores")[2].partition("\n\n")[0]
    for _, row in scores.iterrows():
        assert f"{row['score']:.3g}" in line(table, *row["method"].split(), row["model"])


def test_a_method_of_two_files_is_refused_unless_it_is_told_by_its_file(capsys, played):
    assert main(["results", *map(str, played)]) == 2
    assert "--by-file" in capsys.readouterr().err
    text = said(capsys, "--by-file", *played)
    assert line(text, "decomp", "(before)")[4:6] == ["3", "1"]
    assert line(text, "decomp", "(after)")[4:6] == ["3", "2"]
    pair = next(one for one in text.splitlines() if "(before) decomp (after)" in one)
    assert "-0.333" in pair.split()


def test_by_file_a_method_is_paired_with_itself_and_holm_counts_these_pairs(capsys, played):
    for path in played:
        rows = [json.loads(one) for one in path.read_text().splitlines()]
        rows += [{**row, "method": "react", "solved": False, "reward": 0.0} for row in rows]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = said(capsys, "--by-file", *played)
    pairs = text.partition("Methods on the same tasks")[2].partition("\n\n")[0].splitlines()[2:]
    assert ["decomp (before) decomp (after)" in pair for pair in pairs] == [True, False]
    assert ["react (before)  react (after)" in pair for pair in pairs] == [False, True]
    assert [pair.split()[-1] for pair in pairs] == ["1", "1"]


def with_limits(path, **limits):
    """Write the first three rows again, of two methods, as played with these limits."""
    rows = [json.loads(one) for one in ROWS["textcraft-decomp-qwen"].read_text().splitlines()[:3]]
    for row in rows:
        row |= {"limits": {**row["limits"], **limits}, "settings": str(limits)}
        row["budget"] = row["budget"] | dict.fromkeys(limits, "chosen")
        row["solved"] = limits.get("calls") == 10
        row["reward"] = float(row["solved"])
    rows += [{**row, "method": "react"} for row in rows]
    append(path, rows)
    return rows


def append(path, rows):
    with path.open("a") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def titles(text):
    return [one for one in text.splitlines() if one.startswith("== ")]


@pytest.mark.parametrize("options", [[], ["--by-file"]])
def test_one_file_with_several_budgets_has_tables_for_each(capsys, tmp_path, options):
    path = tmp_path / "r.jsonl"
    with_limits(path, calls=2)
    assert "== " not in said(capsys, *options, path)
    with_limits(path, calls=10)
    head, two, ten = said(capsys, *options, path).split("\n== calls ")
    assert not head
    for part, words, solved in ((two, "2", 0), (ten, "10", 6)):
        assert part.splitlines()[0] == words
        assert f"6 episodes, {solved} solved" in part
        assert ("Methods on the same tasks" in part) is not bool(options)


def test_settings_that_limits_do_not_tell_are_told_by_their_hashes(capsys, tmp_path):
    path = tmp_path / "r.jsonl"
    rows = with_limits(path, calls=2)
    others = [{**row, "settings": "abc"} for row in rows] + [{**rows[0], "settings": ""}]
    append(path, others)
    assert titles(said(capsys, path)) == ["== settings 1", "== settings 2", "== not started"]


def test_methods_with_budgets_of_their_own_stay_in_one_table(capsys, tmp_path):
    path = tmp_path / "r.jsonl"
    rows = with_limits(path, calls=10)
    for row in rows:
        own = {"calls": 200 if row["method"] == "react" else None}
        row |= {"limits": {**row["limits"], **own}, "settings": row["method"]}
        row["budget"] = {**row["budget"], "calls": "its paper"}
    append(path, rows)
    text = said(capsys, path)
    assert titles(text) == ["== calls 10", "== calls the method's own"]
    assert text.count("Methods on the same tasks") == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"reward": ...}, 0),
        ({"solvable": ...}, 0),
        ({"depth": ..., "seed": 1}, 0),
        ({"depth": None, "seed": 1}, 0),
        ({"environment": "alfworld", "actions": None, "out_of_actions": ...}, 0),
        ({"task": {"split": [1], "number": 2}}, 0),
        ({"task": {"split": 2**70, "number": 2}}, 0),
        ({"task": {"failures": "x", "reward": "x", "named": None, "number": 2}}, 0),
        ({"task": {"products": "x", "number": 2}}, 0),
        ({"task": {"split": "test", "number": "x"}}, 0),
        ({"failures": 1e308}, 2),
        ({"calls": -1e300}, 2),
        ({"reward": 7.0}, 2),
        ({"reward": -0.5}, 2),
    ],
    ids=str,
)
def test_rows_of_another_version_or_a_stranger_are_tables_or_one_line(
    capsys, tmp_path, change, code
):
    rows = [json.loads(one) for one in ROWS["textcraft-decomp-qwen"].read_text().splitlines()[:3]]
    changed = [{**row, **change} for row in rows[:1]]
    if "seed" in change:
        changed = [{**row, **change, "seed": seed} for row in rows for seed in (0, 1)]
        rows = rows[:1]
    gone = {name for name, value in change.items() if value is ...}
    kept = [{k: v for k, v in row.items() if k not in gone} for row in (*changed, *rows[1:])]
    path = tmp_path / "r.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in kept))
    assert main(["results", str(path)]) == code
    printed = capsys.readouterr()
    if code:
        assert len(printed.err.splitlines()) == 1
        assert f"{next(iter(change))} is {next(iter(change.values()))!r}" in printed.err
    else:
        assert "decomp" in printed.out
        assert "Over runs" in printed.out or "seed" not in change
        assert "cannot convert" not in printed.out
        repr(Results.load(path))
        assert len(Results.load(path).to_dataset()) == len(kept)


def test_a_file_that_is_named_twice_and_two_with_other_outcomes_are_one_line(capsys, played):
    assert main(["results", "--by-file", str(played[0]), str(played[0])]) == 2
    assert "a file is named twice" in capsys.readouterr().err
    rows = [json.loads(one) for one in played[0].read_text().splitlines()]
    lines = [json.dumps({**row, "seconds": 9.0}) for row in rows]  # played on another machine
    played[1].write_text("\n".join(lines) + "\n")
    assert main(["results", *map(str, played)]) == 2
    told = capsys.readouterr().err
    assert f"{played[0]} has this episode with another outcome" in told
    assert "results --by-file" in told


def test_by_file_the_published_numbers_are_those_of_the_methods_own_names(capsys, played):
    assert "Beside the published numbers" in said(capsys, played[0])
    text = said(capsys, "--by-file", *played).partition("Beside the published numbers")[2]
    assert "decomp (before)" in text
    assert "THREAD v2, Table 3" in text


def test_what_was_not_started_is_of_no_benchmark_where_there_are_several(capsys, tmp_path):
    rows = [json.loads(ROWS[name].read_text().splitlines()[0]) for name in ROWS]
    lost = {**rows[0], "method": "lost", "environment": None, "status": "not started"}
    path = tmp_path / "r.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in (*rows, lost)))
    text = said(capsys, path)
    assert "1 episodes were not started" in text
    assert "lost" not in text
    path.write_text("".join(f"{json.dumps(row)}\n" for row in (rows[0], lost)))
    assert line(said(capsys, path), "lost")[2:5] == ["1", "1", "0"]


def test_an_environment_of_ones_own_has_no_oracle_and_a_warning_is_told_once(capsys, tmp_path):
    rows = [json.loads(one) for one in ROWS["webshop-qwen"].read_text().splitlines()]
    path = tmp_path / "r.jsonl"
    own = [{**row, "environment": "my env", "solvable": None} for row in rows]
    own[0] |= {"error": "ServerError: 503", "solved": False, "reward": None}
    path.write_text("".join(f"{json.dumps(row)}\n" for row in own))
    assert main(["results", str(path)]) == 0
    printed = capsys.readouterr()
    assert "oracle" not in printed.out
    assert "Scores" in printed.out
    (told,) = printed.err.splitlines()
    assert told.startswith("thread_kit: 1 of 200 episodes broke down")


def test_runs_that_are_not_over_take_no_other_table_away(capsys, played):
    rows = [json.loads(one) for one in played[0].read_text().splitlines()]
    rows.append({**rows[0], "seed": 1})
    played[0].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = said(capsys, played[0])
    assert "Over runs: the runs of decomp with qwen2.5-coder-1.5b are over different tasks" in text
    assert "THREAD v2, Table 3" in text, "what comes behind it is there, too"


def test_files_of_one_name_are_told_by_their_paths(capsys, played, tmp_path):
    (tmp_path / "other").mkdir()
    other = played[1].rename(tmp_path / "other" / "before.jsonl")
    text = said(capsys, "--by-file", played[0], other)
    assert f"decomp ({played[0]})" in text
    assert f"decomp ({other})" in text


def test_what_is_no_file_of_results_is_one_line(capsys, tmp_path):
    empty, other = tmp_path / "empty.jsonl", tmp_path / "other.jsonl"
    empty.touch()
    other.write_text("{}\n")
    for path, reason in (
        (tmp_path / "none.jsonl", "No such file"),
        (empty, "there is no episode in"),
        (other, "no episode of a suite"),
    ):
        assert main(["results", str(path)]) == 2
        err = capsys.readouterr().err
        assert reason in err
        assert len(err.splitlines()) == 1
