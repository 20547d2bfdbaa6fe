"""What fails beside the model: an environment, an engine, a disk, a function of a person's.

None of it leaves a session as an exception. Where a program can react, the error is text, as that
of a line that failed; else it ends its thread, or the episode, in order. The event that says so
holds the traceback, and the console (`logging`, "thread_kit") says each failure once.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from thread_kit.engines.engine import EngineError
from thread_kit.engines.replay import ReplayError
from thread_kit.trace.printable import sanitize

MESSAGE_CHARACTERS = 2_000  # of an error's own text
FRAMES = 8  # of a traceback: the innermost
EXPECTED = (EngineError, ReplayError, OSError)
"""What can happen to programs without a mistake: their message says all, without a traceback."""

_LOG = logging.getLogger("thread_kit")


class _Printable(logging.Filter):
    """An error can hold what a model wrote: no character of a record acts on the console."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = sanitize(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = sanitize(logging.Formatter().formatException(record.exc_info))
        return True


_LOG.addFilter(_Printable())


def describe_error(error: BaseException) -> str:
    """The kind of an error and its message, in at most some `MESSAGE_CHARACTERS`."""
    try:
        text = str(error)
    except Exception:  # it is somebody else's
        text = "(its message cannot be written)"
    cut = "..." if len(text) > MESSAGE_CHARACTERS else ""
    return f"{type(error).__name__}: {text[:MESSAGE_CHARACTERS]}{cut}"


def describe_traceback(error: BaseException) -> str:
    """Where an error was raised, as Python writes it; of the files their names only."""
    frames = traceback.extract_tb(error.__traceback__, limit=-FRAMES)
    lines = [
        f'  File "{Path(frame.filename).name}", line {frame.lineno}, in {frame.name}\n'
        f"    {(frame.line or '')[:MESSAGE_CHARACTERS]}\n"
        for frame in frames
    ]
    return f"Traceback (most recent call last):\n{''.join(lines)}{describe_error(error)}"


@final
class Failures:
    """The failures of one session.

    error: the first that ended the episode, or its main thread.
    tracebacks: of those that ended a thread, by its number (None: nobody was served just then).
    count: of those that ended a thread below the main one, and of psi, which ends none.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.tracebacks: dict[int | None, str] = {}
        self._of_psi: list[Exception] = []
        self._logged: set[str] = set()
        self.count = 0

    def guard(self, exchange: Mapping[str, Callable[..., str]]) -> dict[str, Any]:
        """phi, psi, xi and abstract, each held to give a text; what psi raises is its text."""
        guarded = {name: _must_give_text(name, given) for name, given in exchange.items()}
        return guarded | {"psi": self._return_error(guarded["psi"])}

    def _return_error(self, psi: Callable[..., str]) -> Callable[..., str]:
        def psi_or_error(child: Any) -> str:
            try:
                return psi(child)
            except Exception as error:
                self._of_psi.append(error)
                self.count += 1
                return f"Error: psi failed ({describe_error(error)})."

        return psi_or_error

    def pop_of_psi(self) -> list[Exception]:
        """What psi has raised since it was last asked for."""
        errors, self._of_psi = self._of_psi, []
        return errors

    def end_thread(self, thread: int, error: Exception) -> None:
        """A thread's program has raised an error."""
        self.count += thread != 0
        self.tracebacks[thread] = describe_traceback(error)
        self.log(f"thread {thread} failed", error)
        if thread == 0:
            self.end_episode(error)

    def end_episode(self, error: Exception, serving: int | None = None) -> None:
        """The episode cannot go on, or could not be closed as it should be."""
        self.error = self.error or error
        if serving is not None:
            self.tracebacks[serving] = describe_traceback(error)

    def log(self, what: str, error: Exception) -> None:
        """Say on the console that `what` failed; the same place in the same code only once."""
        frames = traceback.extract_tb(error.__traceback__, limit=-1)
        place = f"{type(error)} {[(frame.filename, frame.lineno) for frame in frames]}"
        if place not in self._logged:
            self._logged.add(place)
            shown = None if isinstance(error, EXPECTED) else error
            _LOG.error("%s: %s", what, describe_error(error), exc_info=shown)


def _must_give_text(name: str, function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def checked(*arguments: Any) -> str:
        text = function(*arguments)
        if not isinstance(text, str):
            raise TypeError(f"{name} gave {text!r:.80}, which is no text")
        return text

    return checked
