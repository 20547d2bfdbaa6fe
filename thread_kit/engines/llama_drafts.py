"""Drafts for the calls of an engine: looked up, as long as pays, verified, and learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thread_kit.engines.draft_length import DraftLength
from thread_kit.engines.drafts import LONGEST, DraftIndex
from thread_kit.engines.engine import ThreadKey
from thread_kit.engines.kv_cache import SequenceKey
from thread_kit.engines.llama_batch import Chunk
from thread_kit.engines.llama_model import LlamaModel
from thread_kit.engines.llama_sampling import LlamaCall


class Drafter:
    """What an engine looks its drafts up in, and how long they are.

    is_on: whether anything is looked up; False once and for all where it cannot pay. most: tokens
    of a draft, at most.
    """

    def __init__(self, model: LlamaModel, length: DraftLength) -> None:
        self._model, self._length = model, length
        self.index = DraftIndex()
        self.is_on = length.most > 0
        self.most = length.most

    def read(self, key: SequenceKey, tokens: Sequence[int]) -> None:
        """A text that calls will repeat: a few-shot prompt, or an example."""
        if self.is_on:
            self.index.read(key, tokens)

    def begin(self, call: LlamaCall) -> None:
        """Read what a call sees; what was in cells already has been read before."""
        if self.is_on:
            self.index.add(call.key, call.tokens[max(call.completion.reused - LONGEST, 0) :])

    def add_drafts(self, plan: list[Chunk], running: Mapping[ThreadKey, LlamaCall]) -> None:
        """Let whole contexts be followed by what may come next, as far as it pays and fits."""
        if not self.is_on:
            return
        # 1. What followed before, for each thread that is about to write.
        whole = [chunk for chunk in plan if chunk.is_last]
        calls = [running[chunk.key] for chunk in whole]
        for call in calls:
            written, seen = len(call.completion.tokens), len(call.tokens)
            left = min(call.request.max_tokens - written, self._model.context_size - seen)
            most = min(self.most, left - 1)
            call.draft, call.matched = self.index.look_up(call.tokens, most)
        # 2. How much of it this pass verifies.
        tokens = sum(len(chunk.tokens) for chunk in plan)
        room = self._model.batch_size - tokens
        lengths = self._length.choose([(call.matched, len(call.draft)) for call in calls], tokens)
        for chunk, call, length in zip(whole, calls, lengths, strict=True):
            chunk.draft.extend(call.draft[: min(length, room)])
            room -= len(chunk.draft)

    def compare(self, call: LlamaCall, token: int) -> bool:
        """Learn what a call has written; whether it is other than the draft, verified or not."""
        if self.is_on:
            self.index.add(call.key, [token])
        if not call.draft:
            return False
        came_true = call.draft.pop(0) == token
        self._length.learn(call.matched, came_true)
        call.matched += 1
        if not came_true:
            call.draft = []
        elif call.rows:
            call.completion.came_true.append(len(call.completion.tokens))
        return not came_true
