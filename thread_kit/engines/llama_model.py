"""A GGUF file loaded by llama.cpp: the model, its adapter, and the context that it computes in.

Whatever llama.cpp would answer with the end of the process (too many threads, too little memory)
is refused here, in words: a crash would be the crash of a person's notebook kernel.
"""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from thread_kit.engines.core_share import CoreShare
from thread_kit.engines.engine import EngineError
from thread_kit.engines.llama_vocabulary import Vocabulary
from thread_kit.interrupt import hold_interrupts

MAX_CPU_THREADS = 512
"""ggml has room for so many (GGML_MAX_N_THREADS); far more end the process."""

MAX_SEQUENCES = 256
"""llama.cpp's LLAMA_MAX_SEQ."""

_log: list[str] = []
_logged = 0  # so many pieces were ever in the log, which has the last of them


@llama_cpp.llama_log_callback
def _keep_log(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    global _logged
    _logged += 1
    _log.append(text.decode("utf-8", "replace"))
    del _log[:-2000]


def keep_log() -> None:
    """Let llama.cpp say nothing on the screen; `last_error` has what it said."""
    llama_cpp.llama_log_set(_keep_log, ctypes.c_void_p(0))


class LlamaModel:
    """What llama.cpp has loaded. The parameters are those of `LlamaEngine`.

    Ctrl-C waits while llama.cpp works: it calls Python for its log and its progress, and what is
    raised there is lost.

    vocabulary: its tokens. offloaded: (layers on the GPU, of so many).
    Once it is open: cells: of the KV cache, in tokens; context_size: tokens that a thread can see
    at most; batch: llama.cpp's own, with room for batch_size tokens; sequences: at most;
    cpu_threads: of the last pass; flash_attention: None where llama.cpp decides.

    Raises EngineError if the file cannot be loaded.
    """

    model: Any = None
    context: Any = None
    batch: Any = None
    _share: CoreShare | None = None

    def __init__(self, path: Path, name: str, adapter: Path | None, gpu_layers: int) -> None:
        if not hasattr(gpu_layers, "__index__"):
            raise EngineError(f"gpu_layers={gpu_layers!r}: give a number of layers, or -1 for all")
        self.name, self._adapter = name, adapter
        keep_log()
        llama_cpp.llama_backend_init()
        mark = _logged
        params = llama_cpp.llama_model_default_params()
        # A build with AMX may be GCC 12's, of which a product would end the process (Makefile).
        params.use_extra_bufts = "AMX_INT8 = 1" not in describe_system()
        params.n_gpu_layers = 2**31 - 1 if gpu_layers < 0 else min(gpu_layers, 2**31 - 1)
        with hold_interrupts() as has_come:
            go_on = llama_cpp.llama_progress_callback(lambda share, data: not has_come())
            params.progress_callback = go_on
            self.model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self.model:
            raise EngineError(
                f"llama.cpp cannot load {path}: {last_error()}; if its download broke off, "
                "download it again, otherwise take a model that this llama.cpp knows"
            )
        self.vocabulary = Vocabulary(self.model)
        self.layers = llama_cpp.llama_model_n_layer(self.model) + 1
        self.offloaded = _offloaded(mark) or (0, self.layers)

    def open(
        self,
        context: int,
        cpu_threads: int | None,
        batch: int,
        sequences: int,
        flash_attention: bool | None = None,
    ) -> None:
        """Make the context that the model computes in, with its adapter; raises EngineError."""
        # 1. What llama.cpp would answer with the end of the process.
        _check_count("context", context)
        _check_count("batch", batch)
        _check_count("sequences", sequences, MAX_SEQUENCES)
        _check_count("cpu_threads", 1 if cpu_threads is None else cpu_threads, MAX_CPU_THREADS)
        if flash_attention not in (None, True, False):
            raise EngineError(f"flash_attention={flash_attention!r}: give True, False or None")
        self._must_fit_memory(context, 0 if flash_attention is not False else min(batch, context))
        # It also aborts where there are fewer cells or places than sequences; and of places it
        # takes memory for as many as it is told, of which a context can use no more than its own.
        context = max(context, 256)
        batch = min(batch, context)
        sequences = min(sequences, batch)
        # 2. The context, and the batch through which all tokens go.
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = batch
        params.n_seq_max = sequences
        self._share = CoreShare(cpu_threads)
        params.n_threads = self.cpu_threads = min(self._share.threads, MAX_CPU_THREADS)
        params.n_threads_batch = params.n_threads
        params.kv_unified = True  # a sequence copy is then metadata only
        params.swa_full = True  # sliding windows would forget what a rewind needs
        self.flash_attention = flash_attention
        params.flash_attn_type = -1 if flash_attention is None else int(flash_attention)  # -1: auto
        with hold_interrupts():
            self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise EngineError(
                f"llama.cpp cannot make a context of {context} tokens for {self.name}: "
                f"{last_error()}; load the model with a smaller one (context=...)"
            )
        self.cells = llama_cpp.llama_n_ctx(self.context)
        self.context_size = min(self.cells, llama_cpp.llama_model_n_ctx_train(self.model))
        self.batch_size, self.sequences = batch, sequences
        self.batch = llama_cpp.llama_batch_init(batch, 0, 1)
        # 3. What the model was taught.
        if self._adapter:
            self._adapt(self._adapter)

    def _must_fit_memory(self, context: int, scored: int) -> None:
        """The system would kill the process, without a word, for taking more than there is.

        scored: tokens of a batch whose scores of attention are kept for every cell and head (f32).
        """
        heads = llama_cpp.llama_model_n_head(self.model)
        width = llama_cpp.llama_model_n_embd(self.model) // max(heads, 1)
        cell = 4 * self.layers * width * llama_cpp.llama_model_n_head_kv(self.model)  # k, v: f16
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        scores = 4 * scored * heads
        if context * (cell + scores) > memory:
            beside = " and scores (flash_attention=False)" if scores else ""
            raise EngineError(
                f"context={context} takes {context * (cell + scores) / 2**30:.0f} GiB of KV cache"
                f"{beside}, and this machine has {memory / 2**30:.0f} GiB; load the model with a "
                "smaller context=..."
            )

    def _adapt(self, path: Path) -> None:
        with hold_interrupts():
            adapter = llama_cpp.llama_adapter_lora_init(self.model, os.fsencode(path))
        if not adapter:  # it is freed together with the model
            raise EngineError(
                f"llama.cpp cannot use the adapter {path} with {self.name}: {last_error()}; "
                "take one that was trained for this model, or none (adapter=None)"
            )
        adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
        scales = (ctypes.c_float * 1)(1.0)
        if llama_cpp.llama_set_adapters_lora(self.context, adapters, 1, scales):
            raise EngineError(f"llama.cpp refuses the adapter {path}: {last_error()}")

    def take_cores(self) -> None:
        """Before a pass: as many threads as the other engines of this machine leave."""
        assert self._share is not None
        threads = min(self._share.take(), MAX_CPU_THREADS)
        if threads != self.cpu_threads:
            llama_cpp.llama_set_n_threads(self.context, threads, threads)
            self.cpu_threads = threads

    def leave_cores(self) -> None:
        """No call is running: the cores are the other engines'."""
        if self._share:
            self._share.rest()

    def logits(self, row: int) -> Any:
        """The logits behind a token of the last batch, one for each token of the vocabulary."""
        pointer = llama_cpp.llama_get_logits_ith(self.context, row)
        return np.ctypeslib.as_array(pointer, (self.vocabulary.size,))

    def close(self) -> None:
        """Free all of it. Closing twice is fine."""
        if self._share:
            self._share.close()
        batch, context, model = self.batch, self.context, self.model
        self.batch = self.context = self.model = None
        if batch:
            llama_cpp.llama_batch_free(batch)
        if context:
            llama_cpp.llama_free(context)
        if model:
            llama_cpp.llama_model_free(model)

    def __del__(self) -> None:
        self.close()


def _check_count(name: str, value: Any, most: int | None = None) -> None:
    if hasattr(value, "__index__") and value >= 1 and (most is None or value <= most):
        return
    if most is None:
        raise EngineError(f"{name}={value!r}: give a positive number of tokens")
    raise EngineError(f"{name}={value!r}: llama.cpp allows 1 to {most}")


def _offloaded(since: int) -> tuple[int, int] | None:
    """The layers on the GPU, of so many, if the log says so behind its first `since` pieces."""
    new = _logged - since
    found = re.search(r"offloaded (\d+)/(\d+) layers", "".join(_log[max(len(_log) - new, 0) :]))
    return (int(found[1]), int(found[2])) if found else None


def describe_system() -> str:
    """Which instructions of the processor this build of llama.cpp uses, in its own words."""
    return str(llama_cpp.llama_print_system_info().decode())


def last_error() -> str:
    """The last thing that llama.cpp complained about."""
    lines = [line.strip() for line in "".join(_log).splitlines() if line.strip()]
    errors = [line for line in lines[-50:] if "error" in line.lower() or "fail" in line.lower()]
    return (errors or lines or ["it gave no reason"])[-1]
