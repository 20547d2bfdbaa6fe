"""A table or figure of the papers: play what it needs, and make its page.

    tk.reproduce("thread-v2", "table-3")  # the published table, and ours beside it; plays nothing
    tk.reproduce("thread-v2", "table-3", "qwen2.5-coder-1.5b", tasks=40)
    tk.reproduce("thread-v2", "table-2", "Meta-Llama-3-8B", server="http://gpu:8000", at_once=32)

Methods have the few-shot prompts and the budgets of their papers. What has been played already, and
has not broken down, is not played again, whichever item it was played for: a file of results has
all that is played alike.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from thread_kit.analysis.item_page import ItemPage, make_page
from thread_kit.analysis.item_tables import find_group
from thread_kit.analysis.paper_items import PAIRED, PLANNERS, PaperItem, find_item
from thread_kit.analysis.stored_rows import OWN, load_kit_rows, load_stored_rows, record_command
from thread_kit.analysis.task_counts import count_tasks
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import Engine
from thread_kit.engines.models import MODELS, find_weights, load_model, name_model
from thread_kit.engines.server import ServerEngine
from thread_kit.envs.benchmark import Benchmark, spread_evenly
from thread_kit.experiments.budgets import find_other_budget
from thread_kit.experiments.method import Method, PerTaskMethod
from thread_kit.experiments.method_builders import load_planners
from thread_kit.experiments.method_registry import load_method, method_slug
from thread_kit.experiments.suite import Suite

TRIALS = "trials"
"""The study of success by trial (`analysis/studies.py`)."""

Loader = Callable[[], Engine]


def reproduce(
    paper: str,
    item: str,
    model: str | Mapping[str, Engine | Loader] | None = None,
    *,
    planner: str | Mapping[str, Engine | Loader] | None = None,
    only: Sequence[str] = (),
    tasks: int | None = None,
    split: str = "",
    temperature: float = 0.0,
    rules: Sequence[str] = (),
    at_once: int = 1,
    executor: Executor | None = None,
    server: str | None = None,
    folder: str | Path = OWN,
    progress: bool = True,
) -> ItemPage:
    """The page of an item, of the rows that there are; with a model, what is missing is played.

    paper, item: as `python -m thread_kit reproduce` lists them. model: a name, or names with
    engines or with functions that load them. planner: another one for the planner of ADaPT and
    Plan-and-Execute (ADaPT paper, Table 4). only: the kit's names of benchmarks and methods, where
    not all of the item's are to be played. tasks: so many of each benchmark, evenly spread; None:
    as many as the paper has. split: of the benchmarks that have it, instead of the item's
    ("generated", where ALFWorld's games of development are not at hand). temperature: at 0 repeated
    runs of a model here would be the same, and one is played. rules: of the benchmarks that have
    them (`Benchmark.rules`). at_once, executor: as in `Suite.run`; what data/results has of the
    same episodes is taken over. server: the address where a model is found by its name
    (`ServerEngine`); else it is loaded. folder: of results, traces, and runs.csv: which command has
    made which file.

    Raises ValueError for an unknown item, one that nobody can play here, and what its page would
    not show; and what playing raises.
    """
    wanted = find_item(paper, item)
    # 1. With a model, what is missing is played, each file with the command that made it.
    if model is not None:
        models = _name_models(model, server)
        planners = _name_models(planner, server) if planner is not None else {}
        only = find_names(wanted, only)
        _refuse_what_is_not_shown(wanted, only, temperature, bool(planners), split)
        command = _write_command(
            wanted, models, planners, only, tasks, split, temperature, rules, server
        )
        for suite in _make_suites(
            wanted,
            models,
            planners,
            only=only,
            tasks=tasks,
            split=split,
            temperature=temperature,
            repeats=temperature > 0 or server is not None,
            rules=rules,
            folder=Path(folder),
        ):
            record_command(suite.path, command)
            # What broke down is no outcome: it is played again, the kit's own rows as well.
            suite.run(at_once=at_once, executor=executor, retry=True, progress=progress)
    # 2. The page of all rows that there are.
    return make_page(wanted, load_stored_rows([folder]))


def _refuse_what_is_not_shown(
    item: PaperItem, only: Sequence[str], temperature: float, has_planner: bool, split: str
) -> None:
    """Raises ValueError for rows that `select_rows` would leave out of the item's page."""
    if temperature > 0 and item.runs == 1:
        raise ValueError(f"{item.label} is of greedy runs; leave the temperature at 0")
    if has_planner and PLANNERS not in item.needs:
        raise ValueError(f"{item.label} has one model for all roles; leave the planner's out")
    benchmarks = _choose_benchmarks(item, only)
    known_splits = [name for own in item.find_benchmarks() for name in own.splits]
    if split and split not in known_splits:
        known = ", ".join(dict.fromkeys(known_splits))
        raise ValueError(
            f"no benchmark of {item.label} has the split {split!r}; they have: {known}"
        )
    chosen = [own for own in benchmarks if split in own.splits]
    splits = [item.list_splits(own) for own in chosen]
    if splits and not any(split in own for own in splits):
        shown = ", ".join(dict.fromkeys(name for own in splits for name in own))
        raise ValueError(f"{item.label} shows no tasks of {split!r}; it shows: {shown}")


def _write_command(
    item: PaperItem,
    models: Iterable[str],
    planners: Iterable[str],
    only: Sequence[str],
    tasks: int | None,
    split: str,
    temperature: float,
    rules: Sequence[str],
    server: str | None,
) -> str:
    """The command line that plays the same; where and how many at once is left to who plays it."""
    options = {
        "--model": models,
        "--planner-model": planners,
        "--only": only,
        "--tasks": [tasks] if tasks else [],
        "--split": [split] if split else [],
        "--temperature": [temperature] if temperature else [],
        "--server": ["URL"] if server else [],
    }
    words = ["python", "-m", "thread_kit", "reproduce", item.paper, item.item]
    for option, values in options.items():
        if values := list(map(str, values)):
            words += [option, *values]
    return shlex.join([*words, *(f"--{rule.replace('_', '-')}" for rule in rules)])


def _name_models(
    model: str | Mapping[str, Engine | Loader], server: str | None
) -> Mapping[str, Engine | Loader]:
    """By name; shown examples, so that a model that the kit has taught is played bare, too."""
    if not isinstance(model, str):
        return model
    if server is not None:
        return {model: partial(ServerEngine, server, model)}
    if model not in MODELS:  # else the folder would say that an unknown one has played
        find_weights(model)
    return {name_model(model): partial(load_model, model, adapter=None)}


def _make_suites(
    item: PaperItem,
    models: Mapping[str, Engine | Loader],
    planners: Mapping[str, Engine | Loader],
    *,
    only: Sequence[str],
    tasks: int | None,
    split: str,
    temperature: float,
    repeats: bool,
    rules: Sequence[str],
    folder: Path,
) -> Iterator[Suite]:
    """A suite for each benchmark of an item that is registered.

    repeats: an item of several runs is played as often.
    """
    benchmarks = _choose_benchmarks(item, only)
    known = dict.fromkeys(rule for benchmark in benchmarks for rule in benchmark.rules)
    if unknown := [rule for rule in rules if rule not in known]:
        has = ", ".join(known) or "none"
        raise ValueError(f"{item.label} has no rule {unknown[0]!r} here; it has: {has}")
    for benchmark in benchmarks:
        own_split = split if split in benchmark.splits else item.find_split(benchmark)
        chosen = _list_tasks(item, benchmark, tasks, rules, str(own_split))
        with warnings.catch_warnings():
            # Greedy runs of a model behind a server are not one and the same.
            warnings.filterwarnings("ignore", "at temperature 0")
            suite = Suite(
                folder / f"{name_file(item, benchmark, rules, temperature)}.jsonl",
                methods=_load_methods(item, benchmark, chosen[0], set(only) & set(item.methods)),
                models=_pair(models, planners, benchmark),
                environment=benchmark.environment,
                tasks=chosen,
                seeds=range(item.runs if repeats else 1),
                traces=True,
                known=load_kit_rows(benchmark.name, folder),
                options={"temperature": temperature},
                paper=item.paper,
            )
        yield suite


def name_file(
    item: PaperItem,
    benchmark: Benchmark,
    rules: Sequence[str],
    temperature: float,
    methods: Sequence[str] | None = None,
) -> str:
    """One file for all that is played alike, so that rows of other rules are never added up.

    rules: that were asked for, beside the item's own. methods: None is all of the item's.
    """
    settings = dict.fromkeys(name for setting in item.settings for name in setting)
    own = dict.fromkeys([*settings, *(rule for rule in rules if rule in benchmark.rules)])
    parts = [benchmark.name, *own]
    parts += [item.study] if item.study == TRIALS else []
    methods = item.find_methods(benchmark) if methods is None else methods
    if any(find_other_budget(method, benchmark.name, item.paper) for method in methods):
        parts.append(item.paper.partition("-")[0])
    return "-".join([*parts, *([f"t{temperature}"] if temperature else [])])


def find_names(item: PaperItem, only: Sequence[str]) -> list[str]:
    """Methods by their names in tables, where `only` has slugs ("plan-and-execute-by-type")."""
    names = {method_slug(method): method for method in item.methods}
    return [names.get(name, name) for name in only]


def _choose_benchmarks(item: PaperItem, only: Sequence[str]) -> list[Benchmark]:
    """Those of the item that are here and have its split, or of these the ones in `only`.

    Raises ValueError where there is none, or `only` has what the item has not.
    """
    benchmarks = [own for own in item.find_benchmarks() if item.find_split(own)]
    if not item.study or not benchmarks:
        lacks = f"no {' and no '.join(item.benchmarks)} here" if item.study else "it has no numbers"
        raise ValueError(f"{item.label} cannot be played: {lacks}")
    names = [own.name for own in benchmarks]
    if unknown := [name for name in only if name not in (*names, *item.methods)]:
        known = ", ".join((*names, *item.known_methods()))
        raise ValueError(f"{item.label} has no {unknown[0]!r}; it has: {known}")
    return [own for own in benchmarks if own.name in only or not {*names} & {*only}]


def _list_tasks(
    item: PaperItem, benchmark: Benchmark, tasks: int | None, rules: Sequence[str], split: str
) -> list[dict[str, object]]:
    """The arguments of a split's tasks in each setting; as many as the paper has, or `tasks`."""
    settings = item.settings or ({},)
    own = {rule: True for rule in rules if rule in benchmark.rules}
    listed, groups = benchmark.list_tasks(split, own), item.list_groups(benchmark)
    if groups and not settings[0]:  # a setting is a group of its own
        listed = [
            task
            for task in listed
            if find_group({"environment": benchmark.name, **benchmark.arguments(task)}) in groups
        ]
    most = count_tasks(item, benchmark) // len(settings) if tasks is None else tasks
    if benchmark.first_tasks:
        listed = listed[: count_tasks(item, benchmark) // len(settings)]
    chosen = spread_evenly(listed, min(most, len(listed)))
    return [
        {**benchmark.arguments(task), **setting, **own} for setting in settings for task in chosen
    ]


def _load_methods(
    item: PaperItem, benchmark: Benchmark, task: Mapping[str, object], only: Collection[str]
) -> list[Method]:
    """The item's methods that this benchmark has, few-shot; raises ValueError if it has none.

    only: none is all of them.
    """
    env = benchmark.environment(**task)
    examples = env.examples
    env.close()
    methods: list[Method] = []
    for name in (known for known in item.find_methods(benchmark) if not only or known in only):
        other = find_other_budget(name, benchmark.name, item.paper)
        iterations = other["iterations"].value if "iterations" in other else None
        try:
            load_method(name, examples)
        except (ValueError, FileNotFoundError):  # another benchmark's, or without a prompt here
            continue
        make = partial(load_method, name, iterations=iterations)
        make(examples)  # a budget that the method cannot have is an error
        methods.append(PerTaskMethod(name, make))
    if not methods:
        raise ValueError(f"{benchmark.name} has none of the methods {', '.join(item.methods)}")
    return methods


def _pair(
    models: Mapping[str, Engine | Loader],
    planners: Mapping[str, Engine | Loader],
    benchmark: Benchmark,
) -> Mapping[str, Engine | Loader]:
    """Each model with each planner; the models alone where there is none."""
    return {
        f"{name}{PAIRED}{other}": partial(_load_pair, model, planner, benchmark)
        for name, model in models.items()
        for other, planner in planners.items()
    } or models


def _load_pair(model: Engine | Loader, planner: Engine | Loader, benchmark: Benchmark) -> Engine:
    engine, other = (
        source if isinstance(source, Engine) else source() for source in (model, planner)
    )
    return EngineByPrompt(engine, dict.fromkeys(load_planners(benchmark), other))
