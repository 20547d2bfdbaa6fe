"""How text is spelled by tokens where the model is on a server.

llama-server tells its own tokens (`ServerTokens`). Hosted models do not; there, `Pieces` makes
tokens of its own, which the server never sees: it is sent text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from thread_kit.engines.engine import EngineError
from thread_kit.engines.http_client import Wire

Spelled = list[tuple[int, bytes]]
"""Tokens, each with the bytes that it spells."""


class Spelling(ABC):
    """From text to tokens."""

    @abstractmethod
    def spell(self, text: str, *, first: bool = False) -> Spelled:
        """The tokens of a text. `first`: it opens the context, so marks of a beginning belong."""


class ServerTokens(Spelling):
    """The model's own tokens, asked of llama-server (/tokenize)."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        # Vocabularies of the SentencePiece kind put a space before whatever they tokenize, which
        # is wrong in the middle of a sequence: there, a line break goes first and is cut off again.
        self._lead = "" if b"".join(piece for _, piece in self._ask("a", False)) == b"a" else "\n"

    def spell(self, text: str, *, first: bool = False) -> Spelled:
        if first or not self._lead or not text:
            return self._ask(text, first)
        lead = self._ask(self._lead, False)
        led = self._ask(self._lead + text, False)
        return led[len(lead) :] if led[: len(lead)] == lead else led

    def _ask(self, text: str, first: bool) -> Spelled:
        # parse_special is off: text from prompts and tools can never become a control token.
        asked = {"add_special": first, "parse_special": False, "with_pieces": True}
        content = text.encode("utf-8", "replace").decode()
        answer = self._wire.post("/tokenize", {"content": content, **asked})
        try:
            return [(int(one["id"]), _piece(one["piece"])) for one in answer["tokens"]]
        except (KeyError, TypeError, ValueError):
            raise EngineError(
                f"{self._wire.url}/tokenize does not answer as llama-server does; use a newer "
                "llama-server (b4000 or later)"
            ) from None


def _piece(piece: str | list[int]) -> bytes:
    """llama-server writes bytes that are no whole character as a list of numbers."""
    return piece.encode("utf-8", "replace") if isinstance(piece, str) else bytes(piece)


class Pieces(Spelling):
    """Pieces of text as tokens: a word or the part of one, of at most 6 bytes.

    The number of a piece is its bytes, read as one number: nothing has to be remembered, so that
    tokens mean the same in every process (a tape can be opened anywhere), and no two pieces share
    a number. Counts in pieces are near those of a model's tokens, and not the same.
    """

    SIZE = 6  # bytes; the numbers stay below 2**53, which JSON and JavaScript keep exactly

    def spell(self, text: str, *, first: bool = False) -> Spelled:
        text = text.encode("utf-8", "replace").decode()
        pieces = [
            piece for word in re.findall(r" ?\w+|\s|[^\w\s]", text) for piece in self._cut(word)
        ]
        return [(int.from_bytes(b"\x01" + piece), piece) for piece in pieces]

    def _cut(self, word: str) -> list[bytes]:
        pieces = [b""]
        for character in word:
            raw = character.encode()
            if len(pieces[-1]) + len(raw) > self.SIZE:
                pieces.append(b"")
            pieces[-1] += raw
        return pieces

    def text(self, tokens: Sequence[int]) -> str:
        """What pieces say; raises EngineError for a number that is no piece."""
        return b"".join(map(self._bytes, tokens)).decode("utf-8", "replace")

    def _bytes(self, token: int) -> bytes:
        size = (token.bit_length() - 1) // 8
        if not 1 <= size <= self.SIZE or token >> 8 * size != 1:
            raise EngineError(
                f"token {token} is no piece of text; tokens of another engine mean nothing to a "
                "hosted model: use those of this engine's tokenize"
            )
        return (token - (1 << 8 * size)).to_bytes(size)
