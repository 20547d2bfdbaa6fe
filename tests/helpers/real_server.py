"""A llama-server with the embedded model, where there is one to start."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def command() -> list[str]:
    """What starts a llama-server here; [] where there is none."""
    if words := os.environ.get("THREAD_KIT_LLAMA_SERVER"):
        return shlex.split(words)
    if path := shutil.which("llama-server"):
        return [path]
    if importlib.util.find_spec("xllamacpp"):
        return [sys.executable, str(Path(__file__).with_name("llama_server.py"))]
    return []


needs_server = pytest.mark.skipif(
    not command(), reason="no llama-server in the PATH; install one, or: pip install xllamacpp"
)


@contextmanager
def start_server(folder: Path, context: int = 2048, model: Path | None = None) -> Iterator[str]:
    """The address of a server with two slots, which share the context; its log is in the folder.

    model: its file; the embedded model's own where nothing is said.
    """
    from thread_kit.engines.models import MODELS, find_file

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "log"
    options = {
        "-m": model or find_file(MODELS["smollm2-135m"]),
        "--host": "127.0.0.1",
        "--port": port,
    }
    options |= {"-c": context, "-np": 2, "-t": 1}
    words = [str(word) for pair in options.items() for word in pair]
    with log.open("w") as out:
        process = subprocess.Popen([*command(), *words], stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
            break
        assert process.poll() is None, log.read_text()[-2000:]
        time.sleep(0.1)
    yield url
    process.terminate()
    process.wait(10)
