"""WebShop: pages as the papers print them, the official reward, hostile actions, the oracle.

tests/envs/data/webshop_rewards.jsonl was recorded from WebShop's own reward function (commit
64fa2a5, with spaCy 3.8 and en_core_web_sm) on purchases in the synthetic shop.
"""

import json
import lzma
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.hostile import texts
from thread_kit.envs.webshop.benchmark import WEBSHOP
from thread_kit.envs.webshop.catalogue import SHOP_VARIABLE, Catalogue, load_catalogue
from thread_kit.envs.webshop.env import INVALID, WebShop
from thread_kit.envs.webshop.goals import SPLITS, Goal, make_goals
from thread_kit.envs.webshop.pages import write_item_page, write_results_page
from thread_kit.envs.webshop.product import Product
from thread_kit.envs.webshop.reward import choose_options, reward_purchase, score_type
from thread_kit.envs.webshop.search import WORD, make_search, split_words, stem

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("THREAD_KIT_SHARED", ROOT.parent / "shared")) / "data" / "webshop"
RECORDED = Path(__file__).parent / "data" / "webshop_rewards.jsonl"

needs_official = pytest.mark.skipif(
    not SHARED.is_dir(), reason="no official products in the shared folder's data/webshop"
)


@pytest.fixture(scope="module")
def shop():
    return load_catalogue()


@pytest.fixture
def env():
    return WebShop("dev", 0)


def run(env, *actions):
    return [env.step(action).observation for action in actions]


# Pages


DEODORANT = Product(
    id="B078GWRC1J",
    title="Bright Citrus Deodorant by Earth Mama | Safe for Sensitive Skin",
    query="deodorant",
    category=("Beauty", "Deodorants"),
    description="",
    features=("Contains organic calendula",),
    prices=(10.99,),
    options={
        "scent": ("assorted scents", "bright citrus"),
        "size": ("travel set (4-pack)", "3 ounce (pack of 1)"),
    },
    attributes=("sensitive skin",),
)


def test_a_page_of_results_reads_as_the_papers_print_it():
    # THREAD paper, G.4; ADaPT paper, appendix G.
    assert write_results_page([DEODORANT], 1, 50).split("\n") == [
        "[Back to Search]",
        "Page 1 (Total results: 50)",
        "[Next >]",
        "[B078GWRC1J]",
        "Bright Citrus Deodorant by Earth Mama | Safe for Sensitive Skin",
        "$10.99",
    ]


def test_a_page_of_a_product_reads_as_the_papers_print_it():
    assert write_item_page(DEODORANT, {"scent": "bright citrus"}).split("\n") == [
        "[Back to Search]",
        "[< Prev]",
        "scent [assorted scents][[bright citrus]]",
        "size [travel set (4-pack)][3 ounce (pack of 1)]",
        "Bright Citrus Deodorant by Earth Mama | Safe for Sensitive Skin",
        "Price: $10.99",
        "Rating: N.A.",
        "[Description]",
        "[Features]",
        "[Reviews]",
        "[Buy Now]",
    ]


def test_three_products_of_a_page_are_shown_and_no_other_page_opens(env):
    (page,) = run(env, "search[running shoes]")
    assert page.count("\n[B0") == 3
    assert run(env, "click[Next >]") == [INVALID]


def test_with_ten_products_one_can_turn_pages():
    env = WebShop("dev", 0, products=10)
    first, second, back = run(env, "search[running shoes]", "click[Next >]", "click[< Prev]")
    assert first.count("\n[B0") == second.count("\n[B0") == 10
    assert not set(first.split("\n")) & {x for x in second.split("\n") if x.startswith("[B0")}
    assert "Page 2 (Total results: 50)" in second
    assert back == first
    # As in the shop of its authors, the button is there behind the last page, too.
    assert all(page.startswith("[Back") for page in run(env, *["click[Next >]"] * 4))
    *_, last = run(env, "click[Next >]")
    assert "\n[B0" not in last
    assert "Page 6 (Total results: 50)" in last
    assert "Page 5 " in run(env, "click[< Prev]")[0]


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("think[which one", "think[which one]"),
        ("search[face cream", "search[face cream]"),
        ("search[face cream].", "search[face cream]"),
        ("search[", "search[]"),
    ],
)
def test_of_a_search_and_a_thought_the_closing_bracket_may_lack(begun, whole):
    """As in the released code of ReAct, ADaPT and THREAD, which takes off the last character."""
    one, other = (run(WebShop("dev", 0), action) for action in (begun, whole))
    assert one == other != [INVALID]


def test_an_option_is_chosen_by_its_value_and_stays_chosen_behind_other_pages(env, shop):
    item = next(p for p in shop.products if len(p.options) == 2)
    name, values = next(iter(item.options.items()))
    clicks = (f"search[{item.title}]", f"click[{item.id}]", f"click[{values[1]}]")
    *_, clicked, features, again = run(env, *clicks, "click[Features]", "click[< Prev]")
    assert clicked == f"You have clicked {values[1]}."
    assert all(feature in features for feature in item.features)
    assert f"{name} [{values[0]}][[{values[1]}]]" in again


def test_the_button_for_attributes_is_there_only_if_asked_for():
    for attributes in (False, True):
        env = WebShop("dev", 0, attributes=attributes)
        product = env.goal.product
        *_, page = run(env, f"search[{product.title}]", f"click[{product.id}]")
        assert ("[Attributes]" in page) == attributes
        (answer,) = run(env, "click[Attributes]")
        assert (answer != INVALID) == attributes
        assert all(a in answer for a in product.attributes) == attributes
    # as WebShop's attributes_page.html has it
    words = [*product.attributes, product.query, " › ".join(product.category)]
    assert answer.split("\n") == ["[Back to Search]", "[< Prev]", *words]


def test_think_and_load_change_nothing(env):
    page, ok, same = run(env, "search[face cream]", "think[which one?]", "load")
    assert (ok, same) == ("OK.", page)


# Actions that cannot be done


@pytest.mark.parametrize(
    "action",
    [
        "",
        "buy",
        "search",
        "searches[shoes]",
        "click[]",
        "click[Buy Now",
        "click[Buy Now]",
        "click[B000000000]",
        "click[Next >]",
        "click[Back to Search]",
        "CLICK[Buy Now]",
        "click[" + "x" * 5_000_000 + "]",
        "\ud800",
        "\0",
    ],
)
def test_what_the_page_has_not_cannot_be_clicked(env, action):
    step = env.step(action)
    assert step.observation == INVALID
    assert not step.terminated
    assert env.step("load").observation.startswith("WebShop\n")


def test_a_search_of_megabytes_is_a_search(env):
    assert env.step(f"search[{'running shoes ' * 400_000}]").observation.startswith("[Back")


def test_a_search_that_finds_nothing_shows_no_product(env):
    page = env.step("search[qqqqq ]]] [[ 的 ]").observation
    assert page.split("\n") == ["[Back to Search]", "Page 1 (Total results: 0)", "[Next >]"]


def test_one_cannot_search_from_a_page_of_results(env):
    assert run(env, "search[tea]", "search[coffee]")[1] == INVALID


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            texts,
            texts.map(lambda t: f"search[{t}]"),
            texts.map(lambda t: f"click[{t}]"),
            st.sampled_from(["search[shoes]", "click[Features]", "click[< Prev]", "load"]),
        ),
        max_size=8,
    )
)
def test_whatever_is_written_the_shop_answers(actions):
    env = WebShop("dev", 1)
    for action in actions:
        step = env.step(action)
        assert isinstance(step.observation, str)
        assert len(step.observation) < 10_000
        json.dumps(step.info)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(("s", "s"), ("us", "us"), ("xs", "xs"), ("ties", "ti"), ("shoes", "shoe")),
        *(("technology", "technolog"), ("technologies", "technolog"), ("trilogy", "trilogi")),
        *(("assembly", "assembl"), ("visibly", "visibl"), ("reasonably", "reason"), ("bly", "bly")),
    ],
)
def test_stems_are_lucenes(word, expected):
    """Porter's program with what he added later: no stem of two letters, -bli and -logi."""
    assert stem(word) == expected


def test_capitals_are_no_other_words_and_a_word_of_any_length_is_read_at_once():
    assert split_words("MEN'S shoes") == split_words("men's shoes") == ["men", "shoe"]
    word = "ably" * 490 + "x"  # took 12 s
    assert split_words(word) == [word]


def test_a_size_of_two_letters_is_not_another_one():
    shop = Catalogue("two", (replace(DEODORANT, title="xs"), replace(DEODORANT, title="x")))
    assert [product.title for product in make_search(shop).find("xs")] == ["xs"]


def test_after_the_purchase_nothing_happens_any_more(env):
    for action in env.oracle():
        bought = env.step(action)
    assert (bought.reward, bought.terminated, bought.observation) == (
        1.0,
        True,
        "You have clicked Buy Now.",
    )
    assert env.step("load")[:3] == ("The task is over.", 1.0, True)


def test_a_limit_on_actions_truncates():
    env = WebShop("dev", 0, max_actions=2)
    assert not env.step("search[tea]").truncated
    assert env.step("load").truncated
    assert env.step("load").observation == "The task is over."
    assert env.oracle() is None or len(env.oracle()) <= 2


# Reward


def test_rewards_are_those_of_webshops_own_function(shop):
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    products = {product.id: product for product in shop.products}
    differ = []
    for row in rows:
        made = make_goals(shop, by_people=row["by_people"])
        goal, product = made.goals[row["goal"]], products[row["product"]]
        ours = reward_purchase(goal, product, row["options"], made.prices[product.id])
        if abs(ours.reward - row["reward"]) > 1e-6:
            differ.append((row, ours))
    assert len(rows) == 360
    # Nouns are words here (see `find_nouns`): one purchase of another kind of product differs.
    assert len(differ) <= 1
    assert all(
        row["product"] != make_goals(shop, by_people=False).goals[row["goal"]].product.id
        for row, _ in differ
    )


def _goal(product=DEODORANT, **changed):
    goal = Goal(product, "", ("sensitive skin", "vegan"), ("scent bright citrus",), 20.0)
    return replace(goal, **changed)


def test_the_parts_of_a_reward():
    bought = reward_purchase(_goal(), DEODORANT, {"scent": "bright citrus"}, 10.99)
    assert bought == (3 / 4, 1.0, 1, 1, True)
    assert reward_purchase(_goal(), DEODORANT, {}, 10.99).reward == 2 / 4
    assert reward_purchase(_goal(), DEODORANT, {}, 30.0).reward == 1 / 4


def test_an_attribute_counts_where_only_a_page_says_it():
    hidden = replace(DEODORANT, attributes=(), features=("Vegan and kind.",))
    assert reward_purchase(_goal(attributes=("vegan",)), hidden, {}, 1.0).attributes == 1


@pytest.mark.parametrize("written", ["caf\N{LATIN SMALL LETTER E WITH ACUTE}", "vegan®", "vegan"])
def test_letters_with_accents_and_signs_are_not_compared(written):
    """WebShop compares by thefuzz, which leaves out U+0080 to U+00FF."""
    product = replace(DEODORANT, attributes=(written,))
    wanted = "caf" if written.startswith("caf") else "vegan"
    assert reward_purchase(_goal(attributes=(wanted,)), product, {}, 1.0).attributes == 1


def test_the_kind_of_product_scales_the_reward():
    other = replace(DEODORANT, title="Oak Table", query="tables", category=("Home", "Tables"))
    partly = replace(other, title="Bright Table")
    assert score_type(DEODORANT, other) == 0.0
    assert score_type(DEODORANT, partly) == 0.5
    assert score_type(DEODORANT, replace(partly, query="deodorant")) == 1.0


@pytest.mark.parametrize(("shared", "r_type"), [(0, 0.0), (1, 0.1), (2, 0.5), (3, 1.0)])
def test_the_share_of_the_titles_nouns_decides_between_other_kinds(shared, r_type):
    """WebShop, appendix: none; under a tenth; up to a fifth; more (of twelve nouns here)."""
    nouns = [f"noun{letter}" for letter in "abcdefghijkl"]
    wanted = replace(DEODORANT, title=" ".join(nouns))
    words = [*nouns[:shared], "table"]
    other = replace(DEODORANT, title=" ".join(words), query="tables", category=("Home", "Tables"))
    assert score_type(wanted, other) == r_type


options = st.dictionaries(
    st.sampled_from(["scent", "size"]),
    st.sampled_from([*DEODORANT.options["scent"], *DEODORANT.options["size"]]),
)
attributes = st.lists(st.sampled_from(["sensitive skin", "vegan", "aluminum free"]), unique=True)


@given(options, attributes, attributes, st.floats(0, 100))
def test_more_that_is_true_never_costs(chosen, asked, more, price):
    goal = _goal(attributes=tuple(asked))
    fewer = replace(DEODORANT, attributes=())
    product = replace(DEODORANT, attributes=tuple(more))
    reward = reward_purchase(goal, product, chosen, price).reward
    assert reward >= reward_purchase(goal, fewer, chosen, price).reward
    assert reward >= reward_purchase(goal, product, {}, price).reward
    assert 0.0 <= reward <= 1.0


@given(options, st.floats(0, 100), st.floats(0, 100))
def test_a_price_above_the_limit_never_gains(chosen, price, limit):
    within = reward_purchase(_goal(price_limit=limit), DEODORANT, chosen, min(price, limit))
    above = reward_purchase(_goal(price_limit=limit), DEODORANT, chosen, limit + 0.01)
    assert above.reward < within.reward


# Goals, oracle, shop


def test_goals_ask_for_what_their_product_has(shop):
    for goal in make_goals(shop, by_people=False).goals:
        assert set(goal.attributes) <= set(goal.product.attributes)
        chosen = choose_options(goal)
        assert {f"{name} {value}" for name, value in chosen.items()} == set(goal.options)
        assert goal.price_limit >= make_goals(shop, by_people=False).prices[goal.product.id]


@pytest.mark.parametrize("by_people", [False, True])
def test_the_oracle_buys_the_right_thing(by_people):
    bought = 0
    for number in range(100):
        env = WebShop("dev", number, by_people=by_people)
        if (plan := env.oracle()) is not None:
            for action in plan:
                step = env.step(action)
            assert (step.reward, step.terminated) == (1.0, True)
            bought += 1
    assert bought >= 95


def test_a_fork_starts_the_same_purchase_anew(env):
    env.step("search[tea]")
    other = env.again()
    assert other.reset() == env.reset()
    assert other.task == env.task


def test_splits_have_no_goal_in_common(shop):
    every = make_goals(shop, by_people=False).goals
    parts = [range(len(every))[part] for part in SPLITS.values()]
    assert sorted(number for part in parts for number in part) == [*range(len(every))]
    for split, part in zip(SPLITS, parts, strict=True):
        assert WebShop(split, 0).goal is every[part[0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"split": "valid"}, "unknown split"),
        ({"split": "test", "number": 500}, "counted from 0"),
        ({"number": -1}, "counted from 0"),
        ({"products": 0}, "shows 1 to 10"),
        ({"max_actions": 0}, "max_actions"),
        ({"number": 1.0}, "counted from 0"),
        ({"catalogue": "official (1000 products)"}, SHOP_VARIABLE),
        ({"catalogue": Path("somewhere")}, "load_catalogue"),
        ({"catalogue": []}, "load_catalogue"),
    ],
)
def test_bad_arguments_get_one_clear_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        WebShop(**{"split": "dev", "number": 0, **arguments})


def test_a_folder_without_the_files_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(SHOP_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=SHOP_VARIABLE):
        load_catalogue()


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"asin": "B01"}]'])
def test_a_broken_file_is_named(tmp_path, text):
    (tmp_path / "items_shuffle.json").write_text(text)
    (tmp_path / "items_ins_v2.json").write_text("{}")
    with pytest.raises(ValueError, match="items_shuffle"):
        load_catalogue(tmp_path)


RAW = {
    "asin": "B012345678",
    "name": "Oak Shelf",
    "query": " Shelves ",
    "product_category": "Home › Shelves",
    "full_description": "A shelf.",
    "small_description": "Solid wood",
    "pricing": "$19.99$27.99",
    "category": "garden",
    "customization_options": {"Color": [{"value": "Oak/White "}], "Size": None},
}


def test_the_official_file_is_read_as_webshop_reads_it(tmp_path):
    known = {"attributes": ["solid wood"], "instruction": "a", "instruction_attributes": ["b"]}
    written = [
        {"instruction": "i want.", "instruction_attributes": ["b"], "instruction_options": ["oak"]}
    ]
    with lzma.open(tmp_path / "items_shuffle_1000.json.xz", "wt") as file:
        json.dump([RAW, RAW, {**RAW, "asin": "nan"}], file)
    (tmp_path / "items_ins_v2_1000.json").write_text(json.dumps({RAW["asin"]: known}))
    (tmp_path / "items_human_ins.json").write_text(json.dumps({RAW["asin"]: written}))
    shop = load_catalogue(tmp_path)
    (product,) = shop.products
    assert product.options == {"color": ("oak | white",)}
    assert (product.prices, product.price_tag) == ((19.99, 27.99), "$19.99 to $27.99")
    assert (product.query, product.features) == ("shelves", ("Solid wood",))
    (goal,) = make_goals(Catalogue("x", (product,)), by_people=True).goals
    assert goal.instruction.startswith("i want, and price lower than ")
    assert goal.options == ("oak",) or goal.options == ("wood",)
    assert product.department == "garden"


def test_tasks_of_people_are_those_that_people_wrote(tmp_path, monkeypatch):
    raw = [{**RAW, "asin": f"B01234567{n}"} for n in range(3)]
    known = {"attributes": ["b"], "instruction": "a", "instruction_attributes": ["b"]}
    (tmp_path / "items_shuffle.json").write_text(json.dumps(raw))
    (tmp_path / "items_ins_v2.json").write_text(json.dumps({r["asin"]: known for r in raw}))
    monkeypatch.setenv(SHOP_VARIABLE, str(tmp_path))
    written = {"instruction": "i", "instruction_attributes": ["b"], "instruction_options": []}
    with pytest.raises(ValueError, match=r"items_human_ins\.json"):
        WEBSHOP.list_tasks("test", {"by_people": True})
    shown = tmp_path / "people"
    shown.mkdir()
    for file in [*tmp_path.glob("*.json")]:
        (shown / file.name).write_bytes(file.read_bytes())
    (shown / "items_human_ins.json").write_text(json.dumps({raw[1]["asin"]: [written]}))
    monkeypatch.setenv(SHOP_VARIABLE, str(shown))
    assert len(WEBSHOP.list_tasks("test", {})) == 3
    (task,) = WEBSHOP.list_tasks("test", {"by_people": True, "attributes": True})
    assert WebShop(**task.arguments, by_people=True).goal.product.id == raw[1]["asin"]


@needs_official
def test_the_official_thousand_products_give_the_official_goals():
    shop = load_catalogue(SHARED)
    goals = make_goals(shop, by_people=False).goals
    assert (len(shop.products), len(goals)) == (1000, 6910)
    assert shop.products[0].document.startswith(shop.products[0].title.lower())


@needs_official
def test_gold_purchases_in_the_official_shop():
    shop = load_catalogue(SHARED)
    made = make_goals(shop, by_people=False)
    rewards = [
        reward_purchase(goal, goal.product, choose_options(goal), made.prices[goal.product.id])
        for goal in made.goals[:300]
    ]
    assert sum(bought.reward == 1.0 for bought in rewards) >= 291
    # The others lose an option by its colour alone ("1877black" chosen is "black").
    assert all(b.type == 1.0 and b.price for b in rewards)


def test_words_are_lucenes():
    """Unicode's annex 29, which its standard tokenizer follows; its English filter cuts the 's."""
    text = "women's 50.00 fl. oz 8.5 don't u.s.a. v2.0 3-ounce 1,000 5's dogs' it’s a_b x.3 size:l"
    assert WORD.findall(text) == [
        *("women", "50.00", "fl", "oz", "8.5", "don't", "u.s.a", "v2.0", "3", "ounce", "1,000"),
        *("5", "s", "dogs", "it", "a_b", "x", "3", "size:l"),
    ]
    pictures = "❤️red 👩\u200d🚀 🇫🇷🇩🇪 👍🏽 © ™ ½ ✈"
    assert WORD.findall(pictures) == ["❤️", "red", "👩\u200d🚀", "🇫🇷", "🇩🇪", "👍🏽", "✈"]


def test_a_price_is_no_number_of_pieces():
    count = replace(DEODORANT, title="Wipes 50 count")
    shop = Catalogue("one", (count,))
    assert make_search(shop).find("lower than 50.00 dollars") == []
    assert make_search(shop).find("50 of them") == [count]


def test_equal_scores_stand_in_the_order_of_ids():
    """As pyserini has them (BREAK_SCORE_TIES_BY_DOCID), whatever the catalogue's order is."""
    shop = load_catalogue()
    search, places = make_search(shop), {p.id: n for n, p in enumerate(shop.products)}
    pairs = []
    for query in ("shoes", "running shoes", "shampoo", "bar snack", "blue"):
        scores = search._index.get_scores(split_words(query))
        found = [(scores[places[product.id]], product.id) for product in search.find(query)]
        pairs += [(*a, *b) for a, b in pairwise(found)]
    assert all((-one, a) < (-other, b) for one, a, other, b in pairs)
    assert sum(one == other for one, _, other, _ in pairs) > 20


@needs_official
def test_search_finds_products_of_the_official_shop():
    shop = load_catalogue(SHARED)
    search = make_search(shop)
    ranks = [
        search.find(g.instruction).index(g.product)
        for g in make_goals(shop, by_people=False).goals[:200]
        if g.product in search.find(g.instruction)
    ]
    assert sum(rank == 0 for rank in ranks) >= 90
    assert sum(rank < 10 for rank in ranks) >= 170
