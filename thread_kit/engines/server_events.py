"""What a server's events say: new tokens, what they cost, and why a completion ended.

Whatever a server sends is read as if an enemy had sent it: a field of another kind than expected
raises one of Python's own errors, which `ServerEngine` makes an EngineError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.engines.tokenizers import Tokenizer, Tokens, check_count


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens reused and evaluated, by the server's account."""

    reused: int
    evaluated: int

    @classmethod
    def of(cls, event: dict[str, Any]) -> Costs:
        """Those of llama-server's timings; the last token written was not evaluated."""
        timings = event.get("timings") or {}
        written = max(check_count(timings.get("predicted_n", 0)) - 1, 0)
        reused, prompt = (check_count(timings.get(name, 0)) for name in ("cache_n", "prompt_n"))
        return cls(reused, prompt + written)


@dataclass(frozen=True, slots=True)
class Written:
    """A token has come. costs: of the call up to here."""

    token: int
    piece: bytes
    costs: Costs


@dataclass(frozen=True, slots=True)
class End:
    """The completion is over, for this reason."""

    stop: Stop
    costs: Costs


def _choice(event: dict[str, Any]) -> dict[str, Any]:
    choices = event.get("choices") or [{}]
    return choices[0] if isinstance(choices[0], dict) else {}


def finish_reason(event: dict[str, Any]) -> str | None:
    """Why the server ends the completion with this event; None if it does not."""
    return _choice(event).get("finish_reason")


def find_fault(event: dict[str, Any]) -> str:
    """Why a call cannot go on with this event, in words that follow the server's name; or ""."""
    choice = _choice(event)
    reason = choice.get("finish_reason")
    if "text" not in choice and ("delta" in choice or "message" in choice):
        return "sends no text, as in a chat; give the address of one that offers completions"
    return f"broke its text off ({reason})" if reason in BROKEN_OFF else ""


BROKEN_OFF = ("content_filter", "abort", "error")
"""Reasons that end a completion and that no model gave."""


def read_tokens(event: dict[str, Any], tokenizer: Tokenizer, *, exact: bool) -> Tokens:
    """The tokens of the text that an event adds. exact: it is one token, which has its number."""
    choice = _choice(event)
    text = choice.get("text") or ""
    if not text:
        return []
    if exact:
        listed = (choice.get("logprobs") or {}).get("content") or []
        raw = text.encode("utf-8", "replace")
        if len(listed) == 1 and listed[0].get("bytes") == [*raw]:
            return [(check_count(listed[0]["id"]), raw)]
    return tokenizer.tokenize(text)
