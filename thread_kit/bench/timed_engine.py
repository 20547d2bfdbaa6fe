"""An engine that knows how long llama.cpp itself has worked."""

from __future__ import annotations

import time

import llama_cpp

from thread_kit.engines.llama import LlamaEngine


class TimedEngine(LlamaEngine):
    """computing: seconds in llama.cpp and in what fills its batch, as `eval` of the contenders'
    library has it (on two cores 0.3 ms a pass of one sequence and 1 ms of eight, in Python).
    passes: those of them that write.
    """

    computing = 0.0
    passes = 0

    def _evaluate(self, plan: list) -> bool:
        begun = time.perf_counter()
        done = super()._evaluate(plan)
        # On a GPU, decode returns before it is done.
        llama_cpp.llama_synchronize(self._model.context)
        self.computing += time.perf_counter() - begun
        self.passes += any(chunk.is_last for chunk in plan)
        return done
