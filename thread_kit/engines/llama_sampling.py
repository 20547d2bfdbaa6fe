"""From logits to the next token of a call, and to the probabilities that it had."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thread_kit.engines.completion import PartialCompletion
from thread_kit.engines.completion_cache import CompletionKey
from thread_kit.engines.engine import GenerateRequest
from thread_kit.engines.llama_vocabulary import Vocabulary
from thread_kit.engines.token_probs import MarkTokens, top_k
from thread_kit.trace.events import TokenProbs


@dataclass(slots=True)
class LlamaCall:
    """A call that is running.

    tokens: all that the thread sees, with what the call has written.
    forbid: strings that must not be completed before the next line break.
    rows: of logits in the last batch, for the next token and, as long as the draft comes true, for
        those behind it. Each but the first has a cell of a token that may have to go.
    draft: tokens that may be the next ones; matched: tokens by which they were looked up.
    key: of the call's text among those in which drafts are looked up.
    sampled: every token that was taken, also what a stop string has cut since.
    recalled: tokens that followed the same before, yet to be taken; such a call has no pass.
    known_by: by what its completion is found again (`completion_cache.py`).
    """

    request: GenerateRequest
    completion: PartialCompletion
    tokens: list[int]
    forbid: Collection[str]
    rows: list[int] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)
    matched: int = 0
    key: object = field(default_factory=object)
    sampled: list[int] = field(default_factory=list)
    recalled: list[int] = field(default_factory=list)
    known_by: CompletionKey | None = None


COLDEST = 1e-6
"""A temperature below this is 0: what logits are divided by has to leave them numbers."""


def sample(logits: Any, call: LlamaCall, vocabulary: Vocabulary) -> int:
    """The next token: the likeliest, or a draw at the call's temperature (the Gumbel-max trick)."""
    request, completion = call.request, call.completion
    is_greedy = request.temperature < COLDEST
    if is_greedy and not call.forbid:
        return int(logits.argmax())
    if not is_greedy:
        # Seeded by place, so that a draw never depends on what else was in the batch.
        draw = np.random.default_rng([*request.seed, len(call.tokens)])
        logits = logits / request.temperature + draw.gumbel(size=vocabulary.size)
    token = int(logits.argmax())
    if completion.would_complete(vocabulary.piece(token), call.forbid):
        likeliest_first = np.argsort(-logits)
        token = next(
            int(token)
            for token in likeliest_first
            if not completion.would_complete(vocabulary.piece(int(token)), call.forbid)
        )
    return token


class Probabilities:
    """What the model weighed for a token (`token_probs.py` says how)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._mark_tokens = MarkTokens([vocabulary.piece(n) for n in range(vocabulary.size)])

    def of(self, logits: Any, call: LlamaCall, token: int) -> TokenProbs:
        """The probability of a token, of each mark that was asked for, and of the likeliest."""
        from scipy.special import softmax  # here: it takes 0.2 s, and few sessions ask for this

        vocabulary, shares = self._vocabulary, softmax(logits)
        marks = {}
        for mark in call.request.logprobs:
            first = vocabulary.piece(vocabulary.tokenize(mark, first=False)[0])
            leading = self._mark_tokens.leading_to(mark.encode(), first, call.completion.written)
            marks[mark] = round(float(shares[leading].sum()), 4)
        top = tuple(
            (vocabulary.piece(number).decode("utf-8", "replace"), round(float(shares[number]), 4))
            for number in top_k(shares)
        )
        return TokenProbs(round(float(shares[token]), 4), marks, top)
