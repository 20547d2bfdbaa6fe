"""The first process of a container: executes commands one by one; needs the standard library alone.

Started by `envs/intercode_bash/container.py` in bubblewrap, as process 1 of its own process space:
nothing in there can end, stop or trace it. A line of JSON is a command, a line is the reply.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from typing import Any

LOOK = 0.01  # seconds between two looks at what runs
GRACE = 1.0  # seconds
NICE = 10
"""What runs gives way to this process: a fork bomb on a busy machine had 12,000 processes before it
was looked at, and stopped."""
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
SECCOMP = {"x86_64": 317, "aarch64": 277}
LIBC = ctypes.CDLL(None, use_errno=True)


def list_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def count_memory(processes: list[int], socket: int, stream: int) -> int:
    """Bytes that processes hold in memory, and that their sockets may: `count_sockets`."""
    pages = 0
    for process in processes:
        with (
            contextlib.suppress(OSError, ValueError, IndexError),
            open(f"/proc/{process}/statm") as f,
        ):
            pages += int(f.read().split()[1])
    return pages * resource.getpagesize() + count_sockets(socket, stream)


def count_sockets(socket: int, stream: int) -> int:
    """Bytes that can be under way in sockets, which belong to no process.

    socket, stream: what one can hold, and what the end of a TCP connection can.
    """
    total, sizes = 0, {"sockets:": socket, "TCP:": stream, "TCP6:": stream}
    for name in ("sockstat", "sockstat6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/net/{name}") as f:  # without IPv6
            for kind, _, number, *_ in map(str.split, f):
                total += sizes.get(kind, 0) * int(number)
    return total


def count_files() -> int:
    """Files of the root, empty ones, too."""
    root = os.statvfs("/")
    return root.f_files - root.f_ffree


def end_all() -> None:
    """End every process but this one, and wait until none is left."""
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not list_processes():
            return
        time.sleep(0.001)


def execute(request: dict[str, Any]) -> dict[str, Any]:
    """Run `argv`; its output, exit status, and what stopped it ("time", "output", ...; "")."""
    # 1. What holds for the command alone, from its first instruction on.
    code = base64.b64decode(request["filter"])
    buffer = ctypes.create_string_buffer(code, len(code))
    rules = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))

    def limit() -> None:
        os.nice(NICE)
        for name in ("AS", "FSIZE"):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (request[name],) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if LIBC.syscall(SECCOMP[os.uname().machine], 1, 0, rules):
            raise OSError(ctypes.get_errno(), "the seccomp filter was refused")

    # 2. It starts.
    try:
        process = subprocess.Popen(
            request["argv"],
            cwd=request["cwd"],
            env=request["env"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=limit,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return {
            "output": base64.b64encode(f"exec failed: {error}".encode()).decode(),
            "status": 126,
        }
    # 3. Its output is read until it is over, or passes one of the limits.
    assert process.stdout is not None
    output, stopped, deadline = b"", "", time.monotonic() + request["seconds"]
    files = max(request["files"], count_files())
    left = GRACE  # for what the shell has left running to print something
    while not stopped:
        over = process.poll() is not None
        if select.select([process.stdout], [], [], LOOK)[0]:
            part = os.read(process.stdout.fileno(), 2**16)
            output += part
            if not part and over:
                break
            if not part:  # it has closed its output, and still runs
                time.sleep(LOOK)
        elif over:
            left -= LOOK
            if left <= 0:
                break
        processes = list_processes()
        if time.monotonic() > deadline:
            stopped = "time"
        elif len(output) > request["output"]:
            stopped = "output"
        elif len(processes) > request["processes"]:
            stopped = "processes"
        elif count_memory(processes, request["socket"], request["stream"]) > request["memory"]:
            stopped = "memory"
        elif count_files() > files:
            stopped = "files"
    # 4. What it has left running ends.
    status = process.poll()
    end_all()
    process.stdout.close()
    output = output[: request["output"]]
    return {
        "output": base64.b64encode(output).decode(),
        "status": 137 if status is None else status,
        "stopped": stopped,
    }


def main() -> None:
    """Serve commands until the host is gone."""
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 never gets from within
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(execute(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
