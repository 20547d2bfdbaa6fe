"""What a proof of a few-shot prompt may leave to the stand-in for a child."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from thread_kit.prompts import Prompt

UNSHOWN = ": no example has a context of this form"


def drop_shown_in_kind(problems: Iterable[str], prompt: Prompt, kinds: Iterable[str]) -> list[str]:
    """The problems without those of children of whose kind the prompt has an example.

    The checker tells a kind by the {names} in the parent's line; an ablation may have none there.
    kinds: patterns of the end of a context.
    """
    contexts = [example.context for example in prompt.examples]
    shown = [kind for kind in kinds if any(re.search(kind, context) for context in contexts)]

    def is_shown(problem: str) -> bool:
        if not problem.endswith(UNSHOWN):
            return False
        context = ast.literal_eval(problem.removesuffix(UNSHOWN))
        return any(re.search(kind, context) for kind in shown)

    return [problem for problem in problems if not is_shown(problem)]
