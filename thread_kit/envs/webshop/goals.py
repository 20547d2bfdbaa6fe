"""What is to be bought: WebShop's goals, made from the instructions of a catalogue.

Each instruction gives a goal for every combination of the product's options, with a highest price
that is above the product's (WebShop's own generator: 6,910 goals of the 1,000 products). WebShop
draws prices and limits without a seed, and seeds the order; here one seed fixes all, and the order
is WebShop's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as combinations

from thread_kit.envs.webshop.catalogue import Catalogue
from thread_kit.envs.webshop.product import DEFAULT_PRICE, Instruction, Product

SEED = 233
"""Of the order of the goals (WebShop's own)."""

NO_LIMIT = 1_000_000.0
LIMITS = tuple(10.0 * i for i in range(1, 100))

_COLORS = """
alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown
burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee
cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold
granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender lemon
leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom
mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust
sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger
turquoise violet walnut wheat white wine yellow
"""
COLORS = _COLORS.split()
"""The first of these in an option's value stands for it (WebShop's list, in its order)."""

SPLITS = {"test": slice(0, 500), "dev": slice(500, 1500), "train": slice(1500, None)}
"""WebShop paper, section 5: the first 500 goals are the test's, the next 1,000 for development."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A purchase that an instruction asks for.

    options: those that are asked for, as the reward compares them: with their names ("size small")
    from the generator, by their colour or else as they are from people. price_limit: in dollars; a
    price that equals it is not too high.
    """

    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_limit: float


@dataclass(frozen=True)
class Goals:
    """All goals of a catalogue, in their order, and the price of each product by its id."""

    goals: tuple[Goal, ...]
    prices: Mapping[str, float]


@lru_cache(maxsize=8)  # shops are invented without end to teach (`distill/webshop_tasks.py`)
def make_goals(catalogue: Catalogue, *, by_people: bool) -> Goals:
    """The goals of a catalogue; by_people: from what people wrote, as in the papers' runs.

    Raises ValueError where people wrote none.
    """
    draw = random.Random(SEED)
    prices = {product.id: _draw_price(product, draw) for product in catalogue.products}
    goals: list[Goal] = []
    for product in catalogue.products:
        for instruction in product.by_people if by_people else product.instructions:
            limit = _draw_limit(prices[product.id], draw)
            goals += _expand(product, instruction, limit)
    if by_people and not goals:
        raise ValueError(
            f"the shop {catalogue.name!r} has no goals that people wrote; put WebShop's "
            "items_human_ins.json into its folder"
        )
    random.Random(SEED).shuffle(goals)
    return Goals(tuple(goals), prices)


def _draw_price(product: Product, draw: random.Random) -> float:
    match product.prices:
        case (low, high):
            return draw.uniform(low, high)
        case (price,):
            return price
        case _:
            return DEFAULT_PRICE


def _draw_limit(price: float, draw: random.Random) -> float:
    above = [limit for limit in LIMITS if limit > price][:4]
    return max(draw.sample(above, 2)) if len(above) >= 2 else NO_LIMIT


def _expand(product: Product, instruction: Instruction, limit: float) -> Iterator[Goal]:
    below = f", and price lower than {limit:.2f} dollars" if limit < NO_LIMIT else ""
    if instruction.options is not None:  # people wrote the options into the text
        wanted = tuple(map(name_color, instruction.options))
        yield Goal(product, f"{instruction.text}{below}", instruction.attributes, wanted, limit)
        return
    names = sorted(product.options)
    for values in combinations(*(product.options[name] for name in names)):
        chosen = list(zip(names, values, strict=True))
        listed = ", and ".join(f"{name}: {value}" for name, value in chosen)
        text = f"{instruction.text}{f' with {listed}' if listed else ''}{below}"
        wanted = tuple(f"{name} {value}" for name, value in chosen)
        yield Goal(product, text, instruction.attributes, wanted, limit)


def name_color(value: str) -> str:
    """The colour in an option's value, or the value where it has none."""
    return next((color for color in COLORS if color in value), value)
