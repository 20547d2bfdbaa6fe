"""Methods with a memory of earlier episodes, and AdaPlanner, as `experiments/method_builders.py`.

`experiments/memories.py` makes the memories.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import OWN
from thread_kit.experiments.budgets import own_limit
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_builders import (
    load_waiting_prompt,
    make_method,
    waiting_dialect,
)
from thread_kit.methods.adaplanner import adaplanner
from thread_kit.methods.autoguide import autoguide
from thread_kit.methods.memory import Guideline, GuidelineMemory, Log, LogMemory, read_records
from thread_kit.methods.rap import rap
from thread_kit.paths import resource
from thread_kit.prompts import EMPTY, Example, Prompt
from thread_kit.session.scheduler import UNTIL_OVER


def find_memory(method: str, benchmark: Benchmark) -> Path:
    """The file of a memory, in data/memories or in the folder that THREAD_KIT_MEMORIES names."""
    own = os.environ.get("THREAD_KIT_MEMORIES")
    folder = Path(own).expanduser() if own else resource("data") / "memories"
    return folder / f"{method}-{benchmark.name}.jsonl"


def _read_memory(method: str, benchmark: Benchmark) -> list[dict[str, Any]]:
    """The records of a memory; raises FileNotFoundError where nobody has made them."""
    path = find_memory(method, benchmark)
    if not path.is_file():
        is_kits = benchmark.name in {one.name for one in OWN}
        env = benchmark.name if is_kits else "module:name (where the Benchmark is)"
        raise FileNotFoundError(
            f"{method} has no memory for {benchmark.name}: there is no {path} (the folder is that "
            "of THREAD_KIT_MEMORIES, where it is set). Make it: python -m "
            f"thread_kit.experiments.memories {method} --env {env}"
        )
    return read_records(path)


def make_rap(benchmark: Benchmark, examples: str) -> SessionMethod:
    """With plans and keys where the benchmark has a prompt for these (ALFWorld)."""
    memory = LogMemory([Log.of(record) for record in _read_memory("rap", benchmark)])
    has_keys = benchmark.name != "webshop"
    key = load_waiting_prompt(benchmark, f"rap/{benchmark.name}-key") if has_keys else None
    program = partial(
        rap,
        memory=memory,
        key=key,
        kind=examples,
        iterations=own_limit("rap", benchmark, "iterations"),
        start=benchmark.start,
    )
    main = replace(EMPTY, dialect=waiting_dialect(benchmark))
    method = make_method("rap", program, main, *([key] if key else []))
    return replace(method, keep_cells=UNTIL_OVER)


def load_guides(benchmark: Benchmark) -> dict[str, Prompt]:
    """AutoGuide's prompts beside its agent's: identify, match, select, and extract a guideline."""
    names = {"identify": f"{benchmark.name}-context", "match": "match", "select": "select"}
    names["extract"] = f"{benchmark.name}-guideline"
    return {
        role: load_waiting_prompt(benchmark, f"autoguide/{name}") for role, name in names.items()
    }


def make_autoguide(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Guidelines for the context at hand (Fu et al. 2024); THREAD paper, Tables 1 and 4."""
    guides = load_guides(benchmark)
    identify, match, select = (guides[role] for role in ("identify", "match", "select"))
    records = _read_memory("autoguide", benchmark)
    ends: dict[str, Any] = {} if benchmark.react_judges else {"judges": False}
    program = partial(
        autoguide,
        memory=GuidelineMemory(Guideline.of(record) for record in records),
        identify=identify,
        match=match,
        select=select,
        iterations=own_limit("autoguide", benchmark, "iterations"),
        start=benchmark.start,
        **ends,
    )
    prompt = load_waiting_prompt(benchmark, f"react/{examples}")
    method = make_method("autoguide", program, prompt, identify, match, select)
    return replace(method, keep_cells=UNTIL_OVER)


def make_adaplanner(benchmark: Benchmark, examples: str, *, skills: bool = False) -> SessionMethod:
    """skills: with the plans that solved tasks of this kind before, as examples (section 3.4)."""
    questions = load_waiting_prompt(benchmark, f"adaplanner/{benchmark.name}-ask")
    prompt = load_waiting_prompt(benchmark, f"adaplanner/{examples}")
    if skills:
        records = _read_memory("adaplanner", benchmark)
        known = tuple(
            Example(record["context"], f"{record['plan']}\n{prompt.dialect.end}")
            for record in records
            if record.get("kind") == examples
        )
        prompt = replace(prompt, examples=prompt.examples + known)
    program = partial(
        adaplanner,
        questions=questions,
        executions=own_limit("adaplanner", benchmark, "trials"),
        iterations=own_limit("adaplanner", benchmark, "iterations"),
    )
    name = "adaplanner, skills" if skills else "adaplanner"
    return make_method(name, program, prompt, questions, scope="exported")
