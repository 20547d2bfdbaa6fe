"""A thousand synthetic products: invented brands of everyday things, in the form of WebShop's.

For tests, notebooks and lessons. They are made by a seed, the same everywhere; rates on them are no
rates on WebShop's own products.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from thread_kit.envs.webshop.product import Instruction, Product

SEED = 2022
EACH = 50
"""Products of a kind."""

WITH_INSTRUCTION = 0.7
"""The share of products that have one; of WebShop's first 1,000 it is 0.42."""

COLORS = ("black", "white", "navy", "red", "green", "gray", "pink", "teal", "brown", "purple")
SIZES = ("small", "medium", "large", "x-large", "xx-large")
SHOES = ("6", "7", "8", "8.5", "9", "9.5", "10", "11", "12")
SCENTS = ("lavender", "citrus", "vanilla", "sandalwood", "fresh linen", "unscented")
FLAVORS = ("original", "honey", "sea salt", "cinnamon", "lemon", "dark cocoa")
PACKS = ("1 pack", "2 pack", "4 pack", "6 pack")
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


class Kind(NamedTuple):
    """A kind of product. traits: what can be true of one; options: what a buyer may choose from."""

    query: str
    noun: str
    category: str
    traits: str
    price: tuple[int, int]
    options: Mapping[str, tuple[str, ...]]


WEAR = {"color": COLORS, "size": SIZES}
KINDS = (
    Kind(
        "running shoes",
        "running shoes",
        "Clothing & Shoes › Shoes › Athletic › Running",
        "slip resistant; arch support; memory foam; rubber sole; lace closure; breathable mesh",
        (25, 110),
        {"color": COLORS, "size": SHOES},
    ),
    Kind(
        "rain jackets",
        "rain jacket",
        "Clothing & Shoes › Clothing › Jackets › Rainwear",
        "water resistant; zipper closure; machine wash; long sleeve; packable hood; quick drying",
        (30, 150),
        WEAR,
    ),
    Kind(
        "t-shirts",
        "t-shirt",
        "Clothing & Shoes › Clothing › Shirts › T-Shirts",
        "short sleeve; machine wash; classic fit; cotton blend; crew neck; tumble dry",
        (9, 40),
        WEAR,
    ),
    Kind(
        "wool socks",
        "socks",
        "Clothing & Shoes › Clothing › Socks › Wool",
        "merino wool; machine wash; cushioned heel; odor control; knee high; seamless toe",
        (7, 35),
        {"color": COLORS, "size": ("small", "medium", "large")},
    ),
    Kind(
        "shampoo",
        "shampoo",
        "Beauty › Hair Care › Shampoo & Conditioner › Shampoo",
        "sulfate free; paraben free; tea tree; dry hair; color safe; cruelty free",
        (6, 32),
        {"scent": SCENTS, "size": ("8 fl oz", "16 fl oz", "32 fl oz")},
    ),
    Kind(
        "deodorant",
        "deodorant stick",
        "Beauty › Personal Care › Deodorants › Sticks",
        "aluminum free; sensitive skin; long lasting; natural ingredients; alcohol free; vegan",
        (5, 25),
        {"scent": SCENTS},
    ),
    Kind(
        "face cream",
        "face cream",
        "Beauty › Skin Care › Face › Creams",
        "hyaluronic acid; fragrance free; anti aging; dry skin; oil free; dermatologist tested",
        (8, 60),
        {"size": ("1 ounce", "2 ounce", "4 ounce")},
    ),
    Kind(
        "electric toothbrushes",
        "electric toothbrush",
        "Beauty › Oral Care › Toothbrushes › Electric",
        "oral hygiene; travel case; soft bristles; long lasting battery; whitening mode; timer",
        (18, 120),
        {"color": COLORS},
    ),
    Kind(
        "granola bars",
        "granola bars",
        "Grocery › Snacks › Bars › Granola",
        "gluten free; non gmo; low sugar; individually wrapped; high protein; dairy free",
        (4, 30),
        {"flavor name": FLAVORS, "size": PACKS},
    ),
    Kind(
        "ground coffee",
        "ground coffee",
        "Grocery › Beverages › Coffee › Ground",
        "fair trade; dark roast; usda organic; low acid; single origin; caffeine free",
        (8, 35),
        {"flavor name": FLAVORS},
    ),
    Kind(
        "herbal tea",
        "herbal tea bags",
        "Grocery › Beverages › Tea › Herbal",
        "caffeine free; usda organic; kosher certified; artificial colors free; resealable; vegan",
        (4, 28),
        {"flavor name": FLAVORS, "size": ("20 count", "50 count", "100 count")},
    ),
    Kind(
        "mixed nuts",
        "mixed nuts",
        "Grocery › Snacks › Nuts › Mixed",
        "low sodium; dry roasted; gluten free; resealable bag; plant based; keto friendly",
        (6, 40),
        {"size": ("8 ounce", "16 ounce", "32 ounce")},
    ),
    Kind(
        "bluetooth speakers",
        "bluetooth speaker",
        "Electronics › Audio › Speakers › Portable",
        "stereo sound; water proof; hands free; long battery life; easy to carry; usb port",
        (15, 160),
        {"color": COLORS},
    ),
    Kind(
        "hdmi cables",
        "hdmi cable",
        "Electronics › Accessories › Cables › HDMI",
        "gold plated; high speed; blu ray; heavy duty; ultra hd; braided jacket",
        (5, 45),
        {"size": ("3 feet", "6 feet", "10 feet", "25 feet")},
    ),
    Kind(
        "tablet cases",
        "tablet case",
        "Electronics › Accessories › Tablet › Cases",
        "case cover; wireless charging; shock absorbing; pen holder; auto sleep; slim profile",
        (9, 60),
        {"color": COLORS},
    ),
    Kind(
        "tripods",
        "camera tripod",
        "Electronics › Camera & Photo › Accessories › Tripods",
        "carbon fiber; quick release; easy carry; ball head; remote control; non slip feet",
        (20, 190),
        {},
    ),
    Kind(
        "coffee tables",
        "coffee table",
        "Home & Kitchen › Furniture › Living Room › Tables",
        "solid wood; easy assembly; storage space; metal legs; tempered glass; living room",
        (60, 420),
        {"color": ("oak", "walnut", "black", "white")},
    ),
    Kind(
        "table lamps",
        "table lamp",
        "Home & Kitchen › Lighting › Lamps › Table",
        "glass shade; dimmable light; usb port; brushed nickel; energy efficient; living room",
        (18, 140),
        {},
    ),
    Kind(
        "throw pillows",
        "throw pillow covers",
        "Home & Kitchen › Bedding › Pillows › Decorative",
        "machine washable; double sided; hidden zipper; super soft; spot clean; living room",
        (8, 45),
        {"color": COLORS, "size": ("16 x 16", "18 x 18", "20 x 20")},
    ),
    Kind(
        "window curtains",
        "window curtains",
        "Home & Kitchen › Window › Treatments › Curtains",
        "machine washable; blackout lining; easy install; noise reducing; rod pocket; dining room",
        (15, 90),
        {"color": COLORS, "size": ("52 x 63", "52 x 84", "52 x 96")},
    ),
)


def make_products() -> tuple[Product, ...]:
    """The synthetic products, in an order in which kinds are mixed."""
    draw = random.Random(SEED)
    products = [_make_product(kind, draw) for kind in KINDS for _ in range(EACH)]
    draw.shuffle(products)
    return tuple(products)


def _make_product(kind: Kind, draw: random.Random) -> Product:
    traits = draw.sample(kind.traits.split("; "), draw.randint(3, 5))
    brand = "".join(_make_syllables(draw)).capitalize()
    options = {
        name: tuple(
            sorted(draw.sample(values, draw.randint(2, min(4, len(values)))), key=values.index)
        )
        for name, values in kind.options.items()
        if draw.random() < 0.7
    }
    # Some of what is true stands in the title, the rest on the pages behind it.
    shown = draw.randint(1, 2)
    title = f"{brand} {kind.noun.title()}, {', '.join(traits[:shown]).title()}"
    features = tuple(f"{trait.capitalize()}: {_praise(draw)}." for trait in traits[shown:])
    low = draw.randint(*kind.price) + draw.choice((0.0, 0.49, 0.95, 0.99))
    prices = (low, round(low * draw.uniform(1.1, 1.6), 2)) if draw.random() < 0.15 else (low,)
    return Product(
        id="B0" + "".join(draw.choices("0123456789BCDFGHJKLMNPQRSTVWXYZ", k=8)),
        title=title,
        query=kind.query,
        category=tuple(part.strip() for part in kind.category.split("›")),
        description=f"{brand} makes {kind.query} {_praise(draw)}.",
        features=features,
        prices=prices,
        options=options,
        attributes=tuple(traits),
        instructions=_instruct(kind, traits, draw),
        by_people=(_ask(kind, traits, options, draw), _ask(kind, traits, options, draw)),
    )


def _make_syllables(draw: random.Random) -> Iterator[str]:
    for _ in range(draw.randint(2, 3)):
        yield draw.choice(_CONSONANTS) + draw.choice(_VOWELS)
    yield draw.choice(_CONSONANTS)


def _praise(draw: random.Random) -> str:
    return draw.choice(
        (
            "made for every day",
            "a favorite of those who travel",
            "tested by families",
            "designed in a small workshop",
            "a gift that lasts",
            "for home and office",
        )
    )


def _instruct(kind: Kind, traits: list[str], draw: random.Random) -> tuple[Instruction, ...]:
    if draw.random() > WITH_INSTRUCTION:
        return ()
    asked = tuple(draw.sample(traits, draw.randint(1, 3)))
    return (Instruction(f"Look for {kind.query} that offer {', '.join(asked)}", asked),)


def _ask(
    kind: Kind, traits: list[str], options: Mapping[str, tuple[str, ...]], draw: random.Random
) -> Instruction:
    asked = tuple(draw.sample(traits, draw.randint(1, 3)))
    chosen = tuple(draw.choice(values) for values in options.values())
    begin = draw.choice(("i need", "i would like", "show me", "please find me"))
    in_words = f" in {' and '.join(chosen)}" if chosen else ""
    text = f"{begin} {kind.query}{in_words} with {' and '.join(asked)}"
    return Instruction(text, asked, chosen)
