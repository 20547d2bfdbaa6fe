"""What a sandbox keeps of a line, and what it says where that is too much.

The jail's process says it where the code is honest; the host holds every sandbox to it.
"""

from __future__ import annotations

from collections.abc import Mapping

ERROR_CHARACTERS = 500  # an error is shown to people and kept in the trace: one line is enough


def shorten_error(text: str) -> str:
    """An error's message, cut after `ERROR_CHARACTERS`."""
    return text if len(text) <= ERROR_CHARACTERS else text[:ERROR_CHARACTERS] + "..."


def describe_excess(
    variables: Mapping[str, str], state: bytes, *, variables_characters: int, state_bytes: int
) -> str | None:
    """The error of a line that leaves too much behind: names and texts, or bytes; None if fit."""
    # Every line leaves a state that a fork may want, and texts that are parsed in our process.
    if sum(len(name) + len(text) for name, text in variables.items()) > variables_characters:
        return f"MemoryError: the variables take more than {variables_characters:,} characters"
    if len(state) > state_bytes:
        return f"MemoryError: the namespace takes more than {state_bytes:,} bytes"
    return None
