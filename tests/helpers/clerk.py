"""A shop's clerk as the model: a tree of two threads that says the same each time."""

from __future__ import annotations

from inspect import getsource

import thread_kit as tk
from thread_kit.views.player.widget import Player


def clerk(seen: str) -> str:
    """Answers for a price; says more where it has been told how much money there is."""
    asked, _, written = seen.rpartition("Prompt:")[2].partition("Response:")
    if "<=" in written:
        return "#END#"
    if "price" in asked:
        return f"print('It is 3{', and you have enough' * ('euros' in asked)}.')\n#END#"
    return "drink = 'tea'\nThere are 20 euros.\nFirst, I need the price of {drink}. =>"


CLERK = f"""\
import thread_kit as tk

{getsource(clerk)}
player = tk.watch(tk.Session(tk.ScriptedEngine(clerk), context="Can I buy something?"))
player"""
"""A cell of a notebook."""


def clerk_player() -> Player:
    player = tk.watch(tk.Session(tk.ScriptedEngine(clerk), context="Can I buy something?"))
    player.wait()
    return player
