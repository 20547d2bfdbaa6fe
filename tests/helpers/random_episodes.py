"""Episodes of a model that says something for everything it can read, always the same."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import thread_kit as tk
from helpers.episodes import PROMPT, Shed
from thread_kit.dialect import AGENT
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.session.session import Session


def speaker(seed: int, futures: bool = False):
    """A model that says something for everything it can read, always the same."""

    def speak(seen: str) -> str:
        """A call that is written in part goes on as it would have."""
        start = max(seen.rfind("#START#\n") + 8, seen.rfind("<=\n") + 3)
        whole, part = say(seen[:start]), seen[start:]
        return whole.removeprefix(part) if whole.startswith(part) else say(seen)

    def say(seen: str) -> str:
        number = int(hashlib.sha256(f"{seed} {seen}".encode()).hexdigest(), 16)
        done = seen.count("<=") + seen.rpartition("#START#")[2].count("\n")
        name, value = "abc"[number % 3], number // 3 % 9
        choices = [
            f"{name} = {value}\nFirst, I need the {{{name}}}. =>",
            f"Next, I need {value}. =>",
            f"{name} = '{value} é'\n> open {{{name}}} =>",
            f"print('It is {{{name}}}.')\n#END#",
            f"print({value})\n#END#",
            f"{name} = {value}",
        ]
        if futures:
            choices += [f"First, I need {value}. ~>", f"Next, I need the {{{name}}}. ~>"]
        chosen = choices[number // 27 % len(choices)]
        return "print('{t1} and {a}')\n#END#" if done > 8 else chosen

    return speak


def play(seed: int, futures: bool = False, **options) -> Session:
    dialect = tk.ASYNC if futures else AGENT
    prompt = replace(PROMPT, dialect=dialect)
    options = {"calls": 25, "depth": 4, **options}
    return Session(ScriptedEngine(speaker(seed, futures)), Shed(), prompt=prompt, **options)
