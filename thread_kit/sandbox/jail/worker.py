"""The jail's server: it imports the libraries once and forks a process for every run of code.

The server itself never runs what a model wrote. The forked process loads the thread's variables,
gives up what it may give up (`sandbox/jail/seccomp.py`, limits), runs the code, sends what came of
it, and is killed. So nothing that the code does to its process, to pandas or to builtins reaches
the next run, and a run that does not stop costs its own process and not the start of the server.

    python -P -s -S worker.py FOLDER-OF-THE-KIT SETTINGS SITE-PACKAGES ...

SETTINGS is a JSON object (`sandbox/jail_server.py` writes it); its `scratch` is the folder that all
runs of an episode share, `temporary` one that is empty at the start of each, and `remove` what is
deleted when the host is gone.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import math
import os
import platform
import re
import shutil
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [sys.argv[1]]
    sys.path += sys.argv[3:]

import cloudpickle

from thread_kit.sandbox.jail import seccomp
from thread_kit.sandbox.jail.run import run_and_exit
from thread_kit.sandbox.jail.wire import FrameError, pack, receive, send, unpack

INODES = 20_000
"""Files that a run may make before it is stopped in the middle; how many may be left is another
number (`files`)."""
WALL = 4  # a run may take so many times its seconds on the clock
PRELOADED = ("numpy", "pandas")
LOADED_WHEN_USED = {
    "scipy.stats": re.compile(r"stats|scipy|corr|interpolate|win_type"),  # some by way of pandas
    "matplotlib.pyplot": re.compile(r"plt|plot|hist|matplotlib"),
}
"""Libraries by what code that needs them says: each takes as long to import as those of
`PRELOADED`, and the more memory the server has, the longer takes every fork."""
_DUMPABLE = 4


def serve(requests: int, replies: int, settings: dict[str, Any]) -> None:
    """Answer requests until the host closes the pipe."""
    scratch, temporary = Path(settings["scratch"]), Path(settings["temporary"])
    while True:
        try:
            frame = receive(requests)
        except FrameError:
            return
        request, _ = unpack(frame)
        _import_what_is_used(request["code"])
        before = _list_files(scratch)
        # 1. A process for this run alone, with a pipe to it and one from it.
        ours, theirs = os.pipe()
        answers_in, answers_out = os.pipe()
        child = os.fork()
        if child == 0:
            for end in (ours, answers_out, requests, replies):
                os.close(end)
            run_and_exit(frame, theirs, answers_in, scratch, settings)
        os.close(theirs)
        os.close(answers_in)
        # 2. What it asks and sends goes to the host; then it is killed, whatever it does.
        seconds = request["seconds"]
        watch = InodeWatch(child, () if settings["remove"] else (scratch, temporary))
        try:
            why = _relay(WALL * seconds, ours, answers_out, requests, replies, settings)
        finally:
            os.close(ours)
            os.close(answers_out)
            watch.stop()
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
        if why == "gone":
            why = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "exit"
            if os.WIFSIGNALED(status) and usage.ru_utime + usage.ru_stime >= math.ceil(seconds):
                why = "late"
        # 3. What it left in the folders.
        _remove(temporary, _list_files(temporary))
        now = _list_files(scratch)
        if watch.is_too_late or len(now) > settings["files"]:
            _remove(scratch, now - before)
            why, now = "files", before
        send(replies, pack({"is": "over", "why": why, "files": len(now)}))


class InodeWatch:
    """Kills a run once it has made too many files: their names take memory that counts nowhere.

    folders: file systems of the jail's own; none of a host, where others make files as well.
    """

    def __init__(self, child: int, folders: tuple[Path, ...]) -> None:
        self.is_too_late = False
        self._child, self._folders = child, folders
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._before = self._count()
        if folders:
            self._thread.start()

    def stop(self) -> None:
        """To be called while the run is still there to be killed."""
        self._over.set()
        if self._folders:
            self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            if self._count() - self._before > INODES:
                self.is_too_late = True
                os.kill(self._child, signal.SIGKILL)
                return

    def _count(self) -> int:
        systems = map(os.statvfs, self._folders)
        return sum(system.f_files - system.f_ffree for system in systems)


def _relay(
    seconds: float, child: int, to_child: int, host: int, to_host: int, settings: dict[str, Any]
) -> str:
    """Pass on what the child asks the host for and what it sends at the end; how it ended.

    The child's frames are not looked into: `kind` is the only byte that tells them apart. Nothing
    waits for the child longer than `seconds`, neither to read nor to be read.
    """
    for _ in range(settings["calls"] + 1):
        begun = time.monotonic()
        try:
            kind = receive(child, 1, begun + seconds)[-1:]
            limit = settings["call_bytes" if kind == b"c" else "frame_bytes"]
            frame = receive(child, limit, begun + seconds)
        except FrameError as error:
            return str(error)
        seconds -= time.monotonic() - begun
        send(to_host, pack({"is": "sent", "kind": "call" if kind == b"c" else "done"}, frame))
        if kind != b"c":
            return "done"
        answer = receive(host)  # the host's time is not the thread's
        begun = time.monotonic()
        try:
            send(to_child, answer, begun + seconds)
        except FrameError as error:
            return str(error)
        except OSError:
            return "gone"
        seconds -= time.monotonic() - begun
    return "calls"


def _list_files(folder: Path) -> set[str]:
    """The names in a folder, whatever a run did to it."""
    try:
        os.chmod(folder, 0o700)  # where no filter refuses this to the code
        return set(os.listdir(folder))
    except OSError:
        return set()


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        try:
            os.unlink(folder / name)
        except OSError:  # a folder, where no filter refuses those
            shutil.rmtree(folder / name, ignore_errors=True)


def _import_what_is_used(code: str) -> None:
    """Import it once for all runs, before any code of a model can touch it."""
    for name, uses in LOADED_WHEN_USED.items():
        if name not in sys.modules and uses.search(code):
            try:
                importlib.import_module(name)
            except Exception:  # the code that needs it is told
                continue
            gc.freeze()


def main() -> None:
    """Take the pipes, import the libraries, say so, and serve."""
    settings = json.loads(sys.argv[2])
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    if settings["filter"]:
        seccomp.program(platform.machine())  # made once, and not by each run
        # Otherwise a run could write into the server's memory, where there is a /proc.
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the host that decides when to stop
    os.chdir("/")  # what is imported here reads no file that a run has written
    warnings.simplefilter("ignore")
    loaded = {}
    for name in PRELOADED:
        try:
            loaded[name] = importlib.import_module(name)
        except ImportError:
            continue
    if "numpy" in loaded:
        loaded["numpy"].set_printoptions(legacy="1.25")  # 0.5, not np.float64(0.5)
        loaded["numpy"].random.seed(0)
    if "pandas" in loaded:
        loaded["pandas"].set_option("display.width", 120, "display.max_columns", 12)
        # What pandas imports and keeps at its first table would be gone with each run.
        table = loaded["pandas"].DataFrame({"number": [1.0, 2.0], "text": ["a", "b"]})
        repr(cloudpickle.loads(cloudpickle.dumps(table)).dropna())
    gc.freeze()
    try:
        send(replies, pack({"is": "ready", "libraries": sorted(loaded)}))
        serve(requests, replies, settings)
    finally:
        if settings["remove"]:
            shutil.rmtree(settings["remove"], ignore_errors=True)


if __name__ == "__main__":
    main()
