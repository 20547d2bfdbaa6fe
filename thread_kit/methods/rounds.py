"""Rounds of InterCode: each reply of the model is one, also where it holds no command."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from thread_kit.methods.react import NO_ACTION
from thread_kit.requests import Act, NewThread, Request
from thread_kit.sequence import Span


def spend_round(thread: NewThread, listens: bool) -> Generator[Request, Any, Span]:
    """The environment counts a reply without a command; returns what the model reads behind it.

    listens: the reply ends with a listen mark; an end of the text does not.
    """
    yield Act("")
    mark = "" if listens else f" {thread.dialect.listen}"
    return thread.instruction(mark + thread.dialect.closed(NO_ACTION))
