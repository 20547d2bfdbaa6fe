"""`python -m thread_kit suite`: run a suite where there is no screen, and print its table."""

from __future__ import annotations

import argparse
import errno
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from thread_kit.cli.arguments import (
    DefaultsFormatter,
    add_benchmark,
    add_model,
    add_places,
    add_planner_model,
    add_rules,
    check_models,
    choose_teaching,
    load_engine,
    load_models,
    open_place,
    read_benchmark,
    read_budget,
    read_rules,
)
from thread_kit.cli.methods import build_methods, describe_methods, may_plan
from thread_kit.cli.results import report
from thread_kit.engines.models import EMBEDDED, name_model
from thread_kit.envs.benchmark import spread_evenly
from thread_kit.experiments.budgets import apply_budget
from thread_kit.experiments.method import Method
from thread_kit.session.checks import check_numbers


def add_command(commands: Any) -> None:
    """Add `suite` to the subparsers of the command line."""
    parser = commands.add_parser(
        "suite",
        help="run methods on many tasks; goes on where it stopped",
        formatter_class=DefaultsFormatter,
    )
    parser.set_defaults(do=run)
    parser.add_argument(
        "--methods", nargs="+", default=["thread"], metavar="METHOD", help=describe_methods()
    )
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="NAME",
        help=f"names, GGUF files, or module:name (default: {EMBEDDED}; with --server the one that "
        "it has)",
    )
    add_benchmark(parser)
    add_rules(parser)
    parser.add_argument("--tasks", type=int, metavar="N", help="so many, evenly spread; else all")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs over all tasks")
    parser.add_argument("--trials", type=int, metavar="N", help="of Reflexion and Try Again")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="results (JSONL; default: runs/suite-ENV.jsonl)"
    )
    parser.add_argument(
        "--traces",
        action="store_true",
        help="keep every episode's trace, from which it goes on if it is killed",
    )
    parser.add_argument("--retry", action="store_true", help="play again what ended with an error")
    parser.add_argument(
        "--extend",
        action="store_true",
        help="go on, with larger budgets, with what smaller ones ended in the file",
    )
    add_places(parser)
    add_model(parser)
    add_planner_model(parser)


def run(options: argparse.Namespace) -> None:
    """Run the suite of the command line, model by model, and print what came of it."""
    # Imported here, so that the other commands start without pandas and scipy.
    from thread_kit.experiments.results import Results
    from thread_kit.experiments.results_file import broke_down
    from thread_kit.experiments.suite import Suite

    # What is to be played.
    models = options.models or ([""] if options.server else [EMBEDDED])
    check_models(models, options)
    benchmark, split = read_benchmark(options)
    out = options.out or Path("runs", f"suite-{benchmark.name}.jsonl")
    rules = read_rules(options, benchmark)
    listed = benchmark.list_tasks(split, rules)
    if not listed:
        raise ValueError(f"the split {split!r} of {benchmark.name} has no tasks; choose another")
    tasks = spread_evenly(listed, options.tasks)
    chosen = [benchmark.arguments(task) | rules for task in tasks]
    env = benchmark.environment(**chosen[0])
    settings = read_budget(options) | {"temperature": options.temperature}
    # What it cannot have is said before anything is played.
    check_numbers({name: value for name, value in settings.items() if name != "actions"})
    apply_budget({}, env, settings)

    # A suite a model, all in one file: what teaches a model is its own; so is what it is called,
    # where another one plans for some of the methods. All are made before anything is played.
    suites = []
    called = name_served(models, options) if options.server else {}
    for model in models:
        adapter, prompt = choose_teaching(
            model,
            benchmark,
            adapter=options.adapter,
            prompt=options.prompt,
            served=options.server is not None,
        )
        methods = build_methods(
            options.methods,
            benchmark,
            env.examples,
            adapter=adapter,
            is_chosen=options.adapter is not None,
            prompt=prompt,
            trials=options.trials,
            planner_model=options.planner_model,
        )
        by_plans: dict[bool, list[Method]] = {}
        for asked, method in zip(options.methods, methods, strict=True):
            plans = bool(options.planner_model)
            plans = plans and may_plan(asked, method, benchmark, env.examples)
            by_plans.setdefault(plans, []).append(method)
        for plans, some in by_plans.items():
            name = name_models(
                called.get(model) or name_model(model), options, adapter, plans=plans
            )
            load = load_models if plans else load_engine
            suite = Suite(
                out,
                methods=some,
                models={name: partial(load, model, adapter, options)},
                environment=benchmark.environment,
                tasks=chosen,
                seeds=range(options.seeds),
                traces=options.traces,
                options=settings,
            )
            suites.append(suite)
    rows = []
    for suite in suites:
        print(suite, flush=True)
        try:
            with open_place(options) as executor:
                rows += suite.run(
                    at_once=options.at_once,
                    executor=executor,
                    retry=options.retry,
                    extend=options.extend,
                ).rows
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped; the same command goes on where it stopped, with what is in {out}"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OSError(
                f"{error}; once there is room, the same command goes on where it stopped"
            ) from error
    report(Results(rows), benchmark)
    if more := len(Results.load(out).rows) - len(rows):
        print(
            f"\n{out} has {more} rows more, which are not of this command; all together: "
            f"python -m thread_kit results {shlex.quote(str(out))}"
        )
    if broken := sum(map(broke_down, rows)):
        said = f"{broken} of {len(rows)} episodes broke down; once what broke is mended, --retry"
        if broken == len(rows):
            raise RuntimeError(f"all {said} plays them again: {rows[0]['error']}")
        print(f"\n{said} plays them again.")


def name_served(models: Sequence[str], options: argparse.Namespace) -> dict[str, str]:
    """What tables call the models of a server, which is asked before anything is played.

    Not where workers ask it, which may reach another network than this process, unless no model is
    named. Raises what `load_engine` raises, and ValueError for two names of one model.
    """
    called: dict[str, str] = {}
    files: list[Any] = []
    if options.executor and "" not in models:
        return called
    for model in dict.fromkeys([*models, *filter(None, [options.planner_model])]):
        with load_engine(model, None, options) as engine:
            called[model] = name_model(model or engine.name)
            file = engine.describe().get("file")  # llama-server's, which takes any name
        if file and file in files:
            raise ValueError(
                f"{options.server} has one model, {file}, whatever it is called; name it once"
            )
        files.append(file)
    return called


def name_models(name: str, options: argparse.Namespace, adapter: str | None, *, plans: bool) -> str:
    """What tables call the model of this name, whether an adapter has taught it, and another plans.

    plans: whether the method has a planner that it plans for.
    """
    taught = ", taught" if adapter else ""
    planner = f", planner {name_model(options.planner_model)}" if plans else ""
    return f"{name}{taught}{planner}"
