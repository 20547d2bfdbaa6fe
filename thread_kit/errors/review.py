"""Reviews: who said of which failed episode what its first error was, and how far they agree.

A review is a line of a JSONL file; a later one of the same reviewer on the same episode replaces
the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thread_kit.errors.error_types import ErrorType
from thread_kit.errors.first_error import find_first_error, has_failed
from thread_kit.trace.episode import Episode
from thread_kit.trace.jsonl import mend_last_line, read_lines, write_line

RULES = "rules"
"""The reviewer that `find_first_error` is."""


@dataclass(frozen=True, slots=True)
class Review:
    """One verdict. episode: the name of its trace; event: the number of the first wrong event."""

    episode: str
    reviewer: str
    type: ErrorType
    event: int
    note: str = ""


def review_by_rules(episodes: dict[str, Episode]) -> list[Review]:
    """What the rules propose for the failed episodes among these, by the names of their traces.

    One that is not over has not failed.
    """
    failed = {name: episode for name, episode in episodes.items() if has_failed(episode)}
    errors = {name: find_first_error(episode) for name, episode in failed.items()}
    return [
        Review(name, RULES, error.type, error.event, error.why)
        for name, error in errors.items()
        if error
    ]


def write_review(path: str | Path, review: Review) -> None:
    """Add a review to a file; it is on disk when this returns. Raises OSError."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        mend_last_line(path)  # a kill has torn it, or an editor has left out its line break
    write_line(path, asdict(review))


def read_reviews(path: str | Path, *more: str | Path) -> list[Review]:
    """The last review of each reviewer on each episode, in one file or several; of none, [].

    Raises ValueError naming the line that is no review.
    """
    files = [file for file in map(Path, (path, *more)) if file.is_file()]
    reviews = (
        review for file in files for review in read_lines(file, _read_review, what="no review")
    )
    return list({(review.episode, review.reviewer): review for review in reviews}.values())


def _read_review(data: Any) -> Review:
    for name in ("episode", "reviewer", "note"):
        if not isinstance(data.get(name, ""), str):
            raise TypeError(f"{name} is {data[name]!r:.60}")
    if (event := data.get("event")) is not None and not (type(event) is int and abs(event) < 2**63):
        raise TypeError(f"event is {event!r:.60}")
    return Review(**{**data, "type": ErrorType(data["type"])})


def reviews_to_frame(reviews: Iterable[Review]) -> pd.DataFrame:
    """Reviews as a frame, one a row."""
    return pd.DataFrame(map(asdict, reviews), columns=list(Review.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two reviewers on the same episodes: the share on which they agree, and Cohen's kappa.

    low, high: kappa's 95% interval. kappa is nan where both always say the same one type.
    """

    first: str
    second: str
    n: int
    same: float
    kappa: float
    low: float
    high: float


def agreement(reviews: Sequence[Review], first: str, second: str) -> Agreement:
    """How far two reviewers agree on the type of the first error (Cohen 1960).

    Raises ValueError if no episode was reviewed by both.
    """
    from statsmodels.stats.inter_rater import cohens_kappa  # here: it takes a second

    table = confusion(reviews, first, second).to_numpy()
    n = int(table.sum())
    same = float(table.trace()) / n
    with np.errstate(invalid="ignore", divide="ignore"):  # few reviews have no standard error
        result = cohens_kappa(table)
    low, high = np.clip([result.kappa_low, result.kappa_upp], -1, 1)
    return Agreement(first, second, n, same, float(result.kappa), float(low), float(high))


def confusion(reviews: Sequence[Review], first: str, second: str) -> pd.DataFrame:
    """How often each pair of types was given: rows are the first reviewer's, columns the second's.

    Raises ValueError if no episode was reviewed by both.
    """
    types = {(review.reviewer, review.episode): str(review.type) for review in reviews}
    both = [name for reviewer, name in types if reviewer == first and (second, name) in types]
    if not both:
        raise ValueError(f"no episode was reviewed by both {first!r} and {second!r}")
    names = list(map(str, ErrorType))
    table = pd.DataFrame(0, index=names, columns=names)
    for name in both:
        table.loc[types[first, name], types[second, name]] += 1
    used = [name for name in names if table.loc[name].any() or table[name].any()]
    return table.loc[used, used]
