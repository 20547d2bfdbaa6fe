"""KV-true threads, and what people use instead of them, on the same calls.

Every contender is given all tokens that a thread sees, call by call, and writes as many as were
recorded. It chooses each token itself; then the recorded one takes its place, so that one different
token does not make another episode of it. (A server cannot be forced: see `server.py`.) Each runs
in a process of its own, so that peak memory is its own, too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

from thread_kit.bench.server import llama_server
from thread_kit.bench.workload import Contender, Forced, Measurement, Weights, Workload, peak_memory
from thread_kit.engines.engine import Completion
from thread_kit.engines.llama import LlamaEngine

WARM_UP = 64  # tokens evaluated before the clock starts


class ForcedEngine(LlamaEngine):
    """A LlamaEngine that writes the recorded tokens; `differs` if its own were others."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, sequences=256, **options)
        self._scripts: dict[int, Iterator[int]] = {}
        self.differs = False

    def play(self, *calls: tuple[int, Forced]) -> list[Completion]:
        """Calls under these keys, in the same batches, from begin to end; in the order of ends."""
        self.differs = False
        for key, call in calls:
            self._scripts[key] = iter(call.written)
            self.begin(key, call.seen, stops={}, max_tokens=len(call.written))
        ended: list[Completion] = []
        while len(ended) < len(calls):
            ended += [result for result in self.step() if isinstance(result, Completion)]
        return ended

    def _sample(self, row: int, call: Any) -> int:
        own, forced = super()._sample(row, call), next(self._scripts[call.completion.thread])
        self.differs |= own != forced
        return forced


def _in_process(
    name: str, weights: Weights, work: Workload, *, keep_threads: bool, keep_prompt: bool
) -> Measurement:
    evaluated = same = 0
    fresh_keys = itertools.count(10**9)
    with weights.load(ForcedEngine) as engine:
        engine.play((0, Forced(0, (1,) * WARM_UP, (1,))))
        engine.release(0)
        begun = time.perf_counter()
        for step in work.steps:
            if isinstance(step, int):
                engine.release(step)
                continue
            if keep_prompt and work.prompt:  # costs nothing when it is there
                done = [progress.done for progress in engine.prefill(work.prompt)]
                evaluated += done[-1] - done[0]
            thread = step.thread if keep_threads else next(fresh_keys)
            (call,) = engine.play((thread, step))
            evaluated += call.evaluated
            same += not engine.differs
            if not keep_threads:
                engine.release(thread)
        seconds = time.perf_counter() - begun
    return Measurement(name, evaluated, seconds, same, peak_memory())


kv_true = partial(_in_process, "KV-true", keep_threads=True, keep_prompt=True)
"""This kit's engine: each thread keeps its cells while it waits."""

prompt_cached = partial(_in_process, "prompt cached", keep_threads=False, keep_prompt=True)
"""The papers' own scheme: the few-shot prompt is kept, the rest is evaluated at each call."""

nothing_cached = partial(_in_process, "nothing cached", keep_threads=False, keep_prompt=False)
"""Everything that a thread sees is evaluated at each of its calls."""


def create_completion(weights: Weights, work: Workload) -> Measurement:
    """llama-cpp-python's `Llama.create_completion`: one sequence, which keeps the last prefix."""
    from llama_cpp import Llama

    class ForcedLlama(Llama):
        """Writes the recorded tokens, and counts what it evaluates."""

        script: Iterator[int] = iter(())
        differs = False
        evaluated = 0

        def eval(self, tokens: Any) -> None:
            self.evaluated += len(tokens)
            super().eval(tokens)

        def sample(self, *arguments: Any, **options: Any) -> int:
            own, forced = super().sample(*arguments, **options), next(self.script)
            self.differs |= own != forced
            return forced

    llama = ForcedLlama(
        str(weights.path),
        lora_path=str(weights.adapter) if weights.adapter else None,
        n_ctx=weights.context,
        n_gpu_layers=weights.gpu_layers,
        n_threads=weights.cpu_threads,
        n_threads_batch=weights.cpu_threads,
        verbose=False,
    )
    llama.eval([1] * WARM_UP)
    llama.reset()
    llama.evaluated, same = 0, 0
    begun = time.perf_counter()
    for call in work.calls:
        llama.script, llama.differs = iter(call.written), False
        llama.create_completion(list(call.seen), max_tokens=len(call.written), temperature=0)
        same += not llama.differs
    seconds = time.perf_counter() - begun
    llama.close()
    return Measurement("create_completion", llama.evaluated, seconds, same, peak_memory())


def run_in_process(contender: Contender, weights: Weights, work: Workload) -> Measurement:
    """Run a contender in a process of its own, whose peak memory is its own, too."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(contender, weights, work).result()


CONTENDERS = (kv_true, create_completion, llama_server, prompt_cached, nothing_cached)
