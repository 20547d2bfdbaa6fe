"""Rows of a frame as dictionaries, with a few of its columns: all of them take long to unpack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

TASK = (
    *("environment", "split", "number", "game", "stays", "questions", "files"),
    *("catalogue", "by_people", "products"),
)
"""What tells of an episode's task which it is, on any benchmark."""


DEFAULTS = {
    **dict.fromkeys(("nearest", "mariadb", "by_people", "attributes"), False),
    "products": 3,
}
"""Of settings: what a row that does not name them was played with."""


def read_setting(row: Mapping[Any, Any], name: str) -> Any:
    """The setting in which an episode was played; of a text, which none is, the usual one."""
    value = row.get(name)
    return DEFAULTS[name] if isinstance(value, str) or value is None or pd.isna(value) else value


def list_other_settings(row: Mapping[Any, Any], known: Collection[str] = ()) -> list[str]:
    """Settings of an episode, beside `known`, that are not the usual ones: "products=10"."""
    played = {name: read_setting(row, name) for name in DEFAULTS if name not in known}
    return [f"{name}={value:g}" for name, value in played.items() if value != DEFAULTS[name]]


def must_be_frame(frame: Any) -> None:
    """Raises ValueError with the remedy for what is no frame, such as `Results` themselves."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"{frame!r:.80} is no frame with a row an episode; give the `frame` of Results: "
            "tk.Results.load(PATH).frame"
        )


def list_records(frame: pd.DataFrame, *columns: str) -> list[dict[Any, Any]]:
    """A dictionary a row, with those of the columns that the frame has."""
    values = {name: frame[name].tolist() for name in columns if name in frame}
    if not values:
        return [{} for _ in range(len(frame))]
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def is_sampled(frame: pd.DataFrame) -> pd.Series:
    """Of each episode whether it was played at a temperature, and so not greedily."""
    if "temperature" not in frame:
        return pd.Series(False, frame.index)
    return pd.to_numeric(frame["temperature"]) > 0


def read_rewards(frame: pd.DataFrame) -> pd.Series:
    """Of each episode its reward, 0 to 1; one that ended without a reward has earned none."""
    return pd.to_numeric(frame["reward"]).fillna(0).astype(float)


def is_of_whole_run(rows: pd.DataFrame) -> pd.Series:
    """For each row, whether its run (its seed) has as many tasks as the longest of its method."""
    one = ["environment", "method", "model"]
    tasks = rows.groupby([*one, "seed"])["task"].transform("nunique")
    return tasks == tasks.groupby([rows[name] for name in one]).transform("max")
