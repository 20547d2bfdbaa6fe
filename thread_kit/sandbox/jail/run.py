"""The process of one run of code: what it gives up, runs, keeps and sends.

The server (`worker.py`) forks it and kills it; see there.
"""

from __future__ import annotations

import ast
import builtins
import io
import math
import os
import random
import re
import resource
import signal
import sys
import types
from pathlib import Path
from typing import Any

import cloudpickle

from thread_kit.sandbox.jail import seccomp
from thread_kit.sandbox.jail.limits import describe_excess, shorten_error
from thread_kit.sandbox.jail.wire import name_file, pack, receive, send, unpack

NAMES = {"np": "numpy", "pd": "pandas", "stats": "scipy.stats", "plt": "matplotlib.pyplot"}
GIVEN = "thread_kit_jail"  # the module in which the functions live that every namespace has
TEXT_CHARACTERS = 1_000  # of a value that is no plain data, such as a table
_PLAIN = (int, bool, float, list, tuple, dict, set)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")


def run_and_exit(
    frame: bytes, out: int, answers: int, scratch: Path, settings: dict[str, Any]
) -> None:
    """Run the code and send what came of it; never returns."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for end in (0, 1, 2):
            os.dup2(null, end)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.chdir(scratch)
        request, rest = unpack(frame)
        _limit(request["seconds"], settings)
        if settings["filter"]:
            seccomp.install()
        run = _Run(out, answers, scratch, settings)
        reply, state = run(request["code"], request["inputs"], rest)
        send(out, _kind(b"d") + pack(reply, state))
    except MemoryError:
        _last_words(out, "MemoryError: the code needs more memory than it may have")
    except BaseException as error:
        _last_words(out, _message(error))
    finally:
        os._exit(0)


def _kind(letter: bytes) -> bytes:
    """A frame of one byte: what the next frame is."""
    return b"\0\0\0\0" + (1).to_bytes(8, "little") + letter


def _last_words(out: int, error: str) -> None:
    reply = {"printed": "", "cut": 0, "error": error, "variables": None, "pictures": []}
    send(out, _kind(b"d") + pack(reply))


def _limit(seconds: float, settings: dict[str, Any]) -> None:
    limits = {
        resource.RLIMIT_AS: settings["memory"],
        resource.RLIMIT_FSIZE: settings["file_bytes"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))
    # Of the processor's time, so that a line is not stopped because the machine is busy.
    whole = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is an OSError


class _Run:
    """One run of code, in its own process."""

    def __init__(self, out: int, answers: int, scratch: Path, settings: dict[str, Any]) -> None:
        self.out, self.answers = out, answers
        self.scratch, self.settings = scratch, settings
        self.printed = _Printed(settings["print_characters"])
        self.pictures: dict[str, bytes] = {}
        self.given = self._given()

    def __call__(self, code: str, inputs: str, state: bytes) -> tuple[dict[str, Any], bytes]:
        namespace: dict[str, Any] = cloudpickle.loads(state) if state else {}
        # What a thread has bound is its own, whatever stood under that name before.
        namespace = self.given | namespace | {"__name__": "__main__", "__builtins__": builtins}
        plain = {"inf": float("inf"), "nan": float("nan"), "__builtins__": {"set": set}}
        namespace |= eval(inputs, plain)
        random.seed(0)  # Python seeds it anew in a forked process; numpy's stays as the server's
        sys.stdout, sys.stderr = self.printed, io.StringIO()
        error = None
        try:
            exec(compile(ast.parse(code), "<thread>", "exec"), namespace)
        except BaseException as failure:
            if isinstance(failure, MemoryError):
                raise
            error = _message(failure)
        texts, state, lost = self._keep(namespace)
        limits = {name: self.settings[name] for name in ("variables_characters", "state_bytes")}
        reply: dict[str, Any] = {
            "printed": self.printed.text,
            "cut": self.printed.cut,
            "error": error or lost,
            "variables": texts,
            "pictures": [[path, len(png)] for path, png in self.pictures.items()],
        }
        if excess := describe_excess(texts, state, **limits):
            return reply | {"error": excess, "variables": None, "pictures": []}, b""
        return reply, state + b"".join(self.pictures.values())

    # What every namespace has

    def _given(self) -> dict[str, Any]:
        """The functions `save` and those of the host, and the usual names of the libraries."""
        module = types.ModuleType(GIVEN)
        sys.modules[GIVEN] = module
        functions = [_named("save", self._save)]
        functions += [_named(name, self._remote(name)) for name in self.settings["functions"]]
        for function in functions:
            setattr(module, function.__name__, function)
        modules = {n: sys.modules[full] for n, full in NAMES.items() if full in sys.modules}
        return {**modules, **{one.__name__: one for one in functions}}

    def _save(self, what: Any) -> str:
        """Write a table or a picture into the scratch folder; its path.

        The name comes from the content, so that two threads never write different things to one
        path, and a replay finds the same paths.
        """
        if hasattr(what, "to_csv"):
            data, ending = what.to_csv(index=what.index.name is not None).encode(), "csv"
        else:
            figure = what.get_figure() if hasattr(what, "get_figure") else what
            if not hasattr(figure, "savefig"):
                raise TypeError(f"save takes a table or a figure, not {type(what).__name__}")
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", metadata={"Software": None})
            data, ending = buffer.getvalue(), "png"
            most = self.settings["pictures"]
            if len(data) > self.settings["picture_bytes"] or len(self.pictures) == most:
                raise MemoryError(f"a line saves at most {most} small pictures")
        path = self.scratch / name_file(data, ending)
        path.write_bytes(data)
        if ending == "png":
            self.pictures[str(path)] = data
        return str(path)

    def _remote(self, name: str) -> Any:
        def remote(*arguments: Any, **named: Any) -> Any:
            call = pack({"name": name, "arguments": arguments, "named": named})
            if len(call) > self.settings["call_bytes"]:
                raise ValueError(f"the arguments of {name} are too large")
            send(self.out, _kind(b"c") + call)
            answer, _ = unpack(receive(self.answers))
            if "error" in answer:
                raise LookupError(answer["error"])
            return answer["value"]

        return remote

    # What stays

    def _keep(self, namespace: dict[str, Any]) -> tuple[dict[str, str], bytes, str | None]:
        """The variables as text and as bytes; and what cannot be kept, as an error."""
        own = {
            name: value
            for name, value in namespace.items()
            if not (name.startswith("__") and name.endswith("__"))
            and not (name in self.given and value is self.given[name])
        }
        lost = None
        try:
            state = _dumped(own)
        except MemoryError:
            raise  # the line is undone
        except Exception:
            bad = [name for name, value in own.items() if not _can_be_dumped(value)]
            lost = f"TypeError: {', '.join(map(str, bad))} cannot be kept for the next line"
            own = {name: value for name, value in own.items() if name not in bad}
            state = _dumped(own)
        texts = {
            str(name): _text(value)
            for name, value in own.items()
            if not str(name).startswith("_") and not isinstance(value, types.ModuleType)
        }
        return texts, state, lost


def _named(name: str, function: Any) -> Any:
    """A function that is pickled by this name, and not with what it closes over."""

    def named(*arguments: Any, **given: Any) -> Any:
        return function(*arguments, **given)

    named.__name__ = named.__qualname__ = name
    named.__module__ = GIVEN
    return named


def _dumped(namespace: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    pickler = cloudpickle.Pickler(buffer)
    # Functions of the thread share this namespace as their globals, also when they come back.
    for value in namespace.values():
        if isinstance(value, types.FunctionType):
            pickler.globals_ref[id(value.__globals__)] = namespace
    pickler.dump(namespace)
    return buffer.getvalue()


def _can_be_dumped(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except MemoryError:
        raise
    except Exception:
        return False
    return True


def _text(value: Any) -> str:
    text = repr(value)
    if isinstance(value, str | bytes):
        return text
    if _ADDRESS.search(text) and not _is_plain(value):
        text = _ADDRESS.sub("", text)  # differs from run to run
    if type(value) in _PLAIN or value is None:
        return text
    return text if len(text) <= TEXT_CHARACTERS else text[:TEXT_CHARACTERS] + "..."


def _is_plain(value: Any) -> bool:
    """Whether a value is plain data to its last part, whose text is the same in each run."""
    parts, known = [value], set()
    while parts:
        part = parts.pop()
        if type(part) in (list, tuple, set, dict):
            if id(part) not in known:  # a list may hold itself
                known.add(id(part))
                parts += [*part, *part.values()] if isinstance(part, dict) else part
        elif type(part) not in (*_PLAIN, str, bytes, type(None)):
            return False
    return True


def _message(failure: BaseException) -> str:
    text = f"{type(failure).__name__}: {failure}".rstrip(": ")
    text = " ".join(text.split())
    return shorten_error(text)


class _Printed(io.TextIOBase):
    """Collects printed text up to a number of characters and counts what is beyond."""

    def __init__(self, limit: int) -> None:
        self.room = limit
        self.parts: list[str] = []
        self.cut = 0

    def write(self, text: str) -> int:
        kept = text[: self.room]
        self.room -= len(kept)
        self.cut += len(text) - len(kept)
        self.parts.append(kept)
        return len(text)

    @property
    def text(self) -> str:
        return "".join(self.parts)
