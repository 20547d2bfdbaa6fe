"""TextCraft's record."""

from __future__ import annotations

from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.textcraft.env import SPLITS, TextCraft, tasks
from thread_kit.envs.textcraft.machine import MACHINE
from thread_kit.errors.rules import TextCraftRules

TEXTCRAFT = Benchmark(
    "textcraft",
    TextCraft,
    tasks,
    splits=tuple(SPLITS),
    arguments=lambda task: {"split": task.split, "number": task.number},
    start=("inventory",),
    handlers=("craft", "fetch"),
    machines={"textcraft": MACHINE},
    error_rules=TextCraftRules,
    adapters={"smollm2-135m": "thread-135m"},
    published="TextCraft",
    group_of=lambda row: f"depth {tasks(row['split'])[int(row['number'])].depth}",
    stands_in=lambda row: row.get("split") == "dev",  # of the kit; the paper's 220 are of depth 2
)
