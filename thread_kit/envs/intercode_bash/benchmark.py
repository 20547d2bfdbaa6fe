"""InterCode Bash's record."""

from __future__ import annotations

from operator import attrgetter

from thread_kit.dialect import COMMANDS
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.intercode.interaction import TURNS
from thread_kit.envs.intercode.tasks import SPLITS, has_other_questions
from thread_kit.envs.intercode_bash.env import InterCodeBash
from thread_kit.envs.intercode_bash.machine import MACHINE
from thread_kit.envs.intercode_bash.tasks import tasks
from thread_kit.errors.rules import InterCodeRules

BASH = Benchmark(
    "bash",
    InterCodeBash,
    tasks,
    splits=SPLITS,
    arguments=attrgetter("arguments"),
    methods=("react-hybrid", "plan-and-solve", "try again, visible reward"),
    executors=("executor",),
    carry=True,  # what one step has found out, the next one need not
    dialect=COMMANDS,
    machines={"bash": MACHINE},
    error_rules=InterCodeRules,
    max_actions=TURNS,
    published="InterCode Bash",
    stands_in=has_other_questions,
)
