"""`python -m thread_kit.bench`: measure, print the tables, keep the numbers as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tqdm import tqdm

from thread_kit.bench import growth, tables
from thread_kit.bench.contenders import CONTENDERS, run_in_process
from thread_kit.bench.drafting import COMPARED_DRAFTS, COMPARED_KINDS, drafting
from thread_kit.bench.episodes import play_together, players
from thread_kit.bench.exactness import drift
from thread_kit.bench.rates import rate, rate_beside_cells
from thread_kit.bench.server import llama_server
from thread_kit.bench.workload import Measurement, Weights, Workload, workload
from thread_kit.cli.arguments import DefaultsFormatter, choose_teaching
from thread_kit.engines.core_share import own_cores
from thread_kit.engines.llama import LlamaEngine
from thread_kit.engines.models import EMBEDDED
from thread_kit.engines.quantize import KINDS
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.prompts import Prompt, load_prompt
from thread_kit.replace_file import replace_text
from thread_kit.session.run_together import run_together
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

AT_ONCE = (1, 2, 4, 8)
RATES_CELLS = 8192  # that the most episodes of AT_ONCE take, in tokens
KEPT_CELLS = (1000, 2000, 4000)
THREADS = 1000  # of the episodes whose bookkeeping is measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status (2: the command cannot do what it was asked)."""
    options = _parser().parse_args(arguments)
    try:
        _measure(options)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"thread_kit.bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "thread_kit.bench: stopped; what --out names has the parts until then", file=sys.stderr
        )
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m thread_kit.bench",
        description="Play an episode, then give its calls to KV-true threads and to what people "
        "use instead of them; compare the kit's speed with llama.cpp's own.",
        formatter_class=DefaultsFormatter,
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
    parser.add_argument("--cpu-threads", type=int, metavar="N", help="default: all cores")
    parser.add_argument(
        "--quantize",
        help=f"weights as another kind: {', '.join(KINDS)} (default: as the file is, and not the "
        "embedded model's quickest kind)",
    )
    parser.add_argument("--server", help="a llama-server of your own, with its path")
    parser.add_argument(
        "--at-once", type=int, nargs="+", default=[1, 2], metavar="N", help="episodes at once"
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        default=[*PARTS],
        choices=[*PARTS],
        metavar="PART",
        help=f"(default: all) {' '.join(PARTS)}",
    )
    parser.add_argument("--out", type=Path, help="keep the numbers in this file (JSON)")
    return parser


def _measure(options: argparse.Namespace) -> None:
    if options.rounds < 1:
        raise ValueError(f"--rounds {options.rounds}: give at least 1")
    if min(options.at_once) < 1:
        raise ValueError(f"--at-once {min(options.at_once)}: give at least 1")
    if options.server and not shutil.which(options.server):
        raise ValueError(
            f"--server {options.server}: there is no program; give the path of a llama-server"
        )
    if "bookkeeping" in options.parts and "contenders" not in options.parts:
        raise ValueError("--parts bookkeeping is set against contenders: name both")
    # What is measured: the weights, and the recorded work that they are forced through.
    adapter, prompt = choose_teaching(
        options.model, TEXTCRAFT, adapter=options.adapter, prompt=options.prompt
    )
    cpu_threads = options.cpu_threads or len(own_cores())
    weights = Weights.of(
        options.model,
        adapter,
        quantize=options.quantize,
        context=options.context,
        gpu_layers=options.gpu_layers,
        cpu_threads=cpu_threads,
    )
    works, episode, offloaded = _works(options, weights, prompt)
    work = works[0]
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
    }
    for part in (part for part in PARTS if part in options.parts):
        result |= PARTS[part](weights, works, options)
        if part in SHOWN:
            print(f"{SHOWN[part](result).to_string(index=False)}\n")
        if options.out:  # what is measured stays, should the next part fail
            options.out.parent.mkdir(parents=True, exist_ok=True)
            replace_text(options.out, json.dumps(result, indent=1) + "\n")
    for cells, share in result.get("keeping", {}).items():
        print(f"beside {cells} kept cells of ended threads: {share:.1%} of the rate without")


def _works(
    options: argparse.Namespace, weights: Weights, prompt: Prompt | None
) -> tuple[list[Workload], Episode, tuple[int, int]]:
    """The calls of the recorded episode, or of as many as are to be played at once; the first
    episode; what was offloaded.
    """
    episodes = max(options.at_once) if "episodes" in options.parts else 1
    weights = replace(weights, context=weights.context * (1 if options.trace else episodes))
    with weights.load(LlamaEngine) as engine:
        if options.trace:
            episode = Episode.load(options.trace)
            works = [workload(episode, engine, Path(options.trace).stem)] * episodes
            return works, episode, engine.offloaded
        count = len(TEXTCRAFT.tasks("test"))
        if not 1 <= options.task <= count:
            raise ValueError(f"--task {options.task}: give 1 to {count}")
        numbers = [(options.task - 1 + n) % count + 1 for n in range(episodes)]
        tasks = [TextCraft("test", number) for number in numbers]
        few_shot = load_prompt(tasks[0].examples) if prompt is None else prompt
        sessions = [Session(engine, task, prompt=few_shot, calls=options.calls) for task in tasks]
        for session in run_together(sessions, len(sessions)):
            if session.error:
                raise session.error
        works = [
            workload(session.episode, engine, f"TextCraft test {number}")
            for session, number in zip(sessions, numbers, strict=True)
        ]
        return works, sessions[0].episode, engine.offloaded


Part = Callable[[Weights, list[Workload], argparse.Namespace], dict[str, Any]]


def _rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [row._asdict() for row in rows]


def _episodes(weights: Weights, works: list[Workload], options: argparse.Namespace) -> Any:
    contenders = players(options.server, has_server=_has_server(options))
    return {"episodes": _rows(play_together(weights, works, options.at_once, contenders))}


def _rates(weights: Weights, works: list[Workload], options: argparse.Namespace) -> Any:
    weights = replace(weights, context=max(weights.context, RATES_CELLS))
    return {"rates": _rows(rate(weights, n) for n in tqdm(AT_ONCE, "rates", leave=False))}


def _keeping(weights: Weights, works: list[Workload], options: argparse.Namespace) -> Any:
    sizes = [cells for cells in KEPT_CELLS if cells < options.context // 2]
    return {"keeping": {str(cells): rate_beside_cells(weights, cells) for cells in sizes}}


PARTS: dict[str, Part] = {
    "contenders": lambda weights, works, options: {
        "contenders": _rows(_contenders(weights, works[0], options))
    },
    "episodes": _episodes,
    "exactness": lambda weights, works, _: {"exactness": _rows(drift(weights, works[0]))},
    "drafts": lambda weights, works, _: {"drafts": _rows(drafting(weights, works[0]))},
    "kinds": lambda weights, works, _: {
        "kinds": _rows(drafting(weights, works[0], COMPARED_DRAFTS, COMPARED_KINDS))
    },
    "rates": _rates,
    "keeping": _keeping,
    "bookkeeping": lambda weights, works, _: {
        "bookkeeping": {shape: growth.bookkeeping(shape, THREADS) for shape in growth.TREES}
    },
}
"""What is measured, in this order."""

SHOWN = {
    "contenders": tables.contenders,
    "episodes": tables.episodes,
    "exactness": tables.exactness,
    "drafts": tables.drafts,
    "kinds": tables.kinds,
    "rates": tables.rates,
    "bookkeeping": tables.bookkeeping,
}


def _has_server(options: argparse.Namespace) -> bool:
    return bool(options.server or find_spec("xllamacpp"))


def _contenders(weights: Weights, work: Workload, options: argparse.Namespace) -> list[Measurement]:
    contenders = list(CONTENDERS)
    if _has_server(options):
        contenders.append(partial(llama_server, binary=options.server))
    else:
        print("llama-server is left out: pip install xllamacpp")
    order = random.Random(0)
    runs = [run for _ in range(options.rounds) for run in order.sample(contenders, len(contenders))]
    return [run_in_process(run, weights, work) for run in tqdm(runs, unit="run", leave=False)]


if __name__ == "__main__":
    sys.exit(main())
