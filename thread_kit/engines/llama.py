"""KV-true threads on llama.cpp, by llama-cpp-python's low-level API.

One context, one unified KV cache, one sequence a thread. The few-shot prompt is evaluated once and
shared; a spawn copies a prefix (no evaluation), a waiting parent keeps its cells, what a child
returns is evaluated behind them. All threads that generate share one batch a step.

(The high-level `Llama` class has one sequence, and reuses only the previous prompt's prefix: a
parent would be evaluated again after each of its children.)
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

# llama.cpp's threads wait for one another by spinning. Where something else wants a core too, they
# would spin through whole time slices; after a short while they sleep instead. Measured on two
# cores with one busy: 7 to 41 tokens/s without it, 31 to 35 with it, and no loss on idle cores.
# It has to be set before the library is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import llama_cpp
import numpy as np

from thread_kit.dialect import Stop
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.engine import (
    Completion,
    Engine,
    EngineBusyError,
    EngineError,
    GenerateRequest,
    Prefilled,
    Sampled,
)
from thread_kit.engines.kv_cache import Key, KVCache, Memory
from thread_kit.engines.llama_vocabulary import Vocabulary
from thread_kit.engines.prompt_cache import PromptCache
from thread_kit.engines.token_probs import Spellings, softmax, top_k
from thread_kit.paths import sha256_of
from thread_kit.trace.events import TokenProbs

_log: list[str] = []


@llama_cpp.llama_log_callback
def _keep_log(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    _log.append(text.decode("utf-8", "replace"))
    del _log[:-2000]


class _Cells(Memory):
    """The cells of a llama.cpp context."""

    def __init__(self, context: Any) -> None:
        self._memory = llama_cpp.llama_get_memory(context)

    def copy(self, source: int, target: int, length: int) -> None:
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, length)

    def cut(self, sequence: int, length: int) -> bool:
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1))


class _Call:
    """A call that is running: what the thread sees, and what it generates."""

    def __init__(
        self, tokens: list[int], growing: PartialCompletion, wanted: GenerateRequest
    ) -> None:
        self.tokens = tokens
        self.growing = growing
        self.temperature = wanted.temperature
        self.seed = wanted.seed
        self.forbid = wanted.forbid
        self.logprobs = wanted.logprobs


class LlamaEngine(Engine):
    """A GGUF model in this process.

    path: the model file.
    adapter: a LoRA adapter (GGUF) that was trained for this model; None for the model as it is.
    context: cells of the KV cache, in tokens, shared by all threads; also the most that one thread
        can see (or what the model was trained for, if that is less).
    gpu_layers: layers to offload; -1 is all, where the build supports it. What was really offloaded
        is in `offloaded`.
    cpu_threads: None takes every core that the process may use (`taskset`, a job's share).
    batch: tokens evaluated in one step, at most.
    sequences: threads whose cells are kept at the same time, at most (llama.cpp allows 256).
    keep_prompts: few-shot prompts are kept on disk (`prompt_cache.py`), so that the next start
        evaluates none of their tokens.

    Raises EngineError if the file cannot be loaded or the context cannot be made.
    """

    _model: Any = None
    _context: Any = None
    _spellings: Spellings | None = None

    def __init__(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        adapter: str | Path | None = None,
        context: int = 8192,
        gpu_layers: int = -1,
        cpu_threads: int | None = None,
        batch: int = 512,
        sequences: int = 64,
        keep_prompts: bool = True,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.name = name or self.path.stem
        self.adapter = Path(adapter) if adapter else None
        self._prompts = PromptCache() if keep_prompts else None
        self._running: dict[int, _Call] = {}
        llama_cpp.llama_log_set(_keep_log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        mark = len(_log)
        self._load(gpu_layers)
        self._open(context, cpu_threads or cores(), batch, sequences)
        if self.adapter:
            self._adapt(self.adapter)
        log = "".join(_log[mark:] if mark < len(_log) else _log)
        found = re.search(r"offloaded (\d+)/(\d+) layers", log)
        self.offloaded = (int(found[1]), int(found[2])) if found else (0, self._layers)

    def _load(self, gpu_layers: int) -> None:
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 2**31 - 1 if gpu_layers < 0 else gpu_layers
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(self.path), params)
        if not self._model:
            raise EngineError(
                f"llama.cpp cannot load {self.path}: {_last_words()}; if its download broke off, "
                "download it again, otherwise take a model that this llama.cpp knows"
            )
        self._vocabulary = Vocabulary(self._model)
        self._layers = llama_cpp.llama_model_n_layer(self._model) + 1

    def _open(self, context: int, cpu_threads: int, batch: int, sequences: int) -> None:
        if not 1 <= sequences <= 256:
            raise EngineError(f"sequences={sequences}: llama.cpp allows 1 to 256")
        if context < 1:
            raise EngineError(f"context={context}: give a positive number of tokens")
        self._must_fit_memory(context)
        if batch < 1 or cpu_threads < 1:
            raise EngineError(f"batch={batch} and cpu_threads={cpu_threads} are at least 1")
        # llama.cpp aborts the process where there are fewer cells or places than sequences.
        context = max(context, 256)
        sequences = min(sequences, batch)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = batch
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = cpu_threads
        params.kv_unified = True  # a sequence copy is then metadata only
        params.swa_full = True  # sliding windows would forget what a rewind needs
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        if not self._context:
            raise EngineError(
                f"llama.cpp cannot make a context of {context} tokens for {self.name}: "
                f"{_last_words()}; load the model with a smaller one (context=...)"
            )
        self.cells = llama_cpp.llama_n_ctx(self._context)
        self.context_size = min(self.cells, llama_cpp.llama_model_n_ctx_train(self._model))
        self._n_batch = batch
        self._batch = llama_cpp.llama_batch_init(batch, 0, 1)
        self._sequences = sequences
        self._cache = KVCache(_Cells(self._context), sequences)

    def _adapt(self, path: Path) -> None:
        adapter = llama_cpp.llama_adapter_lora_init(self._model, os.fsencode(path))
        if not adapter:  # it is freed together with the model
            raise EngineError(
                f"llama.cpp cannot use the adapter {path} with {self.name}: {_last_words()}; "
                "take one that was trained for this model, or none (adapter=None)"
            )
        adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
        scales = (ctypes.c_float * 1)(1.0)
        if llama_cpp.llama_set_adapters_lora(self._context, adapters, 1, scales):
            raise EngineError(f"llama.cpp refuses the adapter {path}: {_last_words()}")

    def _must_fit_memory(self, context: int) -> None:
        """The system would kill the process, without a word, for taking more than there is."""
        width = llama_cpp.llama_model_n_embd(self._model) // max(
            llama_cpp.llama_model_n_head(self._model), 1
        )
        cell = 4 * self._layers * width * llama_cpp.llama_model_n_head_kv(self._model)  # k, v: f16
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if context * cell > memory:
            raise EngineError(
                f"context={context} takes {context * cell / 2**30:.0f} GiB of KV cache, and this "
                f"machine has {memory / 2**30:.0f} GiB; load the model with a smaller context=..."
            )

    # Text and tokens

    def _must_be_open(self) -> None:
        if not self._context:
            raise EngineError(f"{self.name} is closed; load it again")

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        with self.lock:
            self._must_be_open()
            return self._vocabulary.tokenize(text, first=first)

    def piece(self, token: int) -> str:
        """The text of one token; bytes that are no whole character read as U+FFFD."""
        self._must_be_open()
        return self._vocabulary.piece(token).decode("utf-8", "replace")

    # Calls

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        self._must_be_open()
        wanted = list(tokens)
        self._must_fit(len(wanted), "the few-shot prompt")
        # Prompts are kept, so that the next episode starts where this one did. Behind the last
        # token of a prompt there is always a context (here: -1), which gives the logits.
        key = hashlib.sha256(np.asarray(wanted, dtype=np.int64).tobytes()).hexdigest()
        done = -1
        while done < len(wanted):
            with self.lock:
                self._must_be_open()
                # Asked anew for each chunk: another driver may have evaluated or evicted some.
                begun, done = done >= 0, self._place(key, [*wanted, -1])
                if not begun and done < len(wanted) and self._restore(key, wanted):
                    done = len(wanted)
                if begun and done < len(wanted):
                    chunk = wanted[done : done + self._n_batch]
                    if not self._evaluate([(key, chunk, False)]):
                        raise EngineError(f"no cell is left for {self.name}'s few-shot prompt")
                    done += len(chunk)
                    if done == len(wanted):
                        self._keep(key, wanted)
            yield Prefilled(None, done, len(wanted))

    def _cells_of(self, prompt: list[int]) -> dict[str, Any]:
        """All that the cells of a prompt depend on."""
        about = self.describe()
        names = ("sha256", "adapter", "layers_offloaded", "llama_cpp_python")
        return {"tokens": prompt, **{name: about[name] for name in names}}

    def _restore(self, key: Key, prompt: list[int]) -> bool:
        """Fill the cells of a prompt from disk; False if it is not there, or does not fit."""
        if not self._prompts or not prompt:
            return False
        about = self._cells_of(prompt)
        cells = self._prompts.load(about)
        if cells is None:
            return False
        held = self._cache.held(key)
        source = ctypes.cast(cells.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
        read = llama_cpp.llama_state_seq_set_data(self._context, source, len(cells), held.sequence)
        held.tokens.clear()
        if read != len(cells):
            self._prompts.discard(about)
            self._cache.forget(key)
            return False
        self._cache.extend(key, prompt)
        return True

    def _keep(self, key: Key, prompt: list[int]) -> None:
        if self._prompts:
            sequence = self._cache.held(key).sequence
            size = llama_cpp.llama_state_seq_get_size(self._context, sequence)
            cells = np.empty(size, np.uint8)
            target = ctypes.cast(cells.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
            if llama_cpp.llama_state_seq_get_data(self._context, target, size, sequence) == size:
                self._prompts.store(self._cells_of(prompt), cells)

    def _place(self, key: Key, tokens: list[int]) -> int:
        try:
            return self._cache.place(key, tokens, self._running)
        except RuntimeError as error:
            raise EngineBusyError(str(error)) from None

    def _must_fit(self, tokens: int, what: str) -> None:
        if tokens >= self.context_size:
            raise EngineError(
                f"{what} takes {tokens} tokens, and a thread of {self.name} sees at most "
                f"{self.context_size}; load the model with a larger context=... or shorten it"
            )

    def submit(self, thread: int, wanted: GenerateRequest) -> None:
        self._must_be_idle(thread, self._running)
        growing = PartialCompletion(thread, wanted.stops, wanted.max_tokens, self.tokenize)
        if wanted.given:
            growing.give(wanted.given)
        tokens = wanted.seen
        with self.lock:
            self._must_be_open()
            if len(tokens) >= self.context_size:
                growing.stop = Stop.CONTEXT
            elif growing.stop is None:
                growing.reused = self._place(thread, tokens)
            self._running[thread] = _Call(tokens, growing, wanted)

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        over = [t for t, call in self._running.items() if call.growing.stop is not None]
        if over:
            return [self._finish(thread) for thread in over]
        if not self._running:
            return []
        work = self._work()
        if not self._evaluate(work):
            # Every cell is taken by threads that are generating: the longest of them gives way.
            longest = max(self._running, key=lambda t: len(self._running[t].tokens))
            return [self._finish(longest, Stop.CONTEXT)]
        return [self._grow(row, key, last) for row, (key, _, last) in enumerate(work)]

    def _work(self) -> list[tuple[Key, list[int], bool]]:
        """What the next batch holds: (key, tokens, whether a thread's last token is among them).

        Threads that generate go first, with one token each; contexts fill what room is left.
        """
        waiting = [
            (thread, call.tokens[len(self._cache.held(thread).tokens) :])
            for thread, call in self._running.items()
        ]
        room = self._n_batch
        work: list[tuple[Key, list[int], bool]] = []
        for thread, tokens in sorted(waiting, key=lambda pair: len(pair[1])):
            if room:
                chunk = tokens[:room]
                work.append((thread, chunk, len(chunk) == len(tokens)))
                room -= len(chunk)
        return work

    def _evaluate(self, work: list[tuple[Key, list[int], bool]]) -> bool:
        """One decode; False when no cell is left and nothing more can be evicted."""
        batch = self._batch
        self._rows: list[int] = []
        n = 0
        for key, tokens, last in work:
            held = self._cache.held(key)
            for offset, token in enumerate(tokens):
                batch.token[n] = token
                batch.pos[n] = len(held.tokens) + offset
                batch.n_seq_id[n] = 1
                batch.seq_id[n][0] = held.sequence
                batch.logits[n] = False
                n += 1
            batch.logits[n - 1] = last
            self._rows.append(n - 1)
        batch.n_tokens = n
        busy: set[Key] = {*self._running, *(key for key, _, _ in work)}
        try:
            while (code := llama_cpp.llama_decode(self._context, batch)) == 1:
                if self._cache.evict(busy) is None:
                    return False
            if code != 0:
                raise EngineError(
                    f"llama.cpp could not evaluate a batch (code {code}): {_last_words()}"
                )
            for key, tokens, _ in work:
                self._cache.extend(key, tokens)
                if not isinstance(key, str):
                    self._running[key].growing.evaluated += len(tokens)
        except BaseException:
            # An interrupt arrives here as soon as llama.cpp returns: its cells are filled, and
            # nobody has written it down. What is not on record goes out of the cells again.
            for key, _, _ in work:
                self._cache.forget(key)
            raise
        return True

    def _grow(self, row: int, key: Key, last: bool) -> Prefilled | Sampled | Completion:
        thread = key
        call = self._running[thread]
        if not last:
            return Prefilled(thread, len(self._cache.held(key).tokens), len(call.tokens))
        token = self._sample(self._rows[row], call)
        if self._vocabulary.ends(token):
            return self._finish(thread, Stop.END_OF_STREAM)
        logprobs = self._look(self._rows[row], call, token) if call.logprobs else None
        text = call.growing.add(token, self._vocabulary.piece(token))
        if b"\n" in self._vocabulary.piece(token):
            call.forbid = ()
        call.tokens.append(token)
        if call.growing.stop is None and len(call.tokens) >= self.context_size:
            call.growing.stop = Stop.CONTEXT
        return Sampled(thread, token, text, logprobs)

    def _look(self, row: int, call: _Call, token: int) -> TokenProbs:
        """What the model weighed for this token (`token_probs.py` says how)."""
        shares = softmax(self._logits(row))
        if self._spellings is None:
            self._spellings = Spellings(
                [self._vocabulary.piece(one) for one in range(self._vocabulary.size)]
            )
        marks = {}
        for mark in call.logprobs:
            first = self._vocabulary.piece(self.tokenize(mark)[0])
            leading = self._spellings.leading_to(mark.encode(), first, call.growing.written)
            marks[mark] = round(float(shares[leading].sum()), 4)
        top = tuple((self.piece(one), round(float(shares[one]), 4)) for one in top_k(shares))
        return TokenProbs(round(float(shares[token]), 4), marks, top)

    def _logits(self, row: int) -> Any:
        pointer = llama_cpp.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(pointer, (self._vocabulary.size,))

    def _sample(self, row: int, call: _Call) -> int:
        logits = self._logits(row)
        if call.temperature <= 0 and not call.forbid:
            return int(logits.argmax())
        if call.temperature > 0:
            # Seeded by place, so that a draw never depends on what else was in the batch.
            draw = np.random.default_rng([*call.seed, len(call.tokens)])
            logits = logits / call.temperature + draw.gumbel(size=self._vocabulary.size)
        token = int(logits.argmax())
        if call.growing.would_complete(self._vocabulary.piece(token), call.forbid):
            top_k = np.argsort(-logits)
            token = next(
                int(one)
                for one in top_k
                if not call.growing.would_complete(self._vocabulary.piece(int(one)), call.forbid)
            )
        return token

    def _finish(self, thread: int, stop: Stop | None = None) -> Completion:
        return self._running.pop(thread).growing.finish(stop)

    def cancel(self, thread: int) -> Completion | None:
        with self.lock:
            return self._finish(thread, Stop.CANCELLED) if thread in self._running else None

    def release(self, thread: int, *, keep: bool = False) -> None:
        with self.lock:
            self._running.pop(thread, None)
            self._mail.pop(thread, None)
            if self._context and keep:
                self._cache.retire(thread)
            elif self._context:
                self._cache.drop(thread)

    # About

    @cached_property
    def sha256(self) -> str:
        """The hash of the model file."""
        return sha256_of(self.path)

    @cached_property
    def adapter_sha256(self) -> str | None:
        """The hash of the adapter's file, if there is an adapter."""
        return sha256_of(self.adapter) if self.adapter else None

    def describe(self) -> dict[str, Any]:
        adapter = self.adapter and {"file": self.adapter.name, "sha256": self.adapter_sha256}
        return {
            "engine": "llama.cpp",
            "name": self.name,
            "file": self.path.name,
            "sha256": self.sha256,
            "adapter": adapter,
            "context": self.context_size,
            "cells": self.cells,
            "layers_offloaded": list(self.offloaded),
            "llama_cpp_python": llama_cpp.__version__,
        }

    def __repr__(self) -> str:
        done, layers = self.offloaded
        adapter = f", adapter {self.adapter.stem}" if self.adapter else ""
        return (
            f"LlamaEngine({self.name!r}{adapter}, context {self.context_size}, "
            f"{done} of {layers} layers on the GPU)"
        )

    def close(self) -> None:
        with self.lock:  # a step that is running ends first
            context, model = self._context, self._model
            self._context = self._model = None
            if context:
                llama_cpp.llama_batch_free(self._batch)
                llama_cpp.llama_free(context)
            if model:
                llama_cpp.llama_model_free(model)

    def __del__(self) -> None:
        self.close()


def cores() -> int:
    """The CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS, nor on Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _last_words() -> str:
    """The last thing that llama.cpp complained about."""
    lines = [line.strip() for line in "".join(_log).splitlines() if line.strip()]
    errors = [line for line in lines[-50:] if "error" in line.lower() or "fail" in line.lower()]
    return (errors or lines or ["it gave no reason"])[-1]
