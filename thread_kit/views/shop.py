"""A shop to click through: WebShop for a person, in the same environment that methods play in.

    Shop(WebShop("dev", 3))

What is clicked is the action that a model would write, `search[...]` or `click[...]`, and the
environment answers; the widget shows its page, and what a model reads of it. After the purchase it
shows the reward, and what that is made of.
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import RLock
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from thread_kit.envs.env import Step
from thread_kit.envs.webshop.env import INVALID, WebShop
from thread_kit.envs.webshop.explain import Explanation, explain_reward
from thread_kit.envs.webshop.pages import list_detail_lines
from thread_kit.envs.webshop.product import Product
from thread_kit.envs.webshop.reward import Reward
from thread_kit.trace.printable import sanitize, sanitize_all
from thread_kit.views.formatting import pluralize
from thread_kit.views.player.keys import KEEP_KEYS
from thread_kit.views.player.widget import answer_beside_cells

HERE = Path(__file__).parent

BESIDE = widgets.Layout(flex="1 1 560px", min_width="0")


class Shop(anywidget.AnyWidget):
    """One purchase by a person. env: the task, which begins anew."""

    _esm = KEEP_KEYS + "\n".join(
        (HERE / name).read_text(encoding="utf-8") for name in ("player/player_dom.js", "shop.js")
    )
    _css = (HERE / "shop.css").read_text(encoding="utf-8")

    state = traitlets.Unicode().tag(sync=True)

    def __init__(self, env: WebShop) -> None:
        self.env = env.again()
        self._moments = 0
        self._lock = RLock()  # a click is answered beside a cell, which may act, too
        self._begin()
        super().__init__()
        self.state = self._state_json()
        self.on_msg(self._on_message)
        answer_beside_cells(self)

    def _begin(self) -> None:
        self.context = self.env.reset()
        self.actions: list[tuple[str, str]] = []
        self.last: Step | None = None

    # From Python

    def act(self, action: str) -> str:
        """Execute an action, "search[red shoes]" or "click[Buy Now]"; what a model would read."""
        with self._lock:
            self.last = self.env.step(action)
            self.actions.append((action, self.last.observation))
            self.state = self._state_json()
            return self.last.observation

    @property
    def reward(self) -> float | None:
        """Of the purchase; None before it."""
        return self.last.reward if self.last and self.last.terminated else None

    @property
    def explanation(self) -> Explanation | None:
        """What the reward is made of; None before the purchase."""
        product = self.env.page.product
        if self.reward is None or self.last is None or product is None:
            return None
        reward = Reward(*(self.last.info[name] for name in Reward._fields))
        return explain_reward(self.env.goal, product, self.last.info["chosen"], reward)

    # From the page

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        """A message from the page: nothing but a search, a click, or the wish to begin again."""
        match content:
            case {"do": "search" | "click" as verb, "text": str(text)}:
                with self._lock:
                    self.act(f"{verb}[{self._find_label(text) if verb == 'click' else text}]")
            case {"do": "again"}:
                with self._lock:
                    self._begin()
                    self.state = self._state_json()

    def _find_label(self, shown: str) -> str:
        """What is clicked, as the catalogue has it: the page shows it sanitized."""
        page = self.env.page
        options = page.product.options.values() if page.product else ()
        labels = [*page.buttons, *(product.id for product in page.shown or ())]
        labels += [value for values in options for value in values]
        return next((label for label in labels if sanitize(label) == shown), shown)

    def _state_json(self) -> str:
        page, explanation = self.env.page, self.explanation
        observation = self.last.observation if self.last else ""
        state: dict[str, Any] = {
            "instruction": self.env.goal.instruction,
            "buttons": page.buttons,
            "results": page.shown and [self._list_product(product) for product in page.shown],
            "place": f"page {page.number}, {pluralize(page.total, 'result')}",
            "product": page.product and self._list_product(page.product),
            "options": _list_options(page.product, page.chosen) if page.product else [],
            "detail": page.detail and list_detail_lines(page.product, page.detail)
            if page.product
            else None,
            "is_invalid": observation == INVALID,
            "read": observation,
            "actions": [action for action, _ in self.actions],
            "is_over": self.last is not None and (self.last.terminated or self.last.truncated),
            "bought": explanation
            and {
                "reward": f"{explanation.reward:.3g}",
                "formula": explanation.formula,
                "type": f"{explanation.type:g}",
                "parts": [[p.kind, p.wanted, p.is_met] for p in explanation.parts],
            },
        }
        self._moments += 1  # so that a page hears of it, also where nothing has changed
        return json.dumps(sanitize_all({**state, "moment": self._moments}))

    def _list_product(self, product: Product) -> dict[str, str]:
        return {
            "id": product.id,
            "title": " ".join(product.title.split()),
            "price": product.price_tag,
        }

    def __repr__(self) -> str:
        so_far = pluralize(len(self.actions), "action")
        reward = "" if self.reward is None else f", reward {self.reward:.3g}"
        return f"Shop({self.env!r}, {so_far}{reward})"


def _list_options(product: Product, chosen: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "values": list(values), "chosen": chosen.get(name)}
        for name, values in product.options.items()
    ]


def place_beside(*shown: widgets.DOMWidget) -> widgets.Box:
    """Widgets side by side where there is room, else below one another."""
    for widget in shown:
        widget.layout = BESIDE
    return widgets.Box(shown, layout=widgets.Layout(flex_flow="row wrap", align_items="flex-start"))
