"""Runs model-written Python outside our own process.

A sandbox is stateless: it maps *state bytes + code* to *new state bytes + printed text*. A waiting
thread is therefore a few kilobytes and no process, a child thread is a copied reference, and rewind
and fork cost nothing. `MontySandbox` keeps a small pool of worker processes that run monty, a
Python interpreter without files, network or processes (package `pydantic-monty`).

Covered (one test a line in tests/sandbox/test_monty.py):
- endless loops, also in `__repr__`, and endless sums: stopped after `seconds`, the line is undone
- huge lists, strings, integers, padded formats: `memory`, the line is undone
- values that are small in memory and huge in print (`a = [a, a]`, repeated): the line is undone
- endless recursion, in the code and in the nesting of its source text
- floods of `print`: cut after `print_characters`, with a note that says so
- namespaces and states that grow line by line: `variables_characters`, `state_bytes`
- files, directories, environment variables, processes, signals, sockets: refused
- `__import__`, builtins, other modules, walks over `__class__` and `__subclasses__`: do not exist
- values that are hostile to the host (a hash or a repr that takes hours): only text crosses over
- hostile `__repr__` and `__str__`, long error messages, null bytes, lone surrogates
- a worker that dies: the line is undone, the next line gets a fresh worker
- `time.sleep`: returns at once; `random`: starts at a fixed seed, so that a replay is a replay

Not covered:
- defects of monty itself: its worker is an ordinary process of this user without an OS-level jail
- state bytes from strangers: monty trusts them, and they carry their own limits; load only what
  a sandbox of your own wrote
- the clock: `time` and `datetime` show the real time, in UTC
- many lines that each stay just below the limits; budget the lines of a thread instead
- a host that forks while the workers run
When a worker dies of memory it says so in one line on the standard error of this process.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, final

from pydantic_monty import (
    Monty,
    MontyComplete,
    MontyConversionError,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
    OSPolicy,
    ResourceLimits,
)

ERROR_CHARACTERS = 500  # an error is shown to people and kept in the trace: one line is enough

# The namespace as text. `!r` is syntax, so code that rebinds `repr` or `str` changes nothing here,
# and whatever the code made of its values, strings are all that comes back.
_SHOW = "{f'{name}': f'{value!r}' for name, value in locals().items()}"

_POLICY: OSPolicy = {"sleep": "zero", "random_start": {"seed": 0}}


@dataclass(frozen=True)
class Outcome:
    """What running some code did.

    `state` is the state to go on with. `variables` has the `repr` of each value by name, or is None
    if the code was undone (`state` is then the state from before). `error` reads like
    "NameError: name 'x' is not defined". `pictures` are PNG files that the code saved, by path.
    """

    state: bytes | None = field(repr=False)
    printed: str
    error: str | None
    variables: dict[str, str] | None
    pictures: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class Sandbox(ABC):
    """Runs untrusted code in another process; safe to share between threads."""

    @abstractmethod
    def execute(
        self, state: bytes | None, code: str, inputs: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Run code in the namespace of `state` (None: an empty one), after binding `inputs`.

        Whatever the code does becomes part of the outcome. Raises TypeError if an input is not
        plain data, ValueError if `state` was not written by this kind of sandbox, RuntimeError
        after `close` or if no worker starts.
        """

    @abstractmethod
    def close(self) -> None:
        """End all worker processes; closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@final
class MontySandbox(Sandbox):
    """Runs code in worker processes of the monty interpreter, 0.7 ms a line.

    `seconds` and `memory` (bytes) limit one call of `execute`, `print_characters` is where its
    printed text is cut, `variables_characters` and `state_bytes` limit what a namespace may grow
    to, `workers` is the number of processes at most. Raises RuntimeError without an interpreter.

    Errors in monty 1.4, unlike in Python: methods as values (`key=counts.get`), `next` of a
    generator expression (a list there), `callable`, `str.translate`, most of the library.
    """

    def __init__(
        self,
        *,
        seconds: float = 1.0,
        memory: int = 64 * 2**20,
        print_characters: int = 10_000,
        variables_characters: int = 100_000,
        state_bytes: int = 2**20,
        workers: int = 2,
    ) -> None:
        self.seconds = seconds
        self.memory = memory
        self.print_characters = print_characters
        self.variables_characters = variables_characters
        self.state_bytes = state_bytes
        self.workers = workers
        self._limits: ResourceLimits = {"max_feed_duration_secs": seconds, "max_memory": memory}
        # The interpreter keeps the time limit itself; the pool kills a worker that fails to.
        pool = Monty(min_processes=1, max_processes=workers, request_timeout=2 * seconds + 5)
        pool.__enter__()
        self._pool = pool
        # Runs at close, at garbage collection or at interpreter exit, whichever comes first.
        self._close = weakref.finalize(self, pool.__exit__, None, None, None)

    def __repr__(self) -> str:
        closed = "" if self._close.alive else ", closed"
        return (
            f"MontySandbox(seconds={self.seconds}, memory={self.memory}, "
            f"print_characters={self.print_characters}, workers={self.workers}{closed})"
        )

    def execute(
        self, state: bytes | None, code: str, inputs: Mapping[str, Any] | None = None
    ) -> Outcome:
        if not self._close.alive:
            raise RuntimeError("the sandbox is closed")
        printed = _Printed(self.print_characters)
        error = None
        with self._session(state) as session:
            try:
                try:
                    _feed(session, code, printed, inputs)
                except (MontyRuntimeError, MontySyntaxError) as failure:
                    error = _message(failure)
                    if error.startswith(("TimeoutError", "MemoryError")):
                        raise  # stopped in the middle of something: that heap is not to be kept
                after = session.dump()
                variables = _feed(session, _SHOW, _Printed(0)).output
                self._check_size(after, variables)
            except MontyConversionError as failure:
                raise TypeError(str(failure)) from None
            except (MontyError, _TooLargeError) as failure:
                return Outcome(state, printed.text, _message(failure), None)
        return Outcome(after, printed.text, error, variables)

    def close(self) -> None:
        self._close()

    @contextmanager
    def _session(self, state: bytes | None) -> Iterator[MontySession]:
        with ExitStack() as stack:
            for _ in range(self.workers + 1):
                session = self._pool.checkout(limits=self._limits, os_policy=_POLICY)
                try:
                    stack.enter_context(session)
                    if state is not None:
                        session.load_session(state)
                    break
                except MontyCrashedError:
                    continue  # this worker died while it was idle; nothing has run yet
                except MontyError as failure:
                    raise ValueError(f"not a state of a sandbox: {_message(failure)}") from None
            else:
                raise RuntimeError("the sandbox workers die as soon as they start")
            yield session

    def _check_size(self, state: bytes, variables: Mapping[str, str]) -> None:
        # Every line leaves a state that rewind may want, and texts that are parsed in our process.
        if sum(map(len, variables.values())) > self.variables_characters:
            raise _TooLargeError(
                f"the variables take more than {self.variables_characters:,} characters"
            )
        if len(state) > self.state_bytes:
            raise _TooLargeError(f"the namespace takes more than {self.state_bytes:,} bytes")


class _TooLargeError(Exception):
    pass


class _Printed:
    """Collects printed text up to a number of characters and counts what is beyond."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._kept: list[str] = []
        self._cut = 0

    def __call__(self, stream: str, text: str) -> None:
        kept = text[: self._room]
        self._room -= len(kept)
        self._cut += len(text) - len(kept)
        if kept and stream == "stdout":
            self._kept.append(kept)

    @property
    def text(self) -> str:
        note = f"... [{self._cut:,} more characters were printed and cut]" if self._cut else ""
        return "".join(self._kept) + note


def _feed(
    session: MontySession, code: str, printed: _Printed, inputs: Mapping[str, Any] | None = None
) -> MontyComplete:
    # Not `feed_run`: it turns the value of the last expression into an object of our process, and
    # hashing a nested tuple there can take hours. The value of a `MontyComplete` waits until asked.
    # No code at all would not bind the inputs either: "pass" does.
    step = session.feed_start(code or "pass", inputs=dict(inputs or {}), print_callback=printed)
    while not isinstance(step, MontyComplete):
        step = step.resume_auto()  # an undefined name or a system call: refused in the sandbox
    return step


def _message(failure: Exception) -> str:
    if isinstance(failure, _TooLargeError):
        return f"MemoryError: {failure}"
    if isinstance(failure, MontyCrashedError):
        if failure.timed_out:
            return "TimeoutError: the sandbox worker did not stop in time and was replaced"
        return "RuntimeError: the sandbox worker died and was replaced"
    if isinstance(failure, MontyRuntimeError | MontySyntaxError):
        text = failure.display("type-msg")
    else:
        text = f"RuntimeError: {failure}"
    return text if len(text) <= ERROR_CHARACTERS else text[:ERROR_CHARACTERS] + "..."
