"""Saved episodes with what each is in a line; of a trace in a folder only its header is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thread_kit.paths import resource
from thread_kit.trace.episode import name_of
from thread_kit.trace.jsonl import MALFORMED, parse_line
from thread_kit.trace.shipped import FOLDER, list_episodes
from thread_kit.views.formatting import clip, sanitize

LISTED = 100
"""Of a folder so many are listed, the newest."""

HEADER = 2**24
"""Bytes of a first line, at most: a header has the few-shot prompts and their tokens."""

SHOWN = 40
"""Characters of a name, at most."""


def list_traces(folders: Iterable[Path]) -> list[tuple[str, Path]]:
    """What each trace is, and its path; of each folder the newest first. Other files are left out.

    A folder that is not there has none.
    """
    traces: list[tuple[str, Path]] = []
    for folder in folders:
        paths = [path for path in folder.glob("*.jsonl") if path.is_file()]  # no pipe, no lost link
        paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        headers = ((path, read_first_line(path)) for path in paths[:LISTED])
        traces += [(describe_header(h, path), path) for path, h in headers if "thread_kit" in h]
    return traces


def list_shipped() -> list[tuple[str, Path]]:
    """The episodes of the gallery, by what is to be seen in them."""
    return [
        (
            f"{shipped.title} ({shipped.benchmark}, {shipped.method})",
            resource(FOLDER) / shipped.file,
        )
        for shipped in list_episodes()
    ]


def read_first_line(path: Path) -> dict[str, Any]:
    """The header of a trace; empty for what is none."""
    try:
        with path.open("rb") as file:
            header = parse_line(file.readline(HEADER))
    except (OSError, *MALFORMED):
        return {}
    return header if isinstance(header, dict) else {}


def describe_header(header: dict[str, Any], path: Path) -> str:
    """A trace in a line: task, model, and the name of its file."""
    task, model = header.get("task"), header.get("model")
    parts = task.values() if isinstance(task, dict) else ["" if task is None else task]
    words = " ".join(map(str, [header.get("environment") or "question", *parts]))
    name = model.get("name", "") if isinstance(model, dict) else ""
    names = map(clip_name, (words, str(name), name_of(path)))
    return ", ".join(filter(None, names))


def clip_name(text: str) -> str:
    """A name of at most `SHOWN` characters."""
    return clip(sanitize(text), SHOWN)
