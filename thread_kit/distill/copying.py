"""How exactly a model copies names, apart from playing: one name, read and written once.

The name is the goal of a TextCraft task. The main thread's text is given up to the place where the
teacher writes the goal, and the model goes on from there; what stands before the closing quotation
mark is its copy. The words are those that no lesson has (`words.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from tqdm.auto import tqdm

from thread_kit.analysis.statistics import wilson
from thread_kit.dialect import AGENT
from thread_kit.distill.textcraft_teacher import speak_thread
from thread_kit.distill.words import SHARES, UNSEEN, words_by_tokens
from thread_kit.engines.engine import Completion, Engine, ThreadKey
from thread_kit.trace.events import Stop

NAMES = 1000
COMMANDS = """\
Prompt:
Crafting commands:
craft 4 torch using 1 coal, 1 stick
craft 4 stick using 2 planks
craft 4 oak planks using 1 oak logs
"""
LONGEST = 24  # tokens of a copy
AT_ONCE = 16


class Copy(NamedTuple):
    """A name, of how many tokens it is, and what the model made of it."""

    name: str
    tokens: int
    copy: str


def draw_names(number: int = NAMES) -> list[tuple[str, int]]:
    """Different words that no lesson has, as many each of 1, 2, 3 and 4 tokens (4: or more).

    Raises ValueError for more than there are, ModuleNotFoundError without the extra "distill".
    """
    words = words_by_tokens(UNSEEN)
    most = len(SHARES) * min(map(len, words.values()))
    if not 0 < number <= most:
        raise ValueError(f"{number} names were asked for; 1 to {most:,} can be drawn")
    draw = random.Random("copying 0")
    drawn = {count: draw.sample(words[count], len(words[count])) for count in SHARES}
    return [(drawn[1 + n % len(SHARES)].pop(), 1 + n % len(SHARES)) for n in range(number)]


def copy_names(engine: Engine, names: Sequence[tuple[str, int]]) -> list[Copy]:
    """What the engine's model makes of the names, greedily, some of them at a time.

    names: with the tokens of each, as `draw_names` gives them. Raises what the engine raises.
    """
    copies: list[Copy] = []
    list(engine.prefill(engine.tokenize(COMMANDS, first=True)))
    with tqdm(total=len(names), desc="copying", unit=" names", leave=False) as bar:
        for first in range(0, len(names), AT_ONCE):
            part = names[first : first + AT_ONCE]
            for number, (name, _) in enumerate(part):
                tokens = engine.tokenize(_write_thread(name), first=True)
                stops = {"']": Stop.END, "\n": Stop.END}
                engine.begin(number, tokens, stops=stops, max_tokens=LONGEST)
            said: dict[ThreadKey, str] = {}
            while len(said) < len(part):
                for news in engine.advance(*range(len(part))):
                    if isinstance(news, Completion):
                        said[news.thread] = news.text
                        engine.release(news.thread)
            for number, (name, count) in enumerate(part):
                copies.append(Copy(name, count, said[number].removesuffix("']").strip()))
            bar.update(len(part))
    return copies


def _write_thread(goal: str) -> str:
    """A main thread up to where its teacher writes the goal, which stands nowhere but in its task.

    Without the last blank, which is the first letter of the name's first token.
    """
    thread = f"{COMMANDS}Goal: craft {goal}.\n\nResponse:\n{AGENT.start}\n"
    return thread + speak_thread(thread).partition(f" {goal}']")[0]


def count_exact(copies: Sequence[Copy]) -> pd.DataFrame:
    """Exact copies by the tokens of a name, and of all, with Wilson intervals (95%)."""
    rows = []
    for tokens in [*SHARES, None]:
        chosen = [copy for copy in copies if tokens in (None, copy.tokens)]
        exact = sum(copy.name == copy.copy for copy in chosen)
        low, high = wilson(exact, len(chosen))
        more = " or more" if tokens == max(SHARES) else ""
        rows.append(
            {
                "tokens": f"{tokens}{more}" if tokens else "all",
                "names": len(chosen),
                "exact": exact,
                "rate": round(exact / len(chosen), 3),
                "low": round(low, 3),
                "high": round(high, 3),
            }
        )
    return pd.DataFrame(rows)
