"""The command line of distillation: train an adapter, and see how well it plays.

python -m thread_kit.distill train thread --tokens 2050000 --out runs/distill/thread
python -m thread_kit.distill evaluate thread --adapter FILE.gguf --out runs/distill/thread/test
python -m thread_kit.distill evaluate thread --env alfworld --adapter FILE.gguf --out FOLDER
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from thread_kit.cli.arguments import DefaultsFormatter, add_benchmark, read_benchmark
from thread_kit.distill.alfworld_tasks import training_games
from thread_kit.distill.copying import NAMES, copy_names, count_exact, draw_names
from thread_kit.distill.examples import METHODS, Example, ExampleFile, TrainingTask, examples
from thread_kit.distill.question_tasks import training_questions
from thread_kit.distill.textcraft_tasks import renamed_tasks, training_tasks
from thread_kit.distill.webshop_tasks import training_purchases
from thread_kit.distill.words import SHARES
from thread_kit.engines.models import (
    EMBEDDED,
    MODELS,
    ModelError,
    find_adapter,
    find_file,
    load_model,
)


class Lessons(NamedTuple):
    """Of a benchmark: training tasks for a seed, without end; `mains` and `others` of `examples`.

    share: of the tokens of the adapter for several benchmarks; 0 for one that has its own.
    """

    tasks: Callable[[int], Iterator[TrainingTask]]
    mains: int
    others: int
    share: float


LESSONS = {
    "textcraft": Lessons(lambda seed: training_tasks(1 + seed * 10**9, 10**9), 2, 1, 0.488),
    "alfworld": Lessons(training_games, 1, 1, 0.293),
    "questions": Lessons(training_questions, 1, 2, 0.219),  # DataCommons QA and ICU QA
    "webshop": Lessons(training_purchases, 1, 2, 0),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status (2: the command cannot do what it was asked)."""
    options = _parser().parse_args(arguments)
    try:
        options.do(options)
    except (ModelError, ValueError, OSError, RuntimeError, ImportError) as error:
        remedy = '; run: pip install ".[distill]"' if isinstance(error, ModuleNotFoundError) else ""
        print(f"thread_kit.distill: {error}{remedy}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # the same command goes on from the last checkpoint
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "Teach the embedded model the language of threads, and see how well it plays."
    parser = argparse.ArgumentParser(prog="python -m thread_kit.distill", description=about)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add = partial(commands.add_parser, formatter_class=DefaultsFormatter)
    train = add("train", help="train an adapter; goes on where it was interrupted")
    train.set_defaults(do=_train)
    train.add_argument("method", choices=METHODS, help="react: the control, one line of context")
    together = "textcraft, alfworld and questions together; react: textcraft"
    train.add_argument("--env", choices=LESSONS, help=f"one (default: of thread {together})")
    train.add_argument("--tokens", type=int, default=2_050_000, help="training tokens")
    train.add_argument("--seed", type=int, default=0, help="of the tasks and of the training")
    train.add_argument("--out", type=Path, required=True, metavar="FOLDER")

    copy = add("copy", help="how exactly names that no lesson has are copied")
    copy.set_defaults(do=_copy)
    copy.add_argument("--adapter", help="a name or a GGUF file (default: the project's own)")
    copy.add_argument("--names", type=int, default=NAMES, help="how many")

    play = add("evaluate", help="play the tasks of a split")
    play.set_defaults(do=_evaluate)
    play.add_argument("method", choices=METHODS)
    add_benchmark(play)
    own = "(default: the project's own of THREAD)"
    play.add_argument("--adapter", help=f"a name or a GGUF file {own}")
    play.add_argument("--at-once", type=int, default=1, metavar="N", help="episodes at a time")
    play.add_argument(
        "--renamed", action="store_true", help="TextCraft, every item by words that no lesson has"
    )
    play.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth task")
    play.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    return parser


def _train(options: argparse.Namespace) -> None:
    from thread_kit.distill.export import export
    from thread_kit.distill.train import Recipe, train

    base = find_file(MODELS[EMBEDDED])
    only = options.env or ("textcraft" if options.method == "react" else None)
    made = _examples(options, [only] if only else [env for env in LESSONS if LESSONS[env].share])
    tokens = sum(map(len, made))
    recipe = Recipe(seed=options.seed)
    model = train(base, made, options.out, recipe)
    path = options.out / "adapter.gguf"
    about = {
        "general.name": "-".join(filter(None, (options.method, only, "135m"))),
        "general.description": f"distilled on {tokens} tokens of a teacher's "
        f"transcripts in the form '{options.method}', seed {options.seed}",
        "general.license": "apache-2.0",
    }
    export(model, path, alpha=recipe.alpha, about=about)
    print(f"{path}: {len(made)} examples, {tokens} tokens")


def _examples(options: argparse.Namespace, envs: Sequence[str]) -> list[Example]:
    """The examples: an interrupted run finds those that are made already in its folder.

    envs: the benchmarks whose lessons these are, as `LESSONS` names them.
    """
    total = sum(LESSONS[env].share for env in envs)
    made: list[Example] = []
    with load_model(adapter=None, context=256) as engine:  # for its vocabulary
        for env in envs:
            lessons = LESSONS[env]
            shares = {"mains": lessons.mains, "others": lessons.others}
            about = {"method": options.method, "env": env, "seed": options.seed, **shares}
            path = options.out / f"examples-{env}.jsonl"
            with closing(ExampleFile(path, {**about, "slips": True})) as file:
                made += examples(
                    options.method,
                    lessons.tasks(options.seed),
                    engine,
                    tokens=round(options.tokens * (lessons.share / total if total else 1)),
                    seed=options.seed,
                    slips=True,
                    file=file,
                    **shares,
                )
    random.Random(options.seed).shuffle(made)
    return made


def _copy(options: argparse.Namespace) -> None:
    if options.names < len(SHARES):
        raise ValueError(f"--names {options.names}: give {len(SHARES)} or more, one of each length")
    adapter = options.adapter or MODELS[EMBEDDED].adapter
    with load_model(adapter=adapter, context=8192) as engine:
        copies = copy_names(engine, draw_names(options.names))
    print(count_exact(copies).to_string(index=False))
    for name, _, copy in copies:
        if copy != name:
            print(f"{name!r} became {copy!r}")


def _evaluate(options: argparse.Namespace) -> None:
    from thread_kit.distill.evaluate import by_group, evaluate

    # What cannot work is said before anything is loaded.
    benchmark, split = read_benchmark(options)
    own = benchmark.adapters.get(EMBEDDED) if options.method == "thread" else None
    adapter = options.adapter or own
    if adapter is None:
        raise ValueError(
            f"no adapter here teaches {options.method} on {options.env} unless it is named; give "
            "--adapter NAME or FILE.gguf"
        )
    for option in ("every", "at_once"):
        if getattr(options, option) < 1:
            name = option.replace("_", "-")
            raise ValueError(f"--{name} {getattr(options, option)}: give 1 or more")
    if options.renamed and options.env != "textcraft":
        raise ValueError("--renamed is for --env textcraft")
    listed = renamed_tasks(split) if options.renamed else benchmark.tasks(split)
    chosen = listed[:: options.every]
    # Episodes at a time share the engine's cells: each is to have the room that it has alone.
    room = MODELS[EMBEDDED].context * options.at_once
    with load_model(adapter=find_adapter(adapter), context=room) as engine:
        results = evaluate(
            options.method,
            engine,
            chosen,
            options.out,
            at_once=options.at_once,
            renamed=options.renamed,
        )
    # A line a group of tasks, then what failed.
    for row in by_group(results):
        print(
            "{tasks:8} {solved:3} of {n:3}, {cut} cut  {rate:6.1%} [{low:.1%}, {high:.1%}]  "
            "median: {generated:.0f} generated, {evaluated:.0f} evaluated, {seconds} s".format(
                **row
            )
            + (f"  score {row['score']}" if "score" in row else "")
        )
    for result in results:
        if not result.solved:
            print(*result.task.values(), f"{result.goal}: {result.cause} ({result.status})")
            print(f"      said      {result.said}\n      expected  {result.expected}")


if __name__ == "__main__":
    sys.exit(main())
