"""AdaPlanner (Sun et al. 2023, section 3): a plan that is code, refined in plan and out of plan.

    P = planner(T); start = 1                            # steps of code, each with an assertion
    for execution = 1 ... n do
      run P from its step `start` on                     # act(a) is E(a)
        ask(question) = LLM(question)                    # in-plan refinement
      if T is solved then return True
      P' = planner(T + the assertion that failed)        # out-of-plan refinement
      start = LLM(the first step in which P and P' differ), or 1 from the fourth execution on
      P = P'

The code of a plan never runs here but in the sandbox, which can neither act nor ask. So a step that
wants an action breaks off there, and runs again from its start with the answers that it has had so
far (`run_step`): what it does is what it would do if it waited. The variables stay for the steps
that follow, and for the plan that is revised.

An episode costs a call for the plan, one for each question, and two for each revision; a plan, or a
revision, in which a mark of listening stops the model, one more for each.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from thread_kit.code_lines import LINE_CHARACTERS, is_python, is_variable_name
from thread_kit.exchange import INSTANTIATED_CHARACTERS
from thread_kit.methods.common import REPLY_CALLS, ask_prose, own_text, verdict, with_break
from thread_kit.prompts import Prompt
from thread_kit.requests import (
    Act,
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    NewThread,
    Observation,
    Request,
    Show,
    Status,
    Steps,
)
from thread_kit.sequence import Sequence
from thread_kit.trace.printable import mend_surrogates

WAITS = "it waits"
"""How a plan breaks off for an action or a question; no error."""

PRELUDE = f"""
_answers, _at = [], [0]
def _await(kind, text):
    global wanted
    _at[0] += 1
    if _at[0] <= len(_answers):
        return _answers[_at[0] - 1]
    if wanted is None:
        wanted = [kind, str(text)]
    raise RuntimeError({WAITS!r})
def act(action):
    return _await('act', action)
def ask(question):
    return _await('ask', question)
def literal_eval(text):
    at, is_literal = 0, True
    while at < len(text) and is_literal:
        start = at
        at += 1
        if text[start] == '#':
            while at < len(text) and text[at] != '\\n':
                at += 1
        elif text[start] in '\\'"':
            while at < len(text) and text[at] not in (text[start], '\\n'):
                at += 2 if text[at] == '\\\\' else 1
            at += 1
            is_literal = at <= len(text) and text[at - 1] == text[start]
            is_literal = is_literal and text[start:at + 1] != 3 * text[start]
        elif text[start].isalnum() or text[start] == '_':
            while at < len(text) and (text[at].isalnum() or text[at] == '_'):
                at += 1
            word = text[start:at]
            is_number = word[0] in '0123456789' and not word.lower().strip('0123456789abcdefjox_')
            is_literal = is_number or word in ('True', 'False', 'None')
            is_literal = is_literal and text[at:at + 1] not in ('\\'', '"')
        else:
            is_literal = text[start] in ' \\t\\n\\r,:.+-()[]{{}}'
    if not is_literal:
        raise ValueError('malformed node or string: ' + repr(text))
    return eval(text.strip())
"""
"""What a plan can call. `wanted`: the action, or the question, that it waits for.

`literal_eval` evaluates no name, and so calls nothing: what a model answers is data.
"""

STEP = re.compile(r"^# \[Step (\d{1,3})\]", re.MULTILINE)
AROUND = re.compile(
    r"^ *(?:```.*|import ast *|from ast import literal_eval *)(?:\n|$)", re.MULTILINE
)
DIFFER = "From which step on do these two plans differ? Answer with its number alone."
UNSOLVED = "All steps are done, and the task is not solved."
READY = "_at[0] = 0; wanted = None"
"""How a step begins: with none of its answers taken."""

PLAN_CHARACTERS = 20_000
"""Of a step, at most; a plan of 1,400 tokens, as many as the method has, comes to some 5,000."""

REPORTED = 3
"""So many of the last actions are told with an error."""


def parse_steps(plan: str) -> dict[int, str]:
    """The steps of a plan by their numbers, in order; what stands before them is step 0.

    A step is what follows a line like "# [Step 2] ...", up to the next one. A number that comes
    again goes on with its step.
    """
    first, *parts = STEP.split(clean_plan(plan))
    steps = {0: first}
    for number, body in zip(parts[::2], parts[1::2], strict=True):
        code = body.partition("\n")[2]
        steps[int(number)] = f"{steps.get(int(number), '')}{code}"
    return dict(sorted(steps.items()))


def clean_plan(plan: str) -> str:
    """A plan without what a model writes around its code.

    That is fences, a sentence before the first step, and the import of what a plan has already.
    """
    text = AROUND.sub("", plan).replace("ast.literal_eval(", "literal_eval(")
    first = STEP.search(text)
    start = first.start() if first else 0
    is_prose = start <= LINE_CHARACTERS and not is_python(text[:start])
    return text[start:] if is_prose else text


@dataclass(slots=True)
class Running:
    """What has come of the plans of an episode so far.

    left: actions and questions that may still come. last: the last actions, as they stand in Y.
    """

    thread: NewThread
    questions: Prompt
    left: int
    Y: Sequence = field(default_factory=Sequence)
    last: list[str] = field(default_factory=list)
    observation: Observation | None = None

    def answer(self, kind: str, text: str) -> Generator[Request, Any, str]:
        """What an action comes to in the environment; or what the model says to a question."""
        self.left -= 1
        if kind == "ask":
            asked = ask_prose(self.thread, self.Y, "ask", text, prompt=self.questions)
            self.Y, reply, _ = yield from asked
            return reply.strip()
        dialect = self.thread.dialect
        line = f"{dialect.write_action(' '.join(text.split()))} {dialect.listen}"
        self.Y += self.thread.instruction(with_break(self.Y, line))
        self.observation = yield Act(text)
        seen = self.thread.observed(self.observation.strip())
        self.Y += seen
        self.last.append(f"{line}{seen.text.rstrip()}")
        yield Show(self.Y)
        return self.observation.strip()

    @property
    def is_over(self) -> bool:
        return self.observation is not None and self.observation.is_over


def adaplanner(
    thread: NewThread,
    *,
    questions: Prompt,
    executions: int = 6,
    resumed: int = 3,
    iterations: int = 50,
) -> Steps:
    """Plan with the thread's own prompt, run the plan, and revise it where an assertion fails.

    questions: the prompt of `ask`. executions: of plans, at most. resumed: of these the second to
    this one begin at the step that was revised, all others at the first one. iterations: actions
    and questions of an episode, at most.
    """
    # P = planner(T); start = 1
    running = Running(thread, questions, iterations)
    for _ in range(REPLY_CALLS):
        generated: Generated = yield Generate(running.Y)
        running.Y += generated.span
        if generated.ended:
            break
    status = generated.ended or Status.ENDED
    if not (status.is_end or status is Status.TRUNCATED):  # what there is of a plan can be run
        return Finished(running.Y, status, {}, verdict(False))
    plan, start = own_text(running.Y, thread.dialect), 1
    yield Execute((f"exec({PRELUDE!r})", "wanted = None"))

    # for execution = 1 ... n do
    for execution in range(1, executions + 1):
        # run P from its step `start` on
        error: str | None = UNSOLVED
        steps = parse_steps(plan)
        start = start if start in steps else 1
        for number, code in steps.items():
            if 0 < number < start:
                continue
            failed = yield from run_step(running, code)
            if running.is_over or running.left <= 0:
                break
            if failed:
                head = failed.partition("\n")[0]
                error = head if "[Step" in head else f"Error in [Step {number}]: {head}"
                break
        # if T is solved then return True
        if running.is_over or running.left <= 0 or execution == executions:
            break
        # P' = planner(T + the assertion that failed)
        context = with_error(thread.context, error or UNSOLVED, running.last)
        running.Y, revised, _ = yield from ask_prose(thread, running.Y, "revise", context)
        # start = LLM(the first step in which P and P' differ), or 1 from the fourth on
        start = 1
        if execution < resumed:
            question = f"First plan:\n{plan}\nSecond plan:\n{revised}\n{DIFFER}"
            answered = ask_prose(thread, running.Y, "ask", question, prompt=questions)
            running.Y, reply, _ = yield from answered
            match = re.search(r"\d{1,3}", reply)
            start = int(match[0]) if match else 1
        plan = revised
    won = running.observation.won if running.observation is not None else False
    status = Status.ENDED if running.is_over else Status.OUT_OF_CALLS
    # What another plan had begun need not solve the task from its start.
    whole = clean_plan(plan) if execution == 1 else ""
    return Finished(running.Y, status, {"plan": whole}, verdict(bool(won)))


def with_error(context: str, error: str, last: list[str]) -> str:
    """T + the assertion that failed: both stand before the task, whose line comes last."""
    world, _, task = context.rpartition("\n")
    lines = [f"The plan before has failed. {' '.join(error.split())}"]
    if last:
        lines += ["The last actions were:", *last[-REPORTED:]]
    return "\n".join(filter(None, [world, *lines, task]))


def run_step(running: Running, code: str) -> Generator[Request, Any, str | None]:
    """Run one step of a plan, with an answer to each action and question; its error, if any."""
    code = mend_surrogates(code.strip())
    if not code:
        return None
    if len(code) > PLAN_CHARACTERS:
        return f"it is longer than {PLAN_CHARACTERS:,} characters"
    before: Executed = yield Execute((*_bind("_code", code), f"_answers.clear(); {READY}"))
    if before.error:
        return before.error
    while True:
        executed: Executed = yield Execute(("exec(_code)",))
        match executed.variables.get("wanted"):
            case ["act" | "ask" as kind, str(text)] if running.left > 0:
                # A plan of some tokens could ask for megabytes.
                answer = yield from running.answer(kind, text[:INSTANTIATED_CHARACTERS])
            case _:
                return executed.error
        if running.is_over:
            return None
        known = answer[: LINE_CHARACTERS // 4]
        tell = [f"_answers.append({known!r}); {READY}"]
        if len(tell[0]) > LINE_CHARACTERS:
            tell = [*_bind("_answer", known), f"_answers.append(_answer); {READY}"]
        # What the step has changed before it broke off is undone.
        yield Execute((*_undo(before.variables, executed.variables), *tell))


def _undo(before: Any, now: Any) -> Iterator[str]:
    """The lines that give variables the values from before."""
    for name, value in before.items():
        if now.get(name) != value and is_variable_name(name) and name != "wanted":
            yield from _bind(name, value)


def _bind(name: str, value: Any) -> list[str]:
    """The lines that give a variable a value, none of them longer than a line may be."""
    line, text, part = f"{name} = {value!r}", repr(value), LINE_CHARACTERS // 4
    if len(line) <= LINE_CHARACTERS:
        return [line]
    parts = [text[start : start + part] for start in range(0, len(text), part)]
    added = [f"_text += {part!r}" for part in parts]
    return ["_text = ''", *added, f"{name} = eval(_text)"]
