"""How long drafts are: what a pass costs on this machine, against what it is expected to bring.

A pass over several tokens costs next to nothing more than one over a single token on a GPU, and
many times as much on a CPU. So it is measured, once for a model, build and machine, and kept in the
cache folder: the same machine takes the same decisions tomorrow.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import llama_cpp
import numpy as np

from thread_kit.engines.drafts import LONGEST
from thread_kit.engines.engine import EngineError
from thread_kit.engines.llama_model import LlamaModel, describe_system
from thread_kit.paths import cache_folder
from thread_kit.replace_file import replace_text

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Tokens of the passes that are measured; drafts make a pass one of these."""

LARGE = 16  # tokens; larger passes are measured where one of this size is quick, as on a GPU
QUICK = 0.02  # seconds
SPENT = 0.1  # seconds after which no more rounds of measuring begin
ROUNDS = 2  # at least: what runs beside disturbs one of them
GAIN = 1.25  # expected tokens a second, times those without drafts, that are worth a draft
WEIGHT = 0.05  # of what the next token says, in the share of matches that came true


def usual_draft(gpu_layers: int) -> int | None:
    """`draft` unless told otherwise: None, as long as pays, where layers can go to a GPU.

    On a CPU 0: what pays there depends on what runs beside while it is measured, and a text must
    not, in a near tie, depend on that.
    """
    return None if llama_cpp.llama_supports_gpu_offload() and gpu_layers else 0


def measure_costs(
    evaluate: Callable[[int], None], sizes: Sequence[int] = SIZES
) -> dict[int, float]:
    """Seconds of a pass over each of these numbers of tokens; the least of a few rounds.

    Those above `LARGE` are left out where a pass of that size takes longer than `QUICK`.
    evaluate: takes one pass over so many tokens.
    """
    evaluate(1)  # from here on the weights are in memory
    costs: dict[int, float] = {}
    begun, rounds = time.perf_counter(), 0
    while rounds < ROUNDS or time.perf_counter() - begun < SPENT:
        for size in sizes:
            if size > LARGE and costs.get(LARGE, 0) > QUICK:
                break
            start = time.perf_counter()
            evaluate(size)
            costs[size] = min(costs.get(size, np.inf), time.perf_counter() - start)
        rounds += 1
    return costs


def cached_costs(
    model: LlamaModel, path: Path, adapter: Path | None, evaluate: Callable[[int], None]
) -> dict[int, float]:
    """`measure_costs`, or what it found for the same model, build and machine before."""
    sizes = [size for size in SIZES if size <= model.batch_size]
    about = [
        *((file.name, file.stat().st_size) for file in (path, adapter) if file),
        *(model.offloaded, model.cpu_threads, model.flash_attention, llama_cpp.__version__),
        describe_system(),
        *(sizes, platform.node(), platform.machine(), os.cpu_count()),
    ]
    text = json.dumps(about)
    path = cache_folder() / "passes" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
        costs = {int(size): float(spent) for size, spent in json.loads(path.read_text()).items()}
        least = sum(size <= LARGE for size in sizes)
        whole = len(costs) >= least and list(costs) == sizes[: len(costs)]
        if whole and all(0 < spent < np.inf for spent in costs.values()):
            return costs
    costs = measure_costs(evaluate, sizes)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps(costs))
    return costs


class DraftLength:
    """How many tokens of a draft to verify.

    fixed: always as many as there are, up to this; None: as many as pay, by the costs.
    costs: seconds of a pass, by its tokens (`SIZES`).
    most: tokens that a draft can have at most; 0 where none can ever pay.
    """

    def __init__(self, fixed: int | None, costs: Mapping[int, float]) -> None:
        self._costs = dict(costs)
        self._came_true = [0.0] * (LONGEST + 1)  # by how many tokens had matched
        if fixed is not None:
            if not hasattr(fixed, "__index__") or fixed < 0:
                raise EngineError(f"draft={fixed!r}: give a number of tokens, or None")
            self.most = fixed
        else:
            paying = [n for n in self._costs if n * self._cost(1) > GAIN * self._cost(n)]
            self.most = max(paying, default=1) - 1

    def _cost(self, tokens: int) -> float:
        return float(np.interp(tokens, [*self._costs], [*self._costs.values()]))

    def learn(self, matched: int, came_true: bool) -> None:
        """The token that followed so many matching ones was, or was not, the one written."""
        place = min(matched, LONGEST)
        self._came_true[place] += WEIGHT * (came_true - self._came_true[place])

    def choose(self, drafts: Sequence[tuple[int, int]], tokens: int) -> list[int]:
        """How many tokens of each draft the next pass verifies.

        drafts: for each thread, how many tokens matched and how many the draft has.
        tokens: what the pass is over without any draft.
        """
        if not self._costs:
            return [length for _, length in drafts]
        chosen, brought = [], float(len(drafts))
        for matched, length in drafts:
            best, most = 0, GAIN * brought / self._cost(tokens)
            gain = 0.0
            for size in self._costs:
                added = size - tokens
                if 0 < added <= length:
                    rate = (brought + self._expect(matched, added)) / self._cost(size)
                    if rate > most:
                        best, most, gain = added, rate, self._expect(matched, added)
            chosen.append(best)
            tokens, brought = tokens + best, brought + gain
        return chosen

    def _expect(self, matched: int, length: int) -> float:
        """How many tokens of a draft of this length are expected to be the model's own."""
        share, expected = 1.0, 0.0
        for place in range(matched, matched + length):
            share *= self._came_true[min(place, LONGEST)]
            expected += share
        return expected
