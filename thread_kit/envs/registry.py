"""The benchmarks by name: a line for each of the kit's, and `register_benchmark` for one's own."""

from __future__ import annotations

from typing import Any

from thread_kit.envs.alfworld.benchmark import ALFWORLD
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.datacommons.benchmark import DATACOMMONS
from thread_kit.envs.icu.benchmark import ICU
from thread_kit.envs.intercode_bash.benchmark import BASH
from thread_kit.envs.intercode_sql.benchmark import SQL
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.envs.webshop.benchmark import WEBSHOP

OWN = (TEXTCRAFT, ALFWORLD, DATACOMMONS, ICU, WEBSHOP, SQL, BASH)
"""Those of the kit."""

BENCHMARKS = {benchmark.name: benchmark for benchmark in OWN}
"""All that are registered."""


def register_benchmark(benchmark: Benchmark) -> Benchmark:
    """Have methods, suites, tables and the command line know a benchmark by its name.

    One of the same name that was registered before is replaced, as when a notebook's cell runs
    again. Raises ValueError for the name of one of the kit's.
    """
    if benchmark.name in {own.name for own in OWN if own is not benchmark}:
        raise ValueError(f"the kit has a benchmark {benchmark.name!r}; give yours another name")
    BENCHMARKS[benchmark.name] = benchmark
    return benchmark


def find_benchmark(name: str) -> Benchmark:
    """A benchmark by its name, or by that of few-shot prompts (`Env.examples`): "alfworld-heat".

    Where nobody has registered one, a record of the defaults, whose tasks cannot be made.
    """
    head = name
    while head not in BENCHMARKS and "-" in head:
        head = head.rpartition("-")[0]
    unknown = name.partition("-")[0]
    return BENCHMARKS.get(head) or Benchmark(unknown, _raise_unregistered, _raise_unregistered)


def _raise_unregistered(*_: Any, **__: Any) -> Any:
    known = ", ".join(BENCHMARKS)
    raise ValueError(
        f"nobody has registered this benchmark; known: {known}. Register it: register_benchmark"
    )
