"""The budgets of an episode, all outside the model's reach.

They are the episode's, whoever spends them. Where threads run at the same time, a call counts as
soon as it begins, and the new tokens that it may have are set aside for it; so no call is cut
because of what another one might still write. Budgets are exceeded only by what is under way: a
call by a few tokens where a stop string ends inside its last one, or by its text where a person
writes it (`max_tokens` in engines/completion.py), and seconds by those of a step or of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thread_kit.requests import Status
from thread_kit.trace.costs import Usage
from thread_kit.trace.header import LIMITS


class EpisodeOver(Exception):  # noqa: N818 (no error: every episode is over one day)
    """The episode cannot go on: a budget is spent, or somebody stopped it."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of an episode; None is no limit.

    calls: of the model; new_tokens: a call; tokens: new ones; depth: levels below the main thread;
    seconds: of work.
    """

    calls: int | None
    new_tokens: int
    tokens: int | None
    depth: int | None
    seconds: float | None

    @property
    def facts(self) -> dict[str, float | None]:
        """For the header of a trace."""
        return {name: getattr(self, name) for name in LIMITS}

    def room(self, used: Usage, running: Sequence[int]) -> tuple[int, Status] | None:
        """The new tokens that one more call may have, and what it means when they are spent.

        running: what the calls that run now may have. None: not before one of them is over. Raises
        EpisodeOver when nothing is left.
        """
        if self.calls is not None and used.calls + len(running) >= self.calls:
            if running:  # they have been paid for: what they write is kept
                return None
            raise EpisodeOver(Status.OUT_OF_CALLS, f"{used.calls} calls of the model are used up")
        room, spent = self.new_tokens, Status.TRUNCATED
        if self.tokens is not None:
            left = self.tokens - used.generated - sum(running)
            if left <= room:
                if running:
                    return None
                room, spent = left, Status.OUT_OF_TOKENS
        if room <= 0:
            raise EpisodeOver(spent, f"{used.generated} new tokens are used up")
        return room, spent

    def refuse_depth(self, depth: int) -> str:
        """Why there is no thread so many levels below the main thread; "" where there may be."""
        if self.depth is None or depth <= self.depth:
            return ""
        return f"a thread may be at most {self.depth} levels below the main thread"
