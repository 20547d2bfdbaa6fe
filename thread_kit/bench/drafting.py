"""What drafts and kinds of weights save: passes, and time, on the calls of a workload.

The recorded tokens are forced, so that all engines write the same; each call is played by every
engine before the next one, so that a machine that slows down slows all of them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from tqdm import tqdm

from thread_kit.bench.contenders import ForcedEngine
from thread_kit.bench.workload import Weights, Workload

DRAFTS: tuple[int | None, ...] = (0, 10, None)
COMPARED_KINDS = (None, "Q8_0", "BF16")
"""Of weights: the file's own, and those that lose next to nothing of it."""

COMPARED_DRAFTS = (0, 4)
"""Beside each kind: a pass over a few tokens is what kinds differ in most."""


class Drafting(NamedTuple):
    """What one length of drafts, with one kind of weights, came to.

    kind: as in `quantize_file`; None is the file's. draft: as in `LlamaEngine`. passes: through the
    model, without those for the few-shot prompt; drafted, accepted: tokens. as_recorded: calls in
    which its own tokens were the recorded ones. seconds: of all calls; costs: seconds of a pass by
    its tokens, as measured at load.
    """

    kind: str | None
    draft: int | None
    generated: int
    passes: int
    drafted: int
    accepted: int
    as_recorded: int
    seconds: float
    costs: dict[int, float]


class _CountingEngine(ForcedEngine):
    """Counts its passes."""

    passes = 0

    def _evaluate(self, plan: list) -> bool:
        self.passes += 1
        return super()._evaluate(plan)


def drafting(
    weights: Weights,
    work: Workload,
    drafts: Sequence[int | None] = DRAFTS,
    kinds: Sequence[str | None] = (None,),
) -> list[Drafting]:
    """Play a workload with each of these kinds and lengths of drafts, call by call in turn."""
    ways = [(kind, draft) for kind in kinds for draft in drafts]
    with contextlib.ExitStack() as stack:
        engines = [
            stack.enter_context(weights.as_kind(kind).load(_CountingEngine, draft=draft))
            for kind, draft in ways
        ]
        seconds, as_recorded = [0.0] * len(engines), [0] * len(engines)
        drafted, accepted = [0] * len(engines), [0] * len(engines)
        for engine in engines:
            for _ in engine.prefill(work.prompt):
                pass
            engine.passes = 0
        for step in tqdm(work.steps, "calls", leave=False):
            for n, engine in enumerate(engines):
                if isinstance(step, int):
                    engine.release(step)
                    continue
                begun = time.perf_counter()
                (call,) = engine.play((step.thread, step))
                seconds[n] += time.perf_counter() - begun
                as_recorded[n] += not engine.differing
                drafted[n] += call.drafted
                accepted[n] += call.accepted
        return [
            Drafting(
                *(kind, draft, work.generated, engine.passes, drafted[n], accepted[n]),
                *(as_recorded[n], seconds[n], engine.costs),
            )
            for n, ((kind, draft), engine) in enumerate(zip(ways, engines, strict=True))
        ]
