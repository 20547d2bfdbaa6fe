"""What drafts save: passes through the model, and time, on the calls of a workload.

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


class Drafting(NamedTuple):
    """What one length of drafts came to.

    draft: as in `LlamaEngine`. passes: through the model, without those for the few-shot prompt;
    drafted, accepted: tokens. as_recorded: calls in which its own tokens were the recorded ones.
    seconds: of all calls; costs: seconds of a pass by its tokens, as measured at load.
    """

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
    weights: Weights, work: Workload, drafts: Sequence[int | None] = DRAFTS
) -> list[Drafting]:
    """Play a workload with each of these lengths of drafts, call by call in turn."""
    with contextlib.ExitStack() as stack:
        engines = [
            stack.enter_context(weights.load(_CountingEngine, draft=draft)) for draft in drafts
        ]
        seconds, as_recorded = [0.0] * len(engines), [0] * len(engines)
        drafted, accepted = [0] * len(engines), [0] * len(engines)
        for engine in engines:
            for _ in engine.prefill(work.prompt):
                pass
            engine.passes = 0
        for step in tqdm(work.steps, "drafts", leave=False):
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
                *(draft, work.generated, engine.passes, drafted[n], accepted[n]),
                *(as_recorded[n], seconds[n], engine.costs),
            )
            for n, (draft, engine) in enumerate(zip(drafts, engines, strict=True))
        ]
