"""`python -m thread_kit suite`: run a suite where there is no screen, and print its table."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thread_kit.cli.arguments import (
    add_benchmark,
    add_model,
    add_rules,
    benchmark_of,
    engine_options,
    rules_of,
    taught_by,
)
from thread_kit.engines.models import EMBEDDED, load_model
from thread_kit.envs.env import Env
from thread_kit.envs.registry import spread
from thread_kit.experiments.method import Fitting, Method, SessionMethod
from thread_kit.experiments.method_registry import BUILDERS, ON_ALFWORLD, ON_QUESTIONS, named
from thread_kit.prompts import Prompt

if TYPE_CHECKING:
    import pandas as pd

    from thread_kit.experiments.results import Results


def add_command(commands: Any) -> None:
    """Add `suite` to the subparsers of the command line."""
    suite = commands.add_parser("suite", help="run methods on many tasks; goes on where it stopped")
    suite.set_defaults(do=run)
    suite.add_argument(
        "--methods",
        nargs="+",
        choices=[*BUILDERS, *ON_ALFWORLD, *ON_QUESTIONS],
        default=["thread"],
    )
    suite.add_argument("--models", nargs="+", default=[EMBEDDED], help="names, or GGUF files")
    add_benchmark(suite)
    add_rules(suite)
    suite.add_argument("--tasks", type=int, metavar="N", help="so many, evenly spread; else all")
    suite.add_argument("--seeds", type=int, default=1, metavar="N", help="runs over all tasks")
    suite.add_argument("--out", type=Path, required=True, metavar="FILE", help="results (JSONL)")
    suite.add_argument(
        "--traces",
        action="store_true",
        help="keep every episode's trace, from which it goes on if it is killed",
    )
    suite.add_argument("--retry", action="store_true", help="play again what broke down")
    suite.add_argument("--at-once", type=int, default=1, metavar="N", help="episodes side by side")
    add_model(suite)


def run(options: argparse.Namespace) -> None:
    """Run the suite of the command line, model by model, and print what came of it."""
    # Imported here, so that the other commands start without pandas and scipy.
    from thread_kit.experiments.results import Results
    from thread_kit.experiments.suite import Suite

    benchmark, split = benchmark_of(options)
    rules = rules_of(options)
    tasks = spread(benchmark.listed(split), options.tasks)
    chosen = [benchmark.arguments(task) | rules for task in tasks]
    rows = []
    for model in options.models:
        adapter, prompt = taught_by(
            model, adapter=options.adapter, prompt=options.prompt, benchmark=options.env
        )
        load = partial(load_model, model, adapter=adapter, **engine_options(options))
        suite = Suite(
            options.out,
            methods=methods_of(options, adapter, prompt, benchmark.environment(**chosen[0])),
            models={Path(model).stem if model.endswith(".gguf") else model: load},
            environment=benchmark.environment,
            tasks=chosen,
            seeds=range(options.seeds),
            traces=options.traces,
            options={
                "calls": options.calls,
                "new_tokens": options.new_tokens,
                "temperature": options.temperature,
            },
        )
        print(suite, flush=True)
        rows += suite.run(at_once=options.at_once, retry=options.retry).rows
    report(Results(rows), seeds=options.seeds)


def methods_of(
    options: argparse.Namespace, adapter: str | None, prompt: Prompt | None, env: Env
) -> list[Method]:
    """The methods that were asked for, few-shot; or the one that the adapter teaches the model.

    prompt: THREAD's; None for the examples that fit each task. env: one of the tasks.
    Raises ValueError where an adapter would play what it does not teach, and what `named` raises.
    """
    others = [name for name in options.methods if not name.startswith("thread")]
    if adapter and (options.adapter is None or len(options.methods) > 1) and others:
        raise ValueError(
            f"the adapter {adapter} does not teach the model {others[0]!r} as well; give --adapter "
            "none for few-shot prompts, or play it by itself with an adapter that teaches it"
        )
    methods: list[Method] = []
    for name in options.methods:
        if name == "thread" and prompt is not None:
            methods.append(SessionMethod("thread", prompt))
        else:
            make = partial(named, name, taught=adapter is not None)
            make(env.examples)  # what is missing is said before anything is played
            methods.append(Fitting(name, make))
    return methods


def report(results: Results, *, seeds: int) -> None:
    """Print the tables of a suite: rates with intervals, pairs of methods, the published ones."""
    from thread_kit.analysis.published import compare_with_published, list_published_names
    from thread_kit.analysis.statistics import compare, repeats, success

    frame = results.frame
    print(results)
    _print("Solved (95% Wilson intervals; medians of tokens, calls and seconds)", success(frame))
    solvable = frame.loc[frame["solvable"].eq(True), "task"].nunique()
    print(f"\nThe oracle solves {solvable} of these {frame['task'].nunique()} tasks.")
    if frame["method"].nunique() > 1:
        _print("Methods on the same tasks (paired bootstrap, exact McNemar, Holm)", compare(frame))
    if seeds > 1:
        _print("Over runs, in percent (as Table 7 of THREAD paper)", repeats(frame))
    table = compare_with_published(frame)
    played = {
        name for method in frame["method"] for name in (method, *list_published_names(method))
    }
    table = table[table["method"].str.casefold().isin(played)].drop(columns="note")
    _print("Beside the published numbers, which are other models' unless it says so", table)


def _print(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n{table.to_string(index=False, float_format='{:.3g}'.format)}")
