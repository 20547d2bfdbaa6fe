"""ReAct (Yao et al. 2023, section 2): one thread that thinks and acts in turn, and never spawns.

    Y = []
    repeat at most `iterations` times
      Y = Y + LLM(q + c + Y)       # thoughts, and the next action
      if Y is over then return Y
      Y = Y + E(action)
      if E says that it is won, or lost, then return Y

It is also the executor of the ADaPT paper (section 3.1), which all methods there share: it is over
where it says "Task completed!" or "Task failed!" of itself (`judges`), or where the environment
says that it is won or lost; one that only ends (WebShop, InterCode) leaves the verdict to the
executor, where somebody reads it (`is_asked`). There it has 20 iterations on TextCraft and on
ALFWorld, and 60 as a method of its own (appendix A). A thought is an iteration as an action is,
though one call of the model may write several.

In a dialect of code the text is a program with thoughts in it, and an action shows what a line of
it prints: that is NLEP+ReAct (THREAD paper, section 4.4). An iteration is a call there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from thread_kit.methods.common import (
    Code,
    act_or_think,
    answer,
    begin,
    completed,
    count_lines,
    find_asked,
    own_text,
    reopen,
    say_no_action,
    until_verdict,
    verdict,
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


def react(
    thread: NewThread,
    *,
    iterations: int = 60,
    start: Iterable[str] = (),
    known: str = "",
    temperature: float | None = None,
    judges: bool = True,
    in_on: bool = False,
    ends: bool = True,
    is_asked: bool = True,
) -> Steps:
    """Think and act until the model, or the environment, is done; returns its last words.

    iterations: thoughts and actions at most.
    start: actions that are taken before the first of them (ADaPT paper, appendix A: the inventory).
    known: steps of another thread that stand at the start of this one.
    temperature: None is the episode's.
    judges: whether what the model says of itself ends it; if not, the environment alone does.
    in_on: "put X on Y" is taken for "put X in/on Y", ALFWorld's word, as in the code of ADaPT.
    ends: whether its end mark ends one that judges; if not, and for one that does not judge, the
        model goes on behind the mark with an action or a thought, as in the code of ReAct and
        ADaPT, where every reply begins behind ">".
    is_asked: whether it has to judge itself where the environment is over and says nothing of
        success; nobody reads that of a method's only executor.

    The variables of what it returns: `actions`, all that it took, and where the environment is over
    `won`, as in `Handover`.
    """
    dialect = thread.dialect
    Y = Sequence()
    if known:
        Y += thread.instruction(known)
    Y, _ = yield from begin(thread, start, Y)
    taken = [*start]

    code = Code()
    used = 0
    is_over = False
    while used < iterations or is_over:
        # Y = Y + LLM(q + c + Y)
        generated: Generated = yield Generate(Y, temperature)
        Y += generated.span
        written = dialect.bare(generated.span.text.removesuffix(dialect.end))
        used += count_lines(written, dialect)
        yield from code.run(Y, generated.stop, dialect)
        # if Y is over then return Y
        judged = until_verdict(written) if judges and not dialect.code else ""
        status = generated.ended
        asked = None if status and dialect.code else find_asked(Y, dialect)
        gives_up = judges and ends and asked is None
        if judged or is_over or (status and (gives_up or not status.is_end)):
            words = judged or own_text(Sequence((generated.span,)), dialect)
            printed = "\n".join(filter(None, [code.printed, words]))
            status = Status.ENDED if judged or not status else status
            variables: dict[str, Any] = {"actions": tuple(taken)}
            if is_over:  # and the executor alone can say whether the task is solved
                variables["won"] = status.is_end and completed(printed)
            return Finished(Y, status, variables, printed)
        # Y = Y + E(action)
        if asked is None:
            Y = Y + reopen(thread) if status else answer(thread, Y, say_no_action(dialect))
            continue
        if in_on and asked.startswith("put "):
            asked = asked.replace(" in ", " in/on ").replace(" on ", " in/on ")
        Y, observation = yield from act_or_think(thread, Y, asked)
        if observation is not None:
            taken.append(asked)
            is_over = observation.is_over
            won = observation.won
            if won is not None or (is_over and not (judges and is_asked)):
                variables = {"actions": tuple(taken), "won": won}
                return Finished(Y, Status.ENDED, variables, "" if won is None else verdict(won))
    return Finished(Y, Status.OUT_OF_CALLS, {"actions": tuple(taken)})
