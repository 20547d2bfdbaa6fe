"""The shop's search: BM25 as WebShop has it (Lucene by way of pyserini, k1 = 0.9, b = 0.4).

`bm25s` scores as Lucene does, words and stems are Lucene's, and equal scores stand in the order of
the products' ids, as pyserini has them; what differs is that Lucene rounds documents' lengths.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import regex
import Stemmer

from thread_kit.envs.webshop.catalogue import Catalogue
from thread_kit.envs.webshop.product import Product

FOUND = 50
"""Results of a search at most."""

LONGEST_QUERY = 2_000
"""Characters of a query that are read; no page asks for more."""

LONGEST_WORD = 255
"""Letters of a word that has a stem; Lucene cuts longer ones, and the rules take their time."""

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Lucene's for English."""

_JOINS = r"(?<=\d)[.,;'’](?=\d)|(?<=[^\W\d_])(?!['’]s\b)[.:'’·](?=[^\W\d_])"
_PICTURE = r"[\p{Extended_Pictographic}--[©®™〰〽]]\uFE0F?\p{Emoji_Modifier}?"
_PICTURES = rf"{_PICTURE}(?:\u200D{_PICTURE})*|\p{{Regional_Indicator}}{{2}}"
_WORDS = rf"\w+(?:(?:{_JOINS})\w+)*|{_PICTURES}"
WORD = regex.compile(rf"({_WORDS})(?:(?<=[^\W\d_])['’]s\b)?", regex.V1)
"""What Lucene's standard tokenizer takes for a word ("8.5", "don't", "u.s.a"; Unicode's annex 29;
and emoji), less the possessive 's that its English filter cuts off."""

_MEASURED = r"(\w*(?:[aeiou]|(?<=[^aeiou])y)\w*?(?:[^aeiouy]|(?<=[aeiou])y)\w*)"
_LATER_RULES = tuple(
    (regex.compile(_MEASURED + end), becomes)
    for end, becomes in (("bl(?:y|i|ies)", "ble"), ("log(?:y|i|ies)", "log"))
)
"""What Porter added to his program later, and Lucene has: behind a vowel and a consonant."""

_porter = Stemmer.Stemmer("porter")


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """The stem of a lower-case word by Porter's program, as Lucene has it.

    Snowball's "porter" is the algorithm as it was published, without the later rules; words of one
    and two letters have no stem.
    """
    if not 3 <= len(word) <= LONGEST_WORD:
        return word
    for pattern, becomes in _LATER_RULES:
        if match := pattern.fullmatch(word):
            word = match[1] + becomes
    return _porter.stemWord(word)


class Search:
    """The index of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        import bm25s

        self._products = catalogue.products
        split = [split_words(product.document) for product in catalogue.products]
        self._index = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
        self._index.index(split, show_progress=False)
        self._words = {word for words in split for word in words}
        self._order = rank(product.id for product in catalogue.products)

    def find(self, query: str) -> list[Product]:
        """The products that fit a query, the best first; none if no word of it is known."""
        known = [word for word in split_words(query[:LONGEST_QUERY]) if word in self._words]
        if not known:
            return []
        scores = self._index.get_scores(known)
        ranked = np.lexsort((self._order, -scores))[:FOUND]
        return [self._products[number] for number in ranked if scores[number] > 0]


def split_words(text: str) -> list[str]:
    """The stems of a text's words, in their order, without stop words."""
    return [stem(word) for word in WORD.findall(text.lower()) if word not in STOP_WORDS]


def rank(names: Iterable[str]) -> np.ndarray:
    """The place of each name among all of them in the order of their characters."""
    return np.argsort(np.argsort(list(names), kind="stable"), kind="stable")


@lru_cache(maxsize=8)  # shops are invented without end to teach (`distill/webshop_tasks.py`)
def make_search(catalogue: Catalogue) -> Search:
    """The index of a catalogue; made once."""
    return Search(catalogue)
