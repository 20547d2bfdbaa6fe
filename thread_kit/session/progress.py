"""A progress bar over the events of a session."""

from __future__ import annotations

from typing import Self

from tqdm.auto import tqdm

from thread_kit.trace.events import Event, GeneratedSpan, Prefilling, Spawned, Token


class Progress:
    """One bar: the few-shot prompt in tokens, then calls of the model against their limit."""

    def __init__(self, calls: int | None, *, hidden: bool = False) -> None:
        self._bar = tqdm(total=calls, unit="call", disable=hidden, leave=False)
        self._tokens = 0

    def show(self, event: Event) -> None:
        """Take in the next event."""
        match event:
            case Prefilling(None, done, total):
                self._bar.set_description(f"few-shot prompt {done}/{total} tokens")
            case Spawned():
                self._bar.set_description(f"thread {event.thread}")
            case Token():
                self._tokens += 1
                self._bar.set_postfix_str(f"{self._tokens} tokens", refresh=False)
                self._bar.update(0)
            case GeneratedSpan():
                self._bar.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
