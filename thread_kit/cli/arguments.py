"""The arguments that `run` and `suite` share: benchmark, model, what an episode may cost."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from thread_kit.engines.models import MODELS
from thread_kit.envs.registry import BENCHMARKS, Benchmark, dialect_of
from thread_kit.prompts import EMPTY, Prompt, load_prompt


def add_benchmark(command: Any) -> None:
    """--env and --split; `benchmark_of` reads them."""
    splits = "; ".join(f"{name}: {', '.join(one.splits)}" for name, one in BENCHMARKS.items())
    command.add_argument("--env", choices=BENCHMARKS, default="textcraft", help="benchmark")
    command.add_argument("--split", help=f"{splits} (default: the first)")


def benchmark_of(options: argparse.Namespace) -> tuple[Benchmark, str]:
    """The benchmark that was asked for, and the split; raises ValueError if it has none such."""
    benchmark = BENCHMARKS[options.env]
    split = options.split or benchmark.splits[0]
    if split not in benchmark.splits:
        known = ", ".join(benchmark.splits)
        raise ValueError(f"unknown split {split!r} of {options.env}; choose one of {known}")
    return benchmark, split


def add_rules(command: Any) -> None:
    """By which rules a task is played, where there is a choice; `rules_of` reads them."""
    command.add_argument(
        "--nearest",
        action="store_true",
        help="alfworld: take what is no action for the admissible one most like it (StateFlow)",
    )


def rules_of(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of the environment: part of the task, so that results by other rules do not mix.

    Raises ValueError for a rule that the benchmark does not have.
    """
    if not options.nearest:
        return {}
    if options.env != "alfworld":
        raise ValueError(
            f"--nearest is for --env alfworld, whose games say what can be done; {options.env} has "
            "no such list"
        )
    return {"nearest": True}


def add_model(command: Any) -> None:
    """What a model is loaded with and taught by, and the limits of an episode."""
    command.add_argument("--prompt", help="THREAD's few-shot: a name, or a path (.txt), or none")
    command.add_argument("--adapter", help="a name, or a GGUF adapter, or none (default: by model)")
    command.add_argument("--gpu-layers", type=int, default=-1, metavar="N", help="-1: all that fit")
    command.add_argument(
        "--cpu-threads", type=int, metavar="N", help="cores for the model (default: all it may use)"
    )
    command.add_argument(
        "--context", type=int, default=8192, metavar="TOKENS", help="KV cache size"
    )
    command.add_argument("--calls", type=int, default=200, metavar="N", help="an episode, at most")
    command.add_argument(
        "--new-tokens", type=int, default=1000, metavar="N", help="a call, at most"
    )
    command.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")


def engine_options(options: argparse.Namespace) -> dict[str, Any]:
    """How the engine is to be loaded, for `load_model`."""
    return {name: getattr(options, name) for name in ("gpu_layers", "cpu_threads", "context")}


def taught_by(
    name_or_path: str, *, adapter: str | None, prompt: str | None, benchmark: str
) -> tuple[str | None, Prompt | None]:
    """What teaches a model the language of threads: an adapter or a few-shot prompt, never both.

    The embedded model has been taught some benchmarks by an adapter each; for all else it is shown
    examples, and the prompt is None: those that fit the task (`Env.examples`). adapter, prompt: a
    choice of one's own, by name or by path; "none" is a choice, too. Raises what `load_prompt`
    raises.
    """
    model = MODELS.get(name_or_path)
    own = model.taught.get(benchmark) if model and not prompt else None
    chosen = None if adapter == "none" else adapter or own
    dialect = dialect_of(benchmark)
    if prompt and prompt != "none":
        return chosen, load_prompt(prompt, dialect)
    return chosen, replace(EMPTY, dialect=dialect) if prompt or chosen else None
