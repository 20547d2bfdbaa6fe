"""The contender that is a server: llama.cpp's own, with prompt cache and a slot for every thread.

`llama-server` from the package xllamacpp, on loopback. It cannot be forced to write the recorded
tokens. Where the model that wrote them is the one that is measured it writes the same ones, mostly;
where not, the recorded tokens of that call are new to it at the next call.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from thread_kit.bench.memory import peak_memory
from thread_kit.bench.workload import Played, Weights, Workload

PATIENCE = 600  # seconds for a start or for one call


def llama_server(weights: Weights, work: Workload) -> Played:
    """The same calls over HTTP; `cache_prompt` is on, and slots are chosen by their contents."""
    evaluated = same = 0
    with _running(weights, slots=work.threads) as (process, address):
        _post(address, {"prompt": [1] * 64, "n_predict": 1})
        begun = time.perf_counter()
        for call in work.calls:
            answer = _post(
                address,
                {
                    "prompt": list(call.seen),
                    "n_predict": len(call.written),
                    "temperature": 0,
                    "cache_prompt": True,
                    "ignore_eos": True,
                    "return_tokens": True,
                },
            )
            wrote = answer["tokens"]
            # As for all others: the last token of a call is not evaluated in it.
            evaluated += answer["timings"]["prompt_n"] + len(wrote) - 1
            same += tuple(wrote) == call.written
        seconds = time.perf_counter() - begun
        peak = peak_memory(process.pid)
    return Played("llama-server", evaluated, seconds, same, peak)


@contextlib.contextmanager
def _running(weights: Weights, slots: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        "model": str(weights.path),
        "adapter": str(weights.adapter or ""),
        "context": weights.context,
        "threads": weights.cpu_threads,
        "gpu_layers": weights.gpu_layers,
        "slots": slots,
        "port": port,
    }
    command = [sys.executable, "-m", __name__, json.dumps(given)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(process, address)
        yield process, address
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"llama-server ended with status {process.returncode}")
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/health", timeout=1).is_success:
                return
        time.sleep(0.2)
    raise RuntimeError(f"llama-server did not answer within {PATIENCE} seconds")


def _post(address: str, data: Mapping[str, Any]) -> dict[str, Any]:
    answer = httpx.post(f"{address}/completion", json=data, timeout=PATIENCE)
    return answer.raise_for_status().json()


def _serve(given: Mapping[str, Any]) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = given["model"]
    if given["adapter"]:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(given["adapter"], 1.0)]
    params.hostnames, params.port = ["127.0.0.1"], given["port"]
    params.n_ctx, params.n_parallel, params.kv_unified = given["context"], given["slots"], True
    params.n_gpu_layers = given["gpu_layers"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given["threads"]
    server = xllamacpp.Server(params)
    while server:
        time.sleep(60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("given")
    _serve(json.loads(parser.parse_args().given))
