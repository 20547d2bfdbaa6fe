"""WebShop (Yao et al. 2022; THREAD paper, section 4.3): find and buy what an instruction asks for.

The actions are those of the papers' prompts: `search[words]`, `click[what stands in brackets]`,
`think[anything]`, and ADaPT's `load`, which shows the page again (its appendix G). What cannot be
done answers "Invalid action!" and changes nothing. The task is over when something is bought; its
reward is WebShop's (`envs/webshop/reward.py`), its success a reward of 1. What the score was is not
said to the model, as in the examples of both papers.
"""

from __future__ import annotations

import re
from typing import Any, final

from thread_kit.dialect import PAGES
from thread_kit.envs.env import Env, Step, check_split, is_whole
from thread_kit.envs.webshop.catalogue import SHOP_VARIABLE, Catalogue, load_catalogue
from thread_kit.envs.webshop.goals import SPLITS, Goal, make_goals
from thread_kit.envs.webshop.pages import (
    ATTRIBUTES,
    BACK,
    BUY,
    DETAILS,
    NEXT,
    PER_PAGE,
    PREVIOUS,
    Page,
    write_detail_page,
    write_item_page,
    write_results_page,
    write_search_page,
)
from thread_kit.envs.webshop.product import Product
from thread_kit.envs.webshop.reward import Reward, choose_options, reward_purchase
from thread_kit.envs.webshop.search import make_search

INVALID = "Invalid action!"
_ACTION = re.compile(r"(search|think)\[(.*?)(?:\][^]]*)?|(click)\[(.*)\]", re.DOTALL)
"""Of a search and a thought the closing bracket may lack, as in the released code of the papers."""


@final
class WebShop(Env):
    """One purchase.

    split, number: the goal, counted from 0; "test" has the first 500 goals, "dev" the next 1,000.
    products: how many results of a page are shown. The papers' pages show 3 (ADaPT paper, appendix
        D), and then no further page can be opened; with 10 the shop is as its authors made it.
    by_people: goals from the instructions that people wrote, as in the papers' runs, and not the
        generated ones. The synthetic shop has both.
    attributes: pages of products have a button for what is true of them, as in the THREAD paper's
        example (G.4); WebShop's own switch, off by default as there.
    catalogue: the shop; None is that of this machine (`load_catalogue`). A name, too, where it is
        that of this machine.
    max_actions: after so many the episode is truncated; None for no limit.
    Raises ValueError for what there is not, and what `load_catalogue` raises.
    """

    name = "webshop"
    dialect = PAGES
    announces_success = False  # its page says that it was bought
    packages = ("bm25s", "PyStemmer", "rapidfuzz")

    def __init__(
        self,
        split: str = "test",
        number: int = 0,
        *,
        products: int = 3,
        by_people: bool = False,
        attributes: bool = False,
        catalogue: Catalogue | str | None = None,
        max_actions: int | None = None,
    ) -> None:
        if not isinstance(catalogue, Catalogue | str | None):
            raise ValueError(
                f"catalogue is {catalogue!r}; give load_catalogue(folder), or a shop's name"
            )
        shop = catalogue if isinstance(catalogue, Catalogue) else load_catalogue()
        if isinstance(catalogue, str) and catalogue != shop.name:
            raise ValueError(
                f"the task is in the shop {catalogue!r}, and here is {shop.name!r}; set "
                f"{SHOP_VARIABLE} to the folder of that one"
            )
        check_split(split, SPLITS)
        if not is_whole(products) or products not in range(1, PER_PAGE + 1):
            raise ValueError(f"products is {products!r}; a page shows 1 to {PER_PAGE}")
        if max_actions is not None and (not is_whole(max_actions) or max_actions < 1):
            raise ValueError(
                f"max_actions is {max_actions!r}; give 1 or more, or None for no limit"
            )
        made = make_goals(shop, by_people=by_people)
        goals = made.goals[SPLITS[split]]
        if not is_whole(number) or number not in range(len(goals)):
            raise ValueError(
                f"no goal {number!r} in split {split!r} of {shop.name}, which has {len(goals)}, "
                "counted from 0"
            )
        self.catalogue = shop
        self.goal: Goal = goals[number]
        self._prices = made.prices
        self.task = {
            "split": split,
            "number": int(number),
            "products": int(products),
            "by_people": by_people,
            "attributes": attributes,
            "catalogue": shop.name,
        }
        self.max_actions = max_actions
        self.reset()

    def __repr__(self) -> str:
        place = f"{self.task['split']!r}, {self.task['number']}"
        return f"WebShop({place}: {self.goal.instruction})"

    def reset(self) -> str:
        """Go to the search page; returns the instruction, the context of the main thread."""
        self._results: list[Product] | None = None
        self._page = 1
        self._item: Product | None = None
        self._detail: str | None = None
        self._chosen: dict[str, str] = {}
        self._actions = 0
        self._bought: Reward | None = None
        return f"Instruction: {self.goal.instruction}"

    def step(self, action: str) -> Step:
        """Execute an action; whatever the text, it never raises.

        reward: that of the purchase, else 0.0. info: actions so far; of a purchase the product, its
        options and what the reward is made of.
        """
        if self._bought or self._actions == self.max_actions:
            return self._make_step("The task is over.")
        self._actions += 1
        action = action.strip()
        if action == "load":
            return self._make_step(self._write_page())
        match = _ACTION.fullmatch(action)
        if match is None:
            return self._make_step(INVALID)
        verb, words = (part for part in match.groups() if part is not None)
        if verb == "think":
            return self._make_step("OK.")
        done = self._search(words) if verb == "search" else self._click(words)
        return self._make_step(done or INVALID)

    @property
    def _shown(self) -> list[Product]:
        """The products on the page of results."""
        start = (self._page - 1) * PER_PAGE
        return (self._results or [])[start : start + self.task["products"]]

    @property
    def _details(self) -> tuple[str, ...]:
        """The pages behind that of a product."""
        return (*DETAILS, ATTRIBUTES) if self.task["attributes"] else DETAILS

    def _search(self, query: str) -> str | None:
        if self._results is not None:  # only the search page has a box
            return None
        self._results, self._page = make_search(self.catalogue).find(query), 1
        return self._write_page()

    def _click(self, button: str) -> str | None:
        """The page that a button leads to; None if this page has no such button."""
        if button == BACK and self._results is not None:
            self._results = self._item = self._detail = None
        elif self._detail is not None and button == PREVIOUS:
            self._detail = None
        elif self._detail is not None or self._results is None:
            return None
        elif self._item is not None:
            return self._click_on_item(self._item, button)
        else:
            return self._click_on_results(button)
        return self._write_page()

    def _click_on_results(self, button: str) -> str | None:
        item = next((product for product in self._shown if product.id == button), None)
        turned = {NEXT: self._page + 1, PREVIOUS: self._page - 1}.get(button)
        if item is not None:
            self._item, self._chosen = item, {}
        elif turned and self.task["products"] == PER_PAGE:  # behind the last page is an empty one
            self._page = turned
        else:
            return None
        return self._write_page()

    def _click_on_item(self, item: Product, button: str) -> str | None:
        if button == BUY:
            price = self._prices[item.id]
            self._bought = reward_purchase(self.goal, item, self._chosen, price)
            return f"You have clicked {BUY}."
        if button == PREVIOUS:
            self._item = None
        elif button in self._details:
            self._detail = button
        else:
            options = {value: name for name, values in item.options.items() for value in values}
            if button not in options:
                return None
            self._chosen[options[button]] = button
            return f"You have clicked {button}."
        return self._write_page()

    @property
    def bought(self) -> Reward | None:
        """The reward of what was bought; None while nothing is."""
        return self._bought

    @property
    def page(self) -> Page:
        """The page where the shopper is, as something to look at and to click."""
        if self._item is not None:
            further = () if self._detail else (*self._details, BUY)
            buttons = (BACK, PREVIOUS, *further)
            chosen = dict(self._chosen)
            return Page(buttons, product=self._item, chosen=chosen, detail=self._detail)
        if self._results is not None:
            buttons = (BACK, *[PREVIOUS] * (self._page > 1), NEXT)
            return Page(buttons, tuple(self._shown), self._page, len(self._results))
        return Page()

    def _write_page(self) -> str:
        if self._item is not None and self._detail is not None:
            return write_detail_page(self._item, self._detail)
        if self._item is not None:
            return write_item_page(self._item, self._chosen, self._details)
        if self._results is not None:
            return write_results_page(self._shown, self._page, len(self._results))
        return write_search_page(self.goal.instruction)

    def _make_step(self, observation: str) -> Step:
        info: dict[str, Any] = {"actions": self._actions}
        reward = 0.0
        if self._bought is not None and self._item is not None:
            reward = self._bought.reward
            info |= {"product": self._item.id, "chosen": dict(self._chosen)}
            info |= self._bought._asdict()
        info["solved"] = reward == 1.0
        over = self._bought is not None
        return Step(observation, reward, over, not over and self._actions == self.max_actions, info)

    def again(self) -> WebShop:
        """See Env."""
        task = {**self.task, "catalogue": self.catalogue}
        return WebShop(**task, max_actions=self.max_actions)

    def oracle(self) -> list[str] | None:
        """Buy the goal's own product with its options; None where that is not rewarded fully.

        WebShop compares a chosen value by its colour alone with the wanted one as it is written, so
        "1877black" chosen is not "color 1877black" wanted.
        """
        product = self.goal.product
        options = choose_options(self.goal)
        if reward_purchase(self.goal, product, options, self._prices[product.id]).reward < 1.0:
            return None
        results = make_search(self.catalogue).find(product.title)[: self.task["products"]]
        clicks = [product.id, *options.values(), BUY]
        actions = [f"search[{product.title}]", *(f"click[{button}]" for button in clicks)]
        enough = self.max_actions is None or len(actions) <= self.max_actions
        return actions if product in results and enough else None
