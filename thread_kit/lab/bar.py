"""A progress bar over the episodes of a suite."""

from __future__ import annotations

from typing import Any, Self

from tqdm.auto import tqdm

from thread_kit.lab.ledger import Key


class Bar:
    """One bar: episodes, how many are solved and broke down, the rate and the time left.

    What was in the file before counts as over, but neither into the rate nor into the time left.
    """

    def __init__(self, episodes: int, *, hidden: bool = False) -> None:
        self._bar = tqdm(total=episodes, unit="episode", disable=hidden)
        self._before = self._solved = self._broken = 0

    def show(self, key: Key, row: dict[str, Any] | None, *, solved: bool) -> None:
        """Take in an episode that is over. row: None for one that was in the file before."""
        self._solved += solved
        self._broken += bool(row and row["error"])
        self._before += row is None
        said = f"{key.method}, {key.model}: {self._solved} solved"
        if self._broken:
            said += f", {self._broken} broke down"
        self._bar.initial = self._before
        self._bar.set_description(said, refresh=False)
        self._bar.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()


__all__ = ["Bar"]
