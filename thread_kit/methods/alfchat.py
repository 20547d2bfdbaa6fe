"""ALFChat (AutoGen; Wu et al. 2023, section 3), a baseline of the StateFlow paper (section 4.2).

    for round = 1 ... 50 do
      Y = Y + assistant(q + c + Y)             # a message: a thought, and an action
      Y = Y + executor(the valid action that is most like it)
      if E is over then return Y
      three agents: if the assistant is stuck then Y = Y + the grounding agent's hint
      two agents:   if the assistant is stuck then return Y

It is ReAct as a conversation. The executor and the grounding agent are no models: the one is the
environment, the other says again and again what is true of tasks of this type. An episode costs a
call of the model for each action.
"""

from __future__ import annotations

from thread_kit.exchange import read_action
from thread_kit.methods.common import (
    act,
    answer,
    completed,
    say_no_action,
    until_verdict,
    verdict,
    with_break,
)
from thread_kit.requests import (
    Finished,
    Generate,
    Generated,
    NewThread,
    Status,
    Steps,
)
from thread_kit.sequence import Sequence

REPEATS = 3
"""So many times the same action in a row is being stuck (StateFlow paper, section 4.2)."""

INVALID = "Nothing happens."
HINTS = 10
"""Of the grounding agent, at most (AutoGen's code)."""


def alfchat(thread: NewThread, *, hint: str = "", rounds: int = 50) -> Steps:
    """Let the assistant and the executor talk until the task is over.

    hint: what the grounding agent says; "" where there is none (two agents). rounds: at most.
    """
    dialect = thread.dialect
    Y, actions = Sequence(), list[str]()
    invalid = hints = 0
    if hint:
        Y += thread.instruction(f"{hint}\n")
    for _ in range(rounds):
        # Y = Y + assistant(q + c + Y)
        generated: Generated = yield Generate(Y)
        Y += generated.span
        if generated.ended and not generated.ended.is_end:
            return Finished(Y, generated.ended, {})
        message = dialect.bare(generated.span.text.removesuffix(dialect.end)).strip()
        words = until_verdict(message)
        if words and not completed(words):  # as "TERMINATE" there
            return Finished(Y, Status.ENDED, {}, words)
        # Y = Y + executor(the valid action that is most like it)
        line, repeats = message.rpartition("\n")[2], False
        if not line:
            Y = answer(thread, Y, say_no_action(dialect))
            invalid += 1
        else:
            marked = read_action(line, dialect)
            action = line if marked is None else marked
            Y, observation = yield from act(thread, Y, action, nearest=True)
            actions.append(observation.action)
            # if E is over then return Y
            if observation.is_over:
                won = bool(observation.won)
                return Finished(Y, Status.ENDED, {}, verdict(won))
            invalid = invalid + 1 if observation.strip() == INVALID else 0
            repeats = len(actions) >= REPEATS and len(set(actions[-REPEATS:])) == 1
        # three agents: if the assistant is stuck then Y = Y + the grounding agent's hint
        if hint and (repeats or invalid == REPEATS):
            Y += thread.instruction(with_break(Y, f"{hint}\n"))
            hints, invalid = hints + 1, 0
        # two agents: if the assistant is stuck then return Y
        if hints == HINTS or (not hint and (repeats or invalid > REPEATS)):
            return Finished(Y, Status.ENDED, {}, verdict(False))
    return Finished(Y, Status.OUT_OF_CALLS, {})
