"""How text becomes tokens: in the middle of a sequence, and where the model is on a server.

llama-server gives its own tokens (`ServerTokenizer`). Hosted models do not; there, `PieceTokenizer`
makes tokens of its own, which the server never sees: it is sent text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from thread_kit.engines.engine import EngineError
from thread_kit.trace.printable import mend_surrogates

if TYPE_CHECKING:
    from thread_kit.engines.http_client import HttpClient

Tokens = list[tuple[int, bytes]]
"""Tokens, each with its bytes."""

T = TypeVar("T", bound=Sequence[Any])


MOST = 2**53
"""Tokens that a count can come to, or the number of one: what JSON keeps exactly."""


def check_count(number: Any, at_most: int = MOST, *, at_least: int = 0) -> int:
    """A count of tokens, or the number of one; raises ValueError for what is none of these."""
    if not at_least <= int(number) <= at_most:
        raise ValueError(f"{number!r:.60} is no number from {at_least} to {at_most}")
    return int(number)


def tokenize_inside(tokenize: Callable[[str], T], text: str, lead: str) -> T:
    """The tokens of a text in the middle of a sequence, as `tokenize` would have them there.

    Vocabularies of the SentencePiece kind put a space before whatever they tokenize, which is wrong
    in the middle of a sequence: there, a line break goes first and is cut off again.

    lead: what `find_lead` says of the vocabulary.
    """
    if not lead or not text:
        return tokenize(text)
    lead_tokens, tokens = tokenize(lead), tokenize(lead + text)
    size = len(lead_tokens)
    return tokens[size:] if tokens[:size] == lead_tokens else tokens  # type: ignore[return-value]


def find_lead(a: bytes) -> str:
    """What has to go first in the middle of a sequence, where the text "a" becomes these bytes."""
    return "" if a == b"a" else "\n"


class Tokenizer(ABC):
    """From text to tokens."""

    @abstractmethod
    def tokenize(self, text: str, *, first: bool = False) -> Tokens:
        """The tokens of a text. `first`: it opens the context, so marks of a beginning belong."""


class ServerTokenizer(Tokenizer):
    """The model's own tokens, asked of llama-server (/tokenize)."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._ask = lru_cache(maxsize=16)(self._fetch)  # a call's last text is asked for twice
        self._lead = find_lead(b"".join(piece for _, piece in self._ask("a", False)))

    def tokenize(self, text: str, *, first: bool = False) -> Tokens:
        if first:
            return self._ask(text, True)
        return tokenize_inside(lambda text: self._ask(text, False), text, self._lead)

    def _fetch(self, text: str, first: bool) -> Tokens:
        # parse_special is off: text from prompts and tools can never become a control token.
        options = {"add_special": first, "parse_special": False, "with_pieces": True}
        content = mend_surrogates(text)
        answer = self._client.post("/tokenize", {"content": content, **options})
        try:
            return [(check_count(one["id"]), _read_piece(one["piece"])) for one in answer["tokens"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise EngineError(
                f"{self._client.url}/tokenize does not answer as llama-server does; use a newer "
                "llama-server (b4000 or later)"
            ) from None


def _read_piece(piece: str | list[int]) -> bytes:
    """llama-server writes bytes that are no whole character as a list of numbers."""
    if isinstance(piece, list):
        return bytes(piece)
    return str.encode(piece, "utf-8", "replace")


class PieceTokenizer(Tokenizer):
    """Pieces of text as tokens: a word or the part of one, of at most 6 bytes.

    The number of a piece is its bytes, read as one number: nothing has to be remembered, so that
    tokens mean the same in every process (a recording can be played anywhere), and no two pieces
    share a number. Counts in pieces are near those of a model's tokens, and not the same.
    """

    SIZE = 6  # bytes; the numbers stay below 2**53, which JSON and JavaScript keep exactly

    def tokenize(self, text: str, *, first: bool = False) -> Tokens:
        text = mend_surrogates(text)
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

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of pieces; raises EngineError for a number that is no piece."""
        return b"".join(map(self._bytes, tokens)).decode("utf-8", "replace")

    def _bytes(self, token: int) -> bytes:
        size = (token.bit_length() - 1) // 8
        if not 1 <= size <= self.SIZE or token >> 8 * size != 1:
            raise EngineError(
                f"token {token} is no piece of text; tokens of another engine mean nothing to a "
                "hosted model: use those of this engine's tokenize"
            )
        return (token - (1 << 8 * size)).to_bytes(size)
