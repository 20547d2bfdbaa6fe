"""KV-true threads, and what people use instead of them, on the same calls.

Every contender is given all tokens that a thread sees, call by call, and writes as many as were
recorded. It chooses each token itself; then the recorded one takes its place, so that one different
token does not make another episode of it. (A server cannot be forced: see `server.py`.) Each runs
in a process of its own, so that peak memory is its own, too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

from thread_kit.bench.workload import (
    WARM_UP,
    Contender,
    Forced,
    Measurement,
    Weights,
    Workload,
    peak_memory,
)
from thread_kit.engines.engine import Completion, ThreadKey
from thread_kit.engines.llama import LlamaEngine

W = TypeVar("W")
R = TypeVar("R")


class ForcedEngine(LlamaEngine):
    """A LlamaEngine that writes the recorded tokens.

    differing: keys of calls in which its own were others.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, sequences=256, **options)
        self._scripts: dict[ThreadKey, Iterator[int]] = {}
        self.differing: set[ThreadKey] = set()

    def begin_forced(self, key: ThreadKey, call: Forced) -> None:
        """Begin a call that will write what was recorded."""
        self.differing.discard(key)
        self._scripts[key] = iter(call.written)
        self.begin(key, call.seen, stops={}, max_tokens=len(call.written))

    def play(self, *calls: tuple[ThreadKey, Forced]) -> list[Completion]:
        """Calls under these keys, in the same batches, from begin to end; in the order of ends."""
        self.differing.clear()
        for key, call in calls:
            self.begin_forced(key, call)
        ended: list[Completion] = []
        while len(ended) < len(calls):
            ended += [result for result in self.step() if isinstance(result, Completion)]
        return ended

    def _sample(self, row: int, call: Any) -> int:
        own, forced = super()._sample(row, call), next(self._scripts[call.completion.thread])
        if own != forced:
            self.differing.add(call.completion.thread)
        return forced


def _in_process(
    name: str, weights: Weights, work: Workload, *, keep_threads: bool, keep_prompt: bool
) -> Measurement:
    evaluated = same = 0
    fresh_keys = itertools.count(10**9)
    with weights.load(ForcedEngine) as engine:
        engine.play((0, WARM_UP))
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
            same += not engine.differing
            if not keep_threads:
                engine.release(thread)
        seconds = time.perf_counter() - begun
    return Measurement(name, evaluated, seconds, same, peak_memory())


kv_true = partial(_in_process, "KV-true", keep_threads=True, keep_prompt=True)
"""This kit's engine: each thread keeps its cells while it waits."""

prompt_cached = partial(_in_process, "prompt cached", keep_threads=False, keep_prompt=True)
"""As THREAD's released code: the few-shot prompt is kept, the rest is evaluated at each call."""

nothing_cached = partial(_in_process, "nothing cached", keep_threads=False, keep_prompt=False)
"""Everything that a thread sees is evaluated at each of its calls."""


MAX_NGRAM = 4
"""Tokens that the prompt look-up matches, at most: with the fewest passes (data/bench/README.md).
"""


def forced_llama(weights: Weights, lookup: int = 0) -> Any:
    """llama-cpp-python's `Llama`, which writes the recorded tokens, and counts what it evaluates.

    lookup: tokens that its own prompt look-up drafts; 0: none.
    """
    from llama_cpp import Llama, llama_synchronize
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    class ForcedLlama(Llama):
        script: Iterator[int] = iter(())
        differs = False
        evaluated = passes = 0
        computing = 0.0

        def eval(self, tokens: Any) -> None:
            begun = time.perf_counter()
            super().eval(tokens)
            llama_synchronize(self.ctx)
            self.computing += time.perf_counter() - begun
            self.evaluated += len(tokens)
            self.passes += 1

        def sample(self, *arguments: Any, **options: Any) -> int:
            own, forced = super().sample(*arguments, **options), next(self.script)
            self.differs |= own != forced
            return forced

        def play(self, call: Forced) -> bool:
            """Whether its own tokens were the recorded ones."""
            self.script, self.differs = iter(call.written), False
            self.create_completion(list(call.seen), max_tokens=len(call.written), temperature=0)
            return not self.differs

    llama = ForcedLlama(
        str(weights.path),
        lora_path=str(weights.adapter) if weights.adapter else None,
        n_ctx=weights.context,
        n_gpu_layers=weights.gpu_layers,
        n_threads=weights.cpu_threads,
        n_threads_batch=weights.cpu_threads,
        flash_attn=True,  # as llama.cpp takes it for all others; this package's default is not
        draft_model=LlamaPromptLookupDecoding(MAX_NGRAM, lookup) if lookup else None,
        verbose=False,
    )
    # The first pass costs more than any other: it is not counted.
    llama.eval(list(WARM_UP.seen))
    llama.reset()
    llama.evaluated, llama.passes, llama.computing = 0, 0, 0.0
    return llama


def create_completion(weights: Weights, work: Workload) -> Measurement:
    """llama-cpp-python's `Llama.create_completion`: one sequence, which keeps the last prefix."""
    llama = forced_llama(weights)
    begun = time.perf_counter()
    same = sum(llama.play(call) for call in work.calls)
    seconds = time.perf_counter() - begun
    llama.close()
    return Measurement("create_completion", llama.evaluated, seconds, same, peak_memory())


def run_in_process(contender: Callable[[Weights, W], R], weights: Weights, work: W) -> R:
    """Run a contender in a process of its own, whose peak memory is its own, too."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(contender, weights, work).result()


CONTENDERS: tuple[Contender, ...] = (*(kv_true, create_completion, prompt_cached, nothing_cached),)
