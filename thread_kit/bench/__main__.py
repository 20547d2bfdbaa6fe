"""`python -m thread_kit.bench`: measure, print the tables, keep the numbers as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tqdm import tqdm

from thread_kit.bench import growth, tables
from thread_kit.bench.contenders import CONTENDERS, run_in_process
from thread_kit.bench.drafting import drafting
from thread_kit.bench.exactness import drift
from thread_kit.bench.rates import rate, rate_beside_cells
from thread_kit.bench.server import llama_server
from thread_kit.bench.workload import Measurement, Weights, Workload, workload
from thread_kit.cli.arguments import choose_teaching
from thread_kit.engines.core_share import own_cores
from thread_kit.engines.engine import EngineError
from thread_kit.engines.models import EMBEDDED, ModelError, load_model
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.prompts import load_prompt
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, TraceError

AT_ONCE = (1, 2, 4, 8)
KEPT_CELLS = (1000, 2000, 4000)
THREADS = 1000  # of the episodes whose bookkeeping is measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status (2: the command cannot do what it was asked)."""
    options = _parser().parse_args(arguments)
    try:
        _measure(options)
    except (EngineError, ModelError, TraceError, ValueError, OSError) as error:
        print(f"thread_kit.bench: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m thread_kit.bench",
        description="Play an episode, then give its calls to KV-true threads and to what people "
        "use instead of them; compare the kit's speed with llama.cpp's own.",
    )
    parser.add_argument("trace", nargs="?", help="a recorded episode, instead of playing one")
    parser.add_argument("--model", default=EMBEDDED, help="a name, or a GGUF file")
    parser.add_argument("--adapter", help="a name, or a GGUF adapter, or none (default: by model)")
    parser.add_argument("--prompt", help="few-shot: a name, or a path ending in .txt, or none")
    parser.add_argument("--task", type=int, default=110, help="of TextCraft's official 200")
    parser.add_argument("--calls", type=int, default=200, help="of the episode, at most")
    parser.add_argument("--context", type=int, default=8192, metavar="TOKENS", help="KV cache size")
    parser.add_argument("--gpu-layers", type=int, default=-1, metavar="N", help="-1: all")
    parser.add_argument("--rounds", type=int, default=3, help="of all contenders, in random order")
    parser.add_argument("--out", type=Path, help="keep the numbers in this file (JSON)")
    return parser


def _measure(options: argparse.Namespace) -> None:
    if options.rounds < 1:
        raise ValueError(f"--rounds {options.rounds}: give at least 1")
    adapter, prompt = choose_teaching(
        options.model, TEXTCRAFT, adapter=options.adapter, prompt=options.prompt
    )
    cpu_threads = len(own_cores())
    size = {"context": options.context, "gpu_layers": options.gpu_layers}
    weights = Weights.of(options.model, adapter, cpu_threads=cpu_threads, **size)
    with load_model(options.model, adapter=adapter, **size) as engine:
        if options.trace:
            name, episode = Path(options.trace).stem, Episode.load(options.trace)
        else:
            name = f"TextCraft test {options.task}"
            task = TextCraft("test", options.task)
            few_shot = load_prompt(task.examples) if prompt is None else prompt
            session = Session(engine, task, prompt=few_shot, calls=options.calls)
            episode = session.run()
            if session.error:
                raise session.error
        work = workload(episode, engine, name)
        offloaded = engine.offloaded
    print(f"{episode!r}\n{work.name}, forced through {weights}: {len(work.calls)} calls\n")

    packages = ("llama-cpp-python", *(["xllamacpp"] if find_spec("xllamacpp") else []))
    # Each part is printed when it is there: the whole takes minutes.
    result: dict[str, Any] = {
        "workload": {
            "name": work.name,
            "calls": len(work.calls),
            "threads": len(episode.threads),
            "depth": episode.depth,
            "prompt": len(work.prompt),
            "generated": work.generated,
            "reward": episode.reward,
        },
        "model": str(weights),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cpu_threads": cpu_threads,
            "layers_offloaded": list(offloaded),
            **{name: version(name) for name in packages},
        },
        "contenders": [run._asdict() for run in _contenders(weights, work, options.rounds)],
    }
    print(f"{tables.contenders(result).to_string(index=False)}\n")
    result["exactness"] = [row._asdict() for row in drift(weights, work)]
    print(f"{tables.exactness(result).to_string(index=False)}\n")
    result["drafts"] = [row._asdict() for row in drafting(weights, work)]
    print(f"{tables.drafts(result).to_string(index=False)}\n")
    result["rates"] = [rate(weights, n)._asdict() for n in tqdm(AT_ONCE, "rates", leave=False)]
    print(f"{tables.rates(result).to_string(index=False)}\n")
    sizes = [cells for cells in KEPT_CELLS if cells < options.context // 2]
    result["keeping"] = {str(cells): rate_beside_cells(weights, cells) for cells in sizes}
    for cells, share in result["keeping"].items():
        print(f"beside {cells} kept cells of ended threads: {share:.1%} of the rate without")
    print()
    result["bookkeeping"] = {shape: growth.bookkeeping(shape, THREADS) for shape in growth.TREES}
    print(f"{tables.bookkeeping(result).to_string(index=False)}\n")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _contenders(weights: Weights, work: Workload, rounds: int) -> list[Measurement]:
    contenders = [run for run in CONTENDERS if run is not llama_server or find_spec("xllamacpp")]
    if len(contenders) < len(CONTENDERS):
        print("llama-server is left out: pip install xllamacpp")
    order = random.Random(0)
    runs = [run for _ in range(rounds) for run in order.sample(contenders, len(contenders))]
    return [run_in_process(run, weights, work) for run in tqdm(runs, unit="run", leave=False)]


if __name__ == "__main__":
    sys.exit(main())
