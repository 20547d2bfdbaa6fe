"""What is known of a session while it runs, on one line: calls, tokens, threads, time so far."""

from __future__ import annotations

from typing import Self

from tqdm.auto import tqdm

from thread_kit.trace.events import Event, GeneratedSpan, Prefilling, Spawned, Token


class Progress:
    """One line, with no share of a whole: how long an episode will be, nobody knows.

    Only of a few-shot prompt that is evaluated it is known how much is left.
    """

    def __init__(self, *, hidden: bool = False) -> None:
        self._bar = tqdm(bar_format="{desc} [{elapsed}]", miniters=0, disable=hidden, leave=False)
        self._calls = self._tokens = self._threads = 0

    def show(self, event: Event) -> None:
        """Take in the next event."""
        if self._bar.disable:
            return
        match event:
            case Prefilling(None, done, total):
                self._bar.set_description_str(f"few-shot prompt, {done} of {total} tokens")
                return
            case Spawned():
                self._threads += 1
            case Token():
                self._tokens += 1
            case GeneratedSpan():
                self._calls += 1
            case _:
                return
        self._bar.set_description_str(str(self), refresh=False)
        self._bar.update(0)  # draws it where the last drawing is old enough

    def __str__(self) -> str:
        return f"calls {self._calls}, tokens {self._tokens}, threads {self._threads}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.refresh()
        self._bar.close()
