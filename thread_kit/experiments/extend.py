"""Extend: what smaller budgets ended goes on with larger ones, and what they did not end stays.

Only budgets of an episode as a whole: one that ended by itself would do the same with more of them.
More new tokens a call, or more levels, can change any thread of it, and so make another episode.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from thread_kit.experiments.budgets import with_own_actions
from thread_kit.experiments.results_file import EpisodeKey

UNITS = ("calls", "tokens", "seconds", "actions")
"""The budgets of an episode as a whole."""


def find_earlier(
    rows: Iterable[dict[str, Any]],
    limits: Mapping[str, Any],
    key_with: Callable[[Mapping[str, Any]], EpisodeKey],
) -> dict[str, Any] | None:
    """The row of the same episode with smaller budgets, the largest of them; None if there is none.

    limits: of now. key_with: the key that the episode has with given limits.
    """
    matches = [
        row
        for row in rows
        if row["limits"]
        and not row["error"]
        and row["limits"] != limits
        and EpisodeKey.of(row) == key_with(row["limits"])
        and _fits(
            with_own_actions(row["limits"], row["environment"]),
            with_own_actions(limits, row["environment"]),
        )
    ]
    return max(matches, key=lambda row: row["calls"], default=None)


def _fits(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether limits are those of now, or smaller budgets of an episode; None is no limit."""
    for unit in {*before, *now}:
        small, large = before.get(unit), now.get(unit)
        is_smaller = small is not None and (large is None or small < large)
        if small != large and not (unit in UNITS and is_smaller):
            return False
    return True


def hand_over_trace(earlier: Mapping[str, Any], trace: Path) -> None:
    """Have an episode that will write `trace` go on from an earlier row's, if there is one.

    As what was interrupted (`experiments/resume.py`); the earlier trace stays where it is.
    """
    before = trace.with_suffix(".before")
    if not earlier["trace"] or trace.exists() or before.exists():
        return
    source = trace.parent / Path(earlier["trace"]).name  # whatever folder the row names
    if source.is_file():
        part = before.with_suffix(".part")
        shutil.copy(source, part)
        part.rename(before)


def find_replaced(rows: Iterable[dict[str, Any]], *, extended: bool) -> set[EpisodeKey]:
    """The keys of the rows whose place others have taken: no start at all, and if `extended`,
    smaller budgets. One that broke down takes nobody's place.
    """
    rows = list(rows)
    played = [EpisodeKey.of(row).without_settings for row in rows if row["settings"]]
    replaced = {*played, *(key._replace(environment="") for key in played)}
    if extended:
        replaced |= {
            EpisodeKey.of(row)._replace(settings=row["extends"])
            for row in rows
            if "extends" in row and not row["error"]
        }
    return replaced
