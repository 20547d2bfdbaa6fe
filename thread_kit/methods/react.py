"""ReAct (Yao et al. 2023, section 2): one thread that thinks and acts in turn, and never spawns.

    Y = []
    repeat at most `iterations` times
      Y = Y + LLM(q + c + Y)       # thoughts, and the next action
      if Y is over then return Y
      Y = Y + E(action)

It is also the executor of the ADaPT paper (section 3.1), which all methods there share: its last
line judges whether the task is completed. There it has 20 iterations on TextCraft and on ALFWorld,
and 60 as a method of its own (appendix A). An iteration is a call of the model here, with as many
thoughts as it likes before the action; the paper counts a thought as one, too.

In a dialect of code the text is a program with thoughts in it, and an action shows what a line of
it prints: that is NLEP+ReAct (THREAD paper, section 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable

from thread_kit.exchange import xi_after_mark
from thread_kit.methods.common import Code, own_text
from thread_kit.requests import ENDS, Act, Finished, Generate, Generated, NewThread, Status, Steps
from thread_kit.sequence import Sequence

NO_ACTION = "This is no action; an action is a line that starts with '> '."


def react(
    thread: NewThread,
    *,
    iterations: int = 60,
    start: Iterable[str] = (),
    known: str = "",
    temperature: float | None = None,
) -> Steps:
    """Think and act until the model ends its text; returns its last words.

    iterations: calls of the model at most. start: actions that are taken before the first of them
    (ADaPT paper, appendix A: the inventory). known: steps of another thread that stand at the start
    of this one. temperature: None is the episode's.
    """
    dialect = thread.dialect
    Y = Sequence()
    if known:
        Y += thread.instruction(known)
    for action in start:
        Y += thread.instruction(f"> {action} {dialect.listen}")
        Y += thread.observed((yield Act(action)).strip())

    code = Code()
    for _ in range(iterations):
        # Y = Y + LLM(q + c + Y)
        generated: Generated = yield Generate(Y, temperature)
        Y += generated.span
        yield from code.run(Y, generated.stop, dialect)
        if generated.stop in ENDS:
            # if Y is over then return Y
            words = own_text(Sequence((generated.span,)), dialect)
            printed = "\n".join(filter(None, [code.printed, words]))
            return Finished(Y, ENDS[generated.stop], {}, printed)
        # Y = Y + E(action)
        if Y.last_line_is_own and dialect.is_action(Y.last_line):
            Y += thread.observed((yield Act(xi_after_mark(Y, {}, dialect))).strip())
        else:
            Y += thread.instruction(dialect.closed(NO_ACTION))
    return Finished(Y, Status.OUT_OF_CALLS, {})
