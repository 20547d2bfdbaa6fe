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
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import httpx

from thread_kit.bench.workload import WARM_UP, Forced, Measurement, Weights, Workload, peak_memory

PATIENCE = 600  # seconds for a start or for one call

NGRAM_MOD = {"n_match": 2, "n_min": 1, "n_max": 10}
"""The settings of its drafts with the fewest passes here (data/bench/README.md)."""


class Reply(NamedTuple):
    """What the server did for a call: tokens evaluated, those written, passes that wrote them."""

    evaluated: int
    tokens: tuple[int, ...]
    passes: int


def ask_server(client: httpx.Client, address: str, call: Forced) -> Reply:
    """A call over HTTP; `cache_prompt` is on, and slots are chosen by their contents."""
    options = dict.fromkeys(["cache_prompt", "ignore_eos", "return_tokens"], True)
    size = {"n_predict": len(call.written), "temperature": 0}
    reply = client.post(
        f"{address}/completion", json={"prompt": list(call.seen), **size, **options}
    )
    answer = reply.raise_for_status().json()
    tokens, timings = tuple(answer["tokens"]), answer["timings"]
    # As for all others: the last token of a call is not evaluated in it.
    evaluated = timings["prompt_n"] + len(tokens) - 1
    return Reply(evaluated, tokens, len(tokens) - timings.get("draft_n_accepted", 0))


def llama_server(weights: Weights, work: Workload, *, binary: str | None = None) -> Measurement:
    """The same calls, in order. binary: as in `run_server`."""
    with (
        run_server(weights, work.threads, binary=binary) as (process, address),
        httpx.Client(timeout=PATIENCE) as client,
    ):
        ask_server(client, address, WARM_UP)
        begun = time.perf_counter()
        replies = [ask_server(client, address, call) for call in work.calls]
        seconds = time.perf_counter() - begun
        peak = peak_memory(process)
    same = sum(
        reply.tokens == call.written for reply, call in zip(replies, work.calls, strict=True)
    )
    return Measurement(
        "llama-server", sum(reply.evaluated for reply in replies), seconds, same, peak
    )


@contextlib.contextmanager
def run_server(
    weights: Weights, slots: int, *, speculative: bool = False, binary: str | None = None
) -> Iterator[tuple[int, str]]:
    """The server's process number and address.

    speculative: with drafts from a pool of n-grams that all slots share (`ngram-mod`). binary: a
    llama-server of one's own; None is the one of xllamacpp.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = (weights, slots, port, speculative)
    process = get_context("spawn").Process(
        target=_become if binary else _serve, args=(*arguments, *([binary] if binary else []))
    )
    process.start()
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(process, address)
        yield process.pid or 0, address
    finally:
        process.kill()
        process.join()


def _wait(process: BaseProcess, address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not process.is_alive():
            raise RuntimeError(
                f"llama-server ended with status {process.exitcode}; start it by hand to see why "
                "(an older one knows no --spec-type ngram-mod)"
            )
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/health", timeout=1).is_success:
                return
        time.sleep(0.2)
    raise RuntimeError(f"llama-server did not answer within {PATIENCE} seconds")


def _silence() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _become(weights: Weights, slots: int, port: int, speculative: bool, binary: str) -> None:
    """Let a llama-server of one's own take this process's place."""
    layers = 999 if weights.gpu_layers < 0 else weights.gpu_layers
    command = [binary, "-m", weights.path, "--host", "127.0.0.1", "--port", port, "-kvu"]
    command += ["-c", weights.context, "-np", slots, "-ngl", layers, "-t", weights.cpu_threads]
    command += ["--lora", weights.adapter] if weights.adapter else []
    if speculative:
        command += ["--spec-type", "ngram-mod"]
        for name, value in NGRAM_MOD.items():
            command += [f"--spec-ngram-mod-{name.replace('_', '-')}", value]
    _silence()
    os.execvp(binary, [str(part) for part in command])


def _serve(weights: Weights, slots: int, port: int, speculative: bool) -> None:
    import xllamacpp

    _silence()
    params = xllamacpp.CommonParams()
    params.model.path = str(weights.path)
    if weights.adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(weights.adapter), 1.0)]
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.kv_unified = weights.context, slots, True
    params.n_gpu_layers = weights.gpu_layers
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = weights.cpu_threads
    if speculative:
        kinds = xllamacpp.common_speculative_type
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_MOD]
        for name, value in NGRAM_MOD.items():
            setattr(params.speculative.ngram_mod, name, value)
    server = xllamacpp.Server(params)
    while server:
        time.sleep(60)
