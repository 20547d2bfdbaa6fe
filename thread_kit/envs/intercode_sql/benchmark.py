"""InterCode SQL's record."""

from __future__ import annotations

from operator import attrgetter

from thread_kit.dialect import COMMANDS
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.intercode.interaction import TURNS
from thread_kit.envs.intercode.tasks import SPLITS, has_other_questions
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.envs.intercode_sql.machine import MACHINE
from thread_kit.envs.intercode_sql.questions import tasks
from thread_kit.errors.rules import InterCodeRules

SQL = Benchmark(
    "sql",
    InterCodeSql,
    tasks,
    splits=SPLITS,
    arguments=attrgetter("arguments"),
    rules={"mariadb": "play in MariaDB or MySQL (docs/howto/mariadb.md) instead of SQLite"},
    methods=("react-hybrid", "plan-and-solve", "react, refined", "try again, visible reward"),
    executors=("executor",),
    carry=True,  # what one step has found out, the next one need not
    dialect=COMMANDS,
    machines={"sql": MACHINE},
    error_rules=InterCodeRules,
    max_actions=TURNS,
    published="InterCode SQL",
    stands_in=has_other_questions,
)
