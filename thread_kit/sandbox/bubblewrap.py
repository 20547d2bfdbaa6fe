"""Runs model-written Python that needs numpy, pandas, scipy and matplotlib: the QA tasks.

A server process lives in a jail made by bubblewrap (Linux): it sees Python, its libraries, /usr and
two empty folders in memory, and nothing else; no network, no other processes, no /proc. For each
run it forks a process that loads the thread's variables, refuses itself most of the kernel
(`sandbox/jail/seccomp.py`), runs the code, and is killed. As with `MontySandbox` a state is bytes:
the variables, pickled and unpickled inside the jail only. A child thread and a fork cost nothing;
a line costs a fork and two passes over the variables (10 to 20 ms, and 10 ms a megabyte of tables).
The scratch folder is the episode's, as an environment is: a fork of the session repeats its lines
in a new one. Names come from the content (`save`), so nothing is overwritten. A jail serves any
number of sessions, in any Python threads.

Covered (tests/sandbox/test_bubblewrap.py, test_hostile.py: a test a line, and 50 attempts to get
out):
- endless loops, also inside numpy and in integer arithmetic: stopped after `seconds`, undone
- memory: `memory` bytes of address space a run; the line is undone
- floods of `print`: cut by the host after `print_characters`; the rest of standard output goes
  nowhere
- variables and states that grow: `variables_characters`, `state_bytes`; the line is undone. What
  the threads of an episode hold in sum is bounded by the session (`session/effects.py`)
- names: counted with the texts, at most 100 characters each, and what Python calls a name
- pictures: at most four of a megabyte and 50 million pixels a line, PNG, named by their content
- the scratch folder: `scratch_bytes`, 16 MB a file, 1,000 files; no folders, no links, no modes;
  names alone take the kernel's memory, so a run is stopped at some 20,000 files, also empty ones
- files of the host, its environment variables, home folder, devices: do not exist in the jail (of
  the folders that lead to Python and its libraries there is the name, and nothing else in them; of
  /usr, the system's programs and their data, there is all but what is set in /usr/local/etc)
- writing anywhere but into the scratch folder: read-only, but for a folder that is emptied after
  each line
- network, sockets to local services: refused by the kernel, twice
- new processes, threads, programs, shells, terminals: refused, or not there
- signals to the server (also by `fcntl`), its memory, its limits, its pipes: refused, or not there
- a server that is made to wait: nothing waits for the code longer than its time, in either
  direction; what the code asks the host's functions has at most 64 KB
- mounts, namespaces, ptrace, bpf, io_uring, kernel modules, keyrings: refused
- what code does to builtins, modules and its own process: gone with the process
- code that ends or crashes its process: the line is undone, the next one runs
- pickles made to be executed: they are executed in the jail
- forged answers: the host reads JSON of limited size and bytes that it never interprets, and takes
  nothing for granted: types, numbers, sizes, names
- a server that dies all the same: it is replaced, and a line says so if files are lost with it
- the end of the Python thread that used the jail first: the jail stays

Not covered:
- defects of the kernel, of bubblewrap, or of the CPU
- the time in which host functions work, and what they do with the arguments that code gives them
- what one run of at most `seconds` can do with the memory and the processor that it has
- what threads leave for each other in the scratch folder, such as a `matplotlibrc`
- a host that forks and uses the jail on both sides
- `weaker=True`: without bubblewrap there is a process with limits and, on Linux, the same refused
  system calls (no network, no programs). It can read and write whatever files this user may. Its
  folder goes with it, unless both it and the host are killed at once
"""

from __future__ import annotations

import math
import platform
import signal
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from thread_kit.sandbox.jail import seccomp, wire
from thread_kit.sandbox.jail.limits import shorten_error
from thread_kit.sandbox.jail_server import PATIENCE, JailServer, check_installed, must_make_a_jail
from thread_kit.sandbox.sandbox import Sandbox, SandboxResult, check_plain

_MARK = b"thread-kit jail 1\n"
_PNG = b"\x89PNG\r\n\x1a\n"
_PIXELS = 50_000_000
_LOST = "the files in the scratch folder are lost"


@final
class BubblewrapSandbox(Sandbox):
    """Runs code in a jail with numpy (np), pandas (pd), scipy (stats) and matplotlib (plt).

    functions: by name, what the code may call in our process, such as a look-up of data. They get
        and return JSON values; what they raise is a LookupError to the code.
    seconds (of the processor, rounded up; four times that on the clock), memory (bytes of address
        space): limits of one run. print_characters: where printed
        text is cut. variables_characters, state_bytes: what a namespace may grow to.
    scratch_bytes: size of the scratch folder. calls: of the functions, a run.
    weaker: run without bubblewrap; the module says what is then not covered.

    Every namespace has `save(table_or_figure)`, which gives the path in the scratch folder. The
    process starts with the first code: an episode that runs none costs none.
    Raises RuntimeError where bubblewrap is missing or cannot make a jail.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        *,
        seconds: float = 10.0,
        memory: int = 2 * 2**30,
        print_characters: int = 10_000,
        variables_characters: int = 200_000,
        state_bytes: int = 32 * 2**20,
        scratch_bytes: int = 64 * 2**20,
        calls: int = 1_000,
        weaker: bool = False,
    ) -> None:
        self.functions = dict(functions or {})
        self.seconds = seconds
        self.print_characters = print_characters
        self.variables_characters = variables_characters
        self.state_bytes = state_bytes
        self.weaker = weaker
        self._settings: dict[str, Any] = {
            "functions": sorted(self.functions),
            "memory": memory,
            "print_characters": print_characters,
            "variables_characters": variables_characters,
            "state_bytes": state_bytes,
            "file_bytes": 16 * 2**20,
            "pictures": 4,
            "picture_bytes": 2**20,
            "files": 1_000,
            "calls": calls,
            "call_bytes": 2**16,
            "filter": seccomp.is_known() or not weaker,
        }
        # Bytes of JSON: a character takes twelve at most.
        self._message_bytes = 12 * (print_characters + variables_characters) + 2**16
        self._settings["frame_bytes"] = state_bytes + self._message_bytes + 4 * 2**20 + 2**16
        self._scratch_bytes = scratch_bytes
        self._files = 0  # in the scratch folder, as far as is known
        self._lock = threading.Lock()
        self._server: JailServer | None = None
        self._is_closed = False
        if not weaker:
            bwrap = check_installed()
            if not seccomp.is_known():
                raise RuntimeError(
                    f"there are no seccomp rules for {platform.machine()}; accept the weaker "
                    "protection of a plain process: BubblewrapSandbox(weaker=True)"
                )
            must_make_a_jail(bwrap)

    def __repr__(self) -> str:
        kind = "weaker" if self.weaker else "jail"
        closed = ", closed" if self._is_closed else ""
        return f"BubblewrapSandbox({kind}, seconds={self.seconds}{closed})"

    @property
    def scratch(self) -> str:
        """The path of the scratch folder, as the code sees it; raises what `execute` raises."""
        with self._lock:
            self._must_be_open()
            return self._start().scratch

    def execute(
        self, state: bytes | None, code: str, inputs: Mapping[str, Any] | None = None
    ) -> SandboxResult:
        if state is not None and not state.startswith(_MARK):
            raise ValueError("not a state of a BubblewrapSandbox")
        check_plain(inputs or {})
        request = {"code": code, "inputs": repr(dict(inputs or {})), "seconds": self.seconds}
        frame = wire.pack(request, (state or b"").removeprefix(_MARK))
        with self._lock:
            self._must_be_open()
            if self._server is not None and self._server.process.poll() is not None:
                self._stop()
            if self._server is None and self._files:
                self._files = 0
                error = f"RuntimeError: the code's process had to be replaced; {_LOST}"
                return SandboxResult(state, "", error, None)
            server = self._start()
            try:
                sent, why = self._converse(server, frame)
            except Exception as error:
                self._stop()
                sent, why = None, f"server {error}" + (f"; {_LOST}" if self._files else "")
                self._files = 0
            except BaseException:  # what it would still send is not the answer to the next line
                self._stop()
                raise
        if sent is None or why != "done":
            return SandboxResult(state, "", self._reason(why), None)
        return self._read_result(state, sent, server.scratch)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._stop()

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the sandbox is closed")

    def _start(self) -> JailServer:
        if self._server is None:
            self._server = JailServer(self._settings, self._scratch_bytes, weaker=self.weaker)
        return self._server

    def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _converse(self, server: JailServer, frame: bytes) -> tuple[bytes | None, str]:
        """One run: answer its calls; what it sent at the end, and how it ended."""
        server.send(frame)
        sent = None
        while True:
            message, rest = wire.unpack(server.receive(4 * self.seconds + PATIENCE))
            if message["is"] == "over":
                self._files = message["files"]
                return sent, message["why"]
            if message["kind"] == "call":
                server.send(self._answer(rest))
            else:
                sent = rest

    def _answer(self, frame: bytes) -> bytes:
        try:
            call, _ = wire.unpack(frame, self._settings["call_bytes"])
            function = self.functions[call["name"]]
            return wire.pack({"value": function(*call["arguments"], **call["named"])})
        except Exception as error:  # what a thread asks for wrongly, it is told
            return wire.pack({"error": shorten_error(str(error)) or type(error).__name__})

    def _read_result(self, before: bytes | None, frame: bytes, scratch: str) -> SandboxResult:
        """What came of a run, whoever wrote the frame. scratch: the folder, as the code sees it."""
        try:
            reply, rest = wire.unpack(frame, self._message_bytes)
            printed, cut, error = reply["printed"], reply["cut"], reply["error"]
            variables = reply["variables"]
            if not isinstance(printed, str) or not isinstance(error, str | None):
                raise TypeError("its texts are none")
            if type(cut) is not int or not 0 <= cut < 2**63:
                raise TypeError("its count is none")
            if variables is None and error is None:
                raise TypeError("it says neither what there is nor what went wrong")
            if not isinstance(variables, dict | None):
                raise TypeError("its variables are none")
            if not all(isinstance(text, str) for text in (variables or {}).values()):
                raise TypeError("its variables are no texts")
            pictures, state = self._read_pictures(reply["pictures"], rest, scratch)
        except Exception as failure:  # no frame can be so odd that it ends more than its line
            message = shorten_error(f"RuntimeError: the code sent no result ({failure})")
            return SandboxResult(before, "", message, None)
        result = SandboxResult(_MARK + state, printed, error, variables, pictures)
        return self._check(before, result, cut=cut)

    def _read_pictures(
        self, listed: list[Any], rest: bytes, scratch: str
    ) -> tuple[dict[str, bytes], bytes]:
        """The pictures at the end of what came, by their paths, and what stands before them."""
        end = len(rest)
        pictures: dict[str, bytes] = {}
        if len(listed) > self._settings["pictures"]:
            raise ValueError("too many pictures")
        for path, size in reversed(listed):
            if type(size) is not int or not 0 < size <= min(end, self._settings["picture_bytes"]):
                raise ValueError("a picture that is none")
            png = rest[end - size : end]
            if not png.startswith(_PNG) or math.prod(struct.unpack_from(">II", png, 16)) > _PIXELS:
                raise ValueError("a picture that is no PNG, or too large a one")
            if path != str(Path(scratch, wire.name_file(png, "png"))):
                raise ValueError("a picture of another name")
            pictures[path] = png
            end -= size
        return dict(reversed(pictures.items())), rest[:end]

    def _reason(self, why: str) -> str:
        late = f"TimeoutError: the code ran for more than {self.seconds:g} seconds"
        reasons = {
            "late": late,
            f"signal {signal.SIGXCPU.value}": late,
            "large": f"MemoryError: the namespace takes more than {self.state_bytes:,} bytes",
            "files": "OSError: too many files in the scratch folder; what this line wrote is gone",
            "calls": f"RuntimeError: more than {self._settings['calls']:,} look-ups in one line",
            "exit": "RuntimeError: the code ended its own process",
        }
        return reasons.get(why, f"RuntimeError: the code's process died ({why})")
