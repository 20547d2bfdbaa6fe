"""Try Again with ReAct, a baseline of the ADaPT paper (section 4.2): several trials, no memory.

    for trial = 1 ... d_max do
      executor(T), from the start of the environment
      if T is solved then return True
    return whether the last one says that T is completed

The paper takes the best of all trials. Here they end with the first that earns the full reward;
where none does, the reward of the episode is the last trial's. Trials after the first are sampled,
since a greedy one would do the same again (temperature 0.7, appendix A).
"""

from __future__ import annotations

from functools import partial

from thread_kit.methods.common import ask, completed, verdict
from thread_kit.methods.react import react
from thread_kit.requests import Finished, NewThread, Restart, Status, Steps
from thread_kit.sequence import Sequence


def try_again(
    thread: NewThread,
    *,
    trials: int = 4,
    temperature: float = 0.7,
    iterations: int = 20,
    start: tuple[str, ...] = (),
    in_on: bool = False,
    ends: bool = True,
) -> Steps:
    """Give the task to an executor again and again.

    trials: at most; the paper's d_max, 4 on TextCraft and 3 elsewhere. temperature: of all trials
    but the first. iterations, start, in_on, ends: as in `react`.
    """
    Y, answer = Sequence(), ""
    # for trial = 1 ... d_max do
    for trial in range(1, trials + 1):
        # if T is solved then return True
        if trial > 1:
            context = yield Restart()
            if context is None:
                return Finished(Y, Status.ENDED, {}, verdict(True))
            if context is False:  # it was handed in for good
                break
        # executor(T), from the start of the environment
        heat = None if trial == 1 else temperature
        executor = partial(
            react, iterations=iterations, start=start, in_on=in_on, ends=ends, temperature=heat
        )
        Y, answer, _ = yield from ask(thread, Y, f"trial {trial}", thread.context, program=executor)
    # return whether the last one says that T is completed
    return Finished(Y, Status.ENDED, {}, verdict(completed(answer)))
