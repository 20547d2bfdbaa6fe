"""InterCode's Try Again (Yang et al. 2023; StateFlow paper, appendix A.3): the reward is visible.

    Y = []
    repeat at most `turns` times
      Y = Y + LLM(q + c + Y)       # a command
      Y = Y + E(command)           # its output, and its reward
      if the reward is full then return Y

Only the full reward ends it, or its rounds: a model that says that it is done is shown that this
is no command, which is a round as well. The Try Again of the ADaPT paper (`try_again.py`) is
another method: several trials, none of which sees a reward.
"""

from __future__ import annotations

from thread_kit.exchange import xi_after_mark
from thread_kit.methods.rounds import spend_round
from thread_kit.requests import (
    ENDS,
    Act,
    Finished,
    Generate,
    Generated,
    NewThread,
    Observation,
    Status,
    Steps,
)
from thread_kit.sequence import Sequence


def try_again_with_reward(thread: NewThread, *, turns: int = 10) -> Steps:
    """Give commands until one earns the full reward; the environment shows each one's.

    turns: rounds at most, a call of the model each.
    """
    dialect = thread.dialect
    Y = Sequence()
    for _ in range(turns):
        # Y = Y + LLM(q + c + Y)
        generated: Generated = yield Generate(Y)
        Y += generated.span
        status = ENDS.get(generated.stop, Status.ENDED)
        if not status.is_end:  # cut by a budget
            return Finished(Y, status, {})
        # Y = Y + E(command)
        listens = generated.stop not in ENDS
        if listens and Y.last_line_is_own and dialect.is_action(Y.last_line):
            observation: Observation = yield Act(xi_after_mark(Y, {}, dialect))
            Y += thread.observed(observation.strip())
            # if the reward is full then return Y
            if observation.is_over:
                return Finished(Y, Status.ENDED, {})
        else:
            Y += yield from spend_round(thread, listens)
    return Finished(Y, Status.OUT_OF_CALLS, {})
