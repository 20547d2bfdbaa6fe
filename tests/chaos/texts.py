"""Hostile texts from a seed: what `helpers.hostile` has, fast enough for many thousand episodes.

Weighted towards what once broke something: names that are bound anew, unicode names, giant names,
expansions of `{x}` that become huge, and the words that methods look for.
"""

from __future__ import annotations

import random

from helpers.hostile import BUILTINS, HOSTILE_CLASS, LINES, ODD_NAMES, TEXTS, VALUES

FREQUENT, RARE = 0.985, 0.002
"""Of values and lines most are cheap; what takes a second or megabytes comes now and then."""

_DEAR = (
    "10**8",
    "range(900)",
    "9**9**9",
    "while True",
    "x' * 10**6",
    "10**5000",
    "f()",
    "30_000",
    "9_000",
)
_CHEAP_VALUES = [value for value in VALUES if not any(dear in value for dear in _DEAR)]
_CHEAP_LINES = [line for line in LINES if not any(dear in line for dear in _DEAR)]

WORDS = [  # of the methods, complete and broken
    *("Task completed!", "Task failed!", "Task completed", "think: {x}", "[Solve]", "[Error]"),
    *("Step 1: get {x}", "Step 1:", "Step 99999999999999999999: x", "Step 1: a\nStep 2: b", "1. a"),
    *("Step ٣: x", "Execution Order: (Step 1 AND Step 2)", "Execution Order: ((((", "AND", "OR ("),
    *("[get] {x}", "[make] {class}", "[EOQ]", "QC: x", "Q: y", "Answer: {x}", "The answer is {x}."),
    *(
        '[{"subtask": "{x}"}]',
        '{"a": ' * 40,
        "[[[[[",
        "```python\nprint(1)\n```",
        "```",
        "- a\n- b",
    ),
    *(
        " " * 3_000,
        "\n" * 3_000,
        "- " * 1_500,
        "Step 1: a" + " " * 3_000 + "b",
        "1. a" + " " * 3_000,
    ),
    *("# [Step 1] a\nact('{x}')", "act('x' * 90_000)", "ask(f'{x}' * 9)", "# [Step 2] b\nassert x"),
    *("search: {x}", "action: {class}", "think: {x}", "> click[Buy Now] =>", "> search[{x}] =>"),
    *(
        "> DESC {x} =>",
        "> SELECT '{x}' =>",
        "> submit =>",
        "> cat {x}; printf '\\033[2J' =>",
        "8",
        "[7]",
    ),
    *("inventory", "> inventory =>", "> get {x} =>", "> craft 1 {x} using {class} =>", "> =>", ">"),
    *("look up {x} ~>", "{t1}", "print('{t1} {t2}')", "x = t1 + t2", "First, {t1}, I need {x}. =>"),
    *("#START#", "Prompt:\nx\n\nResponse:\n#START#\n", "<=", "=><=", "=> <=\n", "# > print(x) =>"),
    *(
        "Reflection: {x}",
        "I should have {x}.",
        "\r\n",
        "\t",
        "\x00",
        "\u2028x = 1\u2029",
        "\x1b[2J",
    ),
]
ENDINGS = [
    *(" =>", " =>", " =>", "\n> go {x} =>", "\nprint('{x}')\n#END#", "\n#END#", "", " ~>"),
    *(
        "\nI need {x}, and {class}. =>",
        "\nprint({x}) =>",
        "\n# > print(locals()) =>",
        "=>=>",
        "#END",
    ),
    "\nTask completed!\n#END#",
]


class HostileModel(random.Random):
    """Says something else each time, and always the same from one seed."""

    def name(self) -> str:
        kind = self.random()
        if kind < 0.4:
            return self.choice("abcxyz")
        if kind < 0.6:
            return self.choice(BUILTINS)
        if kind < 0.85:
            return self.choice(ODD_NAMES)
        if kind < 0.95:
            return "n" * self.randint(90, 400 if self.random() < FREQUENT else 30_000)
        return "".join(
            chr(self.choice((self.randint(32, 1_000), self.randint(32, 0xD7FF)))) for _ in "abc"
        )

    def text(self) -> str:
        kind = self.random()
        if kind < 0.3:
            return self.choice(TEXTS)
        if kind < 0.5:
            return f"{{{self.name()}}}"
        if kind < 0.55:
            return "{x}" * self.randint(1, 250) + f"{{{self.name()}}}"
        return self.choice(WORDS)

    def value(self) -> str:
        kind = self.random()
        if kind < 0.15:
            return repr(self.text())
        if kind < 0.2:
            depth = self.randint(1, 300)
            return "[" * depth + "]" * depth
        if kind < 0.25:
            return HOSTILE_CLASS.format(self.value())
        if kind < 0.28:
            return f"'{self.choice('ab{x}')}' * {self.randint(1, 90_000)}"
        return self.choice(VALUES if self.random() < 20 * RARE else _CHEAP_VALUES)

    def line(self) -> str:
        forms = (
            lambda: f"{self.name()} = {self.value()}",
            lambda: f"x = {self.value()}",
            lambda: f"globals()[{self.name()!r}] = {self.value()}",
            lambda: f"locals = lambda: {{{self.name()!r}: {self.value()}}}",
            lambda: f"print({self.value()})",
            lambda: f"print('{{{self.name()}}}')",
            lambda: f"import math as {self.name()}",
            lambda: f"exec({f'{self.name()} = {self.value()}'!r})",
            lambda: f"({self.name()} := {self.value()})",
            lambda: f"for {self.name()} in [{self.value()}]: print({self.name()})",
            lambda: f"def {self.name()}({self.name()}): return {self.value()}",
            lambda: f"del {self.name()}",
            lambda: f"x = x + x if len(str(x)) < 60_000 else {self.value()}",
            lambda: self.choice(LINES if self.random() < 5 * RARE else _CHEAP_LINES),
            lambda: self.text(),
        )
        return self.choice(forms)()

    def speak(self, seen: str) -> str:
        """What the model says next, whatever it has seen."""
        lines = "\n".join(self.line() for _ in range(self.randint(0, 4)))
        return f"{lines}\n{self.text()}{self.choice(ENDINGS)}"
