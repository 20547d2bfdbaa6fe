"""The teacher of WebShop, the invented shops of its lessons, and what comes of them."""

from __future__ import annotations

from itertools import islice

import pytest

from thread_kit.dialect import AGENT
from thread_kit.distill.evaluate import by_group, evaluate, load_results
from thread_kit.distill.examples import examples, play
from thread_kit.distill.textcraft_teacher import TeacherError
from thread_kit.distill.webshop_tasks import training_purchases
from thread_kit.distill.webshop_teacher import read_instruction, speak_webshop
from thread_kit.distill.words import TAUGHT_WORDS, words_by_tokens
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.webshop.env import WebShop
from thread_kit.paths import resource

RESULTS = """
[Back to Search]
Page 1 (Total results: 3)
[Next >]
[B09KP78G37]
Women Running Shoes
$78.99
[B08PCW54G6]
Trail Shoes
$71.49 to $114.04
"""
PAGE = """
[Back to Search]
[< Prev]
color [black][{one}]
size [8][{two}.5][x-{two}]
Running Shoes {one}
Price: $78.99
Rating: N.A.
[Description]
[Features]
[Reviews]
[Buy Now]
"""


def next_of(context: str, *turns: tuple[str, str]) -> str:
    """What the teacher writes in a thread with this context, after these turns and replies."""
    text = AGENT.context(f"{context}{AGENT.listen}" if context.startswith("I need") else context)
    for wrote, reply in turns:
        text += f"{wrote}{reply}{AGENT.close}\n"
    return speak_webshop(text)


@pytest.mark.parametrize(
    ("instruction", "parts"),
    [
        (
            "Find me slim fit tops with long sleeve with color: a01#black, and size: large, and "
            "price lower than 40.00 dollars",
            ("Find me slim fit tops with long sleeve", ["a01#black", "large"], "40.00"),
        ),
        (
            "Find me easy carry cases with aluminum alloy, and price lower than 50.00 dollars",
            ("Find me easy carry cases with aluminum alloy", [], "50.00"),
        ),
        (
            "Find me mugs with color: rose gold, white",
            ("Find me mugs", ["rose gold, white"], "1000000.0"),
        ),
    ],
)
def test_an_instruction_is_read_into_words_options_and_limit(instruction, parts):
    assert read_instruction(instruction) == parts


def test_the_first_product_is_bought_where_no_option_is_wanted():
    context = "Instruction: Find me cases, and price lower than 50.00 dollars"
    first = next_of(context)
    assert first.startswith("query = ''' Find me cases'''[1:]\nlimit = 50.00\n")
    assert "product = found[0]\nThen, I need to buy" in next_of(
        context, (first, "I found {found}.")
    )


def test_products_are_looked_at_until_one_has_all_or_there_is_no_other():
    context = "Instruction: Find me shoes with color: teal, and size: 9"
    turns = [("First, I need to search for {query}. =>", "I found {found}.")]
    look = next_of(context, *turns)
    assert "one = ''' teal'''[1:]\ntwo = ''' 9'''[1:]\nn = 2\n" in look
    assert "product = found[0]\n" in look
    turns += [(look, "It has {has}.")]
    assert next_of(context, *turns).startswith("counts += [len(has)]\nproduct = found[1]\n")
    assert next_of(context, *turns, ("=>", "It has all.")).startswith("Then, I need to buy")
    assert "counts.index(max(counts))" in next_of(context, *turns, ("=>", "There is no other."))


def test_results_are_read_with_their_lower_prices():
    searched = ("> search[{query}] =>", RESULTS)
    reply = next_of("I need to search for shoes. ", searched)
    assert reply.startswith("found = ['B09KP78G37', 'B08PCW54G6']\nprices = [78.99, 71.49]\n")


def test_a_search_from_another_page_goes_back_first():
    refused = ("> search[{query}] =>", "Invalid action!")
    assert next_of("I need to search for x. ", refused) == "> click[Back to Search] =>"
    again = next_of("I need to search for x. ", refused, ("=>", "[Search]"))
    assert again == "> search[{query}] =>"


def test_a_product_has_what_is_a_button_of_its_own():
    context = "I need to look at B09KP78G37 for 2 options. "
    opened = ("> click[{product}] =>", PAGE)
    looked = next_of(context, opened)
    assert looked == "has = [one]\n> click[< Prev] =>"  # x-{two} is another size
    assert next_of(context, opened, (looked, RESULTS)).startswith("print('It has {has}.')")


def test_what_it_has_is_chosen_before_it_is_bought():
    context = "I need to buy B09KP78G37 with 2 options. "
    opened = ("> click[{product}] =>", PAGE)
    assert next_of(context, opened) == "> click[{one}] =>"
    chosen = ("> click[{one}] =>", "You have clicked {one}.")
    assert next_of(context, opened, chosen) == "> click[Buy Now] =>"
    assert AGENT.end in next_of(context, opened, chosen, ("=>", "You have clicked Buy Now."))


@pytest.mark.parametrize("context", ["Goal: craft a sign.", "I need to dance. "])
def test_what_is_not_of_the_form_is_refused(context):
    with pytest.raises(TeacherError, match="not a request"):
        next_of(context)


@pytest.mark.parametrize("value", ["20''x20''", "it's'", "a\\b"])
def test_what_three_quotation_marks_cannot_hold_is_refused(value):
    with pytest.raises(TeacherError, match="quotation marks"):
        next_of(f"Instruction: Find me rugs with size: {value}")


@pytest.mark.slow
def test_every_lesson_ends_with_a_purchase_and_most_are_right():
    rewards = [play("thread", purchase).reward for purchase in islice(training_purchases(1), 20)]
    assert sum(rewards) > 15


def test_a_lesson_without_a_purchase_is_refused(monkeypatch):
    monkeypatch.setattr("thread_kit.distill.examples.speak_webshop", lambda text: AGENT.end)
    with pytest.raises(ValueError, match="did not solve"):
        play("thread", next(training_purchases(0)))


def test_the_shops_of_lessons_are_invented_and_the_same_for_a_seed():
    first, again = (next(training_purchases(3)) for _ in range(2))
    assert first.goal.instruction == again.goal.instruction
    assert next(training_purchases(4)).goal.instruction != first.goal.instruction
    words = {word for words in words_by_tokens(TAUGHT_WORDS).values() for word in words}
    brands = {product.title.split()[0].lower() for product in first.catalogue.products}
    assert brands <= words


def test_only_threads_are_taught_to_shop():
    with pytest.raises(ValueError, match="nobody has written a teacher"):
        play("react", next(training_purchases(0)))


def test_pages_are_no_part_of_the_loss():
    found = examples(
        "thread", training_purchases(0), ScriptedEngine([]), tokens=5_000, mains=1, slips=True
    )
    texts = ["".join(chr(token) for token in example.tokens) for example in found]
    assert any("[Buy Now]" in text for text in texts)
    for example in found:
        pairs = zip(example.tokens, example.loss_mask, strict=True)
        learnt = "".join(chr(token) for token, counts in pairs if counts)
        assert learnt.endswith("#END#")
        assert "[Back to Search]\n" not in learnt


def test_an_evaluation_has_the_score_and_counts_by_options(tmp_path):
    engine = ScriptedEngine(speak_webshop)
    results = evaluate("thread", engine, BENCHMARKS["webshop"].tasks("dev")[:4], tmp_path)
    assert [result.group for result in results] == [
        f"{len(WebShop('dev', n).goal.options)} options" for n in range(4)
    ]
    rewards = [result.reward for result in results]
    assert by_group(results)[-1]["score"] == pytest.approx(25 * sum(rewards), abs=0.1)
    assert all(result.cause for result in results if result.reward < 1)


def test_committed_purchases_have_the_score_of_the_card():
    rows = by_group(load_results(resource("data/adapters/results-thread-webshop.jsonl")))
    assert (rows[-1]["n"], rows[-1]["solved"], rows[-1]["score"]) == (100, 49, 74.7)
    card = resource("data/adapters/README.md").read_text(encoding="utf-8")
    assert f"| all | 49 of 100 | {rows[-1]['cut']} |" in card
