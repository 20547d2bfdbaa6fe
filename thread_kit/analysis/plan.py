"""What it takes to play the papers' tables and figures: episodes, tokens, GPU hours, US dollars.

    make_plan(load_stored_rows())  # a row a paper and model

Tokens an episode are the means of what has been played, few-shot: of the same method on the same
benchmark, else of what comes nearest, and `measured` says for which share of the episodes it was
the former. Episodes that a budget ended cost less than they would have. How fast a model is comes
from data/throughput.csv, which says what is assumed; prices from data/prices.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from thread_kit.analysis.item_differences import can_load
from thread_kit.analysis.paper_items import PAPER_NAMES, PaperItem, list_names, load_items
from thread_kit.analysis.prices import compute_dollars, load_prices
from thread_kit.analysis.published import load_published
from thread_kit.analysis.stored_rows import TAUGHT
from thread_kit.analysis.task_counts import count_tasks
from thread_kit.envs.benchmark import Benchmark
from thread_kit.experiments.method_registry import find_base
from thread_kit.experiments.reproduce import name_file
from thread_kit.paths import resource

TOKENS = ["prompt_tokens", "evaluated", "generated"]
"""Of an episode: all that calls are sent, what no cache had (what is written included), written."""

CORE = "one core"
"""Of the throughputs, the one that a list of items speaks of."""


class Part(NamedTuple):
    """One method with one model on one benchmark; episodes: tasks times runs.

    model: the paper's checkpoint. file: what is played alike has one name (`name_file`), whatever
        else an item plays.
    """

    paper: str
    item: str
    environment: str
    split: str
    method: str
    model: str
    episodes: int
    file: str


def load_throughput(path: str | Path | None = None) -> pd.DataFrame:
    """Tokens a second by name, with the models that they hold for; path: one's own list.

    input, output: tokens a second, of what no cache has, and written, by all episodes together.
    gpus: that the model lies on. dollars: of one for an hour. Raises ValueError for a list that
    lacks a column.
    """
    table = pd.read_csv(path or resource("data/throughput.csv"), keep_default_na=False)
    missing = {"name", "models", "input", "output", "gpus", "dollars"} - set(table.columns)
    if missing:
        lacking = ", ".join(sorted(missing))
        raise ValueError(
            f"the throughputs {path} lack {lacking}; the columns are those of data/throughput.csv"
        )
    return table.set_index("name")


def list_parts(items: Iterable[PaperItem]) -> list[Part]:
    """What the items need, as far as the kit has the methods: each item's own, with double ones."""
    return [part for item in items if item.study for part in _list_parts(item)]


def _list_parts(item: PaperItem) -> Iterator[Part]:
    numbers = item.load_numbers()
    for benchmark in item.find_benchmarks():
        theirs = numbers[numbers["benchmark"] == benchmark.published]
        tasks = count_tasks(item, benchmark)
        for method in item.find_methods(benchmark):
            if not can_load(method, benchmark):
                continue
            names = list_names(method, benchmark.published)
            same = theirs[theirs["method"].str.casefold().isin(names)]
            for model in sorted(set(same["checkpoint"]) - {""}) or _list_models(item, benchmark):
                yield Part(
                    item.paper,
                    item.item,
                    benchmark.name,
                    item.split,
                    method,
                    model,
                    tasks * item.runs,
                    name_file(item, benchmark, (), 0.0, [method]),
                )


def _list_models(item: PaperItem, benchmark: Benchmark) -> list[str]:
    """Of an item without numbers: the paper's own of the benchmark, and what else it names."""
    own = [_find_model(item.paper, published) for published in item.benchmarks]
    others = [name for name in item.checkpoints if name not in own]
    return [_find_model(item.paper, benchmark.published), *others]


@cache
def _find_model(paper: str, benchmark: str | None) -> str:
    """Where an item names none, the one that most of its paper's numbers of that benchmark have."""
    rows = load_published(paper=PAPER_NAMES[paper])
    rows = rows[rows["checkpoint"] != ""]
    here = rows[rows["benchmark"] == benchmark]
    return str((here if len(here) else rows)["checkpoint"].mode()[0])


def select_tokens(frame: pd.DataFrame) -> pd.DataFrame:
    """Of stored rows (`load_stored_rows`), those of few-shot episodes that tell their tokens."""
    rows = (frame["model"] != TAUGHT) & frame["prompt_tokens"].notna()
    return frame.loc[rows, ["environment", "method", *TOKENS]].astype(dict.fromkeys(TOKENS, float))


def measure_tokens(played: pd.DataFrame, method: str, environment: str) -> tuple[pd.Series, bool]:
    """Mean `TOKENS` of an episode, and whether they are of this method on this benchmark.

    played: of `select_tokens`. Else of the method that it is a variant of, there; else of all
    methods there; else of all.
    """
    here = played[played["environment"] == environment]
    own = here[here["method"] == method]
    if len(own):
        return own[TOKENS].mean(), True
    kin = here[here["method"] == find_base(method)]
    rows = next(rows for rows in (kin, here, played) if len(rows))
    return rows[TOKENS].mean(), False


def price_parts(played: pd.DataFrame, parts: Iterable[Part]) -> pd.DataFrame:
    """The parts, a row each, with the tokens of all their episodes, and `measured`.

    played: of `select_tokens`.
    What several items need is there once: with the first of them, and with the most episodes.
    """
    table = pd.DataFrame(parts, columns=Part._fields)
    same = table.groupby(["file", "split", "method", "model"], sort=False)
    table["episodes"] = same["episodes"].transform("max")
    table = table[same.cumcount() == 0].reset_index(drop=True)
    pairs = list(zip(table["method"], table["environment"], strict=True))
    known = {pair: measure_tokens(played, *pair) for pair in dict.fromkeys(pairs)}
    tokens = pd.DataFrame([known[pair][0] for pair in pairs], columns=TOKENS, index=table.index)
    table[TOKENS] = tokens.mul(table["episodes"], axis="index")
    return table.assign(measured=[known[pair][1] for pair in pairs])


def count_hours(table: pd.DataFrame, rate: pd.Series) -> pd.Series:
    """Hours that the tokens of each row take. rate: a row of `load_throughput`."""
    read = table["evaluated"] - table["generated"]
    return (read / rate["input"] + table["generated"] / rate["output"]) / 3600


def make_plan(
    frame: pd.DataFrame,
    items: Iterable[PaperItem] | None = None,
    *,
    prices: pd.DataFrame | None = None,
    throughput: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A row a paper and model, then all; what several items need is counted once.

    frame: of `load_stored_rows`. items: None is all. input, output: millions of tokens that are
    sent and written. api_dollars: by their price. Of models with weights gpu_hours and gpu_dollars,
    where what calls have in common is read once, and uncached_hours, where it is not.
    share measured: of the episodes. Raises ValueError for a model with neither price nor rate.
    """
    prices = load_prices() if prices is None else prices
    throughput = load_throughput() if throughput is None else throughput
    parts = price_parts(select_tokens(frame), list_parts(load_items() if items is None else items))
    if parts.empty:
        raise ValueError("these items have nothing to play: no numbers, or no method of this kit")
    rows = [
        {"paper": paper, "model": model, **_price(str(model), group, prices, throughput)}
        for (paper, model), group in parts.groupby(["paper", "model"], sort=False)
    ]
    every: dict[str, Any] = dict(pd.DataFrame(rows).select_dtypes("number").sum())
    every["measured"] = parts.loc[parts["measured"], "episodes"].sum() / every["episodes"]
    table = pd.DataFrame([*rows, {"paper": "all", "model": "", **every}])
    return table.rename(columns={"measured": "share measured"}).astype({"episodes": int})


def _price(
    model: str, group: pd.DataFrame, prices: pd.DataFrame, throughput: pd.DataFrame
) -> dict[str, float]:
    sent, written, episodes = (
        group[name].sum() for name in ("prompt_tokens", "generated", "episodes")
    )
    cost = {"episodes": episodes, "input": sent / 1e6, "output": written / 1e6}
    cost["measured"] = group.loc[group["measured"], "episodes"].sum() / episodes
    rates = throughput[[model in models.split(";") for models in throughput["models"]]]
    if rates.empty:
        return cost | {"api_dollars": compute_dollars(sent, written, model, prices)}
    rate = rates.iloc[0]
    hours, uncached = (
        rate["gpus"] * count_hours(part, rate).sum()
        for part in (group, group.assign(evaluated=group["prompt_tokens"] + group["generated"]))
    )
    cost |= {"gpu_hours": hours, "uncached_hours": uncached}
    return cost | {"gpu_dollars": hours * rate["dollars"]}
