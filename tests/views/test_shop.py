"""The shop that a person can click through: the real environment, and hostile texts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.envs.webshop.env import INVALID, WebShop
from thread_kit.envs.webshop.explain import explain_reward
from thread_kit.envs.webshop.pages import BACK, BUY, NEXT, PREVIOUS
from thread_kit.envs.webshop.reward import reward_purchase
from thread_kit.views.shop import Shop


@pytest.fixture
def shop() -> Shop:
    return Shop(WebShop("train", 17))


def send(shop: Shop, **message: object) -> dict:
    """What the page sends; the page's state behind it."""
    shop._on_message(shop, message, [])
    return json.loads(shop.state)


# The page of the environment


def test_each_page_has_the_buttons_that_its_text_has():
    env = WebShop("train", 17, products=10)
    pages = []
    for action in (
        "load",
        "search[running shoes]",
        f"click[{NEXT}]",
        "click[B0Y661XDL1]",
        "click[Features]",
    ):
        text = env.step(action).observation
        if text == INVALID:  # the product stands on another page
            env.step(f"click[{env.page.shown[0].id}]")
            text = env.step("load").observation
        pages.append(env.page)
        for button in env.page.buttons:
            assert f"[{button}]" in text
        for product in env.page.shown or ():
            assert f"[{product.id}]" in text
    assert pages[0].buttons == ()
    assert pages[0].shown is None
    assert pages[1].buttons == (BACK, NEXT)
    assert pages[2].buttons == (BACK, PREVIOUS, NEXT)
    assert (pages[2].number, len(pages[2].shown)) == (2, 10)
    assert BUY in pages[3].buttons
    assert pages[3].product is not None
    assert pages[4].buttons == (BACK, PREVIOUS)
    assert pages[4].detail == "Features"


# What a reward is made of


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_the_parts_of_a_reward_give_the_reward(wanted, bought, with_options):
    goal, product = WebShop("dev", wanted).goal, WebShop("dev", bought).goal.product
    options = {name: values[-1] for name, values in product.options.items()} if with_options else {}
    for price in (0.01, 1e7):
        reward = reward_purchase(goal, product, options, price)
        explanation = explain_reward(goal, product, options, reward)
        met = sum(part.is_met for part in explanation.parts)
        assert explanation.type * met / len(explanation.parts) == pytest.approx(reward.reward)
        kinds = [part.kind for part in explanation.parts if part.is_met]
        assert kinds.count("attribute") == reward.attributes
        assert kinds.count("option") == reward.options
        assert len(explanation.parts) == len(goal.attributes) + len(goal.options) + 1


def test_the_oracles_purchase_meets_everything(shop):
    for action in shop.env.oracle():
        assert shop.explanation is None
        shop.act(action)
    assert shop.reward == 1
    assert all(part.is_met for part in shop.explanation.parts)
    assert shop.explanation.formula == "1 * (3 + 2 + 1) / 6 = 1"
    assert str(shop.explanation).endswith("reward: 1 * (3 + 2 + 1) / 6 = 1")
    assert repr(shop).endswith("5 actions, reward 1)")


# The widget's Python side


def test_what_is_clicked_is_the_action_that_a_model_writes(shop):
    page = send(shop, do="search", text="running shoes teal")
    assert page["actions"] == ["search[running shoes teal]"]
    assert len(page["results"]) == 3
    assert page["read"].startswith("[Back to Search]\nPage 1 (Total results: 50)")
    chosen = page["results"][0]["id"]
    page = send(shop, do="click", text=chosen)
    assert page["product"]["id"] == chosen
    value = page["options"][0]["values"][0]
    page = send(shop, do="click", text=value)
    assert page["options"][0]["chosen"] == value
    page = send(shop, do="click", text=BUY)
    assert page["is_over"]
    assert page["bought"]["reward"] == f"{shop.reward:.3g}"
    assert [action for action, _ in shop.actions][-2:] == [f"click[{value}]", "click[Buy Now]"]


def test_the_shop_is_its_own_and_begins_again(shop):
    given = WebShop("train", 17)
    mine = Shop(given)
    mine.act("search[shoes]")
    assert given.page.shown is None
    moment = json.loads(mine.state)["moment"]
    page = send(mine, do="again")
    assert page["actions"] == []
    assert page["results"] is None
    assert page["moment"] > moment
    assert send(mine, do="again")["moment"] > page["moment"]  # the page hears of it


def test_what_the_shop_does_not_know_is_said(shop):
    assert send(shop, do="click", text="nothing like this")["is_invalid"]
    assert not send(shop, do="search", text="]]] \n\0[")["is_invalid"]


def test_of_a_limited_task_the_last_action_is_the_last():
    shop = Shop(WebShop("train", 17, max_actions=1))
    page = send(shop, do="search", text="shoes")
    assert page["is_over"]
    assert page["bought"] is None
    assert shop.reward is None


@pytest.mark.parametrize(
    "message",
    [{}, {"do": "eval", "text": "1"}, {"do": "click"}, {"do": "click", "text": 3}, [], None, "x"],
)
def test_an_odd_message_does_nothing(shop, message):
    before = shop.state
    shop._on_message(shop, message, [])
    assert shop.state == before


def test_what_is_shown_otherwise_than_the_catalogue_has_it_can_be_chosen(shop):
    send(shop, do="search", text="running shoes")
    page = send(shop, do="click", text=shop.env.page.shown[0].id)
    shop.env._item = replace(shop.env._item, options={"size": ("8 inch\u200e",)})
    shown = "8 inch\ufffd"
    page = send(shop, do="click", text=shown)
    assert page["options"] == [{"name": "size", "values": [shown], "chosen": shown}]
    assert not page["is_invalid"]
    assert shop.actions[-1][0] == "click[8 inch\u200e]"


def test_control_characters_of_a_product_are_shown_as_pictures(shop):
    assert "\x1b" not in shop.state
    page = send(shop, do="click", text="\x1b[31m\u202e")
    assert page["actions"] == ["click[␛[31m\ufffd]"]
