"""A kitchen in which every action succeeds, and a few-shot prompt for it."""

from __future__ import annotations

from thread_kit.envs.env import Env, Step
from thread_kit.prompts import parse_prompt

# Short, so that evaluating everything again costs little. The embedded model, greedy, answers it
# with threads two levels deep whose children end, are refused (depth), and return.
PROMPT = parse_prompt(
    """Prompt:
find the mug. =>

Response:
#START#
item = 'mug'
> take {item} =>You take the {item}<=
print('I have the {item}.')
#END#


Prompt:
Goal: the mug, the pan. =>

Response:
#START#
First, find the mug. =>I have the {item}.<=
Next, find the pan. =>I have the {item}.<=
print('Done.')
#END#
"""
)
GOAL = "Goal: the bowl, the spoon. =>"
LIMITS = {"prompt": PROMPT, "calls": 6, "new_tokens": 24, "depth": 2}


class Kitchen(Env):
    name = "kitchen"

    def __init__(self) -> None:
        self.task = {}

    def reset(self) -> str:
        return GOAL

    def step(self, action: str) -> Step:
        return Step(f"You {action}", 0.0, False, False, {})

    def again(self) -> Env:
        return Kitchen()

    def oracle(self) -> None:
        return None
