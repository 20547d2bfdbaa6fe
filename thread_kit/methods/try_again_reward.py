"""InterCode's Try Again (Yang et al. 2023; StateFlow paper, appendix A.3): the reward is visible.

    Y = []
    repeat at most `turns` times
      Y = Y + LLM(q + c + Y)       # a command
      Y = Y + E(command)           # its output, and its reward
      if the reward is full then return Y

Only the full reward ends it, or its rounds: a model that says that it is done is shown that this
is no command, which is a round as well, and behind an end mark it goes on with the next one. The
Try Again of the ADaPT paper (`try_again.py`) is another method: several trials, none of which sees
a reward.
"""

from __future__ import annotations

from thread_kit.methods.rounds import end_round
from thread_kit.requests import Finished, Generate, Generated, NewThread, Status, Steps
from thread_kit.sequence import Sequence


def try_again_with_reward(thread: NewThread, *, turns: int = 10) -> Steps:
    """Give commands until one earns the full reward; the environment shows each one's.

    turns: rounds at most, a call of the model each.
    """
    Y = Sequence()
    for _ in range(turns):
        # Y = Y + LLM(q + c + Y); Y = Y + E(command)
        generated: Generated = yield Generate(Y)
        Y += generated.span
        Y, cut, observation = yield from end_round(thread, Y, generated, goes_on=True)
        if cut:
            return Finished(Y, cut, {})
        # if the reward is full then return Y
        if observation is not None and observation.is_over:
            return Finished(Y, Status.ENDED, {})
    return Finished(Y, Status.OUT_OF_CALLS, {})
