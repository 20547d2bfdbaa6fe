"""The tokens of a model in this process: from text to tokens, and back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import llama_cpp

from thread_kit.engines.engine import EngineError
from thread_kit.engines.tokenizers import find_lead, tokenize_inside

ROOM = 1024  # bytes of one token; the longest of today's vocabularies have a few hundred


class Vocabulary:
    """The vocabulary of a llama.cpp model, which must outlive it.

    size: tokens.
    """

    def __init__(self, model: Any) -> None:
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        self.size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self._pieces: dict[int, bytes] = {}
        self._lead = find_lead(self.detokenize(self._inside("a")))

    def tokenize(self, text: str, *, first: bool) -> tuple[int, ...]:
        """The tokens of a text. `first`: it opens the context, so marks of a beginning belong."""
        if first:
            tokens = self.raw(text.encode("utf-8", "replace"), special=True)
            # Some vocabularies add a mark of the end, too, and there it goes on.
            has_end = tokens and llama_cpp.llama_vocab_get_add_eos(self._vocab)
            return tokens[:-1] if has_end and self.ends(tokens[-1]) else tokens
        return tokenize_inside(self._inside, text, self._lead)

    def _inside(self, text: str) -> tuple[int, ...]:
        return self.raw(text.encode("utf-8", "replace"), special=False)

    def raw(self, raw: bytes, *, special: bool) -> tuple[int, ...]:
        """What llama.cpp makes of some bytes. special: with the marks of a beginning."""
        room = len(raw) + 8
        tokens = (llama_cpp.llama_token * room)()
        # parse_special is off: text from prompts and tools can never become a control token.
        n = llama_cpp.llama_tokenize(self._vocab, raw, len(raw), tokens, room, special, False)
        if n < 0:
            raise EngineError(f"cannot tokenize a text of {len(raw)} bytes (llama.cpp: {n})")
        return tuple(tokens[:n])

    def piece(self, token: int) -> bytes:
        """The bytes of one token; they need not be whole characters."""
        piece = self._pieces.get(token)
        if piece is None:
            buffer = ctypes.create_string_buffer(ROOM)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, ROOM, 0, True)
            piece = self._pieces[token] = buffer.raw[: max(n, 0)]
        return piece

    def detokenize(self, tokens: Iterable[int]) -> bytes:
        """The bytes of several tokens."""
        return b"".join(map(self.piece, tokens))

    def ends(self, token: int) -> bool:
        """Whether the model ends its text with this token."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))
