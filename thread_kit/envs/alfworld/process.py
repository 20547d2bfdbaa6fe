"""ALFWorld's engine in a process of its own: one game a process, ended when nobody needs it.

The process and the protocol are in `envs/alfworld/worker.py`. Covered: a process that dies or does
not answer (it is ended, the error says what it last wrote), an interrupt in a notebook (it does not
reach the engine), a host that ends or is killed (the process sees that and ends), an engine that
nobody holds any more. Not covered: Windows, where a pipe cannot be handed over by its number.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any

from thread_kit.paths import cache_folder

NEEDED = ("alfworld", "fast_downward", "textworld")
MISSING = (
    "ALFWorld's engine is not installed; it is compiled in a minute or two: "
    'pip install -c constraints.txt ".[alfworld]"'
)


class GameError(RuntimeError):
    """The engine could not do what it was asked, or its process is gone."""


def check_installed() -> None:
    """Raises ImportError with the remedy if the engine's packages are missing."""
    if not all(importlib.util.find_spec(name) for name in NEEDED):
        raise ImportError(MISSING)


class GameProcess:
    """The engine, 1 s to start and 2 s to load a game on one core.

    seconds: after so long without an answer the process is ended.
    """

    def __init__(self, seconds: float = 120.0) -> None:
        check_installed()
        self.seconds = seconds
        self._pipe, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (as long-lived as the process)
        self._lock = threading.Lock()
        paths = os.pathsep.join(filter(None, sys.path))
        # The package makes this folder when it is imported; it is not to make one in the home.
        data = os.environ.get("ALFWORLD_DATA", str(cache_folder() / "alfworld"))
        self._process = subprocess.Popen(
            # -P: the working directory is no place to import from.
            [sys.executable, "-P", "-m", "thread_kit.envs.alfworld.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": paths, "ALFWORLD_DATA": data},
            stdin=subprocess.DEVNULL,
            stdout=self._log,  # the planner writes what it does
            stderr=self._log,
            start_new_session=True,
        )
        theirs.close()
        # Runs at close, at garbage collection or at interpreter exit, whichever comes first.
        self._close = weakref.finalize(self, _end_process, self._process, self._pipe, self._log)

    @property
    def is_open(self) -> bool:
        return self._close.alive

    def ask(self, **request: Any) -> dict[str, Any]:
        """The reply to a request of the protocol.

        Raises GameError if the engine refuses, dies or is closed; TimeoutError if it is silent
        for too long.
        """
        with self._lock:
            if not self.is_open:
                raise GameError("the engine is closed; start the game anew (reset)")
            try:
                self._pipe.send_bytes(json.dumps(request).encode())
                if not self._pipe.poll(self.seconds):
                    self.close()
                    raise TimeoutError(
                        f"ALFWorld's engine did not answer within {self.seconds:g} seconds and "
                        "was ended; is the machine overloaded? A larger `seconds` waits longer"
                    )
                reply = json.loads(self._pipe.recv_bytes())
            except (EOFError, ConnectionError):
                code = self._process.wait()
                last = _read_last_lines(self._log)
                self.close()
                raise GameError(
                    f"the process of ALFWorld's engine died (exit code {code}); it said last: "
                    f"{last or 'nothing'}"
                ) from None
            except BaseException:  # what it would still send is not the answer to the next request
                self.close()
                raise
        if "error" in reply:
            raise GameError(f"ALFWorld's engine refuses: {reply['error']}")
        return reply

    def close(self) -> None:
        """End the process; closing twice is fine."""
        self._close()

    def __enter__(self) -> GameProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _read_last_lines(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - 1000))
    return " / ".join(log.read().decode("utf-8", "replace").split("\n")[-4:]).strip(" /")


def _end_process(process: subprocess.Popen[bytes], pipe: Connection, log: IO[bytes]) -> None:
    pipe.close()
    process.kill()  # it holds nothing that would have to be saved
    process.wait()
    log.close()
