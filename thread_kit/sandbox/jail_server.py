"""The server of `sandbox/bubblewrap.py` as the host sees it: the jail's command, process, pipes."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from thread_kit.sandbox.jail import wire

JAIL = Path(__file__).parent / "jail"
SCRATCH = "/scratch"
TEMPORARY = "/temporary"
_START = 120.0  # seconds for the libraries, on a machine that is busy
PATIENCE = 20.0  # seconds beyond a run's own; a server that needs longer is replaced

MISSING = (
    "bubblewrap is not installed, and model-written Python is not run without it. Install it "
    "(`apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`), or accept the "
    "weaker protection of a plain process: BubblewrapSandbox(weaker=True)"
)


# The kernel ends a jail with the Python *thread* that started it (`--die-with-parent`), so that is
# one which stays as long as this process.
_starter = ThreadPoolExecutor(1, "thread-kit-jails")


def _renew_starter() -> None:
    global _starter
    _starter = ThreadPoolExecutor(1, "thread-kit-jails")


os.register_at_fork(after_in_child=_renew_starter)  # a forked process has none of the threads


class JailServer:
    """The process in the jail, and the pipes to it."""

    def __init__(self, settings: dict[str, Any], scratch_bytes: int, *, weaker: bool) -> None:
        folder: tempfile.TemporaryDirectory[str] | None = None
        self.scratch, temporary = SCRATCH, TEMPORARY
        if weaker:
            folder = tempfile.TemporaryDirectory(prefix="thread-kit-scratch-")
            self.scratch, temporary = f"{folder.name}/scratch", f"{folder.name}/temporary"
            os.mkdir(self.scratch)
            os.mkdir(temporary)
        folders = {"scratch": self.scratch, "temporary": temporary}
        # Where the parent folder of the kit is in the jail there is only its folder `jail`.
        kit = str(JAIL.parents[2]) if weaker else "/kit"
        worker = [
            # Not -I: it ignores the environment, which is all ours, and with it PYTHONHASHSEED.
            *(os.path.realpath(sys.executable), "-P", "-s", "-S"),
            *(f"{kit}/thread_kit/sandbox/jail/worker.py", kit),
            json.dumps({**settings, **folders, "remove": folder.name if folder else None}),
            *_libraries(),
        ]
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (`close` closes it)
        environment = {
            "PATH": "/usr/bin:/bin",
            **dict.fromkeys(("HOME", "MPLCONFIGDIR", "TMPDIR"), temporary),
            "MPLBACKEND": "agg",
            "PYTHONHASHSEED": "0",
            "LANG": "C.UTF-8",
            **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"),
        }
        command = worker if weaker else [*_jail(scratch_bytes), *worker]
        self.process = launch(command, environment, self._errors)
        self.close = weakref.finalize(self, _end, self.process, self._errors, folder)
        try:
            wire.unpack(self.receive(_START))
        except wire.FrameError as error:
            self._errors.seek(0)
            said = self._errors.read(2_000).decode(errors="replace").strip() or str(error)
            self.close()
            raise (_no_weaker_start(said) if weaker else _no_start(said)) from None

    def send(self, frame: bytes) -> None:
        assert self.process.stdin is not None
        wire.send(self.process.stdin.fileno(), frame, time.monotonic() + PATIENCE)

    def receive(self, seconds: float) -> bytes:
        """The next frame; raises FrameError "gone" or "late".

        Counted in turns of a second, so that it is nobody's fault where this process was stopped
        meanwhile (Ctrl-Z, a laptop that sleeps): the answer is there when it goes on.
        """
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        if not any(poll.poll(1_000) for _ in range(math.ceil(seconds))):
            raise wire.FrameError("late")
        return wire.receive(pipe, None, time.monotonic() + PATIENCE)


def launch(
    command: list[str], environment: Mapping[str, str], errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a program that ends with this process, and with none of its threads before."""
    return _starter.submit(_launch, command, dict(environment), errors).result()


def _launch(
    command: list[str], environment: dict[str, str], errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        env=environment,
    )


def _end(
    process: subprocess.Popen[bytes],
    errors: IO[bytes],
    folder: tempfile.TemporaryDirectory[str] | None,
) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()
    for pipe in (process.stdin, process.stdout, errors):
        if pipe:
            pipe.close()
    if folder:
        folder.cleanup()


def check_installed() -> str:
    """The path of bubblewrap; raises RuntimeError, with the remedy, where there is none."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise RuntimeError(MISSING)
    return bwrap


@functools.cache
def must_make_a_jail(bwrap: str) -> None:
    """Raise RuntimeError if this bubblewrap cannot; a jail that ends at once shows it early."""
    idle = [*_jail(2**20), os.path.realpath(sys.executable), "-I", "-S", "-c", ""]
    done = subprocess.run(idle, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise _no_start(done.stderr[:2_000].decode(errors="replace").strip())


def _no_start(said: str) -> RuntimeError:
    if "Traceback" in said:  # the jail is there, and Python in it lacks something
        return _no_weaker_start(said)
    return RuntimeError(
        f"the jail does not start: {said}\nbubblewrap needs user namespaces, which some "
        "containers forbid. Allow them, or accept the weaker protection of a plain "
        "process: BubblewrapSandbox(weaker=True)"
    )


def _no_weaker_start(said: str) -> RuntimeError:
    return RuntimeError(
        f"the process for model-written Python does not start: {said}\nIt is {sys.executable} with "
        "the packages of this installation; mend what it says, or install them anew"
    )


def _libraries() -> list[str]:
    """The folders of installed packages."""
    return [path for path in sys.path if path.endswith("-packages") and Path(path).is_dir()]


def _jail(scratch_bytes: int) -> Iterator[str]:
    """The command that makes the jail, up to the program that it runs."""
    yield from (
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--uid",
        "65534",
        "--gid",
        "65534",
    )
    yield from ("--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr")
    for name in ("/bin", "/lib", "/lib64"):  # links into /usr on all but the oldest systems
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from ("--ro-bind", name, name)
    yield from ("--tmpfs", "/tmp")  # first: a virtual environment may be there
    yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
    for folder in ("/usr/local/etc", "/usr/etc"):  # where a host may have its settings
        if os.path.isdir(folder) and os.path.realpath(folder) == folder:
            yield from ("--tmpfs", folder, "--remount-ro", folder)
    for folder in (os.path.realpath(sys.base_prefix), *_libraries()):
        if Path(folder).is_relative_to(SCRATCH) or Path(folder).is_relative_to(TEMPORARY):
            raise RuntimeError(
                f"{folder} lies where the jail has a folder of its own; install Python and this "
                f"kit elsewhere than below {SCRATCH} and {TEMPORARY}"
            )
        if not Path(folder).is_relative_to("/usr"):
            yield from ("--ro-bind", folder, folder)
    yield from ("--ro-bind", str(JAIL), "/kit/thread_kit/sandbox/jail")
    for device in ("full", "null", "random", "urandom", "zero"):
        yield from ("--dev-bind", f"/dev/{device}", f"/dev/{device}")
    yield from ("--size", str(scratch_bytes), "--tmpfs", SCRATCH)
    yield from ("--size", str(2**22), "--tmpfs", TEMPORARY)
    yield from ("--remount-ro", "/tmp", "--remount-ro", "/", "--chdir", "/")
