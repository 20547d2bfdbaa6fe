"""Examples: what oracles said in real episodes, as tokens, with a mask of what is to be learnt.

Every example is one thread of an episode that a `Session` played, so that a model is taught exactly
the text that it will see. Contexts and feedback (between `=>` and `<=`) are read, not learnt.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tqdm.auto import tqdm

from thread_kit.distill.invented import Invented
from thread_kit.distill.oracle import react_script, speak_thread
from thread_kit.engines import Engine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.textcraft import TextCraft
from thread_kit.sequence import Provenance
from thread_kit.session import Session
from thread_kit.trace import Episode

Method = Literal["thread", "react"]
METHODS: tuple[Method, ...] = ("thread", "react")


@dataclass(frozen=True, slots=True)
class Example:
    """One thread: its tokens, and for each of them whether it is to be learnt."""

    tokens: tuple[int, ...]
    learnt: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.tokens)


def play(method: Method, task: Invented) -> Episode:
    """The oracle's episode of a task; raises ValueError if it earns no reward, or for the method.

    thread: with variables and children (THREAD paper, algorithm 2). react: one line of context.
    """
    goal, commands = task
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    threads = method == "thread"
    engine = ScriptedEngine(speak_thread if threads else react_script(goal, commands))
    env = TextCraft.custom(goal, commands)
    with Session(engine, env, variables=threads, calls=None) as session:
        episode = session.run(progress=False)
    if episode.reward != 1:
        raise ValueError(f"the oracle did not craft {goal!r} ({episode.status}) from {commands}")
    return episode


def examples(
    method: Method, tasks: Iterable[Invented], engine: Engine, *, tokens: int, seed: int = 0
) -> list[Example]:
    """Examples of at least `tokens` tokens, each thread once, in an order drawn with `seed`.

    engine: gives the tokens. Of the main threads, whose contexts are long and whose texts are
    alike, every third is kept where the others have children to be learnt.
    Raises ValueError if the tasks are used up before.
    """
    found: dict[tuple[int, ...], Example] = {}
    count = 0
    name = f"{method}: examples"
    with tqdm(total=tokens, desc=name, unit=" tokens", unit_scale=True, leave=False) as bar:
        for number, task in enumerate(tasks):
            for example in _threads(play(method, task), engine, main=number % 3 == 0):
                if example.tokens not in found:
                    found[example.tokens] = example
                    count += len(example)
                    bar.update(len(example))
            if count >= tokens:
                break
        else:
            raise ValueError(f"the tasks gave {count} tokens, and {tokens} are wanted; give more")
    ordered = list(found.values())
    random.Random(seed).shuffle(ordered)
    return ordered


def _threads(episode: Episode, engine: Engine, *, main: bool) -> Iterator[Example]:
    for thread in episode.threads.values():
        if thread.id == 0 and len(episode.threads) > 1 and not main:
            continue
        tokens = list(engine.tokenize(thread.context.text, first=True))
        learnt = [False] * len(tokens)
        for span in thread.sequence.spans:
            more = engine.tokenize(span.text)
            tokens += more
            learnt += [span.provenance is Provenance.GENERATED] * len(more)
        yield Example(tuple(tokens), tuple(learnt))


__all__ = ["METHODS", "Example", "Method", "examples", "play"]
