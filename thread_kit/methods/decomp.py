"""Decomposed Prompting, DecomP (Khot et al. 2023, section 3): handlers, each with its own prompt.

    function DECOMP(handler, c)
      while True do
        Y = Y + LLM(q_handler + c + Y)
        if Y names a handler h and a sub-task T then   Y = Y + DECOMP(h, T)
        else if Y performs an action then              Y = Y + E(action)
        else if Y ends then                            return the last line of Y

A line `[fetch] 8 planks =>` calls a handler, one of a fixed set, by its name and with what it has
to do; the answer follows. A handler may act, and may call handlers itself, also its own
kind (recursion, section 3.2 there). What a handler reads is the task's world and its own sub-task,
nothing of its caller.

In a dialect of code a handler's text is a program with calls in it, and what it returns is what it
printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from thread_kit.exchange import find_action
from thread_kit.methods.common import (
    Code,
    act,
    answer,
    listen,
    own_text,
    say_no_action,
    subtask,
    without_end,
)
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, Generate, Generated, NewThread, Status, Steps
from thread_kit.sequence import Sequence

CALL = re.compile(r"\[(\w+)\]\s*(.+)")
NO_CALL = 'A handler is called by a line "[handler] sub-task {listen}".'


def decomp(thread: NewThread, *, handlers: Mapping[str, Prompt], iterations: int = 60) -> Steps:
    """The decomposer, or one of its handlers: the program is the same, the prompt differs.

    handlers: the fixed set, by name. iterations: calls of the model at most, in each of them.
    """
    dialect = thread.dialect
    Y, code, last_answer = Sequence(), Code(), ""
    for _ in range(iterations):
        # Y = Y + LLM(q_handler + c + Y)
        generated: Generated = yield Generate(Y)
        Y += generated.span
        yield from code.run(Y, generated.stop, dialect)
        asked = without_end(Y, dialect)
        # A line that begins in what a handler returned is nobody's request.
        line = dialect.bare(asked.last_line) if asked.last_line_is_own else ""
        call, action = CALL.fullmatch(line.strip()), find_action(asked, dialect)
        status = generated.ended
        # At the end of a reply other words in brackets are no call: "[stick] (1)" is an answer.
        is_call = call is not None and call[1] in handlers
        asks = not dialect.code and (is_call or action is not None)
        if status and not (status.is_end and asks):
            # return the last line of Y; of a handler that ends behind an answer, that answer
            words = own_text(Sequence((generated.span,)), dialect).rpartition("\n")[2]
            return Finished(Y, status, {}, code.printed or words or last_answer)
        if call:
            name, task = call.groups()
            if name not in handlers:
                known = ", ".join(handlers)
                Y = answer(thread, Y, f"No handler {name}; there are: {known}.")
                continue
            # Y = Y + DECOMP(h, T)
            context = subtask(thread.context, f"{name} {task}")
            Y, last_answer, _ = yield from listen(thread, Y, context, prompt=handlers[name])
        elif action is not None:
            # Y = Y + E(action)
            Y, observation = yield from act(thread, Y, action)
            last_answer = observation.strip()
        else:
            told = f"{say_no_action(dialect)} {NO_CALL.format(listen=dialect.listen)}"
            Y = answer(thread, Y, told)
    return Finished(Y, Status.OUT_OF_CALLS, {})
