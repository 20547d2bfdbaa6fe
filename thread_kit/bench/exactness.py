"""How far the logits of KV-true threads are from those of an evaluation from scratch.

llama.cpp adds up in another order when more tokens are evaluated at once, or other sequences are
in the batch. So the same context does not always give the same logits to the last bit, and where
two tokens are nearly as likely the other one can win: a greedy text is reproducible as long as the
batches are (the same model file, build, threads, cache and order of work), not beyond that. Here
is measured how much it is, on the calls of a workload, with the recorded tokens forced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from thread_kit.bench.contenders import ForcedEngine
from thread_kit.bench.workload import Forced, Weights, Workload

CROWD = 8  # sequences in one batch
MATES = 10**9  # keys of those that are in the batch only to be there


@dataclass(frozen=True, slots=True)
class Drift:
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

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


class _Watched(ForcedEngine):
    """Keeps the logits of one thread."""

    watched = -1

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rows: list[Any] = []

    def _sample(self, row: int, call: Any) -> int:
        if call.completion.thread == self.watched:
            self.rows.append(self._logits(row).copy())
        return super()._sample(row, call)

    def logits(self, key: int, call: Forced, *mates: Forced) -> list[Any]:
        """The logits at each token of a call, with other calls in the batch."""
        self.watched, self.rows = key, []
        self.play((key, call), *((MATES + n, mate) for n, mate in enumerate(mates)))
        for n in range(len(mates)):
            self.release(MATES + n)
        return self.rows


def drift(weights: Weights, work: Workload) -> list[Drift]:
    """KV-true threads, and calls in a batch with others, each against an evaluation from scratch.

    Of the batches only every eighth call is looked at: the others are in the batch with it.
    """
    with weights.load(_Watched) as ours, weights.load(_Watched) as scratch:
        kept = list(_kept(ours, scratch, work))
        for thread in range(len(work.steps)):
            ours.release(thread)
        batched = list(_batched(ours, scratch, work))
    return [_compared("cells kept", kept), _compared(f"{CROWD} in a batch", batched)]


Pair = tuple[Any, Any]


def _kept(ours: _Watched, scratch: _Watched, work: Workload) -> Iterator[Pair]:
    for step in tqdm(work.steps, "exactness", leave=False):
        if isinstance(step, int):
            ours.release(step)
            continue
        yield from zip(ours.logits(step.thread, step), _alone(scratch, step), strict=True)


def _batched(ours: _Watched, scratch: _Watched, work: Workload) -> Iterator[Pair]:
    calls = work.calls
    for at in tqdm(range(0, len(calls), CROWD), "batches", leave=False):
        mates = [calls[(at + n) % len(calls)] for n in range(1, CROWD)]
        in_crowd = ours.logits(0, calls[at], *mates)
        ours.release(0)
        yield from zip(in_crowd, _alone(scratch, calls[at]), strict=True)


def _alone(scratch: _Watched, call: Forced) -> list[Any]:
    rows = scratch.logits(0, call)
    scratch.release(0)
    return rows


def _compared(where: str, pairs: list[Pair]) -> Drift:
    furthest = [float(np.abs(one - other).max()) for one, other in pairs]
    changed = [(one.argmax(), other) for one, other in pairs if one.argmax() != other.argmax()]
    gaps = [float(other.max() - other[token]) for token, other in changed]
    return Drift(
        where,
        len(pairs),
        float(np.mean([far == 0 for far in furthest])),
        float(np.median(furthest)),
        max(furthest),
        len(changed),
        max(gaps, default=0.0),
    )
