"""The contender that is a server: llama.cpp's own, with prompt cache and a slot for every thread.

`llama-server` from the package xllamacpp, on loopback. It cannot be forced to write the recorded
tokens. Where the model that wrote them is the one that is measured it writes the same ones, mostly;
where not, the recorded tokens of that call are new to it at the next call.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

import httpx

from thread_kit.bench.workload import Measurement, Weights, Workload, peak_memory

PATIENCE = 600  # seconds for a start or for one call


def llama_server(weights: Weights, work: Workload) -> Measurement:
    """The same calls over HTTP; `cache_prompt` is on, and slots are chosen by their contents."""
    evaluated = same = 0
    with _running(weights, slots=work.threads) as (process, address):
        post = partial(httpx.post, f"{address}/completion", timeout=PATIENCE)
        post(json={"prompt": [1] * 64, "n_predict": 1}).raise_for_status()
        begun = time.perf_counter()
        for call in work.calls:
            options = dict.fromkeys(["cache_prompt", "ignore_eos", "return_tokens"], True)
            size = {"n_predict": len(call.written), "temperature": 0}
            reply = post(json={"prompt": list(call.seen), **size, **options})
            answer = reply.raise_for_status().json()
            tokens = answer["tokens"]
            # As for all others: the last token of a call is not evaluated in it.
            evaluated += answer["timings"]["prompt_n"] + len(tokens) - 1
            same += tuple(tokens) == call.written
        seconds = time.perf_counter() - begun
        peak = peak_memory(process.pid or 0)
    return Measurement("llama-server", evaluated, seconds, same, peak)


@contextlib.contextmanager
def _running(weights: Weights, slots: int) -> Iterator[tuple[BaseProcess, str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = get_context("spawn").Process(target=_serve, args=(weights, slots, port))
    process.start()
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(process, address)
        yield process, address
    finally:
        process.kill()
        process.join()


def _wait(process: BaseProcess, address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not process.is_alive():
            raise RuntimeError(f"llama-server ended with status {process.exitcode}")
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/health", timeout=1).is_success:
                return
        time.sleep(0.2)
    raise RuntimeError(f"llama-server did not answer within {PATIENCE} seconds")


def _serve(weights: Weights, slots: int, port: int) -> None:
    import xllamacpp

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    params = xllamacpp.CommonParams()
    params.model.path = str(weights.path)
    if weights.adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(weights.adapter), 1.0)]
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.kv_unified = weights.context, slots, True
    params.n_gpu_layers = weights.gpu_layers
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = weights.cpu_threads
    server = xllamacpp.Server(params)
    while server:
        time.sleep(60)
