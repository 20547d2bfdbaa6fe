"""Questions of the user's own in the place of InterCode's: files, identity, what does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.intercode import use_own_files

from thread_kit.analysis.published import compare_with_published
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.intercode.files import (
    BASH_FILES,
    BASH_TASKS,
    FOLDER_VARIABLE,
    SQL_FILES,
    read_file,
)
from thread_kit.envs.intercode_bash.benchmark import BASH
from thread_kit.envs.intercode_bash.env import InterCodeBash
from thread_kit.envs.intercode_sql.benchmark import SQL
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.results import Results
from thread_kit.experiments.suite import Suite
from thread_kit.paths import resource

DUMP = """CREATE DATABASE `shop`;
USE `shop`;
CREATE TABLE `item` (
  `id` int NOT NULL,
  `name` text,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB;
INSERT INTO `item` VALUES (1,'tea'),(2,'rye');
"""
QUESTION = {
    "query": "Which items are there?",
    "gold": "SELECT name FROM item",
    "db": "shop",
    "hardness": "easy",
}


@pytest.fixture
def write_own(tmp_path, monkeypatch):
    """Writes questions and a dump into a folder, which takes the place of InterCode's."""

    def write(*questions: dict[str, str], dump: str = DUMP, name: str = "own") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "ic_spider_dev.json").write_text(json.dumps(questions), encoding="utf-8")
        (folder / "ic_spider_dbs.sql").write_text(dump, encoding="utf-8")
        monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
        return folder

    return write


# Identity


def test_the_hashes_are_those_of_the_page():
    page = resource("data/intercode/README.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"\| `([^`]+)` \| ([0-9a-f]{64}) \|", page)) == SQL_FILES | BASH_FILES


def test_official_tasks_are_named_by_split_and_number_alone(monkeypatch, tmp_path):
    use_own_files(monkeypatch)
    for record in (SQL, BASH):
        task = record.arguments(record.tasks("test")[3])
        assert task == {"split": "test", "number": 3}
        assert not record.stands_in(task)
    assert InterCodeSql("test", 3).task == {"split": "test", "number": 3}
    for path in SQL_FILES:  # copies of them, too
        (tmp_path / Path(path).name).write_text(read_file(path), encoding="utf-8")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert InterCodeSql("test", 3).task == {"split": "test", "number": 3}


def test_other_questions_are_other_tasks_that_can_be_made_again(write_own, monkeypatch):
    write_own(QUESTION)
    (task,) = map(SQL.arguments, SQL.tasks("test"))
    assert task == {"split": "test", "number": 0, "files": task["files"]}
    assert re.fullmatch("[0-9a-f]{12}", task["files"])
    env = InterCodeSql("test", 0)
    assert env.task == env.again().task == InterCodeSql(**task).task == task
    assert SQL.stands_in(task)
    # Other rows in the tables are others, too.
    write_own(QUESTION, dump=DUMP.replace("rye", "oats"), name="changed")
    assert InterCodeSql("test", 0).task["files"] != task["files"]
    assert InterCodeSql("test", 0).step(QUESTION["gold"]).reward == 1
    with pytest.raises(ValueError, match=rf"of the files '{task['files']}', and here are "):
        InterCodeSql(**task)
    use_own_files(monkeypatch)
    with pytest.raises(ValueError, match=f"the official ones; set {FOLDER_VARIABLE} to the folder"):
        InterCodeSql(**task)


def test_other_tasks_of_bash_are_named_as_well(tmp_path, monkeypatch):
    for system in range(1, 5):
        rows = [{"query": f"List the files of {system}.", "gold": "ls"}]
        (tmp_path / Path(BASH_TASKS.format(system)).name).write_text(json.dumps(rows))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    tasks = [*map(BASH.arguments, BASH.tasks("test"))]
    assert [task["number"] for task in tasks] == [0, 1, 2, 3]
    (name,) = {task["files"] for task in tasks}
    assert BASH.stands_in(tasks[0])
    (tmp_path / "docker.gitignore").write_text("/proc\n")
    use_own_files(monkeypatch)
    with pytest.raises(ValueError, match=f"of the files '{name}', and here are the official"):
        InterCodeBash(**tasks[0])


def play(path: Path, task: dict[str, object]) -> Results:
    """What ReAct comes to that asks for all items."""
    suite = Suite(
        path,
        methods=[load_method("react", "sql")],
        models={"script": lambda: ScriptedEngine(["> SELECT name FROM item =>", "submit\n#END#"])},
        environment=SQL.environment,
        tasks=[task],
    )
    return suite.run(progress=False)


def test_a_suite_never_takes_an_episode_of_other_questions_for_one_of_these(
    tmp_path, write_own, monkeypatch
):
    use_own_files(monkeypatch)
    path = tmp_path / "r.jsonl"
    (official,) = play(path, SQL.arguments(SQL.tasks("test")[0])).rows
    assert not official["solved"]
    write_own(QUESTION)
    others = play(path, SQL.arguments(SQL.tasks("test")[0]))
    assert [row["solved"] for row in others.rows] == [True]
    assert len(Results.load(path).rows) == 2
    table = compare_with_published(others.frame)
    assert table["source"].iloc[0] == "this file, other questions"
    both = compare_with_published(Results.load(path).frame)
    both = both[both["kind"] == "own run"]
    assert both["source"].tolist() == ["this file, 1 of 1034 tasks", "this file, other questions"]
    assert (both["n"].tolist(), both["success"].tolist()) == ([1, 1], [0, 100])
    assert "of 1034 tasks" in compare_with_published(Results([official]).frame)["source"].iloc[0]


def test_nor_where_the_task_is_given_by_its_number_alone(tmp_path, write_own, monkeypatch):
    use_own_files(monkeypatch)
    path = tmp_path / "r.jsonl"
    solved = [play(path, {"split": "test", "number": 0}).rows[0]["solved"]]
    write_own(QUESTION)
    others = play(path, {"split": "test", "number": 0})
    solved += [row["solved"] for row in others.rows]
    assert solved == [False, True]
    assert compare_with_published(others.frame)["source"].iloc[0] == "this file, other questions"
    assert play(path, {"split": "test", "number": 0}).rows == others.rows  # it is not played again


# What does not fit


def test_a_gold_query_that_fails_is_said_and_its_reward_stays(write_own):
    write_own({**QUESTION, "gold": "SELECT nme FROM itm"}, QUESTION)
    said = "the gold query of task 0 fails: no such table: itm; an empty output counts as right"
    with pytest.warns(UserWarning, match=said):
        env = InterCodeSql("test", 0)
    assert env.step("SELECT 1 WHERE 0").reward == 1
    assert env.step("SELECT name FROM item").reward == 0
    assert InterCodeSql("test", 1).step(QUESTION["gold"]).reward == 1


@pytest.mark.parametrize(
    ("question", "dump", "message"),
    [
        (
            {"db": "nope"},
            DUMP,
            r"question 0 is about .* 'nope', which .*_dbs\.sql does not have; it",
        ),
        ({"hardness": None}, DUMP, r"question 0 of .*ic_spider_dev\.json has no 'hardness'; each"),
        ({}, DUMP.replace("'tea'", "_binary 'tea'"), "the dump of database 'shop' cannot be read"),
        ({}, DUMP.replace("tea", r"t\0"), "database 'shop' cannot be read: embedded null"),
        (
            {},
            DUMP.replace("INTO", "IGNORE INTO"),
            r"_dbs\.sql: line 8 of the dump is not in the form",
        ),
    ],
)
def test_files_that_do_not_fit_are_named(write_own, question, dump, message):
    write_own(QUESTION | question, dump=dump)
    with pytest.raises((ValueError, RuntimeError), match=message):
        InterCodeSql("test", 0)


def test_a_file_of_questions_that_is_no_list_is_named(write_own):
    write_own()
    with pytest.raises(ValueError, match="there are no tasks in split 'test'"):
        InterCodeSql("test", 0)
    for number, (text, problem) in enumerate(
        (
            ("{", "is no JSON"),
            ("{}", "is no list of questions"),
            ("[3]", "question 0 of .* 'query'"),
        )
    ):
        folder = write_own(name=f"{number}")
        (folder / "ic_spider_dev.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=problem):
            InterCodeSql("test", 0)
