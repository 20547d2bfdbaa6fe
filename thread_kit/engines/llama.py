"""KV-true threads on llama.cpp, by llama-cpp-python's low-level API.

One context, one unified KV cache, one sequence a thread. The few-shot prompt is evaluated once and
shared; a spawn copies a prefix (no evaluation), a waiting parent keeps its cells, what a child
returns is evaluated behind them. All threads that generate share one batch a step.

(The high-level `Llama` class has one sequence, and reuses only the previous prompt's prefix: a
parent would be evaluated again after each of its children.)

`llama_model.py` loads, `llama_batch.py` evaluates, `llama_sampling.py` takes the next token.

What a thread will write may stand somewhere already (`drafts.py`). Such a draft is evaluated with
the thread's last token, in the batch of all threads. Each row of logits gives a token just as it
would without, and as long as that is the draft's the next row is there already; what does not come
true is cut from the cells. So tokens, stops, draws, bans and probabilities are those of a model
without drafts, up to what another shape of a batch does to the last digits (`bench/exactness.py`).

What a thread sees may have been seen before, token for token, in the same session. Then what
followed is taken again, and nothing is evaluated (`completion_cache.py`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from thread_kit.dialect import Stop
from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.completion_cache import CompletionCache, completion_key
from thread_kit.engines.draft_length import DraftLength, cached_costs
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
from thread_kit.engines.kv_cache import KVCache, PromptKey, SequenceKey
from thread_kit.engines.llama_batch import Cells, Chunk, decode, plan_batch
from thread_kit.engines.llama_drafts import Drafter
from thread_kit.engines.llama_model import LlamaModel, describe_system
from thread_kit.engines.llama_sampling import LlamaCall, Probabilities, sample
from thread_kit.engines.prompt_cache import PromptCache
from thread_kit.engines.prompt_readers import PromptReaders
from thread_kit.file_hash import sha256_of

PATIENCE, MOMENT = 10.0, 0.02
"""Seconds that a few-shot prompt waits for cells at most while nothing is computed, and between two
looks."""


class LlamaEngine(Engine):
    """A GGUF model in this process.

    path: the model file.
    adapter: a LoRA adapter (GGUF) that was trained for this model; None for the model as it is. A
        text beside it (.txt), an example of what it was taught to write, is for drafts alone.
    context: cells of the KV cache, in tokens, shared by all threads; also the most that one thread
        can see (or what the model was trained for, if that is less).
    gpu_layers: layers to offload; -1 is all, where the build supports it. What was really offloaded
        is in `offloaded`.
    cpu_threads: None takes every core that the process may use (`taskset`, a job's share) and that
        other engines of this machine leave while they compute (`core_share.py`); with a number the
        last digits of logits, and so a near tie, never depend on what runs beside.
    batch: tokens evaluated in one step, at most.
    sequences: threads whose cells are kept at the same time, at most (llama.cpp allows 256).
    keep_prompts: few-shot prompts are kept on disk (`prompt_cache.py`), so that the next start
        evaluates none of their tokens.
    draft: tokens that are looked up and verified in one pass, at most; 0: none, one token a pass;
        None: as many as pay on this machine, by what passes cost (measured once, about a tenth of a
        second where they are fast, and kept in the cache folder's `passes`) and by what has come
        true so far. `load_model` has a default of its own.
    flash_attention: llama.cpp's attention that needs no memory for scores; None leaves that to
        llama.cpp, which takes it. On a CPU it reads the cells once for each token of a pass, and
        without it (False) once for all: faster where many threads share a long prompt. It takes
        memory then (4 bytes for each token of a batch, cell and head), and the last digits of
        logits depend on what else the cells hold.

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
        draft: int | None = 0,
        flash_attention: bool | None = None,
    ) -> None:
        super().__init__()
        # 1. The model.
        self.path = Path(path)
        self.name = name or self.path.stem
        self.adapter = Path(adapter) if adapter else None
        self._model = LlamaModel(self.path, self.name, self.adapter, gpu_layers)
        self._model.open(context, cpu_threads, batch, sequences, flash_attention)
        self._cpu_threads = cpu_threads
        self.offloaded = self._model.offloaded
        self.cells, self.context_size = self._model.cells, self._model.context_size
        self._vocabulary = self._model.vocabulary
        # 2. Its KV cache, and the calls over it.
        self._cells = Cells(self._model.context)
        self._cache = KVCache(self._cells, self._model.sequences)
        self._prompts = PromptCache() if keep_prompts else None
        self._running: dict[ThreadKey, LlamaCall] = {}
        self._readers = PromptReaders()
        self._passes = 0
        self._completions = CompletionCache()
        # 3. Drafts, as long as they pay here.
        self.costs: dict[int, float] = {}  # seconds of a pass by its tokens, where they decide
        if draft is None:
            self._model.take_cores()
            self.costs = cached_costs(self._model, self.path, self.adapter, self._take_pass)
            self._model.leave_cores()
        self._drafter = Drafter(self._model, DraftLength(draft, self.costs))
        example = self.adapter and self.adapter.with_suffix(".txt")
        if self._drafter.is_on and example and example.is_file():
            self._drafter.read(example, self.tokenize(example.read_text(encoding="utf-8")))

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
        """Evaluate a few-shot prompt, or find it; waits while others compute in all the cells.

        Raises EngineError if it does not fit, or nothing was computed for `PATIENCE` seconds.
        """
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
        with self.lock:
            self._drafter.read(key, prompt)
        try:
            yield from self._read_prompt(key, prompt)
        finally:
            self._readers.leave(key)  # without the lock: it may come while somebody has it
            self._rest()

    def _read_prompt(self, key: PromptKey, prompt: list[int]) -> Iterator[Prefilled]:
        """A batch at a time. Where others have the cells it waits, as long as they compute."""
        done, passes, since = -1, self._passes, time.monotonic()
        while done < len(prompt):
            with self.lock:
                self._must_be_open()
                self._readers.look(key)
                done, new, waits = self._read_on(key, prompt, done)
                if passes != self._passes:
                    passes, since = self._passes, time.monotonic()
                if waits and (not self._spare(key) or time.monotonic() - since > PATIENCE):
                    raise EngineError(
                        f"no cell is left for {self.name}'s few-shot prompt beside the threads "
                        "that run, or are paused; play fewer episodes at once, or load it with a "
                        "larger `context` (--context)"
                    )
                if waits:
                    self._readers.wait(key)
            yield Prefilled(None, max(done, 0), len(prompt), new)
            if waits and passes == self._passes:  # nobody has computed anything meanwhile
                time.sleep(MOMENT)

    def _read_on(self, key: PromptKey, prompt: list[int], before: int) -> tuple[int, int, bool]:
        """Read the next batch of a prompt: tokens in the cells, those evaluated, whether it waits.

        before: tokens that were in the cells at the last look; -1 at the first.
        """
        # 1. What the cells hold. Asked anew each time: others may have evaluated or evicted some.
        try:
            done = self._place(key, [*prompt, -1])
        except EngineBusyError:
            return before, 0, True
        if done == len(prompt):
            return done, 0, False
        # 2. At the start: the cells of an earlier start, from disk.
        if before < 0:
            return (len(prompt) if self._restore(key, prompt) else done), 0, False
        # 3. Evaluate what is missing; the whole goes to disk. Who runs goes first.
        chunk = prompt[done : done + self._model.batch_size]
        lost = done < before and self._running
        if lost or not self._evaluate([Chunk(key, chunk, is_last=False)]):
            return done, 0, True
        done += len(chunk)
        if done == len(prompt):
            self._store(key, prompt)
        return done, len(chunk), False

    def _identify(self, prompt: list[int]) -> dict[str, Any]:
        """All that the cells of a prompt depend on, but for rounding.

        Batches of another size round otherwise, and so do those of a prompt that was read behind
        what it shares with another one.
        """
        about = self.describe()
        names = ["sha256", "adapter", "layers_offloaded", "llama_cpp_python", "batch", "system"]
        if about["flash_attention"] is not None:
            names.append("flash_attention")  # without it the cells lie otherwise
        return {"tokens": prompt, **{name: about[name] for name in names}}

    def _restore(self, key: SequenceKey, prompt: list[int]) -> bool:
        """Fill the cells of a prompt from disk; False if it is not there, or does not fit."""
        if not self._prompts or not prompt:
            return False
        about = self._identify(prompt)
        cells = self._prompts.load(about)
        if cells is None:
            return False
        sequence = self._cache.sequence(key)
        sequence.tokens.clear()
        while not self._cells.write(sequence.number, cells, len(prompt)):
            self._cache.forget(key)
            if not self._cache.evict_over():
                if len(self._cache) == 1:  # room there was, so it is the file
                    self._prompts.discard(about)
                return False
        self._cache.extend(key, prompt)
        return True

    def _store(self, key: SequenceKey, prompt: list[int]) -> None:
        if self._prompts:
            cells = self._cells.read(self._cache.sequence(key).number)
            if cells is not None:
                self._prompts.store(self._identify(prompt), cells)

    def _spare(self, key: SequenceKey) -> set[SequenceKey]:
        """Whose cells stay where this one needs room: of all that runs, and of older prompts."""
        return {*self._running, *self._readers.older(key)}

    def _place(self, key: SequenceKey, tokens: list[int]) -> int:
        try:
            return self._cache.place(key, tokens, self._spare(key))
        except RuntimeError as error:
            raise EngineBusyError(str(error)) from None

    # Calls

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._must_be_idle(thread, self._running)
        completion = PartialCompletion(thread, request.stops, request.max_tokens, self.tokenize)
        if request.given:
            completion.give(request.given)
        call = LlamaCall(request, completion, request.seen, request.forbid)
        call.known_by = completion_key(thread, request)
        with self.lock:
            self._must_be_open()
            room = request.max_tokens - len(completion.tokens)
            if len(call.tokens) >= self.context_size:
                completion.stop = Stop.CONTEXT
            elif completion.stop is None:
                call.recalled = self._completions.find(call.known_by, room)
            if call.recalled:
                completion.reused = len(call.tokens)
            elif completion.stop is None:
                completion.reused = self._place(thread, call.tokens)
                self._drafter.begin(call)
            self._running[thread] = call

    def step(self) -> list[Prefilled | Sampled | Completion]:
        self._must_be_open()
        # 1. Calls that are over give their place to others.
        over = [key for key, call in self._running.items() if call.completion.stop is not None]
        if over:
            return [self._finish(thread) for thread in over]
        if not self._running:
            return []
        # 2. Tokens that are known: they followed the same before, or the last batch holds their
        #    logits already, because a draft came true.
        threads = [thread for thread, call in self._running.items() if call.rows or call.recalled]
        if not threads:
            # 3. One batch, of what each thread has yet to evaluate, and of drafts behind it.
            done = {key: self._count_known(key, call) for key, call in self._running.items()}
            waiting = [(key, call.tokens[done[key] :]) for key, call in self._running.items()]
            plan = plan_batch(waiting, self._model.batch_size)
            self._drafter.add_drafts(plan, self._running)
            if not self._evaluate(plan):
                # Every cell is taken by threads that are generating: the longest gives way.
                longest = max(self._running, key=lambda key: len(self._running[key].tokens))
                return [self._finish(longest, Stop.CONTEXT)]
            threads = [chunk.key for chunk in plan]
        # 4. Each whole context has one more token.
        news: list[Prefilled | Sampled | Completion] = []
        try:
            for thread in threads:
                news.append(self._add_token(thread, self._running[thread]))
        except BaseException:  # nobody else loses what there is, or goes on by another's logits
            self._send(news)
            for thread, call in self._running.items():
                self._cut_draft(thread, call)
            raise
        return news

    def _count_known(self, thread: ThreadKey, call: LlamaCall) -> int:
        """Tokens in the cells of a call, but for the last one, whose logits are wanted."""
        known = len(self._cache.sequence(thread).tokens)
        if known >= len(call.tokens):  # the step that had them broke off
            self._cache.cut(thread, len(call.tokens) - 1)
            known = len(self._cache.sequence(thread).tokens)
        return known

    def _evaluate(self, plan: list[Chunk]) -> bool:
        """One decode; False when no cell is left and nothing more can be evicted."""
        for thread, call in self._running.items():  # their logits will be gone
            self._cut_draft(thread, call)
        busy = {*self._spare(plan[0].key), *(chunk.key for chunk in plan)}
        self._model.take_cores()
        rows = decode(self._model, self._cache, plan, busy)
        if rows is None:
            return False
        self._passes += 1
        for chunk, own in zip(plan, rows, strict=True):
            if chunk.key in self._running:
                call = self._running[chunk.key]
                call.rows, drafted = own, max(len(own) - 1, 0)
                call.completion.evaluated += len(chunk.tokens) + drafted
                call.completion.drafted += drafted
                call.completion.passes += self._drafter.is_on
        return True

    def _cut_draft(self, thread: ThreadKey, call: LlamaCall) -> None:
        """Empty the cells of tokens that did not come true, or that nobody will ask for."""
        if call.rows and self.is_open:
            call.completion.evaluated -= len(call.rows)
            kept = len(self._cache.sequence(thread).tokens) - len(call.rows)
            if not self._cache.cut(thread, kept):
                self._drafter.is_on = False  # a memory that cannot forget a part (state space)
            call.rows = []

    def _add_token(self, thread: ThreadKey, call: LlamaCall) -> Prefilled | Sampled | Completion:
        """What the last batch has brought for a thread."""
        if not call.rows and not call.recalled:
            return Prefilled(thread, len(self._cache.sequence(thread).tokens), len(call.tokens))
        # 1. The token: what followed before; or by its logits, and whether it is the draft's.
        row = call.rows.pop(0) if call.rows else -1
        if call.recalled:
            token = call.recalled.pop(0)
        else:
            token = self._sample(row, call)
            if self._drafter.compare(call, token):
                self._cut_draft(thread, call)
        call.sampled.append(token)
        if self._vocabulary.ends(token):
            return self._finish(thread, Stop.END_OF_STREAM)
        # 2. What it weighed, and what it adds.
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
        call = self._running.pop(thread)
        self._cut_draft(thread, call)
        self._rest()
        completion = call.completion.finish(stop)
        self._completions.store(call.known_by, call.sampled, completion.stop)
        return completion

    def _rest(self) -> None:
        """Where nothing runs any more, the cores are other engines'."""
        if self.is_open and not self._running:
            self._model.leave_cores()

    def cancel(self, thread: ThreadKey) -> Completion | None:
        with self.lock:
            over = self._take_mail(thread)  # also of a call that runs: it is none of the next one's
            return self._finish(thread, Stop.CANCELLED) if thread in self._running else over

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        with self.lock:
            if call := self._running.pop(thread, None):
                self._cut_draft(thread, call)
                self._rest()
            self._mail.pop(thread, None)
            if self.is_open and keep:
                self._cache.retire(thread)
            elif self.is_open:
                self._cache.drop(thread)

    def _take_pass(self, tokens: int) -> None:
        """A pass over so many tokens, for its costs; the cells are empty before and after."""
        self._place("costs", [0])
        self._evaluate([Chunk("costs", [0], is_last=True, draft=[0] * (tokens - 1))])
        llama_cpp.llama_synchronize(self._model.context)
        self._cache.drop("costs")

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
            "draft": self._drafter.most,
            "batch": self._model.batch_size,
            "cpu_threads": self._cpu_threads,
            "system": describe_system(),
            "flash_attention": self._model.flash_attention,
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
