"""How far the logits of KV-true threads are from those of an evaluation from scratch.

llama.cpp adds up in another order when more tokens are evaluated at once, or other sequences are
in the batch. So the same context does not always give the same logits to the last bit, and where
two tokens are nearly as likely the other one can win: a greedy text is reproducible as long as the
batches are (the same model file, build, threads, cache and order of work), not beyond that. Here
is measured how much it is, on the calls of a workload, with the recorded tokens forced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from thread_kit.bench.contenders import ForcedEngine
from thread_kit.bench.workload import Forced, Weights, Workload

BATCH = 8  # sequences in one batch
DRAFT = 10  # tokens that are verified in one pass
OTHERS = 10**9  # keys of the calls that are in the batch only to be there


class Drift(NamedTuple):
    """How logits differ from those of the same context, evaluated alone and from scratch.

    where: what is different. places: generated tokens that were compared. equal: share of places
    with the same logits to the last bit. median, largest: of the largest difference of any logit at
    a place. other: places where another token is the likeliest, and gap: the most by which it was
    less likely from scratch, in logits.
    """

    where: str
    places: int
    equal: float
    median: float
    largest: float
    other: int
    gap: float


class _WatchedEngine(ForcedEngine):
    """Records the logits of one thread."""

    watched = -1

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rows: list[Any] = []

    def _sample(self, row: int, call: Any) -> int:
        if call.completion.thread == self.watched:
            self.rows.append(self._logits(row).copy())
        return super()._sample(row, call)

    def logits(self, key: int, call: Forced, *others: Forced) -> list[Any]:
        """The logits at each token of a call, with other calls in the batch."""
        self.watched, self.rows = key, []
        self.play((key, call), *((OTHERS + n, other) for n, other in enumerate(others)))
        for n in range(len(others)):
            self.release(OTHERS + n)
        return self.rows

    def alone(self, call: Forced, *others: Forced) -> list[Any]:
        """The same of a call whose thread is over then."""
        rows = self.logits(0, call, *others)
        self.release(0)
        return rows


def drift(weights: Weights, work: Workload) -> list[Drift]:
    """KV-true threads, calls in a batch with others, drafts: each against a start from scratch.

    Of the batches only every eighth call is looked at: the others are in the batch with it.
    """
    with weights.load(_WatchedEngine) as ours, weights.load(_WatchedEngine) as scratch:
        kept = list(_compare_kept(ours, scratch, work))
        for thread in range(len(work.steps)):
            ours.release(thread)
        if work.prompt:  # once for all that are in a batch, as sessions read it
            list(ours.prefill(work.prompt))
        batched = list(_compare_batched(ours, scratch, work))
        with weights.load(_WatchedEngine, draft=DRAFT) as drafting:
            drafted = list(_compare_kept(drafting, scratch, work))
    return [
        _summarize("cells kept", kept),
        _summarize(f"{BATCH} in a batch", batched),
        _summarize(f"drafts of {DRAFT}", drafted),
    ]


Pair = tuple[Any, Any]


def _compare_kept(ours: _WatchedEngine, scratch: _WatchedEngine, work: Workload) -> Iterator[Pair]:
    for step in tqdm(work.steps, "exactness", leave=False):
        if isinstance(step, int):
            ours.release(step)
        else:
            yield from zip(ours.logits(step.thread, step), scratch.alone(step), strict=True)


def _compare_batched(
    ours: _WatchedEngine, scratch: _WatchedEngine, work: Workload
) -> Iterator[Pair]:
    calls = work.calls
    for at in tqdm(range(0, len(calls), BATCH), "batches", leave=False):
        others = [calls[(at + n) % len(calls)] for n in range(1, BATCH)]
        yield from zip(ours.alone(calls[at], *others), scratch.alone(calls[at]), strict=True)


def _summarize(where: str, pairs: list[Pair]) -> Drift:
    furthest = [float(np.abs(ours - scratch).max()) for ours, scratch in pairs]
    changed = [(a.argmax(), b) for a, b in pairs if a.argmax() != b.argmax()]
    gaps = [float(scratch.max() - scratch[token]) for token, scratch in changed]
    return Drift(
        where,
        len(pairs),
        float(np.mean([far == 0 for far in furthest])),
        float(np.median(furthest)),
        max(furthest),
        len(changed),
        max(gaps, default=0.0),
    )
