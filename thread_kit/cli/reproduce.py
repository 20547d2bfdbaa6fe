"""`python -m thread_kit reproduce`: the papers' tables and figures: listed, played, as pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thread_kit.cli.arguments import (
    DefaultsFormatter,
    add_loading,
    add_places,
    add_rules,
    check_models,
    chosen_rules,
    import_object,
    is_own,
    list_loading,
    load_engine,
    name_flags,
    open_place,
)
from thread_kit.engines.models import ModelError, name_model
from thread_kit.envs.registry import BENCHMARKS

if TYPE_CHECKING:
    from thread_kit.analysis.item_page import ItemPage
    from thread_kit.analysis.paper_items import PaperItem


def add_command(commands: Any) -> None:
    """Add `reproduce` to the subparsers of the command line."""
    parser = commands.add_parser(
        "reproduce",
        help="list the papers' tables and figures; play one and write its page",
        formatter_class=DefaultsFormatter,
    )
    parser.set_defaults(do=run)
    # What is wanted.
    parser.add_argument(
        "paper", nargs="?", help="thread-v2, thread-v1, stateflow or adapt; none is all of them"
    )
    parser.add_argument("item", nargs="?", help="table-3, figure-4 ...; none is all of them")
    parser.add_argument(
        "--check", action="store_true", help="whether all items and their pages hold"
    )
    parser.add_argument(
        "--plan", action="store_true", help="what it takes with the papers' models: tokens, dollars"
    )
    for name in ("prices", "throughput"):
        parser.add_argument(
            f"--{name}", type=Path, metavar="FILE", help=f"for --plan (default: data/{name}.csv)"
        )
    # What is played, and where it goes.
    parser.add_argument(
        "--model", nargs="+", metavar="NAME", help="play with these, few-shot; else play nothing"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these of its benchmarks and methods"
    )
    parser.add_argument("--planner-model", metavar="NAME", help="another one for the planner")
    parser.add_argument(
        "--tasks",
        type=int,
        metavar="N",
        help="so many of each benchmark, or all it has; else the paper's",
    )
    parser.add_argument(
        "--split",
        default="",
        metavar="NAME",
        help="of the benchmarks that have it; else the item's",
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy: one run")
    add_places(parser)
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="(default: runs/reproduce)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page, .md or .html (default: in --results)"
    )
    add_rules(parser)
    add_loading(parser)


def run(options: argparse.Namespace) -> None:
    """List, check, plan, make one page or all; raises ValueError for a list that does not hold."""
    # Imported here, so that the other commands start without pandas and scipy.
    from thread_kit.analysis.item_list import describe_items
    from thread_kit.analysis.stored_rows import OWN, load_stored_rows

    folder = options.results or OWN
    _refuse_what_plays(options)
    check_models(options.model or [], options)
    if options.check:
        _check(options)
        return
    if options.plan:
        _print_plan(options, folder)
        return
    if options.item is not None:
        with open_place(options) as executor:
            rules = chosen_rules(options)
            page = _reproduce(
                options, folder, executor, options.paper, options.item, options.only, rules
            )
        print(page)
        print(page.save(options.out or _place(folder, options.paper, options.item)))
        return
    if options.model:
        _play_all(options, folder)
        return
    print(describe_items(load_stored_rows([folder]), options.paper))


def _check(options: argparse.Namespace) -> None:
    """Of all items, from the repository alone, or with the rows of --results."""
    from thread_kit.analysis.item_checks import check_items
    from thread_kit.analysis.paper_items import load_items
    from thread_kit.analysis.stored_rows import load_stored_rows

    if options.paper or options.model or options.plan or options.out:
        raise ValueError("--check looks at all items; only --results goes with it")
    if problems := check_items(load_stored_rows([options.results] if options.results else [])):
        raise ValueError("the list of items does not hold:\n" + "\n".join(problems))
    print(f"{len(load_items())} items hold: their rows, states, figures and pages")


def _refuse_what_plays(options: argparse.Namespace) -> None:
    """Raises ValueError for options that would do nothing."""
    usual: dict[str, Any] = {"only": [], "split": "", "temperature": 0.0, "at_once": 1}
    usual |= dict.fromkeys(["tasks", "planner_model", "executor"])
    unusual = [name for name, value in usual.items() if getattr(options, name) != value]
    given = [*chosen_rules(options), *unusual, *list_loading(options)]
    if options.plan and (idle := [*(["model"] if options.model else []), *given]):
        raise ValueError(f"{name_flags(idle)} is for what is played; --plan plays nothing")
    if given and not options.model:
        raise ValueError(f"{name_flags(given)} is for what is played; give --model NAME, too")
    if not options.plan and (idle := [n for n in ("prices", "throughput") if getattr(options, n)]):
        raise ValueError(f"{name_flags(idle)} is for --plan")
    if options.out and not options.item:
        raise ValueError("--out is for the page of one item; name it, or give --results FOLDER")
    if options.out and options.out.suffix not in (".md", ".html"):
        raise ValueError(f"--out {options.out}: a page is .md or .html")
    makes_folder = options.model or options.item
    if (results := options.results) and (
        results.is_file() or not (makes_folder or results.is_dir())
    ):
        raise ValueError(f"--results {results} is no folder; name the one that episodes are in")


def _reproduce(
    options: argparse.Namespace,
    folder: Path,
    executor: Executor | None,
    paper: str,
    item: str,
    only: Sequence[str],
    rules: Sequence[str],
) -> ItemPage:
    """The page of an item, played with what the command line says, by these of its rules."""
    from thread_kit.experiments.reproduce import reproduce

    models, planners = (
        {name_model(name): partial(load_engine, name, None, options) for name in names or ()}
        for names in (options.model, options.planner_model and [options.planner_model])
    )
    return reproduce(
        paper,
        item,
        models or None,
        planner=planners or None,
        only=only,
        tasks=options.tasks,
        split=options.split,
        temperature=options.temperature,
        rules=rules,
        at_once=options.at_once,
        executor=executor,
        server=options.server,
        folder=folder,
    )


def _play_all(options: argparse.Namespace, folder: Path) -> None:
    """Play every item, or those of one paper, and write its page; what cannot be played is said.

    Raises ModelError, and what playing raises beside a benchmark's or a method's absence.
    """
    for name in () if options.server else filter(is_own, options.model):
        import_object(name)  # no reason to leave every item out
    from thread_kit.experiments.reproduce import find_names

    items, benchmarks = _list_items(options), {*options.only} & {*BENCHMARKS}
    for name in {*options.only} - benchmarks:
        if not any(find_names(item, [name])[0] in item.methods for item in items):
            raise ValueError(f"--only {name}: no item has such a benchmark or method")
    with open_place(options) as executor:
        for item in items:
            for benchmark in item.find_benchmarks() if item.study else ():
                methods = [n for n in find_names(item, options.only) if n in item.methods]
                if benchmarks and benchmark.name not in benchmarks:
                    continue
                if {*options.only} - benchmarks and not methods:
                    continue
                only = [benchmark.name, *methods]
                rules = [rule for rule in chosen_rules(options) if rule in benchmark.rules]
                print(f"{item.label} on {benchmark.name}", flush=True)
                try:
                    page = _reproduce(options, folder, executor, item.paper, item.item, only, rules)
                except ModelError:
                    raise
                except (ValueError, OSError, ImportError) as error:
                    print(f"  left out: {error}", flush=True)
                else:
                    print(f"  {page.save(_place(folder, item.paper, item.item))}", flush=True)


def _place(folder: Path, paper: str, item: str) -> Path:
    return folder / f"{paper}-{item}.html"


def _list_items(options: argparse.Namespace) -> Sequence[PaperItem]:
    """The item, the paper's items, or all; raises ValueError for what there is not."""
    from thread_kit.analysis.paper_items import check_paper, find_item, load_items

    if options.item:
        return [find_item(options.paper, options.item)]
    if options.paper:
        check_paper(options.paper)
    return [item for item in load_items() if options.paper in (None, item.paper)]


def _print_plan(options: argparse.Namespace, folder: Path) -> None:
    from thread_kit.analysis.plan import load_throughput, make_plan
    from thread_kit.analysis.prices import load_prices
    from thread_kit.analysis.stored_rows import load_stored_rows
    from thread_kit.views.table import Table

    throughput = load_throughput(options.throughput)
    prices = load_prices(options.prices)
    rows, items = load_stored_rows([folder]), _list_items(options)
    print(Table(make_plan(rows, items, prices=prices, throughput=throughput)))
    print("\ninput, output: millions of tokens. What speed is assumed, in tokens a second:")
    print(Table(throughput.drop(columns="models")))
