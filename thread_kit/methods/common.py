"""What several methods have in common: asking a child, the context of a sub-task, success."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thread_kit.dialect import Dialect, Stop
from thread_kit.exchange import find_action, psi_print, read_action, unless_replaced
from thread_kit.prompts import Prompt
from thread_kit.requests import (
    Act,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    NewThread,
    Observation,
    Request,
    Show,
    Spawn,
    Status,
    Steps,
)
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.thread import own_code

COMPLETED = "Task completed!"
FAILED = "Task failed!"
"""How an executor judges itself (ADaPT paper, section 3.1)."""

_psi = unless_replaced(psi_print)


def as_instruction(begun: Sequence) -> Sequence:
    """What other threads have written, as one span that begins this one; of nothing, nothing."""
    if not begun.tokens:
        return begun
    return Sequence((Span(Provenance.INSTRUCTION, begun.text, begun.tokens),))


def verdict(success: bool) -> str:
    """What an executor says of itself."""
    return COMPLETED if success else FAILED


_VERDICT = re.compile(r"\btask (completed|failed)(?:!|\b\W*$)", re.MULTILINE | re.IGNORECASE)


def completed(text: str) -> bool:
    """Whether the last verdict in the last line of a text is that the task is completed.

    A line that tells of the words alone ("has the task completed? No") has none.
    """
    verdicts = _VERDICT.findall(text.strip().rpartition("\n")[2])
    return bool(verdicts) and verdicts[-1].casefold() == "completed"


def until_verdict(text: str) -> str:
    """A text up to its first verdict on itself; "" where it has none.

    With its exclamation mark anywhere, as in the code of ADaPT; without, at the end of a line.
    """
    found = _VERDICT.search(text)
    return text[: found.end()].strip() if found else ""


def add_verdicts(prompt: Prompt) -> Prompt:
    """The prompt of an executor, whose examples say at their end that the task is completed."""
    end = prompt.dialect.end
    examples = []
    for example in prompt.examples:
        written = example.response.removesuffix(end)
        if not until_verdict(written):
            example = replace(example, response=f"{written}{COMPLETED}\n{end}")
        examples.append(example)
    return replace(prompt, examples=tuple(examples))


@dataclass(frozen=True, slots=True)
class Handover:
    """What executors hand on in a method of several (ADaPT paper, appendix A).

    actions: of those that succeeded, in order; known: the last of them and what was observed, as
        steps stand in a thread. Failures hand nothing on.
    failed: the sub-tasks at which executors failed, in order; a planner that looks reads them.
    found: for what plans name before it is known, what a success has told since, and any of those
        before it.
    won: once the environment is over, whether its task is won: by its own word, or else by that of
        the executor which ended it. None before.
    """

    actions: tuple[str, ...] = ()
    known: str = ""
    failed: tuple[str, ...] = ()
    won: bool | None = None
    found: Mapping[str, str] = field(default_factory=dict)

    def after(
        self,
        executor: Finished,
        success: bool,
        dialect: Dialect,
        task: str = "",
        placeholders: Mapping[str, str] | None = None,
    ) -> Handover:
        """With what an executor (`methods/react.py`) has done.

        task: the sub-task it was given. placeholders: as in `Benchmark`.
        """
        won = executor.variables.get("won")
        if not success:
            return replace(self, failed=(*self.failed, *([task] if task else [])), won=won)
        new = executor.variables.get("actions", ())
        known = last_step(executor.sequence, dialect) or self.known  # it may not have acted
        found = dict(self.found)
        for name, pattern in (placeholders or {}).items():
            matches = filter(None, (re.match(pattern, action) for action in new))
            if first := next(matches, None):
                found[name] = first[1]
        return Handover((*self.actions, *new), known, self.failed, won, found)

    def fill_in(self, step: str) -> str:
        """A step of a plan, with what has been found in the place of its placeholder."""
        for name, thing in self.found.items():
            step = step.replace(name, thing)
        return step


START = Handover()
"""Before the first executor."""


NOTHING = Sequence()
REPLY_CALLS = 20
"""Of the model for one reply in which a listen mark means nothing, at most."""

NO_ACTION = "This is no action"
ON_A_THOUGHT = "OK."
"""What comes back to a thought that stands where an action could (ReAct, ADaPT)."""


def act(
    thread: NewThread, Y: Sequence, action: str, *, nearest: bool = False
) -> Generator[Request, Any, tuple[Sequence, Observation]]:
    """Y = Y + E(action), and what was observed. nearest: as in `Act`."""
    Y = heard(thread, Y)
    observation: Observation = yield Act(action, nearest)
    return Y + thread.observed(observation.strip()), observation


def say_no_action(dialect: Dialect) -> str:
    """What comes back to a reply that asks for nothing which the dialect has."""
    (mark, *_) = dialect.actions or ("",)
    form = f"; an action is a line that starts with '{mark.rstrip()} '."
    return NO_ACTION + (form if mark else ".")


def is_thought(action: str) -> bool:
    """Whether what stands for an action is a thought, as in the code of ReAct and of ADaPT.

    WebShop's `think[...]` is an action: the shop answers it, and plans are filled in from it. RAP
    and AutoGuide take it for a thought (methods/steps.py), and say "OK." as the shop does.
    """
    return action.startswith("think:")


def act_or_think(
    thread: NewThread, Y: Sequence, action: str
) -> Generator[Request, Any, tuple[Sequence, Observation | None]]:
    """`act`, and None for what was observed where it is a thought, which is answered here."""
    if is_thought(action):
        return answer(thread, Y, ON_A_THOUGHT), None
    return (yield from act(thread, Y, action))


def count_lines(written: str, dialect: Dialect) -> int:
    """The lines that a call wrote, each of which the ADaPT paper and RAP's code ask for by a call.

    An action is one, whatever lines it has.
    """
    if dialect.code:
        return 1
    count = sum(bool(line.strip()) for line in written.split("\n"))
    _, *others = (read_action(written, dialect) or "").split("\n")
    return max(1, count - sum(bool(line.strip()) for line in others))


def begin(
    thread: NewThread, actions: Iterable[str], Y: Sequence = NOTHING
) -> Generator[Request, Any, tuple[Sequence, Observation | None]]:
    """Take actions behind Y, before the first call of the model; and what was observed last."""
    observation = None
    for action in actions:
        line = thread.dialect.write_action(action)
        Y += thread.instruction(f"{line} {thread.dialect.listen}")
        Y, observation = yield from act(thread, Y, action)
    return Y, observation


def heard(thread: NewThread, Y: Sequence) -> Sequence:
    """Y with a listen mark at its end, also where a reply asked for something and ended there."""
    mark = _missing_mark(Y, thread.dialect)
    return Y + thread.instruction(mark) if mark else Y


def answer(thread: NewThread, Y: Sequence, text: str) -> Sequence:
    """Y, and what the method itself says behind a reply."""
    dialect = thread.dialect
    return Y + thread.instruction(_missing_mark(Y, dialect) + dialect.closed(text))


def _missing_mark(Y: Sequence, dialect: Dialect) -> str:
    return "" if Y.text.endswith(dialect.listens) else f" {dialect.listen}"


def reopen(thread: NewThread) -> Span:
    """The mark of an action behind an end mark, which ends nothing: the model goes on there.

    In the code of ReAct and its kin, which has no end mark, it stands before every reply; as there,
    the blank behind it is the model's, in whose vocabulary it belongs to the next word.
    """
    return thread.instruction(f"\n{thread.dialect.actions[0]}")


def without_end(Y: Sequence, dialect: Dialect) -> Sequence:
    """Y without the end mark of its last reply.

    The end of a reply is its action's end, too: no mark closes one in the code of ReAct and its
    kin, but a line break or the end of the message. Not so in a program.
    """
    if dialect.code or not Y.spans:
        return Y
    *before, reply = Y.spans
    text = reply.text.rstrip().removesuffix(dialect.end).rstrip()
    return Sequence((*before, replace(reply, text=text)))


def find_asked(Y: Sequence, dialect: Dialect) -> str | None:
    """The action with which a reply, the last of Y, ends, also one that goes on behind `reopen`.

    None where it ends with none.
    """
    *before, reply = without_end(Y, dialect)
    if not reply.text:
        return None
    opened = before[-1].text.rpartition("\n")[2] if before else ""
    if opened not in dialect.actions:
        return find_action(Sequence((*before, reply)), dialect)
    return read_action(go_on(opened, reply.text, dialect), dialect)


_FENCE = re.compile(r"\s*```(?:(?:sql|bash|sh)\b)?(.*?)(?:```|$)", re.DOTALL | re.IGNORECASE)


def without_fence(command: str) -> str:
    """A command without the fence of Markdown that it stands in, and what follows that."""
    fenced = _FENCE.match(command)
    return fenced[1].strip() if fenced else command


def go_on(opened: str, reply: str, dialect: Dialect) -> str:
    """A reply behind the mark of an action, which it may repeat."""
    return reply if dialect.is_action(reply.partition("\n")[0]) else opened + reply


Answer = Generator[Request, Any, tuple[Sequence, str, Finished]]
"""Y with the answer of a child behind it, the answer alone, the child."""


def ask(thread: NewThread, Y: Sequence, line: str, context: str, **child: Any) -> Answer:
    """Spawn a child and wait for it.

    line: stands in Y for the spawn. child: its `program` and its `prompt`, as in `Spawn`.
    """
    Y += thread.instruction(with_break(Y, f"{line} {thread.dialect.listen}"))
    return (yield from listen(thread, Y, context, **child))


def ask_prose(thread: NewThread, Y: Sequence, line: str, context: str, **child: Any) -> Answer:
    """`ask` for prose: a plan, a lesson, a mark for a trajectory.

    What was cut counts as far as it goes, as in the released codes.
    """
    Y, text, finished = yield from ask(thread, Y, line, context, program=write_prose, **child)
    if not finished.status.is_end and finished.instead is None:
        text = own_text(finished.sequence, thread.dialect)
    return Y, text, finished


def listen(thread: NewThread, Y: Sequence, context: str, **child: Any) -> Answer:
    """`ask`, where what Y ends with asks already."""
    Y = heard(thread, Y)
    yield Show(Y)
    finished: Finished = yield Spawn(context, **child)
    text = _psi(finished)
    yield Define({})
    Y += thread.returned(text)
    yield Show(Y)
    return Y, text, finished


def with_list(heading: str, items: Iterable[str], context: str) -> str:
    """A list, each item on one line, above a context, whose last line goes on asking; or that."""
    lines = [f"- {' '.join(item.split())}" for item in items]
    return "\n".join([heading, *lines, context]) if lines else context


def write_reply(thread: NewThread, *, begun: str = "", calls: int = 1) -> Steps:
    """A program that returns what the model writes.

    begun: what stands there already, and is not returned. calls: of the model, at most; a listen
    mark stops one, and means nothing where there is another.
    """
    Y = Sequence((thread.instruction(begun),)) if begun else NOTHING
    status = None
    for _ in range(calls):
        generated: Generated = yield Generate(Y)
        Y += generated.span
        if status := generated.ended:
            break
    status = status or Status.ENDED
    return Finished(Y, status, {}, own_text(Y, thread.dialect))


def write_prose(thread: NewThread) -> Steps:
    """A program that returns all that the model writes; it may tell of an action with its mark."""
    return write_reply(thread, calls=REPLY_CALLS)


def is_cut(written: Finished, dialect: Dialect) -> bool:
    """Whether prose could go on where it stops: its tokens are used up, or its calls."""
    stops = not written.status.is_end or written.sequence.text.endswith(dialect.listen)
    return stops and written.instead is None


class Code:
    """The code in a thread's text, where the dialect has code: each of its lines is run once.

    printed: what the last print among them printed, or its error; None if none did.
    """

    def __init__(self) -> None:
        self._executed = 0
        self.printed: str | None = None

    def run(self, Y: Sequence, stop: Stop, dialect: Dialect) -> Generator[Request, Any, None]:
        """Run the lines that the last call completed."""
        if not dialect.code:
            return
        lines = own_code(Y, stop, dialect)[self._executed :]
        self._executed += len(lines)
        executed: Executed = yield Execute(tuple(lines))
        if executed.printed is not None:
            self.printed = executed.printed


def own_text(Y: Sequence, dialect: Dialect) -> str:
    """What the model wrote, without the mark at its end."""
    text = "".join(span.text for span in Y if span.provenance is Provenance.GENERATED)
    return dialect.bare(text.strip().removesuffix(dialect.end)).strip()


def last_step(Y: Sequence, dialect: Dialect) -> str:
    """The last action of a sequence with its observation, as they stand there; "" if none is."""
    text = step = ""
    for span in Y:
        if span.provenance is Provenance.OBSERVED:
            lines = dialect.bare(text).rstrip().removesuffix(dialect.end).rstrip().split("\n")
            action = "\n".join(dialect.action_lines(lines) or lines[-1:])
            step = f"{action} {dialect.listen}{span.text}"
        text += span.text
    return step


def subtask(context: str, task: str) -> str:
    """The context of a sub-task: the same world, another task.

    The last line of a context asks ("Goal: craft note block.", "Your task is to: find a mug."); it
    asks for `task` instead.
    """
    world, head, _ = split_question(context)
    return "\n".join(filter(None, [world, f"{head}{task}".rstrip(" .") + "."]))


def split_question(context: str) -> tuple[str, str, str]:
    """The world of a context, then of its last line the head ("Goal: ") and what it asks for.

    The head is empty where there is none.
    """
    world, _, question = context.rpartition("\n")
    head, colon, task = question.partition(": ")
    return (world, head + colon, task) if colon else (world, "", question)


def with_break(Y: Sequence, text: str) -> str:
    """A text as it stands behind Y if it has to begin a line."""
    return f"\n{text}" if Y.text and not Y.text.endswith("\n") else text
