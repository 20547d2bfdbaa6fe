"""What a proof of a few-shot prompt may leave to the stand-in for a child."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence

from thread_kit.prompt_check import speak_examples
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


def speak_with_ingot(prompts: Sequence[Prompt]) -> Callable[[str], str]:
    """TextCraft's examples; the ingot, which they show to nobody, is got like their logs."""
    examples = speak_examples(prompts)
    logs = next(e for e in prompts[-1].examples if e.context.endswith("can get 2 oak logs. =>"))
    response = logs.response.replace("oak logs", "iron ingot").replace("2", "1")

    def speak(text: str) -> str:
        context, _, written = text.rpartition("\n\nResponse:\n#START#\n")
        if context.endswith("can get 1 iron ingot. =>"):
            return response.removeprefix(written)
        return examples(text)

    return speak
