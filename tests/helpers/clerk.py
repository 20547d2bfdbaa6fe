"""A shop's clerk as the model: a tree of two threads that says the same each time."""

from __future__ import annotations

from thread_kit.views.player.widget import Player

CLERK = """\
import thread_kit as tk

def clerk(seen):
    asked, _, written = seen.rpartition("Prompt:")[2].partition("Response:")
    if "<=" in written:
        return "#END#"
    if "price" in asked:
        return f"print('It is 3{', and you have enough' * ('euros' in asked)}.')\\n#END#"
    return "drink = 'tea'\\nThere are 20 euros.\\nFirst, I need the price of {drink}. =>"

player = tk.watch(tk.Session(tk.ScriptedEngine(clerk), context="Can I buy something?"))
player"""


def clerk_player() -> Player:
    names: dict = {}
    exec(CLERK, names)
    names["player"].wait()
    return names["player"]
