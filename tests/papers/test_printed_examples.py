"""What THREAD paper prints (G.3 to G.5, Figure 7), played by real sessions, line by line.

A model that writes what the paper prints, in an environment that answers as printed, has to give
the printed episode: each child's context, each action, each line that comes back, each variable.

The threads are in the .txt files beside this one, in the layout of the few-shot files and quoted
in short: lines of one kind are there once, long lists are cut. Where the paper leaves a child out
whose answer it prints, the child is made up (cabinet 4 in G.3, the second item in G.4, the planks
and the stick in G.5). Three places differ from the print: G.4 has 50.00 in a child's context, which
is Python's 50.0 here; G.5 has a child's context without the full stop that its parent writes; and
G.5 multiplies the second precursor's count into the name of the first, after which it would ask for
1 dark oak planks.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.printed import Printed

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.paths import resource
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import load_prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

HERE = Path(__file__).parent


def play(name: str, *answers: tuple[str, str]) -> Episode:
    """The printed threads, the main thread first; each has to come out as it is printed."""
    prompt = load_prompt(HERE / f"{name}.txt")
    threads = {example.context: example.response for example in prompt.examples}
    env = Printed(prompt.examples[0].context, answers)
    engine = ScriptedEngine(speak_examples([prompt]), context=10**6)
    episode = Session(engine, env, prompt=prompt, new_tokens=5000).run(progress=False)
    assert env.left == []
    for thread in episode.threads.values():
        assert thread.status is Status.ENDED
        assert thread.sequence.text == threads[episode.dialect.asked(thread.context.text)]
        assert not [line for line in thread.executed if line.error]
    asked = [episode.dialect.asked(t.context.text) for t in episode.threads.values()]
    assert set(asked) == set(threads)
    return episode


def threads_asking(episode: Episode, words: str) -> list[dict[str, object]]:
    """The variables of the threads whose context has these words."""
    return [t.variables for t in episode.threads.values() if words in t.title]


# G.3: ALFWorld


def test_the_printed_threads_of_alfworld():
    episode = play(
        "g3-alfworld",
        ("go to fridge 1", "The fridge 1 is closed."),
        (
            "open fridge 1",
            "You open the fridge 1. The fridge 1 is open. In it, you see a lettuce 2, a mug 2, "
            "a potato 2, and a tomato 1.",
        ),
        ("take apple 3 from cabinet 4", "You pick up the apple 3 from the cabinet 4."),
        ("go to sinkbasin 1", "On the sinkbasin 1, you see nothing."),
        ("clean apple 3 with sinkbasin 1", "You clean the apple 3 using the sinkbasin 1."),
        ("go to sidetable 1", "On the sidetable 1, you see a cup 1, a lettuce 1, and a potato 1."),
        ("put apple 3 in/on sidetable 1", "You put the apple 3 in/on the sidetable 1."),
    )
    assert episode.threads[0].variables == {
        "target_location_ID": "sidetable 1",
        "cleaning_location_ID": "sinkbasin 1",
        "likely_location_IDs_for_obj": ["fridge 1", "cabinet 4", "sidetable 1"],
        "obj": "apple",
        "obj_ID": "apple 3",  # came up through two threads; location_i came up to the one
    }
    (looked,) = threads_asking(episode, "find and take")
    assert (looked["location_i"], looked["obj_ID"]) == ("cabinet 4", "apple 3")
    assert "obj_IDs_found" not in looked


# G.4: WebShop

PAGE = """\
[Back to Search]
Page 1 (Total results: 50)
[Next >]
[B08KBVJ4XN]
Barrel and Oak - Deodorant for Men, Cedar & Patchouli Blend (Mountain Sage, 1 oz, 2-Pack)
$15.95
[B078GWRC1J]
Bright Citrus Deodorant by Earth Mama | Contains Organic Calendula 3-Ounce
$10.99
[B078GTKVXY]
Ginger Fresh Deodorant by Earth Mama | Contains Organic Calendula 3-Ounce
$60.99"""
ITEMS = [
    "[Back to Search]\n[< Prev]\nBarrel and Oak (Mountain Sage, 1 oz, 2-Pack)\nPrice: $15.95\n"
    "[Buy Now]",
    "[Back to Search]\n[< Prev]\nscent [assorted scents][bright citrus]\nsize [3 ounce (pack of 1)]"
    "[3-ounce (2-pack)]\n"
    "Bright Citrus Deodorant by Earth Mama\nPrice: $10.99\n[Buy Now]",
]


def test_the_printed_threads_of_webshop():
    episode = play(
        "g4-webshop",
        ("search[deodorant; 3 ounce bottle; Bright citrus; For sensitive skin]", PAGE),
        ("click[B08KBVJ4XN]", ITEMS[0]),
        ("click[B078GWRC1J]", ITEMS[1]),
        ("click[bright citrus]", "You have clicked bright citrus."),
        ("click[3 ounce (pack of 1)]", "You have clicked 3 ounce (pack of 1)."),
        ("click[Buy Now]", "You have clicked Buy Now."),
    )
    assert [t.parent for t in episode.threads.values()] == [None, 0, 0, 2, 2, 0]
    assert episode.threads[0].variables == {
        "obj_attributes": ["3 ounce bottle", "Bright citrus", "For sensitive skin"],
        "max_price": 50.0,
        "obj": "deodorant",
        "results_under_max_price": ["B08KBVJ4XN", "B078GWRC1J"],
        "item_to_purchase": "B078GWRC1J",
    }


# Figure 7: ALFWorld, a child that returns what nobody expected


def test_the_printed_threads_of_figure_7():
    """The parent asks again for something else; a name that a thread inherits abstracts nothing."""
    episode = play(
        "figure7-alfworld",
        ("go to cabinet 1", "The cabinet 1 is closed."),
        ("open cabinet 1", "You see a cup 1, a plate 1."),
    )
    assert [t.parent for t in episode.threads.values()] == [None, 0, 1, 1]
    assert episode.threads[0].variables["obj_ID"] == "plate 1"


# G.5: TextCraft

COMMANDS = [
    "craft 3 dark oak sign using 6 dark oak planks, 1 stick",
    "craft 4 dark oak planks using 1 dark oak log",
    "craft 1 stick using 1 planks",
]


def test_the_printed_threads_of_textcraft():
    episode = play(
        "g5-textcraft",
        ("get 6 dark oak planks", "Could not find dark oak planks."),
        ("get 1 stick", "Could not find stick."),
        (
            "craft 3 dark oak sign using 6 dark oak planks, 1 stick",
            "Crafted 3 minecraft:dark_oak_sign.",
        ),
    )
    assert [t.parent for t in episode.threads.values()] == [None, 0, 1, 1, 1, 1]
    made = episode.threads[1].variables
    assert made["precursor1_count_total"] == 6
    assert made["precursor1_craft_command"] == COMMANDS[1]
    assert made["precursor2_craft_command"] == COMMANDS[2]
    assert "get_item" not in made
    assert episode.threads[0].variables["target_craft_command"] == COMMANDS[0]


@pytest.mark.parametrize("file", sorted(HERE.glob("*.txt")), ids=lambda file: file.stem)
def test_the_prompts_of_the_kit_are_in_words_of_their_own(file):
    shipped = [file.read_text(encoding="utf-8") for file in resource("prompts").rglob("*.txt")]
    lines = file.read_text(encoding="utf-8").split("\n")
    prose = [line for line in lines if "I need to " in line or line.startswith("> think")]
    assert prose
    assert not [line for line in prose for text in shipped if line in text]
