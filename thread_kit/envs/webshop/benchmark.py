"""WebShop's record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from thread_kit.dialect import PAGES
from thread_kit.envs.benchmark import Benchmark, NumberedTask, list_questions
from thread_kit.envs.env import Env
from thread_kit.errors.rules import ErrorRules


def make_purchase(**arguments: Any) -> Env:
    """A purchase; arguments and errors are those of `WebShop`."""
    from thread_kit.envs.webshop.env import WebShop

    return WebShop(**arguments)


def list_tasks(split: str, *, by_people: bool = False) -> list[NumberedTask]:
    """Goals of a split in the shop of this machine, which each task names."""
    from thread_kit.envs.webshop.catalogue import load_catalogue
    from thread_kit.envs.webshop.goals import SPLITS, make_goals

    shop = load_catalogue()
    goals = make_goals(shop, by_people=by_people).goals[SPLITS[split]]
    arguments = {"catalogue": shop.name, "split": split}
    return list_questions("webshop", 1, arguments, most=len(goals))


def is_smaller(row: Mapping[str, Any]) -> bool:
    """Whether the shop is no official one of a million products, or the goals are not the papers'.

    The papers' has 1.18 million, and 500 goals that people wrote (ADaPT paper, section 4.1); its
    40 for development are some of these, and not ours.
    """
    official = re.fullmatch(r"official \((\d+) products\)", str(row.get("catalogue")))
    by_people = row.get("by_people") in (True, "True")
    is_theirs = by_people and row.get("split") != "dev"
    return not (official and int(official[1]) > 1_000_000 and is_theirs)


def name_page(row: Mapping[str, Any]) -> str:
    """How many products a page of results has; rows name it where it is not three."""
    products = row.get("products")
    return f"{3 if products is None or products != products else int(products)} products"


WEBSHOP = Benchmark(
    "webshop",
    make_purchase,
    list_tasks,
    splits=("test", "dev", "train"),
    arguments=attrgetter("arguments"),
    rules={
        "by_people": "goals that people wrote, as in the papers' runs, and not generated ones",
        "attributes": "pages of products show what is true of them (THREAD paper, G.4)",
    },
    dialect=PAGES,
    start=("load",),  # the page that is there, as the papers' agents see it first
    look="load",
    react_judges=False,
    methods=("react-hybrid", "naive"),
    executors=("executor",),
    carry=True,  # ADaPT paper, appendix A: the product that was found
    # As the examples of a match say; of several the first (ADaPT paper, appendix G).
    placeholders={"prod_id": r"think\[(B[0-9A-Z]{9})(?:,? (?:and )?B[0-9A-Z]{9})* match"},
    handlers=("search", "best_match", "match_count", "purchase"),
    error_rules=ErrorRules,
    published="WebShop",
    first_tasks=True,  # sessions fixed_0 to fixed_99, in both papers' released code
    stands_in=is_smaller,
    group_of=name_page,
    adapters={"smollm2-135m": "thread-webshop-135m"},
)
