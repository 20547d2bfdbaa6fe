"""The shop's pages as text: a line each, what can be clicked in brackets.

It is the text form in which ReAct, ADaPT and THREAD play WebShop: of a page of results so many
products as are shown, of a product its options, title, price and buttons. A chosen option stands in
double brackets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from thread_kit.envs.webshop.product import Product

BACK, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
DETAILS = ("Description", "Features", "Reviews")
ATTRIBUTES = "Attributes"
PER_PAGE = 10
"""Results on a page of the shop."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page for those who look and click, not read (`views/shop.py`).

    shown: the products of a page of results, which is number `number`; total: of all results.
    product, chosen, detail: of a product's page, or of one behind it. buttons: all others.
    """

    buttons: tuple[str, ...] = ()
    shown: tuple[Product, ...] | None = None
    number: int = 1
    total: int = 0
    product: Product | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)
    detail: str | None = None


def write_search_page(instruction: str) -> str:
    """The page of an episode's start: what is to be bought, and where one searches."""
    return f"WebShop\nInstruction:\n{instruction}\n[Search]"


def write_results_page(shown: Sequence[Product], page: int, total: int) -> str:
    """page: counts from 1. total: of all results."""
    buttons = [f"[{BACK}]", f"Page {page} (Total results: {total})"]
    buttons += [f"[{PREVIOUS}]"] * (page > 1) + [f"[{NEXT}]"]
    products = [f"[{p.id}]\n{' '.join(p.title.split())}\n{p.price_tag}" for p in shown]
    return "\n".join([*buttons, *products])


def write_item_page(
    product: Product, chosen: Mapping[str, str], details: Sequence[str] = DETAILS
) -> str:
    """chosen: the value of each option that was clicked. details: the pages behind this one."""
    options = [
        " ".join([name, "".join(_write_option(v, chosen.get(name)) for v in values)])
        for name, values in product.options.items()
    ]
    about = [" ".join(product.title.split()), f"Price: {product.price_tag}", "Rating: N.A."]
    buttons = [f"[{button}]" for button in (*details, BUY)]
    return "\n".join([f"[{BACK}]", f"[{PREVIOUS}]", *options, *about, *buttons])


def write_detail_page(product: Product, detail: str) -> str:
    """detail: one of `DETAILS` or `ATTRIBUTES`."""
    return "\n".join([f"[{BACK}]", f"[{PREVIOUS}]", *list_detail_lines(product, detail)])


def list_detail_lines(product: Product, detail: str) -> list[str]:
    """What stands on a page behind that of a product; nobody has written a review."""
    texts: Mapping[str, Sequence[str]] = {
        "Description": (product.description,),
        "Features": product.features,
        ATTRIBUTES: (
            *product.attributes,
            product.department,
            product.query,
            " › ".join(product.category),
        ),
    }
    lines = [" ".join(text.split()) for text in texts.get(detail, ())]
    return [line for line in lines if line]


def _write_option(value: str, chosen: str | None) -> str:
    return f"[[{value}]]" if value == chosen else f"[{value}]"
