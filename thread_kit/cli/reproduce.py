"""`python -m thread_kit reproduce`: the papers' tables and figures: listed, played, as pages."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from thread_kit.cli.arguments import add_loading, add_places, add_rules, load_engine, open_place
from thread_kit.envs.registry import BENCHMARKS


def add_command(commands: Any) -> None:
    """Add `reproduce` to the subparsers of the command line."""
    parser = commands.add_parser(
        "reproduce", help="list the papers' tables and figures; play one and write its page"
    )
    parser.set_defaults(do=run)
    parser.add_argument("paper", nargs="?", help="thread-v2, thread-v1, stateflow or adapt")
    parser.add_argument("item", nargs="?", help="table-3, figure-4 ...: as they are listed")
    parser.add_argument("--check", action="store_true", help="whether every item and page holds")
    parser.add_argument(
        "--plan", action="store_true", help="what it takes with the papers' models: tokens, dollars"
    )
    for name in ("prices", "throughput"):
        parser.add_argument(
            f"--{name}", type=Path, metavar="FILE", help=f"for --plan (default: data/{name}.csv)"
        )
    parser.add_argument(
        "--model", nargs="+", metavar="NAME", help="play it with these, few-shot; else play nothing"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these of its benchmarks and methods"
    )
    parser.add_argument("--planner-model", metavar="NAME", help="another one for the planner")
    parser.add_argument(
        "--tasks", type=int, metavar="N", help="so many of each benchmark; else the paper's"
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
    """List, check, plan, or make one page; raises ValueError for a list that does not hold."""
    # Imported here, so that the other commands start without pandas and scipy.
    from thread_kit.analysis.item_checks import check_items
    from thread_kit.analysis.item_list import describe_items
    from thread_kit.analysis.stored_rows import OWN, load_stored_rows

    folder = options.results or OWN
    if options.plan:
        _print_plan(options, folder)
        return
    if options.item is not None:
        _make_page(options, folder)
        return
    frame = load_stored_rows([folder])
    if options.check and (problems := check_items(frame)):
        raise ValueError("the list of items does not hold:\n" + "\n".join(problems))
    print(describe_items(frame, options.paper))


def _make_page(options: argparse.Namespace, folder: Path) -> None:
    from thread_kit.experiments.reproduce import reproduce

    models = {
        _name(model): partial(load_engine, model, None, options) for model in options.model or ()
    }
    planner = options.planner_model
    with open_place(options) as executor:
        page = reproduce(
            options.paper,
            options.item,
            models or None,
            planner={_name(planner): partial(load_engine, planner, None, options)}
            if planner
            else None,
            only=options.only,
            tasks=options.tasks,
            temperature=options.temperature,
            rules=[rule for b in BENCHMARKS.values() for rule in b.rules if getattr(options, rule)],
            at_once=options.at_once,
            executor=executor,
            server=options.server,
            folder=folder,
        )
    print(page)
    print(page.save(options.out or folder / f"{options.paper}-{options.item}.html"))


def _name(model: str) -> str:
    """What tables call a model: of a file its name."""
    return Path(model).stem if model.endswith(".gguf") else model


def _print_plan(options: argparse.Namespace, folder: Path) -> None:
    from thread_kit.analysis.paper_items import check_paper, find_item, load_items
    from thread_kit.analysis.plan import load_throughput, make_plan
    from thread_kit.analysis.prices import load_prices
    from thread_kit.analysis.stored_rows import load_stored_rows
    from thread_kit.views.table import Table

    items = [item for item in load_items() if options.paper in (None, item.paper)]
    if options.item:
        items = [find_item(options.paper, options.item)]
    elif options.paper:
        check_paper(options.paper)
    throughput = load_throughput(options.throughput)
    prices = load_prices(options.prices)
    print(Table(make_plan(load_stored_rows([folder]), items, prices=prices, throughput=throughput)))
    print("\ninput, output: millions of tokens. What speed is assumed, in tokens a second:")
    print(Table(throughput.drop(columns="models")))
