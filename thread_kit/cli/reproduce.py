"""`python -m thread_kit reproduce`: the papers' tables and figures: listed, played, as pages."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from thread_kit.cli.arguments import add_loading, add_rules, load_engine
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
        "--model", nargs="+", metavar="NAME", help="play it with these, few-shot; else play nothing"
    )
    parser.add_argument("--planner-model", metavar="NAME", help="another one for the planner")
    parser.add_argument(
        "--tasks", type=int, metavar="N", help="so many of each benchmark; else the paper's"
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy: one run")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="episodes side by side")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="(default: runs/reproduce)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page, .md or .html (default: in --results)"
    )
    add_rules(parser)
    add_loading(parser)


def run(options: argparse.Namespace) -> None:
    """List, check, or make one page; raises ValueError for a list that does not hold."""
    # Imported here, so that the other commands start without pandas and scipy.
    from thread_kit.analysis.item_checks import check_items
    from thread_kit.analysis.item_list import describe_items
    from thread_kit.analysis.stored_rows import OWN, load_stored_rows

    folder = options.results or OWN
    if options.item is not None:
        _make_page(options, folder)
        return
    frame = load_stored_rows([folder])
    if options.check and (problems := check_items(frame)):
        raise ValueError("the list of items does not hold:\n" + "\n".join(problems))
    print(describe_items(frame, options.paper))


def _make_page(options: argparse.Namespace, folder: Path) -> None:
    from thread_kit.experiments.reproduce import reproduce

    models = {name: partial(load_engine, name, None, options) for name in options.model or ()}
    planner = options.planner_model
    page = reproduce(
        options.paper,
        options.item,
        models or None,
        planner={planner: partial(load_engine, planner, None, options)} if planner else None,
        tasks=options.tasks,
        temperature=options.temperature,
        rules=[rule for own in BENCHMARKS.values() for rule in own.rules if getattr(options, rule)],
        at_once=options.at_once,
        folder=folder,
    )
    print(page)
    print(page.save(options.out or folder / f"{options.paper}-{options.item}.html"))
