"""How well an adapter plays: tasks solved by group, what they cost, and the first mistake of each.

The episodes are a suite's, with their traces: one that was interrupted goes on with the tasks it
lacks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

import pandas as pd

from thread_kit.analysis.statistics import wilson
from thread_kit.distill.deviations import cause_of, first_deviation
from thread_kit.distill.examples import Method, Teacher, teacher_of
from thread_kit.distill.textcraft_tasks import make_renamed
from thread_kit.engines.engine import Engine
from thread_kit.envs.alfworld import env as alfworld
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.benchmark import NumberedTask
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.textcraft import env as textcraft
from thread_kit.envs.webshop.env import WebShop
from thread_kit.experiments.episode_facts import is_out_of_actions
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.results_file import canonical
from thread_kit.experiments.spent_budget import find_budget
from thread_kit.experiments.suite import Suite
from thread_kit.replace_file import replace_text
from thread_kit.trace.episode import Episode

CALLS = {"thread": 200, "react": 60}
"""Calls of the model an episode, at most: THREAD's own limit, and as many as the ADaPT paper
(appendix A) gives iterations to ReAct on TextCraft, the one benchmark that it is taught here."""

NEW_TOKENS = 300
"""A call, at most; the longest that a teacher writes has 195."""

COSTS = ("generated", "evaluated", "seconds")

Task = textcraft.Task | alfworld.Task | NumberedTask


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of one task.

    environment: the benchmark. task: what identifies it there. group: what it is counted with, its
    depth ("depth 3"), its type ("heat"), what is compared ("minimum"), or how many options are
    wanted ("2 options"). generated, evaluated: tokens. seconds: of the episode, or of its last part
    if it was interrupted. cause: of a failure; said and expected: the first line that differs from
    the teacher's, and the teacher's.
    reward: of a purchase, which can be right in part; else None, and `solved` says it.
    out_of_actions: the environment had taken its last one; None in rows that do not say.
    error: what broke the episode down, if anything did.
    """

    environment: str
    task: dict[str, Any]
    goal: str
    group: str
    solved: bool
    status: str
    threads: int
    calls: int
    generated: int
    evaluated: int
    seconds: float
    cause: str = ""
    said: str = ""
    expected: str = ""
    reward: float | None = None
    out_of_actions: bool | None = None
    error: str = ""


def evaluate(
    method: Method,
    engine: Engine,
    tasks: Sequence[Task],
    folder: Path,
    *,
    at_once: int = 1,
    renamed: bool = False,
) -> list[TaskResult]:
    """Play `tasks` greedily in the form of `method`; `results.jsonl` and all else goes to `folder`.

    tasks: of one benchmark, played without examples and within its own limit on actions (ALFWorld:
    50). `episodes.jsonl` is the file of the suite, beside it are the traces. at_once: episodes at
    a time, in the batches of the one engine. Faster in all, but an episode then takes longer:
    measure seconds with 1. renamed: they are of `renamed_tasks`, and their files begin with
    `renamed-`. Raises ValueError where nobody has written a teacher, RuntimeError for an episode
    that could not be started.
    """
    teacher_for(method, tasks[0])  # what is missing is said before anything is played
    start = "renamed-" if renamed else ""  # these have the numbers of the others
    benchmark = BENCHMARKS[_benchmark(tasks[0])]
    suite = Suite(
        folder / f"{start}episodes.jsonl",
        methods=[
            SessionMethod(
                method,
                benchmark.no_examples,
                {"scope": "exported" if method == "thread" else "none"},
            )
        ],
        models={engine.name: engine},
        environment=make_renamed if renamed else benchmark.environment,
        tasks=[benchmark.arguments(task) for task in tasks],
        traces=True,
        options={"calls": CALLS[method], "new_tokens": NEW_TOKENS},
    )
    # What broke down was no fault of the adapter's: it is played again.
    played = {canonical(row["task"]): row for row in suite.run(at_once=at_once, retry=True).rows}
    results = []
    for task in tasks:
        row = played[canonical(benchmark.arguments(task))]
        episode = Episode.load(folder / row["trace"]) if row["trace"] else Episode()
        if not episode.threads:
            raise RuntimeError(f"{task} could not be started: {row['error']}")
        result = evaluate_episode(method, task, episode)
        results.append(replace(result, error=row["error"]))
    lines = "".join(json.dumps(asdict(result)) + "\n" for result in results)
    replace_text(folder / f"{start}results.jsonl", lines)
    return results


def evaluate_episode(method: Method, task: Task, episode: Episode) -> TaskResult:
    """What came of a task, and, if it failed, where its episode first left the teacher's way."""
    if isinstance(task, textcraft.Task):
        goal, group = task.goal, f"depth {task.depth}"
    else:  # Your task is to: put a mug in desk.
        goal = episode.threads[0].title.partition(": ")[2].removesuffix(".")
        group = _kind(task) if isinstance(task, NumberedTask) else task.type
    used, name = episode.usage, _benchmark(task)
    result = TaskResult(
        environment=name,
        task=BENCHMARKS[name].arguments(task),
        goal=goal,
        group=group,
        solved=episode.solved,
        status=str(episode.status),
        threads=len(episode.threads),
        calls=used.calls,
        generated=used.generated,
        evaluated=used.evaluated,
        seconds=round(episode.seconds, 2),
        reward=episode.reward or 0.0 if name == "webshop" else None,
        out_of_actions=is_out_of_actions(episode),
    )
    if episode.solved:
        return result
    said, expected = first_deviation(episode, teacher_for(method, task))
    cause = cause_of(said, expected)
    if not said and not expected:
        if find_budget(asdict(result)):
            cause += "; the budget was used up"
        elif name == "webshop":
            cause = "no mistake; what is taught does not solve it"
    return replace(result, cause=cause, said=said, expected=expected)


def teacher_for(method: Method, task: Task) -> Teacher:
    """The teacher of a listed task (`teacher_of`)."""
    if isinstance(task, textcraft.Task):
        return teacher_of(method, "textcraft", task.goal, task.commands)
    return teacher_of(method, _benchmark(task))


def _benchmark(task: Task) -> str:
    if isinstance(task, NumberedTask):
        return task.benchmark
    return "textcraft" if isinstance(task, textcraft.Task) else "alfworld"


def _kind(task: NumberedTask) -> str:
    """What is compared: "minimum" of the questions which minimum is higher, and which is lower.

    Of a purchase, how many options are wanted.
    """
    env = BENCHMARKS[task.benchmark].environment(**task.arguments)
    if isinstance(env, WebShop):
        return f"{len(env.goal.options)} options"
    assert isinstance(env, QuestionEnv)
    return env.question.kind.partition(" ")[0]


def by_group(results: Sequence[TaskResult]) -> list[dict[str, Any]]:
    """Rows for each group and for all: n, solved, rate with its Wilson interval (95%), medians.

    Of purchases the score, too: a hundred times the mean reward.

    Groups stand in the order of depth, or of the papers' task types.
    """
    groups: dict[str, list[TaskResult]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    order = {kind: place for place, kind in enumerate(KINDS)}
    names = sorted(groups, key=lambda name: (order.get(name, -1), name))
    return [*(_row(name, groups[name]) for name in names), _row("all", results)]


def _row(name: str, group: Sequence[TaskResult]) -> dict[str, Any]:
    solved = sum(result.solved for result in group)
    low, high = wilson(solved, len(group))
    rewards = [result.reward for result in group if result.reward is not None]
    score = {"score": round(100 * mean(rewards), 1)} if rewards else {}
    return {
        "tasks": name,
        "n": len(group),
        "solved": solved,
        "cut": sum(not result.solved and bool(find_budget(asdict(result))) for result in group),
        "rate": round(solved / len(group), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        **score,
        **{cost: round(median(getattr(result, cost) for result in group), 1) for cost in COSTS},
    }


def to_frame(results: Sequence[TaskResult], *, method: str, model: str) -> pd.DataFrame:
    """Results as a suite's frame has them, for `analysis/`.

    model: says how the model was taught, since that is no other model's few-shot result.
    """
    about = {"method": method, "model": model, "seed": 0}
    return pd.DataFrame(
        about | asdict(result) | result.task | {"task": canonical(result.task)}
        for result in results
    )


def load_results(path: Path) -> list[TaskResult]:
    """The results in a `results.jsonl`."""
    return [TaskResult(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
