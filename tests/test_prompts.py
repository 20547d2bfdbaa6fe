"""Few-shot prompts: plain text there and back, and a plain error for whatever is no prompt."""

import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, Dialect
from thread_kit.paths import resource
from thread_kit.prompts import (
    EMPTY,
    Example,
    Prompt,
    PromptError,
    load_instructions,
    load_prompt,
    parse_instructions,
    parse_prompt,
)

thorough = settings(deadline=None, max_examples=200)

GOOD = "Prompt:\nDo it. =>\n\nResponse:\n#START#\nprint('Done.')\n#END#\n\n\n"

words = st.text("aé🪓 {}=><'", min_size=1, max_size=12).map(str.strip).filter(bool)
paragraphs = st.lists(words, min_size=1, max_size=4).map("\n".join)
examples = st.builds(Example, paragraphs, paragraphs.map(lambda text: text + "\n#END#"))
prompts = st.lists(examples, min_size=1, max_size=4).map(lambda some: Prompt("p", tuple(some)))


@thorough
@given(prompts, st.one_of(st.just(""), paragraphs))
def test_parsing_the_text_of_a_prompt_gives_the_prompt(prompt, closing):
    prompt = replace(prompt, closing=closing)
    assert parse_prompt(prompt.text, "p") == prompt


@pytest.mark.parametrize("behind", ["", "\n", " \n\n", f"\nNow you.\n\n{GOOD}"])
def test_behind_instructions_stands_a_text_and_no_example(behind):
    with pytest.raises(PromptError, match=r"behind the line 'Instructions:', and no example"):
        parse_prompt(f"{GOOD}Instructions:{behind}", "p")


def test_instructions_may_name_the_end_mark():
    prompt = parse_prompt(f"{GOOD}Instructions: \nEnd with #END#.\n", "p")
    assert (len(prompt.examples), prompt.closing) == (1, "End with #END#.")
    assert parse_prompt(prompt.text, "p") == prompt


def test_instructions_within_an_example_are_a_part_of_it():
    recipe = GOOD.replace("Do it.", "Recipe\nInstructions:\nmix.")
    prompt = parse_prompt(f"{recipe}{GOOD}Instructions:\nNow you.", "p")
    assert [one.context for one in prompt.examples] == [
        "Recipe\nInstructions:\nmix. =>",
        "Do it. =>",
    ]
    assert prompt.closing == "Now you."
    with pytest.raises(PromptError, match=r"example 1 .* does not end with '#END#'"):
        parse_prompt(f"{GOOD}Instructions: now you.", "p")


@pytest.mark.slow
@thorough
@given(prompts)
def test_line_endings_of_windows_make_no_difference(prompt):
    assert parse_prompt(prompt.text.replace("\n", "\r\n"), "p") == prompt


def test_the_shipped_prompt_parses_and_its_text_is_its_own():
    prompt = load_prompt("textcraft")
    assert prompt.name == "textcraft"
    assert len(prompt.examples) == 5
    again = parse_prompt(prompt.text, "textcraft")
    assert again == prompt
    assert again.text == prompt.text
    source = resource("prompts/thread/textcraft.txt").read_text(encoding="utf-8")
    assert parse_prompt(source, "textcraft") == prompt


def test_a_file_of_ones_own_is_given_by_its_path(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(GOOD)
    prompt = load_prompt(path)
    assert prompt.name == "mine"
    assert prompt.examples == (Example("Do it. =>", "print('Done.')\n#END#"),)
    assert prompt.text == GOOD


def test_a_prompt_ends_where_the_next_context_begins():
    # What follows the prompt in a thread reads exactly like the next example.
    prompt = parse_prompt(GOOD)
    assert prompt.text + AGENT.context("Go. =>") == GOOD + "Prompt:\nGo. =>\n\nResponse:\n#START#\n"


def test_the_hash_is_that_of_the_text_that_the_model_reads():
    prompt = parse_prompt(GOOD)
    assert prompt.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()


def test_no_prompt_is_a_prompt_without_examples():
    assert EMPTY.text == ""
    assert EMPTY.examples == ()


def test_a_prompt_can_be_written_in_another_dialect():
    dialect = Dialect(end="END", start="BEGIN")
    text = "Prompt:\nDo it. =>\n\nResponse:\nBEGIN\nprint('Done.')\nEND"
    assert parse_prompt(text, dialect=dialect).examples[0].response.endswith("END")
    with pytest.raises(PromptError, match="has no response"):
        parse_prompt(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; write at least one example"),
        (" \n\t\r\n", "is empty; write at least one example"),
        ("Do it. =>\n#END#\n", "has no example; an example starts with a line 'Prompt:'"),
        ("Prompt: Do it.\nResponse:\n#START#\n#END#", "has no example"),
        (
            "Be brief.\n\nPrompt:\nDo it.\n\nResponse:\n#START#\nx\n#END#",
            "has a text before its first 'Prompt:', which no thread would read: 'Be brief.'",
        ),
        ("Prompt:\nDo it. =>\n", "example 1 .* has no response; .* '#START#'"),
        ("Prompt:\nDo it. =>\n\nResponse:\nprint(1)\n#END#", "example 1 .* has no response"),
        (GOOD + "Prompt:\nDo it. =>\n", "example 2 .* has no response"),
        ("Prompt:\nDo it. =>\n\nResponse:\n#START#\nprint(1)\n", "example 1 .* '#END#'"),
        (GOOD.replace("#END#", "") + GOOD, "example 1 .* does not end with '#END#'"),
    ],
)
def test_what_is_no_prompt_is_named_with_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "mine.txt"
    for content in (text, text.replace("\n", "\r\n")):
        path.write_bytes(content.encode())
        with pytest.raises(PromptError, match=message) as error:
            load_prompt(path)
        assert "mine" in str(error.value)


def test_a_file_in_another_encoding_is_named_with_the_place_and_the_remedy(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes("Prompt:\né".encode("latin-1"))
    with pytest.raises(PromptError, match=r"mine\.txt is not UTF-8 text \(byte 8\); save it"):
        load_prompt(path)


def test_a_byte_order_mark_as_windows_editors_write_it_is_no_part_of_a_prompt(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_prompt(path).text == GOOD


def test_a_name_or_a_path_that_does_not_exist_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no_such"):
        load_prompt("no_such")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        load_prompt(tmp_path / "nowhere.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(FileNotFoundError, match=r"folder\.txt"):
        load_prompt(tmp_path / "folder.txt")


# Instructions


def test_sections_are_prompts_that_instruct():
    text = "Top.\n\n[Solve]\nSolve it.\n\n[Find lamp]\nGo.\n"
    first, second = parse_instructions(text, "x").values()
    assert (first.name, second.name) == ("x: Solve", "x: Find lamp")
    assert first.text == "Top.\nSolve it.\n\n\n"
    assert first.examples == ()
    assert len({first.sha256, second.sha256, EMPTY.sha256}) == 3
    assert repr(first) == "Prompt('x: Solve', instructions, 17 characters)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no section", "has no section"),
        ("[Solve]\n\n[Error]\nWhy?", "[Solve] of the prompt x is empty"),
        ("[Solve]\na\n[Solve]\nb", "[Solve] of the prompt x is there twice"),
        ("[solve]\na", "has no section"),
    ],
)
def test_what_has_no_sections_is_no_file_of_instructions(text, problem):
    with pytest.raises(PromptError, match=re.escape(problem)):
        parse_instructions(text, "x")


def test_instructions_are_found_as_prompts_are(tmp_path):
    assert "Solve" in load_instructions("stateflow/textcraft")
    (tmp_path / "mine.txt").write_text("[Solve]\nDo it.")
    assert list(load_instructions(tmp_path / "mine.txt")) == ["Solve"]
    with pytest.raises(FileNotFoundError, match="no prompt 'stateflow/chess'; known: state"):
        load_instructions("stateflow/chess")
