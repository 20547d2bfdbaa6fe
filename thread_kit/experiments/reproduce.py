"""A table or figure of the papers: play what it needs, and make its page.

    tk.reproduce("thread-v2", "table-3")  # the published table, and ours beside it; plays nothing
    tk.reproduce("thread-v2", "table-3", "qwen2.5-coder-1.5b", tasks=40)

Methods have the few-shot prompts and the budgets of their papers. What has been played already is
not played again, whichever item it was played for: there is one file of results a benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from thread_kit.analysis.item_differences import count_printed
from thread_kit.analysis.item_page import ItemPage, make_page
from thread_kit.analysis.paper_items import PaperItem, find_item
from thread_kit.analysis.stored_rows import OWN, load_stored_rows
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import Engine
from thread_kit.engines.models import load_model
from thread_kit.envs.benchmark import Benchmark, spread_evenly
from thread_kit.experiments.method import Method, PerTaskMethod
from thread_kit.experiments.method_registry import load_method, load_planners
from thread_kit.experiments.suite import Suite

Loader = Callable[[], Engine]


def reproduce(
    paper: str,
    item: str,
    model: str | Mapping[str, Engine | Loader] | None = None,
    *,
    planner: str | Mapping[str, Engine | Loader] | None = None,
    tasks: int | None = None,
    temperature: float = 0.0,
    rules: Sequence[str] = (),
    at_once: int = 1,
    folder: str | Path = OWN,
    progress: bool = True,
) -> ItemPage:
    """The page of an item, of the rows that there are; with a model, what is missing is played.

    paper, item: as `python -m thread_kit reproduce` lists them. model: a name, or names with
    engines or with functions that load them. planner: another one for the planner of ADaPT and
    Plan-and-Execute (ADaPT paper, Table 4). tasks: so many of each benchmark, evenly spread; None:
    as many as the paper has. temperature: at 0 repeated runs would be the same, and one is played.
    rules: of the benchmarks that have them (`Benchmark.rules`). folder: of results and traces.

    Raises ValueError for an unknown item or one that nobody can play here, and what playing raises.
    """
    found = find_item(paper, item)
    if model is not None:
        _play(
            found,
            _name_models(model),
            _name_models(planner) if planner is not None else {},
            tasks=tasks,
            seeds=found.runs if temperature > 0 else 1,
            rules=rules,
            at_once=at_once,
            folder=Path(folder),
            temperature=temperature,
            progress=progress,
        )
    return make_page(found, load_stored_rows([folder]))


def _name_models(
    model: str | Mapping[str, Engine | Loader],
) -> Mapping[str, Engine | Loader]:
    """By name; shown examples, so that a model that the kit has taught is played bare, too."""
    if isinstance(model, str):
        name = Path(model).stem if model.endswith(".gguf") else model
        return {name: partial(load_model, model, adapter=None)}
    return model


def _play(
    item: PaperItem,
    models: Mapping[str, Engine | Loader],
    planners: Mapping[str, Engine | Loader],
    *,
    tasks: int | None,
    seeds: int,
    rules: Sequence[str],
    at_once: int,
    folder: Path,
    temperature: float,
    progress: bool,
) -> None:
    """Run or resume a suite for each benchmark of an item that is registered."""
    benchmarks = [own for own in item.find_benchmarks() if item.find_split(own)]
    if not item.study or not benchmarks:
        lacks = f"no {' and no '.join(item.benchmarks)} here" if item.study else "it has no numbers"
        raise ValueError(f"{item.label} cannot be played: {lacks}")
    for benchmark in benchmarks:
        chosen = _list_tasks(item, benchmark, tasks, rules)
        Suite(
            folder / f"{benchmark.name}.jsonl",
            methods=_load_methods(item, benchmark, chosen[0]),
            models=_pair(models, planners, benchmark),
            environment=benchmark.environment,
            tasks=chosen,
            seeds=range(seeds),
            traces=True,
            options={"temperature": temperature},
        ).run(at_once=at_once, progress=progress)


def _list_tasks(
    item: PaperItem, benchmark: Benchmark, tasks: int | None, rules: Sequence[str]
) -> list[dict[str, object]]:
    """The arguments of a benchmark's tasks; of those that have no end as many as were published."""
    listed = benchmark.tasks(item.find_split(benchmark) or "")
    numbers = item.load_numbers()
    printed = count_printed(numbers[numbers["benchmark"] == benchmark.published])
    if tasks is None and benchmark.synthetic and printed:
        tasks = printed
    chosen = spread_evenly(listed, min(tasks, len(listed)) if tasks else None)
    own = {rule: True for rule in rules if rule in benchmark.rules}
    return [{**benchmark.arguments(task), **own} for task in chosen]


def _load_methods(
    item: PaperItem, benchmark: Benchmark, task: Mapping[str, object]
) -> list[Method]:
    """The item's methods that this benchmark has, few-shot; raises ValueError if it has none."""
    examples = benchmark.environment(**task).examples
    methods: list[Method] = []
    for name in item.known_methods():
        make = partial(load_method, name)
        try:
            make(examples)
        except (ValueError, FileNotFoundError):  # another benchmark's, or without a prompt here
            continue
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
        f"{name}, planner {other}": partial(_load_pair, model, planner, benchmark)
        for name, model in models.items()
        for other, planner in planners.items()
    } or models


def _load_pair(model: Engine | Loader, planner: Engine | Loader, benchmark: Benchmark) -> Engine:
    engine, other = (
        source if isinstance(source, Engine) else source() for source in (model, planner)
    )
    return EngineByPrompt(engine, dict.fromkeys(load_planners(benchmark), other))
