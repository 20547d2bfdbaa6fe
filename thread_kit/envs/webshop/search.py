"""The shop's search: BM25 as WebShop has it (Lucene by way of pyserini, k1 = 0.9, b = 0.4).

`bm25s` scores as Lucene does, and equal scores stand in the catalogue's order as there; what
differs is that Lucene rounds the lengths of documents.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from thread_kit.envs.webshop.catalogue import Catalogue
from thread_kit.envs.webshop.product import Product

FOUND = 50
"""Results of a search at most."""

LONGEST_QUERY = 2_000
"""Characters of a query that are read; no page asks for more."""

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""
STOP_WORDS = _STOP_WORDS.split()
"""Lucene's for English."""

_JOINS = r"(?<=\d)[.,;'’](?=\d)|(?<=[^\W\d_])(?!['’]s\b)[.:'’·](?=[^\W\d_])"
WORD = re.compile(rf"(\w+(?:(?:{_JOINS})\w+)*)(?:(?<=[^\W\d_])['’]s\b)?")
"""What Lucene's standard tokenizer takes for a word ("8.5", "don't", "u.s.a"; Unicode's annex 29),
less the possessive 's that its English filter cuts off."""


class Search:
    """The index of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        import bm25s
        import Stemmer

        self._products = catalogue.products
        self._stemmer = Stemmer.Stemmer("porter")
        self._index = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
        documents = [product.document for product in catalogue.products]
        split = self._split(documents)
        self._index.index(split, show_progress=False)
        # not the index's own list: that has the empty word (the stem of a lone "s") in any case
        self._words = {word for words in split for word in words}

    def find(self, query: str) -> list[Product]:
        """The products that fit a query, the best first; none if no word of it is known."""
        words = self._split([query[:LONGEST_QUERY].lower()])
        known = [word for word in words[0] if word in self._words]
        if not known:
            return []
        scores = self._index.get_scores(known)
        # As Lucene, equal scores in the order of the catalogue; `retrieve` has the processor's.
        ranked = np.argsort(-scores, kind="stable")[:FOUND]
        return [self._products[number] for number in ranked if scores[number] > 0]

    def _split(self, texts: list[str]) -> Any:
        import bm25s

        return bm25s.tokenize(
            texts,
            stopwords=STOP_WORDS,
            stemmer=self._stemmer,
            token_pattern=WORD.pattern,
            return_ids=False,
            show_progress=False,
        )


@lru_cache(maxsize=8)  # shops are invented without end to teach (`distill/webshop_tasks.py`)
def make_search(catalogue: Catalogue) -> Search:
    """The index of a catalogue; made once."""
    return Search(catalogue)
