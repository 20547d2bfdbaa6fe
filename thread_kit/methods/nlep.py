"""Natural Language Embedded Programs, NLEP (Zhang et al. 2023): one program, and its output.

    Y = LLM(q + c)
    return what Y prints

The model sees nothing of what its program does, and the program runs when it is complete. With
looking it is `react` (NLEP+ReAct, THREAD paper, section 4.4).
"""

from __future__ import annotations

from thread_kit.methods.common import Code
from thread_kit.requests import ENDS, Finished, Generate, Generated, NewThread, Status, Steps
from thread_kit.sequence import Sequence


def nlep(thread: NewThread, *, calls: int = 20) -> Steps:
    """Write a program to its end, then run it; returns what it printed last.

    calls: of the model, at most: a mark of listening in a comment stops one, and means nothing.
    """
    Y, code = Sequence(), Code()
    for _ in range(calls):
        # Y = LLM(q + c)
        generated: Generated = yield Generate(Y)
        Y += generated.span
        if generated.stop in ENDS:
            # return what Y prints
            yield from code.run(Y, generated.stop, thread.dialect)
            return Finished(Y, ENDS[generated.stop], {}, code.printed)
    return Finished(Y, Status.OUT_OF_CALLS, {})
