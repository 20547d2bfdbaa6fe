"""The episodes that have been played, found in files of results; nothing is run.

data/results has those of few-shot prompts, data/adapters those of models that an adapter has
taught; a folder of one's own, as `thread_kit reproduce` writes it, is read beside them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from thread_kit.analysis.records import is_sampled
from thread_kit.analysis.statistics import EPISODE
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import canonical, is_plain
from thread_kit.paths import resource
from thread_kit.replace_file import replace_file

OWN = Path("runs/reproduce")
"""Where `thread_kit reproduce` writes what it plays, from the current folder."""

TAUGHT = "smollm2-135m, taught"
"""The embedded model with an adapter: distilled, and shown no examples."""

COMMANDS = "runs.csv"
"""Beside files of results: which command has made which of them, and when."""

ERRORS, ACTION_RUNS = "-errors", "-action-runs"
"""Of the files beside a file of results that have its first errors, and its actions in a row."""


def load_stored_rows(folders: Iterable[str | Path] = ()) -> pd.DataFrame:
    """One row an episode of the kit's files and of `folders`, with its file and date.

    Columns are those of `Results.frame`, and `path`, `file`, `date` (ISO), `command`, `note`: what
    is to be said beside its rates. Where a file
    has an episode twice, played with other prompts or budgets, the later row counts; a run of which
    all episodes were taken over into another file counts there. Raises what reading them raises.
    """
    frames = [_load_taught(path) for path in _list(resource("data/adapters"), "results-*.jsonl")]
    kits = resource("data/results")
    changed = _stamp(kits / COMMANDS)
    frames += [_load_kits(path, _stamp(path), changed) for path in _list(kits, "*.jsonl")]
    own = dict.fromkeys(Path(folder).resolve() for folder in folders)
    for folder in (one for one in own if one != kits.resolve()):
        frames += [_load_suite(path) for path in _list(folder, "*.jsonl")]
    frame = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    by = ["environment", "split", "method", "model"]
    taken = frame.duplicated([name for name in TAKEN_OVER if name in frame], keep="last")
    whole = taken.groupby([frame[name] for name in ("path", *by)], dropna=False).transform("all")
    frame = frame[~whole].reset_index(drop=True)
    # One model's runs in different files are different runs: never added up.
    several = frame.groupby(by, dropna=False)["path"].transform("nunique") > 1
    frame.loc[several, "model"] += " (" + frame.loc[several, "file"] + ")"
    # Rows are taken out a few at a time, and one by one: pandas' own texts are slow at both.
    return frame.astype(dict.fromkeys(frame.select_dtypes("str"), object))


def load_kit_rows(environment: str, *folders: Path) -> list[dict[str, Any]]:
    """The rows of data/results, and of `folders`, on a benchmark, as they stand in their files."""
    all_folders = (resource("data/results"), *folders)
    paths = [path for folder in all_folders for path in _list(folder, "*.jsonl")]
    return [
        row for path in paths for row in Results.load(path) if row["environment"] == environment
    ]


def load_commands() -> dict[str, dict[str, str]]:
    """By path in data/: the date of a file of results, the command that made it, and a note."""
    return {row["file"]: row for row in _read_commands(resource("data/results") / COMMANDS)}


TAKEN_OVER = [*EPISODE, "environment", "prompt", "settings", "trace", "generated"]
"""Columns that no two episodes share."""


def _list(folder: Path, pattern: str) -> list[Path]:
    beside = (ERRORS, ACTION_RUNS)
    return sorted(path for path in folder.glob(pattern) if not path.stem.endswith(beside))


def _load_suite(path: Path) -> pd.DataFrame:
    results = Results.load(path)
    if not len(results):
        return pd.DataFrame()
    frame = results.frame
    apart = ["environment", "temperature"]
    frame = frame.reindex(columns=frame.columns.union(apart, sort=False))
    frame = frame[frame["environment"].notna()]  # else nothing of it was started
    frame = frame.drop_duplicates([*EPISODE, *apart], keep="last")
    engines = [row["engine"] or {} for row in results]
    names = [engine.get("file") or engine.get("name") for engine in engines]  # a server has no file
    sampled = is_sampled(frame)  # other runs than the greedy ones: a name of their own
    frame.loc[sampled, "model"] += ", temperature " + frame["temperature"].astype(str)
    return _describe(frame.assign(weights=pd.Series(names)), path)


@lru_cache(maxsize=256)
def _load_kits(path: Path, *_changed: tuple[int, int]) -> pd.DataFrame:
    """Rows of the kit's own, read once for as long as the files stay what they are."""
    return _load_suite(path)


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size


def _load_taught(path: Path) -> pd.DataFrame:
    """Rows of `distill evaluate`, in the columns of a suite's."""
    method = "react" if "react" in path.stem else "thread"
    rows = []
    for line in path.read_text("utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        if row.get("reward") is None:
            row["reward"] = float(row["solved"])
        row |= {**row["task"], "task": canonical(row["task"])}
        rows.append({"error": "", **row, "method": method, "model": TAUGHT, "seed": 0})
    return _describe(pd.DataFrame(rows), path)


def record_command(path: Path, command: str) -> None:
    """Note in the folder of a file of results that this command plays it, with today's date."""
    table = path.with_name(COMMANDS)
    earlier = _read_commands(table)
    today = datetime.now(UTC).date().isoformat()
    commands = [row for row in earlier if (row["file"], row["command"]) != (path.name, command)]
    commands.append({"file": path.name, "date": today, "command": command})
    table.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(table) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["file", "date", "command", "note"], restval="")
        writer.writeheader()
        writer.writerows(commands)


def _read_commands(table: Path) -> list[dict[str, str]]:
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        try:
            rows = list(csv.DictReader(file))
        except csv.Error as error:
            raise ValueError(f"{table} is no list of commands ({error})") from error
    wanted = {"file", "date", "command"}
    if any(row.get(name) is None for row in rows for name in wanted):
        raise ValueError(f"{table} is no list of commands, with {', '.join(sorted(wanted))}")
    for row in rows:  # which stand on pages, commands as code
        text = f"{row['file']}{row['date']}{row['command']}{row.get('note') or ''}"
        if not is_plain(text) or "`" in row["command"] or "<" in text or "![" in text:
            raise ValueError(f"{table}: {text!r:.80} acts on a page; write it without")
    return rows


def _find_command(path: Path) -> dict[str, str]:
    """The date and the command of a file; of several commands all, and the last one's date."""
    if path.parent.parent == resource("data"):
        return load_commands().get(f"{path.parent.name}/{path.name}", {})
    rows = [row for row in _read_commands(path.with_name(COMMANDS)) if row["file"] == path.name]
    if not rows:
        return {}
    notes = dict.fromkeys(row.get("note") or "" for row in rows)
    return {
        "date": rows[-1]["date"],
        "command": "; ".join(row["command"] for row in rows),
        "note": "; ".join(filter(None, notes)),
    }


def _describe(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    known = _find_command(path)
    day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    return frame.assign(
        task=frame["environment"] + " " + frame["task"],  # those of two benchmarks never are one
        path=str(path),
        file=path.stem,
        date=known.get("date", day),
        command=known.get("command", ""),
        note=known.get("note", ""),
    )
