"""A product of the shop, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_PRICE = 100.0
"""Of a product without one, in dollars (WebShop's own loader)."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What somebody wants of a product. options: values that are to be chosen; None is any
    combination of what the product has."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """A product as its page shows it.

    id: ten letters and digits (ASIN). category: from the widest to the narrowest. query: what it is
    found by. prices: lowest and highest in dollars; one, if it has one. options: the values of
    each ("size": "small", "large"). attributes: what is true of it, hidden from the page.
    department: one of the shop's five ("beauty"); "" of synthetic ones.
    """

    id: str
    title: str
    query: str
    category: tuple[str, ...]
    description: str
    features: tuple[str, ...]
    prices: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    instructions: tuple[Instruction, ...] = ()
    by_people: tuple[Instruction, ...] = ()
    department: str = ""

    @property
    def price_tag(self) -> str:
        return " to ".join(f"${price}" for price in self.prices or (DEFAULT_PRICE,))

    @property
    def document(self) -> str:
        """What is searched: title, description, first feature and options (WebShop's index)."""
        options = ", and ".join(f"{name}: {', '.join(v)}" for name, v in self.options.items())
        first = self.features[0] if self.features else ""
        return " ".join([self.title, self.description, first, options]).lower()
