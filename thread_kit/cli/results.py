"""`python -m thread_kit results`: the tables of saved results, of one file or of several."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.budgets import CHOSEN
from thread_kit.trace.printable import sanitize

if TYPE_CHECKING:
    import pandas as pd

    from thread_kit.experiments.results import Results


def add_command(commands: Any) -> None:
    """Add `results` to the subparsers of the command line."""
    parser = commands.add_parser(
        "results", help="print rates and paired tests of saved results; needs no model"
    )
    parser.set_defaults(do=print_results)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="results of suites (JSONL)"
    )
    parser.add_argument(
        "--by-file",
        action="store_true",
        help="tell a method of one file from the same method of another one",
    )


def print_results(options: argparse.Namespace) -> None:
    """Print the tables of all files together, benchmark by benchmark.

    Where a file has an episode under several settings, each of these has its own tables.
    Raises ValueError where there is no episode, or one twice; FileNotFoundError, ResultsFileError.
    """
    from thread_kit.experiments.results import Results

    files = options.files
    rows = name_by_file(files) if options.by_file else Results.load(*files).rows
    if not rows:
        raise ValueError(f"there is no episode in {', '.join(map(str, files))} yet")
    played = sorted({row["environment"] for row in rows if row.get("environment")})
    nowhere = [row for row in rows if not row.get("environment")]
    for name in played or [""]:
        some = [row for row in rows if row.get("environment") == name]
        if len(played) <= 1:  # what was not started does not say of which benchmark it is
            some += [{**row, "environment": name or None} for row in nowhere]
        of_one = options.by_file or len(files) == 1  # which settings are meant is said by no file
        parts = split_by_settings(some) if of_one else {"": some}
        for settings, part in parts.items():
            if title := ", ".join(filter(None, [name if len(played) > 1 else "", settings])):
                print(f"\n== {sanitize(title)}")
            try:
                report(Results(part), BENCHMARKS.get(name), by_file=options.by_file)
            except ValueError as error:
                if of_one:
                    raise
                raise ValueError(f"{error}; --by-file tells those of two files apart") from error
    if len(played) > 1 and nowhere:
        print(f"\n{len(nowhere)} episodes were not started, of which benchmark is not known.")


def split_by_settings(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows by what tells those of one episode apart, in words: "calls 2", "calls 10".

    All of them by "" where no episode is there twice.
    """
    from thread_kit.experiments.results_file import EpisodeKey

    by_episode = defaultdict(list)
    for row in rows:
        by_episode[EpisodeKey.of(row).without_settings].append(row)
    if len(by_episode) == len(rows):
        return {"": [*rows]}
    told = {id(row): values for row, values in zip(rows, _list_settings(rows), strict=True)}
    started = [[row for row in several if row["settings"]] for several in by_episode.values()]

    def describe(row: dict[str, Any], names: Sequence[str]) -> str:
        values = told[id(row)]
        parts = (f"{name.replace('_', ' ')} {values.get(name, 'none')}" for name in names)
        return ", ".join(parts) if row["settings"] else "not started"

    def differ(several: Sequence[dict[str, Any]], names: Sequence[str]) -> int:
        return len({describe(row, names) for row in several})

    # Numbers of hashes come last, which say little: where nothing else tells rows apart.
    known = dict.fromkeys(name for values in told.values() for name in values)
    names: list[str] = []
    for name in sorted(known, key=lambda name: name in HASHES):
        is_told = all(differ(several, names) == len(several) for several in started)
        if is_told and name in HASHES:
            break
        if any(differ(several, [name]) > 1 for several in started):
            names.append(name)
    parts = defaultdict(list)
    for row in rows:
        parts[describe(row, names)].append(row)
    return parts


HASHES = ("prompt", "settings")


def _list_settings(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each row what can tell it from another of its episode: limits, and the numbers of hashes.

    A limit that was not chosen is the method's own, whatever number that is, and hashes are counted
    for each method and model: so methods that were played together stay together.
    """
    seen = defaultdict[Any, list[str]](list)
    listed = []
    for row in rows:
        sources = row.get("budget") or {}
        values = {**(row["limits"] or {}), "temperature": row.get("temperature")}
        for name, value in values.items():
            if sources.get(name, CHOSEN) != CHOSEN:
                values[name] = "the method's own"
            elif value is None:
                values[name] = "none"
        for name in HASHES:
            hashes = seen[row["method"], row["model"], name]
            if row[name] not in hashes:
                hashes.append(row[name])
            values[name] = hashes.index(row[name]) + 1
        listed.append(values)
    return listed


def name_by_file(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows of results files, with each one's file in the name of its method.

    `named` is the method's own name.
    """
    from thread_kit.experiments.results_file import read_results

    if len({file.resolve() for file in files}) < len(files):
        raise ValueError("a file is named twice; name each once")
    stems = [file.stem for file in files]
    names = [file.stem if stems.count(file.stem) == 1 else str(file) for file in files]
    return [
        {**row, "method": f"{row['method']} ({name})", "named": row["method"]}
        for file, name in zip(files, names, strict=True)
        for row in read_results(file)
    ]


def report(results: Results, benchmark: Benchmark | None, *, by_file: bool = False) -> None:
    """Print the tables of one benchmark: rates with intervals, scores, pairs, published numbers.

    results: `Results` of episodes of this benchmark. by_file: they are those of `name_by_file`, and
        a method is paired with itself in other files alone. benchmark: None is an environment of
        the user's own.
    What functions warn of is printed once, to standard error.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        _report(results, benchmark, "named" if by_file else "method")
    for text in dict.fromkeys(str(one.message) for one in told):
        print(sanitize(f"thread_kit: {text}"), file=sys.stderr)


def _report(results: Results, benchmark: Benchmark | None, named: str) -> None:
    """named: the column of the methods' own names."""
    from thread_kit.analysis.published import compare_with_published, list_published_names
    from thread_kit.analysis.scores import compare_scores, score
    from thread_kit.analysis.statistics import compare, repeats, success

    frame = results.frame
    if benchmark:
        frame = frame.fillna({"environment": benchmark.name})  # nothing may have been started
    # Rates and scores.
    solved = success(frame)
    print(results)
    _print(
        "Solved, and cut by a budget (95% Wilson intervals; medians of tokens, calls and seconds)",
        solved,
    )
    begun = frame[frame["status"] != "not started"] if "status" in frame else frame
    if "solvable" in begun and begun["solvable"].notna().any():
        solvable = begun.loc[begun["solvable"].eq(True), "task"].nunique()
        print(f"\nThe oracle solves {solvable} of these {begun['task'].nunique()} tasks.")
    in_part = "reward" in frame and frame["reward"].between(0, 1, inclusive="neither").any()
    if in_part:
        _print("Scores, 100 times the mean reward (95%, bootstrap over tasks)", score(frame))
    # Pairs and repeats.
    if frame["method"].nunique() > 1:
        pairs = _pair(frame, compare, named)
        _print("Methods on the same tasks (paired bootstrap, exact McNemar, Holm)", pairs)
        if in_part:
            scores = _pair(frame, compare_scores, named)
            _print("Their scores (paired bootstrap, permutations, Holm)", scores)
    if frame["model"].nunique() > 1:
        _print("Models on the same tasks", compare(frame, of="model"))
    if frame["seed"].nunique() > 1:
        try:
            _print("Over runs, in percent (as Table 7 of THREAD paper)", repeats(frame))
        except ValueError as error:  # a suite that still plays has other tasks in its last run
            print(f"\nOver runs: {error}")
    # The papers' numbers.
    if benchmark is None or benchmark.published is None:
        return
    table = compare_with_published(frame)
    played = set(frame[named])
    names = {name for own in played for name in list_published_names(own, benchmark.published)}
    theirs = table["kind"].eq("published")
    theirs &= table["method"].str.casefold().isin(names)
    if theirs.any():
        table = table[theirs | table["kind"].ne("published")]
        table = table.drop(columns=["published_as", "note"])
        _print("Beside the published numbers, which are other models' unless it says so", table)


def _pair(
    frame: pd.DataFrame, compare: Callable[[pd.DataFrame], pd.DataFrame], named: str
) -> pd.DataFrame:
    """A table of pairs; where methods are told by their files, of each with itself alone."""
    import pandas as pd

    from thread_kit.analysis.statistics import holm

    if named == "method":
        return compare(frame)
    tables = [compare(part) for _, part in frame.groupby(named, sort=False)]
    table = pd.concat([one for one in tables if len(one)] or tables[:1], ignore_index=True)
    return table.assign(p_holm=holm(list(table["p"])))


def _print(title: str, table: pd.DataFrame) -> None:
    if len(table):
        print(f"\n{title}\n{table.to_string(index=False, float_format='{:.3g}'.format)}")
