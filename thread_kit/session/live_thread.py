"""One thread that is alive, as the scheduler keeps it (`session/scheduler.py`)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from thread_kit.engines.engine import ThreadKey
from thread_kit.prompts import Prompt
from thread_kit.requests import Finished, Program, Request
from thread_kit.sandbox.namespace import Namespace
from thread_kit.sequence import Span


@dataclass(slots=True)
class LiveThread:
    """A thread that is alive: its generator, its variables, and what it waits for.

    key: by which the engine knows it: the session's number and its own.
    path: its place in the tree, which does not depend on who was faster, as its number does.
    acts: it may act in the environment: all threads from the main thread down to it are waited for.
    futures: the threads that names stand for, as long as this thread has not taken them.
    is_calling: the model writes for it (`session/running_call.py`).
    request: what it asked for and has to ask again: there was no room for one more call.
    shown: spans of its sequence that are events already.
    child: the last one that it spawned. taken: the future that it waits for: name and thread.
    defined: variables that came up with what a child returned.
    lost: names that lines which failed should have bound, and nothing since, with the errors.
    """

    id: int
    key: ThreadKey
    depth: int
    path: tuple[int, ...]
    context: Span
    program: Program
    prompt: Prompt
    namespace: Namespace
    acts: bool
    futures: dict[str, int]
    is_future: bool
    steps: Generator[Request, Any, Finished]
    reply: Any = None
    request: Request | None = None
    is_calling: bool = False
    is_held: bool = False
    shown: int = 0
    children: int = 0
    child: int = -1
    taken: tuple[str, int] | None = None
    defined: dict[str, Any] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        return not (self.is_calling or self.is_held)
