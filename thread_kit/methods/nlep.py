"""Natural Language Embedded Programs, NLEP (Zhang et al. 2023): one program, and its output.

    Y = LLM(q + c)
    return what Y prints

The model sees nothing of what its program does, and the program runs when it is complete: not at
all if some of it is no Python, and up to the first error, which is returned then. With looking it
is `react` (NLEP+ReAct, THREAD paper, section 4.4).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from thread_kit.code_lines import is_python
from thread_kit.methods.common import REPLY_CALLS
from thread_kit.requests import (
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    NewThread,
    Request,
    Status,
    Steps,
)
from thread_kit.sequence import Sequence
from thread_kit.thread import own_code

QUOTED_CHARACTERS = 80
"""Of a line that is no Python, in the error that names it, at most."""


def nlep(thread: NewThread, *, calls: int = REPLY_CALLS) -> Steps:
    """Write a program to its end, then run it; returns what it printed last.

    calls: of the model, at most: a mark of listening in a comment stops one, and means nothing.
    """
    Y = Sequence()
    for _ in range(calls):
        # Y = LLM(q + c)
        generated: Generated = yield Generate(Y)
        Y += generated.span
        if generated.ended:
            # return what Y prints
            lines = own_code(Y, generated.stop, thread.dialect)
            program = [line for line in lines if not line.lstrip().startswith("```")]
            printed = yield from run_program(program)
            return Finished(Y, generated.ended, {}, printed, is_program=True)
    return Finished(Y, Status.OUT_OF_CALLS, {})


def run_program(lines: list[str]) -> Generator[Request, Any, str | None]:
    """Run statements as one program; what it printed last, or the error that ended it."""
    wrong = next((line for line in lines if not is_python(line)), None)
    if wrong is not None:
        return f"SyntaxError: no Python: {wrong.strip()[:QUOTED_CHARACTERS]!r}"
    printed = None
    for line in lines:
        executed: Executed = yield Execute((line,))
        if executed.error is not None:
            return executed.error
        printed = executed.printed if executed.printed is not None else printed
    return printed
