"""Words for the names in lessons: an open vocabulary, drawn evenly by how many tokens spell them.

A small model copies a word of one token before it copies one of four, each of which has to be found
again. Names of a few hundred common words do not teach that. Here are words of English (the package
wonderwords), two of them in one ("pepper" + "shaker"), and words that nobody has written before.
One in ten is drawn for no lesson; those that no lesson has in its lists or sentences either are
`UNSEEN`: what copies of those are worth is measured (`copying.py`). Words that only the official
TextCraft test has occur in neither.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Mapping
from functools import cache

from thread_kit.engines.models import load_model
from thread_kit.envs.textcraft.env import tasks
from thread_kit.envs.textcraft.planner import TAGS, Recipe

TAUGHT_WORDS, UNSEEN = "lessons", "unseen"
SHARES = {1: 30, 2: 30, 3: 25, 4: 15}
"""How often a word of so many tokens is drawn; the last stands for more, too."""

SAID = frozenset(
    re.findall(
        r"\w+",
        "armchair broken chain cookie daisy date diamond egg empty feather fence figure fraction "
        "frost get herring ink instruction item lilac limit line look mean means mining need organ "
        "other pattern pink power question rating see soup spoon star stay style syndrome table "
        "target tax tear total want water wheat wooden",
    )
)
"""Words of that tenth which lessons have all the same."""

LETTERS = range(3, 15)
MADE_UP = 12_000  # compounds, and as many words of syllables
SYLLABLES = re.findall("..?.?", "barkelomistradunovesphiquorenlaztibexgofymachwinju")
SYLLABLES += ["dor", "en", "ith", "al", "oss", "urn", "ake", "ill", "ty", "cra", "sto", "pli"]
SYLLABLES += ["che", "sel", "ed", "pep", "per", "sha", "ker", "spa", "tu", "wen", "gro", "bli"]
SYLLABLES += ["nk"]


def draw_word(draw: random.Random, part: str = TAUGHT_WORDS) -> str:
    """A word in small letters. part: `TAUGHT_WORDS`, or `UNSEEN` for one that no lesson has.

    Raises ModuleNotFoundError without the extra "distill".
    """
    words = words_by_tokens(part)
    (count,) = draw.choices(list(SHARES), list(SHARES.values()))
    return draw.choice(words[count])


def words_by_tokens(part: str) -> Mapping[int, tuple[str, ...]]:
    """The words of a part, by how many tokens of the embedded model each takes behind a blank."""
    return _sort_words()[part]


@cache
def _sort_words() -> Mapping[str, Mapping[int, tuple[str, ...]]]:
    words: dict[str, dict[int, list[str]]] = {
        part: {count: [] for count in SHARES} for part in (TAUGHT_WORDS, UNSEEN)
    }
    with load_model(adapter=None, context=256) as engine:  # for its vocabulary
        for word in _all_words():
            part = UNSEEN if zlib.crc32(word.encode()) % 10 == 0 else TAUGHT_WORDS
            if part == UNSEEN and word in SAID:
                continue
            count = len(engine.tokenize(f" {word}"))
            words[part][min(count, max(SHARES))].append(word)
    return {
        part: {count: tuple(alike) for count, alike in by_count.items()}
        for part, by_count in words.items()
    }


def _all_words() -> list[str]:
    from wonderwords import Defaults, RandomWord

    # 1. Words of English.
    source = RandomWord(noun=Defaults.NOUNS, adjective=Defaults.ADJECTIVES, verb=Defaults.VERBS)
    english = sorted(set(source.filter(regex=f"[a-z]{{{LETTERS[0]},{LETTERS[-1]}}}")))
    # 2. Compounds and new words, the same on every machine.
    draw = random.Random("words")
    short = [word for word in english if len(word) <= LETTERS[-1] // 2]
    compounds = ["".join(draw.sample(short, 2)) for _ in range(MADE_UP)]
    new = ["".join(draw.choices(SYLLABLES, k=draw.choice((2, 2, 3)))) for _ in range(MADE_UP)]
    held_out = {*TAGS, *words_of("test"), *words_of("dev")} - set(words_of("train"))
    return [word for word in dict.fromkeys((*english, *compounds, *new)) if word not in held_out]


@cache
def words_of(split: str) -> tuple[str, ...]:
    """The words of the items of TextCraft's tasks of a split."""
    names = {
        name
        for task in tasks(split)
        for recipe in map(Recipe.parse, task.commands)
        for name in (recipe.output, *(item for _, item in recipe.inputs))
    }
    return tuple(sorted({word for name in names for word in name.split()}))
