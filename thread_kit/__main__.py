"""The command line: run one episode or a whole suite, show a saved one, list the models.

python -m thread_kit run --env textcraft --task 12 --model NAME --out FILE.jsonl
python -m thread_kit suite --methods thread --models NAME --tasks 40 --out RESULTS.jsonl
python -m thread_kit show FILE.jsonl
python -m thread_kit models
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from thread_kit.cli.arguments import (
    add_benchmark,
    add_model,
    add_rules,
    benchmark_of,
    engine_options,
    rules_of,
    taught_by,
)
from thread_kit.cli.suite import add_command
from thread_kit.engines.models import EMBEDDED, MODELS, ModelError, find_file, load_model
from thread_kit.prompts import PromptError, load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, TraceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status (2: the command cannot do what it was asked)."""
    options = _parser().parse_args(arguments)
    try:
        options.do(options)
        sys.stdout.flush()
    except BrokenPipeError:  # `... | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (
        ModelError,
        PromptError,
        TraceError,
        ValueError,
        OSError,
        RuntimeError,
        ImportError,
    ) as error:
        print(f"thread_kit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "Run episodes of THREAD on a local model, show a saved one, list the models."
    parser = argparse.ArgumentParser(prog="python -m thread_kit", description=about)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run one episode and print its tree")
    run.set_defaults(do=_run)
    add_benchmark(run)
    add_rules(run)
    run.add_argument("--task", default="0", metavar="N", help="number within the split, or a name")
    run.add_argument("--model", default=EMBEDDED, help="a name (see `models`), or a GGUF file")
    run.add_argument("--out", metavar="FILE", help="write the trace (JSONL) while it happens")
    add_model(run)
    run.add_argument("--depth", type=int, default=30, metavar="N", help="levels of threads at most")
    run.add_argument("--seconds", type=float, metavar="S", help="time limit of the episode")
    run.add_argument("--seed", type=int, default=0, help="for a temperature above 0")

    add_command(commands)

    show = commands.add_parser("show", help="print the tree of a saved episode; needs no model")
    show.set_defaults(do=_show)
    show.add_argument("file", help="a trace (JSONL)")
    show.add_argument("--thread", type=int, metavar="N", help="all that one thread saw and wrote")

    models = commands.add_parser("models", help="list the models that load by name")
    models.set_defaults(do=_models)
    return parser


def _run(options: argparse.Namespace) -> None:
    benchmark, split = benchmark_of(options)
    rules = rules_of(options)
    env = benchmark.environment(split=split, **benchmark.chosen(options.task), **rules)
    adapter, prompt = taught_by(
        options.model, adapter=options.adapter, prompt=options.prompt, benchmark=options.env
    )
    engine = load_model(options.model, adapter=adapter, **engine_options(options))
    session = Session(
        engine,
        env,
        prompt=load_prompt(env.examples, benchmark.dialect) if prompt is None else prompt,
        calls=options.calls,
        new_tokens=options.new_tokens,
        depth=options.depth,
        seconds=options.seconds,
        temperature=options.temperature,
        seed=options.seed,
        path=options.out,
    )

    print(f"{engine}\n{env}", flush=True)
    with engine:
        episode = session.run()
    print(episode)
    print(episode.summary)
    if episode.status is Status.STOPPED:
        raise KeyboardInterrupt  # the exit status says so, too


def _show(options: argparse.Namespace) -> None:
    episode = Episode.load(options.file)
    if options.thread is None:
        print(episode)
        print(episode.summary)
    elif options.thread in episode.threads:
        print(episode.seen(options.thread))
    else:
        raise ValueError(
            f"there is no thread {options.thread}; this episode has 0 to {len(episode.threads) - 1}"
        )


def _models(options: argparse.Namespace) -> None:
    for model in MODELS.values():
        print(f"{model.name:20} {model.size:6} MB  context {model.context:6}  {model.licence}")
        print(f"{'':20} {model.source}: {model.file}")
        if model.package:
            try:
                print(f"{'':20} {find_file(model)}")
            except ModelError as error:
                print(f"{'':20} {error}")


if __name__ == "__main__":
    sys.exit(main())
