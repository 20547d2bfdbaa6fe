"""Training purchases for WebShop: shops of our own, whose products are made of drawn words.

Instructions and pages have the form of WebShop's; what they speak of exists nowhere, so that a
model has to read. Words are those of all lessons (`words.py`); goals come from the generator of
WebShop's own (`envs/webshop/goals.py`).
"""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Iterator

from thread_kit.distill.words import draw_word
from thread_kit.envs.webshop.catalogue import Catalogue
from thread_kit.envs.webshop.env import WebShop
from thread_kit.envs.webshop.goals import SPLITS, make_goals
from thread_kit.envs.webshop.product import Instruction, Product

KINDS = 5
EACH = 12
"""Products of a kind."""

GOALS = 10
"""Of a shop."""

OPENINGS = (*["Find me"] * 3, "Look for", "I need", "I am looking for", "i want to buy", "Get me")
OPTIONS = ("color", "size", "style", "scent", "flavor name", "fit type", "pattern name", "material")
SIZES = ("small", "medium", "large", "x-large", "xx-large", "3x-large", "4x-large tall", "x-small")
TAILS = ("", "", "", "'s", " &", ",", " for")
"""What stands behind a word of a kind or a title."""


def training_purchases(seed: int) -> Iterator[WebShop]:
    """Purchases without end, a few in each shop."""
    for number in itertools.count(seed * 1_000_000):
        draw = random.Random(f"shop {number}")
        shop = Catalogue(f"lessons {number}", tuple(_products(draw)))
        goals = make_goals(shop, by_people=False).goals[SPLITS["test"]]
        # One goal of a product: those with many options would have most of them.
        of_product = {goal.product.id: n for n, goal in enumerate(goals)}
        for n in draw.sample(sorted(of_product.values()), min(GOALS, len(of_product))):
            yield WebShop("test", n, catalogue=shop)


def _products(draw: random.Random) -> Iterator[Product]:
    traits = [_words(draw, 2) for _ in range(20)]  # some of them true of products of every kind
    for _ in range(KINDS):
        kind = _phrase(draw, draw.choice((1, 2, 2, 3, 4)))
        of_kind = draw.sample(traits, 9)
        names = draw.sample(OPTIONS, draw.choices((0, 1, 2, 3), (10, 30, 45, 15))[0])
        few = [draw_word(draw) for _ in range(5)]  # so that values look alike
        pools = {name: _pool(draw, name, few) for name in names}
        for _ in range(EACH):
            yield _product(draw, kind, of_kind, pools)


def _product(
    draw: random.Random, kind: str, traits: list[str], pools: dict[str, list[str]]
) -> Product:
    true = draw.sample(traits, draw.randint(1, 5))
    asked = draw.sample(true, draw.randint(1, len(true)))
    brand = _words(draw, 1).capitalize()
    said = [*draw.sample(true, draw.randint(0, len(true))), *draw.sample(traits, 2)]
    title = f"{brand} {kind} {_phrase(draw, draw.randint(0, 7))} {', '.join(said)}".title()
    price = round(draw.uniform(3, draw.choice((30, 100, 400))), 2)
    options = {
        name: tuple(draw.sample(pool, min(len(pool), draw.choice((1, 2, 3, 4, 5, 6, 8, 12)))))
        for name, pool in pools.items()
        if draw.random() < 0.8
    }
    return Product(
        "B0" + "".join(draw.choices(string.ascii_uppercase + string.digits, k=8)),
        title,
        kind,
        ("Lessons", kind),
        _phrase(draw, 12),
        tuple(f"{trait}: {_phrase(draw, 4)}" for trait in true),
        (price, round(price * draw.uniform(1.1, 2), 2)) if draw.random() < 0.15 else (price,),
        options,
        tuple(true),
        (_instruction(draw, kind, asked, pools),),
    )


def _instruction(
    draw: random.Random, kind: str, asked: list[str], pools: dict[str, list[str]]
) -> Instruction:
    """As WebShop's are written: "Find me slim fit, hand wash tops with long sleeve for women".

    In two of five the options are any of the kind's, which no product may have all together.
    """
    draw.shuffle(asked)
    cut = draw.randint(0, len(asked))
    before, behind = ", ".join(asked[:cut]), ", ".join(asked[cut:])
    words = [draw.choice(OPENINGS), *[before] * bool(before), kind]
    words += [f"with {behind}"] * bool(behind)
    words += [f"for {_words(draw, draw.randint(1, 2))}"] * (draw.random() < 0.3)
    text = " ".join(words)
    if not pools or draw.random() < 0.6:
        return Instruction(text, tuple(asked))
    wanted = {name: draw.choice(pool) for name, pool in sorted(pools.items())}
    listed = ", and ".join(f"{name}: {value}" for name, value in wanted.items())
    return Instruction(f"{text} with {listed}", tuple(asked), tuple(wanted.values()))


def _pool(draw: random.Random, name: str, words: list[str]) -> list[str]:
    """The values of an option, from which each product of a kind has some; most of these words."""
    if name == "size" and draw.random() < 0.5:
        return list(SIZES)
    if name == "size" and draw.random() < 0.5:
        return [f"{n / 2:g}" for n in range(10, 26)]
    return list(dict.fromkeys(_value(draw, words) for _ in range(24)))


def _value(draw: random.Random, words: list[str]) -> str:
    word, other = draw.choice([*words, draw_word(draw)]), draw.choice([*words, draw_word(draw)])
    letter = draw.choice(string.ascii_lowercase)
    few, many = draw.randint(1, 12), draw.randint(10, 2000)
    unit = draw.choice(("oz", "ml", "inch", "ft", "pack", "count", "ounce", "cm", "x-large", "pcs"))
    return draw.choice(
        (
            *[word, f"{word} {other}"] * 4,
            f"{word} {other} {draw_word(draw)}",
            f"{letter}-{word}",
            f"{letter}{few:02d}-{word}",
            f"{letter}{few}#{word}",
            f"{few}-{word}",
            f"{letter}.{word}{many}",
            f"{word} | {other}",
            f"{word}, {other}",
            f"{many}{unit}",
            f"{few}.{draw.randint(1, 9)} {unit}",
            f"{few} {unit} (pack of {draw.randint(1, 30)})",
            f'{many}"w x {many + few}"l',
            f"{many} x {many - few} in",
            f"{many}x{few}{unit}",
        )
    )


def _words(draw: random.Random, count: int) -> str:
    return " ".join(draw_word(draw) for _ in range(count))


def _phrase(draw: random.Random, count: int) -> str:
    """Words with the marks between them that names of products have."""
    words = [f"{draw_word(draw)}{draw.choice(TAILS)}" for _ in range(count)]
    return " ".join(words).rstrip(" &,")
