"""Both sandboxes' protocols, fuzzed with coverage: bytes that reach new branches of the host's side
are kept and changed further.

    pip install atheris
    PYTHONPATH=tests python -m chaos.fuzz -max_total_time=3600 -rss_limit_mb=1024 FOLDER

FOLDER keeps what was found to reach something new. It ends with the bytes that raised, if any did.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["thread_kit"]):
    from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
    from thread_kit.sandbox.jail import wire
    from thread_kit.sandbox.monty import MontySandbox, _read_texts
    from thread_kit.sandbox.namespace import PythonNamespace
    from thread_kit.sandbox.sandbox import SandboxResult

from helpers.hostile import LIMITS, PNG, must_hold

JAIL = BubblewrapSandbox({"look_up": lambda *_: [1]}, seconds=1, calls=20, **LIMITS)
SOUND = {"printed": "", "cut": 0, "error": None, "pictures": []}
MONTY = MontySandbox(seconds=0.2, **LIMITS)


def pack(message: bytes, rest: bytes) -> bytes:
    return wire.HEAD.pack(len(message), len(rest)) + message + rest


def read_frame(frame: bytes) -> None:
    """A result of the jail's server, and a call of the code's."""
    must_hold(JAIL._read_result(b"before", frame, "/scratch"), b"before")
    assert json.loads(JAIL._answer(frame)[12:]).keys() <= {"value", "error"}


def receive(sent: bytes) -> None:
    """Bytes in the pipe that the host reads frames from, which then ends."""
    out, into = os.pipe()
    try:
        os.write(into, sent[:60_000])
        os.close(into)
        message, _ = wire.unpack(wire.receive(out, 2**16, time.monotonic() + 60))
        assert isinstance(message, dict)
    except (wire.FrameError, ValueError):
        pass  # what the sandbox answers with a new server
    finally:
        os.close(out)


def read_monty(shown: object) -> None:
    """What monty's worker says that there is after a line."""
    try:
        variables = _read_texts(shown)
    except TypeError:
        return  # the line is told
    must_hold(MONTY._check(b"before", SandboxResult(b"after", "", None, variables)), b"before")


def run_line(code: str) -> None:
    """A line of code in monty, between the namespaces of a parent and its child."""
    parent = PythonNamespace(MONTY, blocks=True)
    child = parent.child()
    child.run(code)
    parent.define(child.variables)
    str(parent.variables).encode()


def test_one_input(data: bytes) -> None:
    kind, rest = (data[0] % 8, data[1:]) if data else (0, b"")
    if kind == 0:
        read_frame(rest)
    elif kind == 1:
        receive(rest)
    elif kind == 2:
        read_frame(pack(rest, PNG))
    elif kind == 3:
        receive(pack(rest, b""))
    elif kind in (4, 5):
        try:
            shown = json.loads(rest)
        except (ValueError, RecursionError):
            return
        read_monty(shown)
        read_frame(pack(json.dumps({"variables": shown, **SOUND}).encode(), b""))
    else:
        run_line(rest.decode("utf-8", "replace"))


HONEST = [
    *(bytes([kind]) + json.dumps({"variables": {"x": "1"}, **SOUND}).encode() for kind in (2, 3)),
    b"\2" + json.dumps({"name": "look_up", "arguments": ["a"], "named": {"year": 1}}).encode(),
    b"\3" + json.dumps({"is": "over", "why": "done", "files": 0}).encode(),
    b"\4" + json.dumps({"x": "[1, 'a']", "y": "None"}).encode(),
    b"\6for x in [1, 2]:\n    print(f'{x}')",
    b"\6a, b = {'k': (1.5, True)}, lambda y: y\nprint(a['k'])  # done",
]
"""Where it begins."""

if __name__ == "__main__":
    for number, data in enumerate(HONEST):
        Path(sys.argv[-1], f"honest-{number}").write_bytes(data)
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
