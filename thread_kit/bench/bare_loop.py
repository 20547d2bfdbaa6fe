"""The leanest loop over llama.cpp: what a session's speed is measured against."""

from __future__ import annotations

import ctypes
import os

import llama_cpp
import numpy as np

from thread_kit.bench.workload import Weights


class BareLoop:
    """llama.cpp by its C interface: `n` sequences that write one token each a step."""

    def __init__(self, weights: Weights, n: int) -> None:
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 2**31 - 1 if weights.gpu_layers < 0 else weights.gpu_layers
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(weights.path), params)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        size = llama_cpp.llama_context_default_params()
        size.n_ctx, size.n_seq_max, size.kv_unified = weights.context, max(n, 2), True
        size.n_batch = size.n_ubatch = 512
        size.n_threads = size.n_threads_batch = weights.cpu_threads
        self._context = llama_cpp.llama_init_from_model(self._model, size)
        if weights.adapter:
            path = os.fsencode(weights.adapter)
            adapter = llama_cpp.llama_adapter_lora_init(self._model, path)
            adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
            scales = (ctypes.c_float * 1)(1.0)
            llama_cpp.llama_set_adapters_lora(self._context, adapters, 1, scales)
        self._batch = llama_cpp.llama_batch_init(512, 0, 1)
        self._width = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self._places = [0] * n
        self._next = [0] * n

    def read(self, sequence: int, tokens: tuple[int, ...]) -> None:
        """Evaluate what one sequence begins with."""
        for start in range(0, len(tokens), 512):
            chunk = tokens[start : start + 512]
            self._decode([(sequence, token) for token in chunk], every=False)
        self._next[sequence] = self._likeliest(self._batch.n_tokens - 1)

    def write(self, tokens: int) -> None:
        """So many tokens for each sequence."""
        for _ in range(tokens):
            self._decode(list(enumerate(self._next)), every=True)
            self._next = [self._likeliest(row) for row in range(len(self._next))]

    def _decode(self, tokens: list[tuple[int, int]], *, every: bool) -> None:
        batch = self._batch
        for row, (sequence, token) in enumerate(tokens):
            batch.token[row], batch.pos[row] = token, self._places[sequence]
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
            batch.logits[row] = every or row == len(tokens) - 1
            self._places[sequence] += 1
        batch.n_tokens = len(tokens)
        if code := llama_cpp.llama_decode(self._context, batch):
            raise RuntimeError(f"llama.cpp could not evaluate a batch (code {code})")

    def _likeliest(self, row: int) -> int:
        logits = llama_cpp.llama_get_logits_ith(self._context, row)
        return int(np.ctypeslib.as_array(logits, (self._width,)).argmax())

    def close(self) -> None:
        """Free everything."""
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)
