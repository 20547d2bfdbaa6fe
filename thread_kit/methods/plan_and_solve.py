"""Plan & Solve (Wang et al. 2023b), a baseline of the StateFlow paper (4.1): plan, then act.

    P = LLM(q + c)
    for step in P do
      Y = Y + step
      Y = Y + E(LLM(q + c + Y))

The plan is a list of steps; each is carried out by one action, in its turn, and the last output is
the answer. InterCode's script, which that paper runs, takes the best reward of all steps; here the
episode's is that of the last one, as the paper has it for all but "Try Again" (appendix A.3).
"""

from __future__ import annotations

from thread_kit.methods.common import find_asked, own_text, with_break
from thread_kit.methods.plans import ORDER, STEP, parse_plan
from thread_kit.methods.rounds import end_round
from thread_kit.requests import Finished, Generate, Generated, NewThread, Status, Steps
from thread_kit.sequence import Sequence


def plan_and_solve(thread: NewThread, *, steps: int = 10) -> Steps:
    """Plan to the first listen mark, then one action a step.

    steps: of a plan are carried out at most.
    """
    dialect = thread.dialect
    # P = LLM(q + c)
    generated: Generated = yield Generate(Sequence())
    Y = Sequence((generated.span,))
    status = generated.ended or Status.ENDED
    plan = parse_plan(own_text(Y, dialect))
    if plan is None or not status.is_end:
        return Finished(Y, status, {})

    # A model may go on from the plan into its first step: then it ends with its only command.
    asked = find_asked(Y, dialect) or ""
    commands = sum(map(dialect.is_action, own_text(Y, dialect).split("\n")))
    begun = commands == 1 and not (STEP.search(asked) or ORDER.search(asked))

    # for step in P do
    for number, (_, step) in zip(range(steps), sorted(plan.steps.items()), strict=False):
        # Y = Y + step
        if number or not begun:
            text = f"Step {number + 1}: {step}"
            waits = Y.text.endswith(dialect.listen)  # behind the plan
            Y += thread.instruction(dialect.closed(text) if waits else with_break(Y, f"{text}\n"))
            generated = yield Generate(Y)
            Y += generated.span
        # Y = Y + E(LLM(q + c + Y)); an end is no step's, the plan says how many there are
        Y, cut, _ = yield from end_round(thread, Y, generated)
        if cut:
            return Finished(Y, cut, {})
    is_done = len(plan.steps) <= steps
    return Finished(Y, Status.ENDED if is_done else Status.OUT_OF_CALLS, {})
