"""Texts as they may be printed, whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SUBSTITUTES = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029], 0xFFFD),
    **dict.fromkeys([0x200E, 0x200F, 0x061C, 0xFFFE, 0xFFFF], 0xFFFD),
}


def sanitize(text: str) -> str:
    """Text without the characters that act on a page or a terminal instead of being read.

    Control characters become their pictures (an escape reads "␛"); halves of surrogate pairs,
    which no file or page can hold, two codes that no XML may hold, and marks that turn the
    direction of writing become "\ufffd".
    """
    return text.translate(_SUBSTITUTES)


def mend_surrogates(text: str) -> str:
    """Text without lone surrogates, which no file and no model can take; "?" in their place."""
    return text.encode("utf-8", "replace").decode()


def sanitize_all(data: Any) -> Any:
    """Data of texts, lists and dictionaries, in which every text is sanitized."""
    match data:
        case str():
            return sanitize(data)
        case Mapping():
            return {sanitize_all(key): sanitize_all(value) for key, value in data.items()}
        case list() | tuple():
            return [sanitize_all(value) for value in data]
    return data
