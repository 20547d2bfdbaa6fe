"""KV-true threads on llama.cpp, by llama-cpp-python's low-level API.

One context, one unified KV cache, one sequence a thread. The few-shot prompt is evaluated once and
shared; a spawn copies a prefix (no evaluation), a waiting parent keeps its cells, what a child
returns is evaluated behind them. All threads that generate share one batch a step.

(The high-level `Llama` class has one sequence, and reuses only the previous prompt's prefix: a
parent would be evaluated again after each of its children.)

`llama_model.py` loads, `llama_batch.py` evaluates, `llama_sampling.py` takes the next token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

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
    ThreadKey,
)
from thread_kit.engines.kv_cache import Key, KVCache, PromptKey
from thread_kit.engines.llama_batch import Cells, Chunk, decode, plan_batch
from thread_kit.engines.llama_model import LlamaModel
from thread_kit.engines.llama_sampling import LlamaCall, Probabilities, sample
from thread_kit.engines.prompt_cache import PromptCache
from thread_kit.paths import sha256_of


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

    _probabilities: Probabilities | None = None

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
        self._model = LlamaModel(self.path, self.name, self.adapter, gpu_layers)
        self._model.open(context, cpu_threads, batch, sequences)
        self.offloaded = self._model.offloaded
        self.cells, self.context_size = self._model.cells, self._model.context_size
        self._vocabulary = self._model.vocabulary
        self._cells = Cells(self._model.context)
        self._cache = KVCache(self._cells, self._model.sequences)
        self._prompts = PromptCache() if keep_prompts else None
        self._running: dict[ThreadKey, LlamaCall] = {}

    # Text and tokens

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        with self.lock:
            self._must_be_open()
            return self._vocabulary.tokenize(text, first=first)

    def piece(self, token: int) -> str:
        """The text of one token; bytes that are no whole character read as U+FFFD."""
        self._must_be_open()
        return self._vocabulary.piece(token).decode("utf-8", "replace")

    # The few-shot prompt

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        self._must_be_open()
        prompt = list(tokens)
        if len(prompt) >= self.context_size:
            raise EngineError(
                f"the few-shot prompt takes {len(prompt)} tokens, and a thread of {self.name} sees "
                f"{self.context_size} at most; load it with a larger context=... or a shorter one"
            )
        # Prompts are kept, so that the next episode starts where this one did. Behind the last
        # token of a prompt there is always a context (here: -1), which gives the logits.
        key = PromptKey(hashlib.sha256(np.asarray(prompt, dtype=np.int64).tobytes()).hexdigest())
        done = -1
        while done < len(prompt):
            with self.lock:
                self._must_be_open()
                # 1. What the cells hold. Asked anew for each chunk: another scheduler may have
                #    evaluated or evicted some.
                has_begun, done = done >= 0, self._place(key, [*prompt, -1])
                # 2. At the start: the cells of an earlier start, from disk.
                if not has_begun and done < len(prompt) and self._restore(key, prompt):
                    done = len(prompt)
                # 3. Evaluate what is missing, a batch at a time; the whole goes to disk.
                if has_begun and done < len(prompt):
                    chunk = prompt[done : done + self._model.batch_size]
                    if not self._evaluate([Chunk(key, chunk, is_last=False)]):
                        raise EngineError(f"no cell is left for {self.name}'s few-shot prompt")
                    done += len(chunk)
                    if done == len(prompt):
                        self._store(key, prompt)
            yield Prefilled(None, done, len(prompt))

    def _identify(self, prompt: list[int]) -> dict[str, Any]:
        """All that the cells of a prompt depend on."""
        about = self.describe()
        names = ("sha256", "adapter", "layers_offloaded", "llama_cpp_python")
        return {"tokens": prompt, **{name: about[name] for name in names}}

    def _restore(self, key: Key, prompt: list[int]) -> bool:
        """Fill the cells of a prompt from disk; False if it is not there, or does not fit."""
        if not self._prompts or not prompt:
            return False
        about = self._identify(prompt)
        cells = self._prompts.load(about)
        if cells is None:
            return False
        sequence = self._cache.sequence(key)
        sequence.tokens.clear()
        if not self._cells.write(sequence.number, cells, len(prompt)):
            self._prompts.discard(about)
            self._cache.forget(key)
            return False
        self._cache.extend(key, prompt)
        return True

    def _store(self, key: Key, prompt: list[int]) -> None:
        if self._prompts:
            cells = self._cells.read(self._cache.sequence(key).number)
            if cells is not None:
                self._prompts.store(self._identify(prompt), cells)

    def _place(self, key: Key, tokens: list[int]) -> int:
        try:
            return self._cache.place(key, tokens, self._running)
        except RuntimeError as error:
            raise EngineBusyError(str(error)) from None

    # Calls

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._must_be_idle(thread, self._running)
        completion = PartialCompletion(thread, request.stops, request.max_tokens, self.tokenize)
        if request.given:
            completion.give(request.given)
        tokens = request.seen
        with self.lock:
            self._must_be_open()
            if len(tokens) >= self.context_size:
                completion.stop = Stop.CONTEXT
            elif completion.stop is None:
                completion.reused = self._place(thread, tokens)
            self._running[thread] = LlamaCall(request, completion, tokens, request.forbid)

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        # 1. Calls that are over give their place to others.
        over = [key for key, call in self._running.items() if call.completion.stop is not None]
        if over:
            return [self._finish(thread) for thread in over]
        if not self._running:
            return []
        # 2. One batch, of what each thread has yet to evaluate.
        evaluated = {key: len(self._cache.sequence(key).tokens) for key in self._running}
        waiting = [(key, call.tokens[evaluated[key] :]) for key, call in self._running.items()]
        plan = plan_batch(waiting, self._model.batch_size)
        if not self._evaluate(plan):
            # Every cell is taken by threads that are generating: the longest of them gives way.
            longest = max(self._running, key=lambda key: len(self._running[key].tokens))
            return [self._finish(longest, Stop.CONTEXT)]
        # 3. Each whole context has one more token.
        return [self._add_token(n, chunk) for n, chunk in enumerate(plan)]

    def _evaluate(self, plan: list[Chunk]) -> bool:
        """One decode; False when no cell is left and nothing more can be evicted."""
        busy = {*self._running, *(chunk.key for chunk in plan)}
        rows = decode(self._model, self._cache, plan, busy)
        if rows is None:
            return False
        self._rows = rows
        for chunk in plan:
            if chunk.key in self._running:
                self._running[chunk.key].completion.evaluated += len(chunk.tokens)
        return True

    def _add_token(self, number: int, chunk: Chunk) -> Prefilled | Sampled | Completion:
        """What the number-th chunk of the last batch has brought for its thread."""
        thread = chunk.key
        call = self._running[thread]
        if not chunk.is_last:
            return Prefilled(thread, len(self._cache.sequence(thread).tokens), len(call.tokens))
        row = self._rows[number]
        token = self._sample(row, call)
        if self._vocabulary.ends(token):
            return self._finish(thread, Stop.END_OF_STREAM)
        logprobs = None
        if call.request.logprobs:
            self._probabilities = self._probabilities or Probabilities(self._vocabulary)
            logprobs = self._probabilities.of(self._logits(row), call, token)
        piece = self._vocabulary.piece(token)
        text = call.completion.add(token, piece)
        if b"\n" in piece:
            call.forbid = ()
        call.tokens.append(token)
        if call.completion.stop is None and len(call.tokens) >= self.context_size:
            call.completion.stop = Stop.CONTEXT
        return Sampled(thread, token, text, logprobs)

    def _logits(self, row: int) -> Any:
        return self._model.logits(row)

    def _sample(self, row: int, call: LlamaCall) -> int:
        return sample(self._logits(row), call, self._vocabulary)

    def _finish(self, thread: ThreadKey, stop: Stop | None = None) -> Completion:
        return self._running.pop(thread).completion.finish(stop)

    def cancel(self, thread: ThreadKey) -> Completion | None:
        with self.lock:
            return self._finish(thread, Stop.CANCELLED) if thread in self._running else None

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        with self.lock:
            self._running.pop(thread, None)
            self._mail.pop(thread, None)
            if self.is_open and keep:
                self._cache.retire(thread)
            elif self.is_open:
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
            self.is_open = False
            self._model.close()
