"""WebShop's reward of a purchase (Yao et al. 2022, section 3 and appendix): 0.0 to 1.0.

    r = r_type * (attributes matched + options matched + [price <= limit])
                 / (attributes asked + options asked + 1)

r_type is 1 for the right kind of product, else 0.5, 0.1 or 0.0 by how much of the wanted title's
nouns the bought title has. WebShop finds nouns by a tagger of 60 MB; here every word is one that is
no stop word, number or unit (docs/fidelity/webshop.md: how seldom that changes r_type).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from thread_kit.envs.webshop.goals import Goal, name_color
from thread_kit.envs.webshop.product import Product
from thread_kit.envs.webshop.search import STOP_WORDS

ALIKE = 85
"""Two texts match from above this likeness on (rapidfuzz's token_set_ratio, 0 to 100)."""

_NOT_COMPARED = dict.fromkeys(range(128, 256))
"""Letters with accents and signs such as ®, which thefuzz leaves out."""

_NO_NOUNS = "from up out over per all more most very x oz inch inches pack pcs count"
NO_NOUNS = frozenset([*STOP_WORDS, *_NO_NOUNS.split()])


class Reward(NamedTuple):
    """The reward and what it is made of.

    type: r_type. attributes, options: how many match. price: whether it is within the limit.
    """

    reward: float
    type: float
    attributes: int
    options: int
    price: bool


def reward_purchase(
    goal: Goal, product: Product, options: Mapping[str, str], price: float
) -> Reward:
    """The reward for buying `product` with these options, at `price` dollars."""
    r_type = score_type(goal.product, product)
    attributes = sum(_has_attribute(product, attribute) for attribute in goal.attributes)
    chosen = [name_color(value) for value in options.values()]
    matched = sum(_is_like(option, chosen) for option in goal.options)
    within = price <= goal.price_limit
    asked = len(goal.attributes) + len(goal.options) + 1
    return Reward(
        r_type * (attributes + matched + within) / asked, r_type, attributes, matched, within
    )


def score_type(wanted: Product, bought: Product) -> float:
    """r_type: 1.0, 0.5, 0.1 or 0.0."""
    nouns = find_nouns(wanted.title)
    share = len(nouns & find_nouns(bought.title)) / len(nouns) if nouns else 0.2
    if share == 0.0:
        return 0.0
    if share < 0.1:
        return 0.1
    same_category = len(set(wanted.category) & set(bought.category)) >= 2
    return 1.0 if wanted.query == bought.query or same_category or share > 0.2 else 0.5


def choose_options(goal: Goal) -> dict[str, str]:
    """Of each option of the goal's product the value that is like a wanted one, where there is."""
    options = {}
    for name, values in goal.product.options.items():
        for value in values:
            named = f"{name} {value}" in goal.options
            if named or (name not in options and _is_like(name_color(value), goal.options)):
                options[name] = value
    return options


@cache
def find_nouns(title: str) -> frozenset[str]:
    """The words of a title that say what a product is, in small letters."""
    words = re.findall(r"(?<!['’‘])\b\w*[a-z]\w*", title.lower())
    return frozenset(word for word in words if word not in NO_NOUNS)


def _has_attribute(product: Product, attribute: str) -> bool:
    if _is_like(attribute, product.attributes):
        return True
    texts = (product.title, " ".join(product.features), product.description)
    return any(attribute in text.lower() for text in texts)


def _is_like(wanted: str, texts: Iterable[str]) -> bool:
    from rapidfuzz import fuzz, utils

    def likeness(text: str) -> float:
        texts = (part.translate(_NOT_COMPARED) for part in (text, wanted))
        return fuzz.token_set_ratio(*texts, processor=utils.default_process)

    return any(round(likeness(text)) > ALIKE for text in texts)
