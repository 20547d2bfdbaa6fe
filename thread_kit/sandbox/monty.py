"""Runs model-written Python outside our own process.

A sandbox is stateless: it maps *state bytes + code* to *new state bytes + printed text*. A waiting
thread is therefore a few kilobytes and no process, a child thread is a copied reference, and a
fork costs nothing. `MontySandbox` keeps a small pool of worker processes that run monty, a
Python interpreter without files, network or processes (package `pydantic-monty`).

Covered (one test a line in tests/sandbox/test_monty.py):
- endless loops, also in `__repr__`, and endless sums: stopped after `seconds`, the line is undone
- huge lists, strings, integers, padded formats: `memory`, the line is undone
- values that are small in memory and huge in print (`a = [a, a]`, repeated): the line is undone
- endless recursion, in the code and in the nesting of its source text
- floods of `print`: cut by the host after `print_characters`, with a note that says so
- namespaces and states that grow line by line: `variables_characters`, `state_bytes`
- files, directories, environment variables, processes, signals, sockets: refused
- `__import__`, builtins, other modules, walks over `__class__` and `__subclasses__`: do not exist
- values that are hostile to the host (a hash or a repr that takes hours): only text crosses over
- hostile `__repr__` and `__str__`, long error messages, null bytes, lone surrogates
- `locals`, `repr`, `str` and other builtins bound anew: the variables stay what they are
- names: counted with the texts, at most 100 characters each, and what Python calls a name
- a worker that dies: the line is undone, the next line gets a fresh worker
- Ctrl-C, Ctrl-Z, SIGTERM to the whole group: the workers go on; one that a signal ended all the
  same is a KeyboardInterrupt and never the error of a line
- `time.sleep`: returns at once; `random`: starts at a fixed seed, so that a replay is a replay

Not covered:
- defects of monty itself: its worker is an ordinary process of this user without an OS-level jail
- state bytes from strangers: monty trusts them, and they carry their own limits; load only what
  a sandbox of your own wrote
- the clock: `time` and `datetime` show the real time, in UTC
- many lines that each stay just below the limits: of what they print and bind in one episode, a
  session bounds the sum (`LINES_BYTES` in session/effects.py), and of their time its `seconds`
- a host that forks while the workers run
- a worker that somebody alone stops (SIGSTOP): its line is told that it took too long
When a worker dies of memory it says so in one line on the standard error of this process.
"""

from __future__ import annotations

import importlib.util
import re
import signal
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, final

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

from thread_kit.sandbox.jail.limits import shorten_error
from thread_kit.sandbox.sandbox import Sandbox, SandboxResult, check_plain

# The namespace as text. `!r` is syntax, so code that rebinds `repr` or `str` changes nothing here,
# and whatever the code made of its values, strings are all that comes back. `locals` is a function
# again once the name has been an exception's: whatever else the code bound to it is gone.
_SHOW = """
try:
    1 / 0
except ZeroDivisionError as locals:
    pass
{f'{name}': f'{value!r}' for name, value in locals().items()}
"""

_OF_TERMINALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGTSTP", "SIGTTIN", "SIGTTOU")
    if hasattr(signal, name)
]
_INTERRUPTED = re.compile(r"signal: \d+ \(SIG(?:INT|QUIT|TERM|HUP)\)")  # as monty writes it

# Monty looks for it twice a line, a tenth of the line's time; "there is none" is answered at once.
if importlib.util.find_spec("opentelemetry") is None:
    sys.modules.setdefault("opentelemetry", None)  # type: ignore[arg-type]

_POLICY: OSPolicy = {"sleep": "zero", "random_start": {"seed": 0}}


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
        with _block_signals():
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
    ) -> SandboxResult:
        if not self._close.alive:
            raise RuntimeError("the sandbox is closed")
        check_plain(inputs or {})
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
                variables = _read_texts(_feed(session, _SHOW, _Printed(0)).output)
            except Exception as failure:  # monty's own, and what no type of Python can hold
                after, error, variables = b"", _message(failure), None
        return self._check(
            state, SandboxResult(after, printed.text, error, variables), cut=printed.cut
        )

    def close(self) -> None:
        self._close()

    @contextmanager
    def _session(self, state: bytes | None) -> Iterator[MontySession]:
        with ExitStack() as stack:
            for _ in range(self.workers + 1):
                session = self._pool.checkout(limits=self._limits, os_policy=_POLICY)
                try:
                    with _block_signals():
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


class _Printed:
    """Collects printed text up to a number of characters and counts what is beyond."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._kept: list[str] = []
        self.cut = 0

    def __call__(self, stream: str, text: str) -> None:
        kept = text[: self._room]
        self._room -= len(kept)
        self.cut += len(text) - len(kept)
        if kept and stream == "stdout":
            self._kept.append(kept)

    @property
    def text(self) -> str:
        return "".join(self._kept)


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


def _read_texts(shown: Any) -> dict[str, str]:
    """What `_SHOW` gave; raises TypeError if that is no text by name."""
    if type(shown) is not dict or not all(
        type(part) is str for one in shown.items() for part in one
    ):
        raise TypeError("the variables are no texts")
    return shown


@contextmanager
def _block_signals() -> Iterator[None]:
    """A worker that starts meanwhile never gets what a terminal sends to all of its processes.

    Ctrl-C is for the person's program to answer, and would else be an error of the thread's code.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_TERMINALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _message(failure: Exception) -> str:
    """The error as the thread is told it; raises KeyboardInterrupt if a signal ended the worker."""
    if isinstance(failure, MontyCrashedError):
        if failure.timed_out:
            return "TimeoutError: the sandbox worker did not stop in time and was replaced"
        if _INTERRUPTED.search(str(failure)):
            raise KeyboardInterrupt(f"the sandbox worker was ended: {failure}") from None
        return "RuntimeError: the sandbox worker died and was replaced"
    if isinstance(failure, MontyRuntimeError | MontySyntaxError):
        return shorten_error(failure.display("type-msg"))
    kind = "TypeError" if isinstance(failure, MontyConversionError | TypeError) else "RuntimeError"
    return shorten_error(f"{kind}: {failure}")
