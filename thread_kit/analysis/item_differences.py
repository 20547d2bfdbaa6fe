"""In what our rows of an item are no reproduction: methods, tasks, models, budgets, prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache

import pandas as pd

from thread_kit.analysis.cut import count_broken
from thread_kit.analysis.paper_items import DRAWN, MADE_HERE, PaperItem
from thread_kit.analysis.published import find_type
from thread_kit.analysis.records import (
    DEFAULTS,
    TASK,
    is_of_whole_run,
    list_other_settings,
    list_records,
    read_setting,
)
from thread_kit.analysis.stored_rows import TAUGHT
from thread_kit.analysis.task_counts import count_tasks
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import find_benchmark
from thread_kit.experiments.budgets import (
    CHOSEN,
    budget_of,
    find_other_budget,
    sources_of,
    with_own_actions,
)
from thread_kit.experiments.episode_facts import list_loop_limits
from thread_kit.experiments.job import hash_prompts
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_registry import load_method
from thread_kit.trace.header import describe_program

CLOSED = re.compile("gpt-|text-davinci-")
"""Checkpoints that run behind an API alone: what is played on one's own machine is a stand-in."""


def list_differences(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """In what our rows are other than the paper's, or what is missing to play it.

    rows: those of the item (`select_rows`), none if nobody has played it.
    """
    differences = []
    checkpoints = _list_checkpoints(item)
    is_closed = bool(checkpoints) and all(map(CLOSED.match, checkpoints))
    if is_closed and not _have_weights(rows, checkpoints).any():
        names = ", ".join(sorted(checkpoints))
        differences.append(
            f"cannot be reproduced here: its models run behind an API alone: {names}"
        )
    here = {own.published for own in item.find_benchmarks()}
    if absent := [name for name in item.benchmarks if name not in here]:
        differences.append(f"no {' and no '.join(absent)} here")
    known = list(
        dict.fromkeys(
            method for own in item.find_benchmarks() for method in _list_loadable(item, own)
        )
    )
    if absent := [name for name in item.methods if here and name not in known]:
        differences.append(f"no {_quote(absent)} here")
    if rows.empty:
        return differences
    played = {find_benchmark(name).published for name in rows["environment"]}
    if unplayed := [name for name in item.benchmarks if name in here - played]:
        differences.append(f"no rows of {', '.join(unplayed)}")
    if broken := count_broken(rows):
        differences.append(f"{broken} of {len(rows)} episodes broke down, and count as not solved")
    parts = _compare_methods, _compare_tasks, _compare_settings, _compare_models, _compare_play
    return differences + [line for compare in parts for line in compare(item, rows)]


def is_reproduction(item: PaperItem, rows: pd.DataFrame) -> bool:
    """Whether there are none; what nearly all rows have, another model, is asked first."""
    return not _compare_models(item, rows) and not list_differences(item, rows)


def _quote(methods: Iterable[str]) -> str:
    return ", ".join(map(repr, methods))


def _list_loadable(item: PaperItem, own: Benchmark) -> list[str]:
    return [name for name in item.find_methods(own) if can_load(name, own)]


def _compare_methods(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Of each benchmark that was played, which of the item's methods were not."""
    differences = []
    for environment, part in rows.groupby("environment", sort=False):
        own, played = find_benchmark(str(environment)), set(part["method"])
        if missing := [name for name in _list_loadable(item, own) if name not in played]:
            where = f" on {own.published}" if len(item.benchmarks) > 1 else ""
            differences.append(f"without {_quote(missing)}{where}")
    return differences


def _compare_tasks(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Of each benchmark, whether all of the paper's tasks were played, as often as there."""
    differences = []
    for environment, part in rows.groupby("environment", sort=False):
        benchmark = find_benchmark(str(environment))
        if any(map(benchmark.stands_in, list_records(part, *TASK))):
            differences.append(f"stand-in for {benchmark.published}")
            continue
        if MADE_HERE in set(part["split"]):
            differences.append(f"games made here instead of {item.find_split(benchmark)}")
            continue
        if DRAWN in set(part["split"]):
            differences.append(f"other games of {DRAWN} than those that the paper has drawn")
        every = count_tasks(item, benchmark)
        if benchmark.first_tasks:
            first = part["number"] < every // max(len(item.settings), 1)
            part = part.assign(task=part["task"].where(first))  # others do not count
        counts = part.groupby(["method", "model"])["task"].nunique().clip(upper=every)
        if counts.min() < every:
            few = " to ".join(map(str, sorted({counts.min(), counts.max()})))
            differences.append(f"{few} of {every} tasks of {benchmark.published}")
    whole = rows[is_of_whole_run(rows)]
    runs = whole.groupby(["environment", "method", "model"])["seed"].nunique().min()
    if runs < item.runs:
        differences.append(f"{runs} of {item.runs} runs")
    return differences


def _compare_settings(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Whether each method was played in all of the item's settings, and in no others."""
    known = {name for setting in item.settings for name in setting}
    records = list_records(rows, "environment", *DEFAULTS)
    others = dict.fromkeys(
        one for row in records for one in list_other_settings(row, known | THE_PAPERS_OWN)
    )
    differences = [f"played with {other}" for other in others]
    if any(row["environment"] == "sql" and not read_setting(row, "mariadb") for row in records):
        differences.append("played in SQLite instead of MySQL")
    for name, value in (pair for setting in item.settings for pair in setting.items()):
        records = list_records(rows, "method", name)
        played = {row["method"] for row in records if read_setting(row, name) == value}
        if lacking := [
            method
            for method in dict.fromkeys(rows["method"])
            if method not in played and not (name == "nearest" and method.startswith(NEAREST))
        ]:
            differences.append(
                f"{_quote(lacking)} without {name}{'' if value is True else ' ' + str(value)}"
            )
    return differences


THE_PAPERS_OWN = {"by_people", "mariadb"}
"""Settings that are nearer to the papers than this kit's default: people's goals, a MySQL."""

NEAREST = ("stateflow", "alfchat")
"""Methods that take the nearest action by themselves, whatever the environment does."""


def _compare_models(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Whether every method was played with weights that the paper used, and as it was there."""
    differences = []
    same = _have_weights(rows, _list_checkpoints(item))
    if set(rows[same]["method"]) != set(rows["method"]):
        others = dict.fromkeys(rows[~same]["model"])
        differences.append(f"another model: {', '.join(others)}")
    if TAUGHT in set(rows["model"]):
        differences.append("taught ones are shown no examples")
    notes = dict.fromkeys(zip(rows.get("file", ()), rows.get("note", ()), strict=True))
    return differences + [f"{file}: {note}" for file, note in notes if note]


def _list_checkpoints(item: PaperItem) -> set[str]:
    """The models that the paper used for it, by all names that its checkpoints have."""
    names = {*item.load_numbers()["checkpoint"], *item.checkpoints} - {""}
    return names | {OTHER_NAMES[name] for name in names & set(OTHER_NAMES)}


OTHER_NAMES = {"gpt-4-turbo-1106": "gpt-4-1106-preview"}
"""What OpenAI calls a checkpoint, by what a paper calls it (StateFlow paper, 4.1)."""


def _have_weights(rows: pd.DataFrame, checkpoints: set[str]) -> pd.Series:
    """Of each row whether it was played with one of these checkpoints."""
    files = list(map(str, rows["weights"])) if "weights" in rows else [""] * len(rows)
    same = {file for file in set(files) if _same_weights(file, checkpoints)}
    return pd.Series([file in same for file in files], rows.index, dtype=bool)


def _same_weights(file: str, checkpoints: set[str]) -> bool:
    """Whether a GGUF file is of one of these checkpoints, or a server's model is called so."""
    if file in checkpoints:
        return True
    for checkpoint in checkpoints:
        name = re.escape(checkpoint.removesuffix("-hf"))
        if re.fullmatch(rf"{name}(-hf)?([-.](I?Q\d\w*|B?F16|F32))?\.gguf", file, re.IGNORECASE):
            return True
    return False


def _compare_play(item: PaperItem, rows: pd.DataFrame) -> list[str]:
    """Whether rows were played greedily, with the papers' budgets and the kit's present prompts."""
    rows = rows[rows["model"] != TAUGHT]
    differences = []
    limits = rows["limits"].fillna("") if "limits" in rows else [""] * len(rows)
    played = sorted(set(zip(rows["method"], rows["environment"], limits, strict=True)))
    if warm := sorted({t for t in rows.get("temperature", ()) if t > 0}):
        each = ", ".join(f"{temperature:g}" for temperature in warm)
        differences.append(f"played at temperature {each}, where the papers print 0 or none")
    games = rows["game"] if "game" in rows else pd.Series("", rows.index)
    rows = rows.assign(examples=list(map(_find_examples, rows["environment"], games)))
    other = dict.fromkeys(play[0] for play in played if not _has_budget(item, *play))
    if "loop" in rows:
        loops = rows[["method", "examples", "loop"]].dropna().drop_duplicates()
        other |= dict.fromkeys(
            row.method for row in loops.itertuples() if not _has_loop(item, *row[1:])
        )
    if other:
        differences.append(f"budgets other than the paper's of {_quote(other)}")
    if "prompt" in rows:
        kinds = rows[["method", "examples", "prompt"]].drop_duplicates()
        earlier = dict.fromkeys(
            row.method for row in kinds.itertuples() if row.prompt != _hash_now(*row[1:3])
        )
        if earlier:
            differences.append(f"earlier prompts of {_quote(earlier)}")
    return differences


def _has_budget(item: PaperItem, method: str, benchmark: str, limits: str) -> bool:
    """Whether these limits (JSON; "" where a row does not tell them) are those of the paper."""
    used = json.loads(limits or "null") or {}  # null, too, where it could not be started
    budget = budget_of(method, benchmark, item.paper)
    sources = sources_of(with_own_actions(used, benchmark), budget)
    return bool(used) and CHOSEN not in sources.values()


def _has_loop(item: PaperItem, name: str, examples: str, loop: str) -> bool:
    """Whether the limits of a method's own loop (JSON) are those of the paper."""
    other = find_other_budget(name, examples, item.paper)
    method = _load(name, examples, other["iterations"].value if "iterations" in other else None)
    limits = json.loads(loop)
    if limits is None or method is None:
        return True
    return limits == list_loop_limits(describe_program(method.fixed.get("program")))


def can_load(method: str, benchmark: Benchmark) -> bool:
    """Whether a benchmark has a method, few-shot; the types of its tasks are alike."""
    return bool(_hash_now(method, benchmark.examples or benchmark.name))


def _find_examples(environment: str, game: str) -> str:
    """The name of the few-shot prompts that fit an episode's task (`Env.examples`)."""
    is_typed = environment == "alfworld"
    return f"{environment}-{(find_type(game) or '').lower()}" if is_typed else environment


@cache
def _load(name: str, examples: str, iterations: int | None = None) -> SessionMethod | None:
    """A method as it is now; None where it has no prompts."""
    try:
        return load_method(name, examples, iterations=iterations)
    except (ValueError, FileNotFoundError):
        return None


@cache
def _hash_now(name: str, examples: str) -> str:
    """The hash of a method's prompts as they are now; "" where it has none."""
    method = _load(name, examples)
    if method is None:
        return ""
    prompts = [method.prompt, *method.fixed.get("prompts", ())]
    if main := method.fixed.get("main_prompt"):
        prompts.append(main)
    return hash_prompts({prompt.sha256 for prompt in prompts})
