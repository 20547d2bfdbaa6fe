"""`python -m thread_kit run`: one episode, and its tree."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from thread_kit.cli.arguments import (
    DefaultsFormatter,
    add_benchmark,
    add_model,
    add_planner_model,
    add_rules,
    check_loading,
    choose_teaching,
    load_models,
    read_benchmark,
    read_budget,
    read_rules,
)
from thread_kit.cli.methods import build_methods, describe_methods
from thread_kit.engines.models import EMBEDDED
from thread_kit.experiments.budgets import apply_budget, budget_of
from thread_kit.experiments.method import Run
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode


def add_command(commands: Any) -> None:
    """Add `run` to the subparsers of the command line."""
    parser = commands.add_parser(
        "run", help="run one episode and print its tree", formatter_class=DefaultsFormatter
    )
    parser.set_defaults(do=run)
    add_benchmark(parser)
    add_rules(parser)
    parser.add_argument(
        "--task", default="0", metavar="N", help="number within the split, or a name"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"a name (see `models`), a GGUF file, or module:name (default: {EMBEDDED}; with "
        "--server the one that it has)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the trace (JSONL) while it happens")
    parser.add_argument("--method", default="thread", metavar="METHOD", help=describe_methods())
    add_model(parser)
    add_planner_model(parser)
    parser.add_argument("--seed", type=int, default=0, help="for a temperature above 0")


def run(options: argparse.Namespace) -> None:
    """Run the episode of the command line, and print its tree and a line for scripts."""
    # What is to be played, before a model is loaded for it.
    model = options.model or ("" if options.server else EMBEDDED)
    check_loading([model], options)
    benchmark, split = read_benchmark(options)
    rules = read_rules(options, benchmark)
    env = benchmark.environment(**benchmark.find_arguments(split, options.task), **rules)
    adapter, prompt = choose_teaching(
        model,
        benchmark,
        adapter=options.adapter,
        prompt=options.prompt,
        served=options.server is not None,
    )
    (method,) = build_methods(
        [options.method],
        benchmark,
        env.examples,
        adapter=adapter,
        is_chosen=options.adapter is not None,
        prompt=prompt,
        planner_model=options.planner_model,
    )

    # The session, which checks all that it is given before it begins; where no budget was chosen,
    # it has the paper's.
    engine = load_models(model, adapter, options)
    budget = apply_budget(budget_of(method.name, env.name), env, read_budget(options))
    if options.out and Path(options.out).exists():
        print(f"{options.out} is there; it is kept beside the new trace, with a number in its name")
    session = method(
        engine,
        env,
        seed=options.seed,
        path=options.out,
        temperature=options.temperature,
        **budget,
    )

    # The episode, and what came of it.
    print(f"{engine}\n{env}", flush=True)
    with engine:
        episode = session.run() if isinstance(session, Session) else play(session)
    print(episode)
    print(episode.summary)
    if session.error:
        raise SystemExit(2)  # what failed has been said
    if episode.status is Status.STOPPED:
        kept = f"; what happened is in {options.out}" if options.out else ""
        raise KeyboardInterrupt(f"stopped{kept}")  # the exit status says so, too


def play(run: Run) -> Episode:
    """Play an episode of a method that is no `Session`."""
    for _ in run:
        pass
    return run.episode
