"""What the reward of a purchase is made of, part by part, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from thread_kit.envs.webshop.goals import NO_LIMIT, Goal
from thread_kit.envs.webshop.product import Product
from thread_kit.envs.webshop.reward import Reward, reward_purchase


@dataclass(frozen=True, slots=True)
class Part:
    """kind: "attribute", "option" or "price". wanted: in words. is_met: whether it counts."""

    kind: str
    wanted: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts that count one each, the type of product that they are multiplied by, the sum."""

    parts: tuple[Part, ...]
    type: float
    reward: float

    @property
    def formula(self) -> str:
        """The reward as its formula has it: "0.5 * (2 + 1 + 1) / 5 = 0.4"."""
        met = [
            str(sum(part.is_met for part in self.parts if part.kind == kind))
            for kind in ("attribute", "option", "price")
        ]
        return f"{self.type:g} * ({' + '.join(met)}) / {len(self.parts)} = {self.reward:.3g}"

    def __str__(self) -> str:
        lines = [
            f"{'yes' if part.is_met else 'no':4}{part.kind}: {part.wanted}" for part in self.parts
        ]
        return "\n".join([*lines, f"type of product: {self.type:g}", f"reward: {self.formula}"])


def explain_reward(
    goal: Goal, product: Product, chosen: Mapping[str, str], reward: Reward
) -> Explanation:
    """Which attributes and options of a goal a purchase has.

    chosen: the value of each option. reward: what the purchase got (`reward_purchase`).
    """

    def meets(attributes: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> bool:
        alone = replace(goal, attributes=attributes, options=options)
        met = reward_purchase(alone, product, chosen, 0.0)
        return bool(met.attributes or met.options)

    parts = [Part("attribute", wanted, meets(attributes=(wanted,))) for wanted in goal.attributes]
    parts += [Part("option", wanted, meets(options=(wanted,))) for wanted in goal.options]
    below = f"at most {goal.price_limit:.2f} dollars" if goal.price_limit < NO_LIMIT else "any"
    price = Part("price", below, reward.price)
    return Explanation((*parts, price), reward.type, reward.reward)
