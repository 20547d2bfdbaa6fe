"""InterCode SQL: the dump, the engine, the reward, rounds, the official questions."""

from __future__ import annotations

import hashlib
import lzma
import math
import re
from collections import Counter
from itertools import combinations

import pytest
from helpers.intercode import use_own_files
from helpers.samples import take_sample
from hypothesis import given
from hypothesis import strategies as st

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.intercode.files import FOLDER_VARIABLE, read_file
from thread_kit.envs.intercode.interaction import PLAN_AND_SOLVE, REACT, TRY_AGAIN
from thread_kit.envs.intercode_sql.benchmark import SQL
from thread_kit.envs.intercode_sql.dump import read_dump
from thread_kit.envs.intercode_sql.engine import ROWS, TOO_LONG, TOO_MUCH, Output
from thread_kit.envs.intercode_sql.env import InterCodeSql, find_gold, show_output
from thread_kit.envs.intercode_sql.questions import HARDNESS, load_databases, tasks
from thread_kit.envs.intercode_sql.reward import compute_reward
from thread_kit.envs.intercode_sql.sqlite import SqliteEngine
from thread_kit.experiments.job import solvable
from thread_kit.experiments.method_registry import load_method
from thread_kit.paths import resource

DUMP = r"""
CREATE DATABASE  IF NOT EXISTS `zoo` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `zoo`;
CREATE TABLE `Animal` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(20) COLLATE utf8mb4_general_ci DEFAULT 'Rex; the',
  `weight (kg)` float(4,1) NOT NULL DEFAULT '0.0',
  `born` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  `mother` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `mother_key` (`mother`),
  CONSTRAINT `c` FOREIGN KEY (`mother`) REFERENCES `Animal` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=9;
LOCK TABLES `Animal` WRITE;
INSERT INTO `Animal` VALUES (1,'O\'Hara','1.5','2020-01-01',NULL),(2,'a\\b\nc',2,'2021-01-01',1);
INSERT INTO `Animal` VALUES (3,'it''s (here), \"now\";',3,'2022-01-01',NULL);
"""


@pytest.fixture
def zoo():
    engine = SqliteEngine("zoo", read_dump(DUMP)["zoo"])
    yield engine
    engine.close()


@pytest.fixture
def ferries():
    engine = SqliteEngine("ferries", load_databases("train")["ferries"])
    yield engine
    engine.close()


@pytest.fixture
def env():
    env = InterCodeSql("train", 0)
    yield env
    env.close()


# The dump


def test_a_dump_of_mysql_becomes_tables_and_texts_as_they_were(zoo):
    assert zoo.execute("SELECT id, name, mother FROM animal").rows == [
        """(1, "O'Hara", None)""",
        r"(2, 'a\\b\nc', 1)",
        """(3, 'it\\'s (here), "now";', None)""",
    ]
    assert zoo.execute("SELECT name FROM animal WHERE name = 'o''hara'").rows == ['("O\'Hara",)']


def test_what_mysql_shows_of_tables_is_shown(zoo):
    for statement in ("SHOW TABLES", "show  full tables", "SHOW TABLES FROM zoo"):
        assert zoo.execute(statement).rows == ["('animal',)"]
    described = zoo.execute("DESC animal").rows
    assert described == [
        "('id', 'int', 'NO', 'PRI', None, 'auto_increment')",
        "('name', 'varchar(20)', 'YES', '', 'Rex; the', '')",
        "('weight (kg)', 'float(4,1)', 'NO', '', '0.0', '')",
        "('born', 'timestamp', 'NO', '', 'CURRENT_TIMESTAMP', '')",
        "('mother', 'int', 'YES', 'MUL', None, '')",
    ]
    for statement in ("describe Animal", "SHOW COLUMNS FROM `animal`", "desc `zoo`.`animal`"):
        assert zoo.execute(statement).rows == described
    assert zoo.execute("SHOW DATABASES").rows == ["('zoo',)"]
    assert zoo.execute("USE zoo") == Output(None)
    for statement in ("USE mysql", "SHOW TABLES FROM mysql", "DESC mysql.animal"):
        assert zoo.execute(statement).error == "Unknown database 'mysql'"
    assert zoo.execute("SHOW TABLES IN Zoo") == zoo.execute("SHOW TABLES")
    assert zoo.execute("DESC cage").error == "Table 'zoo.cage' doesn't exist"


def test_what_is_no_dump_is_refused():
    with pytest.raises(ValueError, match="no dump of MySQL"):
        read_dump("SELECT 1;")


@pytest.mark.parametrize(
    "change",
    [
        ("\n", "\r\n"),
        (
            "INSERT INTO `Animal` VALUES",
            "INSERT INTO `Animal` (`id`, `name`, `weight (kg)`, `born`,`mother`) VALUES",
        ),
        (" VALUES (", " VALUES\n("),
        (";\nINSERT", "; \nINSERT"),
        ("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
        ("CREATE DATABASE  IF NOT EXISTS `zoo` ", "-- "),
    ],
    ids=["CRLF", "columns", "rows on lines", "space behind", "if not exists", "no create db"],
)
def test_what_other_versions_of_mysqldump_write_is_read_alike(change):
    dump = DUMP.replace(*change)
    assert dump != DUMP
    engine = SqliteEngine("zoo", read_dump(dump)["zoo"])
    assert engine.execute("SELECT count(*), max(name) FROM animal").rows == ['(3, "O\'Hara")']
    assert len(engine.execute("DESC animal").rows) == 5
    engine.close()


def test_databases_of_any_name_keep_their_tables_apart():
    second = DUMP.replace("`zoo`", "`my-zoo 2`").replace("`Animal`", "`cage`")
    databases = read_dump(DUMP + second)
    assert {name: [*one.tables] for name, one in databases.items()} == {
        "zoo": ["animal"],
        "my-zoo 2": ["cage"],
    }
    engine = SqliteEngine("my-zoo 2", databases["my-zoo 2"])
    assert engine.execute("SELECT count(*) FROM `my-zoo 2`.cage").rows == ["(3,)"]
    assert engine.execute("USE `my-zoo 2`") == Output(None)
    assert engine.execute("SHOW TABLES FROM `my-zoo 2`").rows == ["('cage',)"]
    assert len(engine.execute("DESC `my-zoo 2`.cage").rows) == 5
    engine.close()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "INSERT INTO",
            "INSERT IGNORE INTO",
            "line 15 of the dump is not in the form of mysqldump",
        ),
        ("INSERT INTO", "REPLACE INTO", "line 15 .*: .REPLACE INTO `Animal`"),
        ("INSERT INTO `Animal`", "insert into Animal", "line 15 .*: .insert into Animal"),
        ("CREATE TABLE `Animal` (\n", "CREATE TABLE `Animal` (", "line 4 .*'CREATE TABLE `Animal`"),
        ("\n) ENGINE", ") ENGINE", "line 14 "),  # the table would end behind the rows
        ("DATABASE  IF NOT EXISTS `zoo`", "DATABASE zoo", "line 2 .*'CREATE DATABASE zoo"),
        ("USE `zoo`", "USE zoo", "line 3 .*'USE zoo"),
        (DUMP.partition("CREATE TABLE")[0], "", "line 1 of the dump is in no database"),
        ("INSERT INTO `Animal`", "\tINSERT INTO `Animal`", "line 15 .*: .INSERT INTO `Animal`"),
        (";\nINSERT INTO", "; INSERT INTO", "line 14 .*: .INSERT INTO `Animal`"),
        ("USE `zoo`;", "USE `zoo`; CREATE VIEW v AS SELECT 1;", "line 3 .*'CREATE VIEW v"),
    ],
)
def test_a_statement_that_would_be_left_out_is_named_by_its_line(old, new, message):
    """Tables that stay empty would make empty answers right."""
    with pytest.raises(ValueError, match=message):
        read_dump(DUMP.replace(old, new) + "CREATE TABLE `b` (\n  `id` int\n) ENGINE=InnoDB;\n")


# The engine


def test_what_is_changed_is_changed_in_this_copy_alone(zoo):
    assert zoo.execute("DELETE FROM animal") == Output(None)
    assert zoo.execute("SELECT * FROM animal").rows == []
    other = SqliteEngine("zoo", read_dump(DUMP)["zoo"])
    assert other.execute("SELECT count(*) FROM animal").rows == ["(3,)"]
    other.close()
    zoo.close()
    assert zoo.execute("SELECT count(*) FROM animal").rows == ["(3,)"]


def test_texts_compare_as_in_mysqls_collation(zoo):
    """No capitals, no accents, spaces at the end do not count, "_" stands behind the letters."""
    zoo.execute("INSERT INTO animal (id, name) VALUES (7, 'Zo\u00eb '), (8, 'zo_a'), (9, 'zot')")
    assert zoo.execute("SELECT id FROM animal WHERE name = 'ZOE'").rows == ["(7,)"]
    assert zoo.execute("SELECT name FROM animal WHERE id = 7").rows == ["('Zo\u00eb ',)"]
    assert zoo.execute("SELECT id FROM animal WHERE name = 'zo'").rows == []
    ordered = zoo.execute("SELECT id FROM animal WHERE id > 6 ORDER BY name").rows
    assert ordered == ["(7,)", "(9,)", "(8,)"]
    grouped = "SELECT count(DISTINCT name) FROM animal WHERE id > 6"
    zoo.execute("UPDATE animal SET name = 'ZOE' WHERE id = 9")
    assert zoo.execute(grouped).rows == ["(2,)"]


def test_a_table_may_be_called_by_its_databases_name_too(zoo):
    for name in ("zoo.animal", "`zoo`.`Animal`", "Zoo.animal AS a"):
        assert zoo.execute(f"SELECT count(*) FROM {name}").rows == ["(3,)"]
    assert zoo.execute("SELECT * FROM park.animal").error == "no such table: park.animal"
    for made in ("TABLE cage (n int)", "TABLE IF NOT EXISTS zoo.animal (n int)"):
        assert zoo.execute(f"CREATE {made}") == Output(None)
    assert zoo.execute("SELECT count(*) FROM zoo.cage").rows == ["(0,)"]
    assert zoo.execute("create table `Animal` (n int)").error == "table `Animal` already exists"
    assert zoo.execute("CREATE UNIQUE INDEX one ON animal(id)") == Output(None)
    assert zoo.execute("CREATE VIEW all_of_them AS SELECT id FROM animal") == Output(None)
    assert zoo.execute("SELECT count(*) FROM all_of_them").rows == ["(3,)"]
    trigger = "CREATE TRIGGER more AFTER INSERT ON animal BEGIN INSERT INTO cage VALUES (1); END"
    assert zoo.execute(trigger) == Output(None)
    assert zoo.execute("INSERT INTO animal (id) VALUES (9)") == Output(None)
    assert zoo.execute("SELECT count(*) FROM cage").rows == ["(1,)"]
    assert zoo.execute("DROP TABLE zoo.animal") == Output(None)
    assert zoo.execute("SELECT * FROM animal").error == "no such table: animal"


def test_errors_are_what_the_database_says(ferries):
    assert ferries.execute("SELECT name FROM boat") == Output(None, "no such table: boat")
    assert ferries.execute("What ships?").error == 'near "What": syntax error'
    assert ferries.execute("") == Output(None)


# The reward

ROW = st.sampled_from(["('a',)", "('b',)", "(1, None)", "(2,)"])


def official(rows: list[str], gold: list[str]) -> float:
    """By pairs, with no library: intersection over union, times tau-b of the common rows."""
    counts = {row: (rows.count(row), gold.count(row)) for row in {*rows, *gold}}
    if not counts:
        return 1
    share = sum(map(min, counts.values())) / sum(map(max, counts.values()))
    common = {row: min(pair) for row, pair in counts.items()}
    kept = []
    for output in (rows, gold):
        seen: Counter[str] = Counter()
        kept.append([r for r in output if not seen.update([r]) and seen[r] <= common[r]])
    pairs = list(combinations(range(len(kept[0])), 2))
    signs = [[(one[i] > one[j]) - (one[i] < one[j]) for i, j in pairs] for one in kept]
    untied = [sum(map(abs, sign)) for sign in signs]
    if not all(untied):
        return share
    tau = sum(a * b for a, b in zip(*signs, strict=True)) / math.sqrt(untied[0] * untied[1])
    return max(round(tau * share, 2), 0)


@given(st.lists(ROW, max_size=8), st.lists(ROW, max_size=8))
def test_the_reward_is_intersection_over_union_times_kendalls_tau(rows, gold):
    assert compute_reward(rows, gold) == pytest.approx(official(rows, gold), abs=0.0101)
    assert 0 <= compute_reward(rows, gold) <= 1


@given(st.lists(ROW, max_size=30))
def test_an_output_equals_itself(rows):
    assert compute_reward(rows, rows) == 1


@pytest.mark.parametrize(
    ("rows", "gold", "reward"),
    [
        (None, ["(1,)"], 0.0),  # an error
        (None, [], 0.0),
        ([], [], 1.0),
        ([], ["(1,)"], 0.0),
        (["(1,)"], ["(1,)", "(2,)"], 0.5),  # one common row has no order
        (["(1,)", "(1,)"], ["(1,)"], 0.5),
        (["(2,)", "(1,)"], ["(1,)", "(2,)"], 0.0),  # the other way round: tau is -1
        (["(2,)", "(1,)", "(3,)"], ["(1,)", "(2,)", "(3,)"], 0.33),
        (["('1',)"], ["(1,)"], 0.0),  # texts are no numbers
        ([*"abcdefgh", "x"], [*"abcdefgh"], 0.89),
    ],
)
def test_cases_of_the_reward(rows, gold, reward):
    assert compute_reward(rows, gold) == pytest.approx(reward, abs=1e-9)


def test_a_nearly_right_long_output_is_rounded_up_as_in_the_official_code():
    rows = [f"({n},)" for n in range(1000)]
    assert compute_reward([*rows, "('more',)"], rows) == 1.0
    assert compute_reward(rows[:990], rows) == 0.99


# Rounds


def test_the_last_output_is_what_is_submitted(env):
    assert env.reset() == f"Question: {env.chosen.question}"
    step = env.step("SELECT name FROM ship ORDER BY built;")
    assert (step.reward, step.terminated, step.truncated) == (1, False, False)
    assert step.observation.startswith("[('Auk',), ('Gull',)")
    step = env.step("SHOW TABLES")
    assert step.reward == 0
    step = env.step("SELECT name FROM ship ORDER BY built")
    step = env.step("submit")
    assert (step.observation, step.reward, step.terminated) == ("Submitted.", 1, True)
    assert step.info["measures"] == {"turns": 4, "error_rate": 0, "hardness": "easy"}
    step = env.step("DROP TABLE ship")
    assert (step.observation, step.reward) == ("The task is over.", 1)


def test_ten_rounds_then_it_is_submitted_as_it_is(env):
    env.reset()
    for turn in range(1, 11):
        step = env.step("SELECT name FROM ship ORDER BY built" if turn == 10 else "SELECT")
        assert step.truncated is (turn == 10)
    assert (step.reward, step.terminated) == (1, False)
    assert step.info["measures"]["turns"] == 10
    # Nine of eleven: the forced submission is a command, which succeeds.
    assert step.info["measures"]["error_rate"] == pytest.approx(9 / 11, abs=1e-4)
    assert env.step("submit").observation == "The task is over."


def test_a_task_begins_anew_with_the_database_as_it_was(env):
    env.reset()
    env.step("DELETE FROM ship")
    env.reset()
    assert env.step("SELECT count(*) FROM ship").observation == "[(6,)]"
    assert env.again().step("SELECT count(*) FROM ship").info["measures"]["turns"] == 1


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("submit", "submit"),
        ("Right.\nsubmit\n", "submit"),
        ("I submit", None),
        ("", None),
    ],
)
def test_the_last_word_submits(env, text, action):
    assert env.answer(text) == action


def test_with_the_reward_in_sight_the_best_counts_and_the_first_full_one_ends_it(env):
    env.script = TRY_AGAIN
    env.reset()
    step = env.step("SELECT name FROM ship LIMIT 1")
    assert step.observation == "[('Gull',)]\nReward: 0.17"
    step = env.step("nothing")
    assert (step.observation.partition("\n")[2], step.reward) == ("Reward: 0.00", 1 / 6)
    assert step.info["measures"]["error_rate"] == 0.5
    assert env.again().script is TRY_AGAIN
    step = env.step("SELECT name FROM ship ORDER BY built")
    assert (step.reward, step.terminated) == (1, True)


def test_the_rows_of_a_suite_have_turns_error_rate_and_difficulty(tmp_path):
    from thread_kit.experiments.suite import Suite

    lines = ["> SELECT x =>", "> SELECT name FROM ship ORDER BY built =>", "submit\n#END#"]
    suite = Suite(
        tmp_path / "r.jsonl",
        methods=[load_method("react", "sql")],
        models={"script": lambda: ScriptedEngine(lines)},
        environment=SQL.environment,
        tasks=[{"split": "train", "number": 0}],
    )
    (row,) = suite.run(progress=False).rows
    assert (row["solved"], row["turns"], row["hardness"]) == (True, 3, "easy")
    assert row["error_rate"] == pytest.approx(1 / 3, abs=1e-4)
    assert row["solvable"]


def test_plan_and_solves_script_counts_no_submission_among_its_commands(env):
    env.script = PLAN_AND_SOLVE
    env.reset()
    for command in ("SELECT", "SHOW TABLES", "SHOW TABLES", "SHOW TABLES"):
        step = env.step(command)
    assert step.info["measures"]["error_rate"] == 1 / 4
    assert load_method("plan-and-solve", "sql").script is PLAN_AND_SOLVE


def test_an_episode_without_a_command_has_its_difficulty_too(env):
    env.reset()
    assert env.measures == {"turns": 0, "error_rate": 0, "hardness": "easy"}


def test_observations_are_cut_as_in_intercodes_scripts():
    many = [f"({n},)" for n in range(40)]
    for script, rows, characters in ((REACT, 25, 350), (PLAN_AND_SOLVE, 25, 1000)):
        assert show_output(Output(many), script) == f"[{', '.join(many[:rows])}]"
        assert len(show_output(Output(None, "x" * 2000), script)) == characters
    assert show_output(Output(many), TRY_AGAIN) == f"[{', '.join(many)}]"
    assert len(show_output(Output([f"('{'x' * 9000}',)"]), REACT)) == 4003
    assert show_output(Output([]), REACT) == "[]"
    assert show_output(Output(None), REACT) == "None"


def test_an_output_has_a_bound(ferries):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    assert ferries.execute(f"{endless} LIMIT {ROWS}").rows is not None
    assert ferries.execute(endless) == Output(None, TOO_MUCH)
    wide = "SELECT replace(hex(zeroblob(300000)), '00', 'x')"
    assert ferries.execute(f"{wide} {'UNION ALL ' + wide}").rows is not None
    assert ferries.execute(" UNION ALL ".join([wide] * 4)) == Output(None, TOO_MUCH)


# Tasks


@pytest.mark.parametrize(("split", "number"), [("dev", 18), ("dev", -1), ("train", 6)])
def test_a_number_that_is_none_is_refused(split, number):
    with pytest.raises(ValueError, match=rf"no task {number} in split '{split}'; choose 0 to"):
        InterCodeSql(split, number)


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="unknown split 'valid'"):
        InterCodeSql("valid")


@pytest.mark.slow
@pytest.mark.parametrize("split", ["dev", "train"])
def test_gold_queries_of_our_own_earn_the_reward(split):
    for task in tasks(split):
        assert task.hardness in HARDNESS
        assert solvable(SQL.environment, {"split": split, "number": task.number}), task


def test_files_are_found_at_their_place_or_alone_or_compressed(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no b\.json in .*unset THREAD_KIT_INTERCODE"):
        read_file("a/b.json")
    (tmp_path / "b.json.xz").write_bytes(lzma.compress(b"packed"))
    assert read_file("a/b.json") == "packed"
    (tmp_path / "b.json").write_text("alone")
    assert read_file("a/b.json") == "alone"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.json").write_text("at its place")
    assert read_file("a/b.json") == "at its place"


def test_the_copies_are_the_official_files(official_files):
    """By the hashes in data/intercode/README.md."""
    page = resource("data/intercode/README.md").read_text(encoding="utf-8")
    hashes = re.findall(r"\| `([^`]+)` \| ([0-9a-f]{64}) \|", page)
    assert len(hashes) == 11
    for path, digest in hashes:
        assert hashlib.sha256(read_file(path).encode()).hexdigest() == digest, path


@pytest.fixture
def official_files(monkeypatch):
    use_own_files(monkeypatch)


@pytest.mark.slow
def test_the_gold_query_earns_the_reward_on_all_questions_in_sqlite(official_files):
    questions = tasks("test")
    counts = Counter(task.hardness for task in questions)
    assert counts == {"easy": 248, "medium": 446, "hard": 174, "extra": 166}
    engines = {
        name: SqliteEngine(name, database) for name, database in load_databases("test").items()
    }
    assert (len(engines), sum(len(e.database.tables) for e in engines.values())) == (20, 81)
    for task in take_sample(questions, 4):
        query = task.gold.partition(";")[0].strip()
        rows, again = (engines[task.database].execute(query).rows for _ in range(2))
        assert rows is not None, task
        assert compute_reward(again, rows) == 1, task
    for engine in engines.values():
        engine.close()


# Found in MariaDB, and not where texts that end in spaces are others.
PADDED = [73, 213, 284, 361, 393, 450, 494, 513, 631, 948, 950, 1002]


@pytest.mark.parametrize("number", PADDED)
def test_official_texts_that_end_in_spaces_are_found(official_files, number):
    rows = find_gold.__wrapped__(tasks("test")[number], False)
    assert rows
    assert rows != ("(0,)",)


@pytest.mark.parametrize("number", [0, 1, 517, 1033])
def test_official_questions_are_played_to_the_end(official_files, number):
    assert solvable(SQL.environment, {"split": "test", "number": number})


def test_a_gold_query_that_is_stopped_is_not_kept_as_an_answer(monkeypatch):
    task = tasks("train")[0]
    with monkeypatch.context() as patched:
        patched.setattr(SqliteEngine, "execute", lambda self, statement: Output(None, TOO_LONG))
        with pytest.raises(RuntimeError, match="gold query of task 0: the statement took too long"):
            find_gold.__wrapped__(task, False)
    assert find_gold.__wrapped__(task, False) == find_gold(task, False) != ()
