"""What the papers let an episode cost, by method and benchmark (data/budgets.csv).

    budget_of("adapt", "textcraft")["iterations"]  # Limit(value=20, source="ADaPT, appendix A")

`calls`, `new_tokens`, `tokens` and `seconds` are a session's, `actions` the environment's; a method
whose own loop has a budget reads `iterations`, `trials`, `d_max`, `turns` or `subtasks` here when
it is made.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.env import Env
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.paths import resource
from thread_kit.trace.header import LIMITS

CHOSEN = "chosen"
"""In a row, the source of a limit that was not the paper's."""


class Limit(NamedTuple):
    """value: at most so many; None is no limit. source: the paper and its section, or who says."""

    value: int | None
    source: str


Budget = Mapping[str, Limit]
"""By unit: calls, actions, turns, iterations, trials, d_max, subtasks; steps (of a
trajectory of LATS: actions and thoughts); new_tokens a call."""


def budget_of(method: str, benchmark: str, paper: str = "") -> dict[str, Limit]:
    """The budget of a method on a benchmark; a variant ("adapt-atomic") has its method's.

    benchmark: its name, or that of few-shot prompts ("alfworld-heat"). Empty for a benchmark that
    the table has not: a session's own defaults hold there. paper: in whose tables ("stateflow",
    "thread-v2"), where it gives another one's method a budget of its own; "" is the method's paper.
    """
    table = _read()
    name = method.partition(",")[0].replace(" ", "-")
    while (any_method := table.get(("*", benchmark, ""))) is None and "-" in benchmark:
        benchmark = benchmark.rpartition("-")[0]
    while (name, benchmark, "") not in table and "-" in name:
        name = name.rpartition("-")[0]
    there = table.get((name, benchmark, paper.partition("-")[0]), {})
    return {**(any_method or {}), **table.get((name, benchmark, ""), {}), **there}


def find_other_budget(method: str, benchmark: str, paper: str) -> dict[str, Limit]:
    """What a paper gives another paper's method that is not the method's own budget."""
    own = budget_of(method, benchmark)
    there = budget_of(method, benchmark, paper)
    return {unit: limit for unit, limit in there.items() if limit != own.get(unit)}


def own_limit(method: str, benchmark: Benchmark, unit: str) -> int:
    """A budget of a method's own loop: iterations, trials, d_max, turns, subtasks, steps.

    For a benchmark that the table has not: 20 iterations, sub-tasks and steps, d_max times as many
    iterations where ReAct is the whole method (ADaPT, section 4.2 and appendix A), the record's
    d_max, as many trials, and 60 turns. Raises ValueError where it has the benchmark and no such
    line, KeyError for another unit.
    """
    budget = budget_of(method, benchmark.name)
    if budget and unit not in budget:
        raise ValueError(
            f"data/budgets.csv has no {unit} of {method!r} on {benchmark.name}; add the line, with "
            "the paper that it is from"
        )
    if budget:
        value = budget[unit].value
        assert value is not None  # only a session's budgets can be without limit
        return value
    deep = benchmark.max_depth
    alone = deep if method.startswith(("react", "nlep")) else 1
    defaults = {"iterations": 20 * alone, "d_max": deep, "trials": deep}
    return {**defaults, "turns": 60, "subtasks": 20, "steps": 20}[unit]


@cache
def _read() -> dict[tuple[str, str, str], dict[str, Limit]]:
    table: dict[tuple[str, str, str], dict[str, Limit]] = {}
    with resource("data/budgets.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            limit = Limit(int(row["value"]) if row["value"] else None, row["source"])
            key = row["method"].replace(" ", "-"), row["benchmark"], row["paper"]
            table.setdefault(key, {})[row["unit"]] = limit
    return table


@runtime_checkable
class CountsActions(Protocol):
    """An environment that ends an episode after so many actions; None is no limit."""

    max_actions: int | None


def apply_budget(budget: Budget, env: Env, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a session: those of a budget, or what was chosen instead.

    `actions` go to the environment. Raises ValueError where they are chosen below 1, or for an
    environment that counts none.
    """
    chosen = dict(options)
    actions = chosen.pop("actions", None)
    if actions is not None and (actions < 1 or not isinstance(env, CountsActions)):
        raise ValueError(f"actions is {actions}; give 1 or more, and only where they are counted")
    if isinstance(env, CountsActions) and (actions or "actions" in budget):
        env.max_actions = actions or budget["actions"].value
    return {name: budget[name].value for name in LIMITS if name in budget} | chosen


def with_own_actions(limits: Mapping[str, Any], benchmark: str) -> dict[str, Any]:
    """The limits of a row, with the environment's own on actions, which rows do not name."""
    own = BENCHMARKS.get(benchmark)
    return {**({"actions": own.max_actions} if own and own.max_actions else {}), **limits}


def sources_of(used: Mapping[str, Any], budget: Budget) -> dict[str, str]:
    """Where each limit that an episode had is from: a paper, or "chosen" where it is another one.

    used: by unit, as in the row of an episode. A unit that the budget has not is left out.
    """
    return {
        unit: limit.source if used[unit] == limit.value else CHOSEN
        for unit, limit in budget.items()
        if unit in used
    }
