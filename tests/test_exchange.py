"""phi, psi, xi and the observation abstraction: what passes between threads and environment."""

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, COMMANDS, PAGES, QA, Dialect, Stop
from thread_kit.exchange import (
    INSTANTIATED_CHARACTERS,
    Known,
    abstract_own_values,
    abstract_values,
    as_observed,
    exchange_of,
    find_action,
    instantiate,
    mentioned,
    phi_full_sequence,
    phi_last_line,
    psi_full_sequence,
    psi_print,
    xi_after_mark,
)
from thread_kit.requests import Finished, Status
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.thread import own_code

thorough = settings(deadline=None, max_examples=300)

NAMES = ["a", "b", "obj", "obj_ID", "é", "_x1"]

fragments = [
    *("{a}", "{b}", "{obj}", "{obj_ID}", "{é}", "{", "}", "{{a}}", "{a b}", "{}", "{0}", "{a.b}"),
    *(", ", ",", ": ", " ", "\n", "=>", "<=", "#END#", ">", "# >", "\\", "\\1", "x", "é"),
]

# Anything a model may write, with what matters here made likely.
texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(fragments), max_size=12).map("".join),
)
values = st.one_of(
    texts, st.integers(), st.booleans(), st.none(), st.floats(), st.lists(st.text(max_size=3))
)
variables = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
words = st.sampled_from(["oak", "dark oak", "dark", "sign", "dark oak sign", "stick", "7", "a"])
named_words = st.dictionaries(st.sampled_from(["oak", *NAMES]), words, max_size=4)


def sequence(*parts: str) -> Sequence:
    """A sequence whose parts were generated and returned in turn."""
    kinds = (Provenance.GENERATED, Provenance.RETURNED)
    return Sequence(tuple(Span(kinds[n % 2], part, ()) for n, part in enumerate(parts)))


def own(text: str) -> Span:
    return Span(Provenance.GENERATED, text, ())


def finished(status: Status = Status.ENDED, printed: str | None = None, text: str = "") -> Finished:
    return Finished(sequence(text), status, {}, printed)


# instantiate


@thorough
@given(texts, variables)
def test_instantiate_replaces_known_names_in_one_pass_and_leaves_the_rest(text, variables):
    # The oracle walks over the text once, and never looks into what it has put in.
    out, at = "", 0
    while at < len(text):
        name = next(
            (name for name in variables if text.startswith("{" + name + "}", at)),
            None,
        )
        out += text[at] if name is None else str(variables[name])
        at += 1 if name is None else len(name) + 2
    assert instantiate(text, variables) == out


def test_braces_in_a_value_are_text():
    assert instantiate("{a} {b}", {"a": "{b}", "b": "{a}"}) == "{b} {a}"


def test_an_unknown_name_and_other_braces_stay_as_they_are_written():
    text = "{nobody} {a.b} {a[0]} {} {0} { a } {a!r}"
    assert instantiate(text, {"a": 1}) == text


def test_values_that_are_no_text_are_written_as_python_prints_them():
    assert instantiate("{a}, {b}", {"a": ["mug 1", "mug 2"], "b": 50.0}) == (
        "['mug 1', 'mug 2'], 50.0"
    )


def test_a_value_with_backslashes_is_put_in_as_it_is():
    assert instantiate("{a}", {"a": r"\1 \g<0> \n"}) == r"\1 \g<0> \n"


def test_a_text_does_not_grow_without_end():
    long = "a" * (INSTANTIATED_CHARACTERS // 3)
    context = instantiate("Do " + "{x}" * 300, {"x": long})
    assert len(context) <= INSTANTIATED_CHARACTERS
    assert context.startswith("Do " + long + long + "{x}")
    assert instantiate("{x} {y}", {"x": "b" * INSTANTIATED_CHARACTERS, "y": 1}) == "{x} 1"


@pytest.mark.parametrize("length", [1, 10, INSTANTIATED_CHARACTERS])
def test_the_text_of_a_value_is_made_once_however_often_its_name_stands_there(length):
    class Value:
        made = 0

        def __str__(self):
            Value.made += 1
            return "v" * length

    instantiate("{x}" * 3_333, {"x": Value()})
    assert Value.made == 1


@thorough
@given(texts, variables)
def test_mentioned_are_the_variables_whose_names_stand_in_braces(text, variables):
    expected = {name for name in variables if "{" + name + "}" in text}
    found = mentioned(text, variables)
    assert set(found) == expected
    assert all(found[name] is variables[name] for name in found)


# phi


def test_phi_is_the_last_line_instantiated():
    Y = sequence("obj = 'mug'\nI need to find the {obj}. =>")
    assert phi_last_line(Y, {"obj": "mug"}, AGENT) == "I need to find the mug. =>"


def test_phi_starts_behind_the_first_comma_and_keeps_the_others():
    Y = sequence("First, I need the {a}, and b. =>")
    assert phi_last_line(Y, {"a": "x"}, AGENT) == "I need the x, and b. =>"


def test_phi_is_cut_before_it_is_instantiated_so_that_commas_in_values_cut_nothing():
    variables = {"command": "craft 3 sign using 6 planks, 1 stick"}
    Y = sequence("I need to run: {command} =>")
    assert phi_last_line(Y, variables, AGENT) == (
        "I need to run: craft 3 sign using 6 planks, 1 stick =>"
    )


def test_a_comma_without_a_space_cuts_nothing():
    assert phi_last_line(sequence("I need 1,000 logs =>"), {}, AGENT) == "I need 1,000 logs =>"


def test_a_mark_on_a_line_of_its_own_belongs_to_the_line_above():
    Y = sequence("n = 2\nFirst, the place with\nthe {n} rivers, which is\n\n =>")
    assert phi_last_line(Y, {"n": 2}, AGENT) == "which is =>"
    assert phi_last_line(sequence("Name it.\n=>"), {}, QA) == "Name it. =>"
    assert phi_last_line(sequence("=>"), {}, AGENT) == " =>"
    for dialect in (AGENT, QA):
        assert find_action(sequence("> open shed\n=>"), dialect) == "open shed"
        assert find_action(sequence("> open shed\nNo action.\n=>"), dialect) is None


def test_a_line_that_ends_with_its_first_comma_is_kept():
    assert phi_last_line(sequence("Next, =>"), {}, AGENT) == "Next, =>"


@thorough
@given(texts, texts, variables)
def test_phi_is_cut_at_the_first_comma_of_the_last_line_as_it_was_written(before, line, variables):
    line = line.replace("\n", "").replace(AGENT.listen, "")
    assume(line.strip())
    Y = sequence(before + "\n" + line + " =>")
    line = line.rstrip()
    _, comma, rest = line.partition(", ")
    expected = rest if comma and rest else line
    assert phi_last_line(Y, variables, AGENT) == instantiate(expected, variables) + " =>"


@thorough
@given(texts, texts, variables, st.sampled_from([AGENT, QA, Dialect(listen="->", end="END")]))
def test_phi_takes_any_sequence_and_ends_with_the_listen_mark(before, text, variables, dialect):
    for Y in (sequence(before, text), sequence(before, text + dialect.listen)):
        for phi in (phi_last_line, phi_full_sequence):
            assert phi(Y, variables, dialect).endswith(" " + dialect.listen)


def test_phi_of_the_full_sequence_holds_what_came_back_as_well():
    Y = sequence("obj = 'mug'\nFirst, find the {obj}. =>", "Done.<=\n", "Next, wash the {obj}. =>")
    assert phi_full_sequence(Y, {"obj": "mug"}, AGENT) == (
        "obj = 'mug'\nFirst, find the {obj}. =>Done.<=\nNext, wash the mug. =>"
    )


def test_phi_of_the_full_sequence_says_nothing_that_never_was():
    """A variable that is bound anew changes no line above."""
    Y = sequence(
        "place = 'desk 1'\nNext, I check {place}. =>", "No mug.<=\n",
        "place = 'bed 1'\nNext, I check {place}. =>",
    )  # fmt: skip
    assert phi_full_sequence(Y, {"place": "bed 1"}, AGENT) == (
        "place = 'desk 1'\nNext, I check {place}. =>No mug.<=\n"
        "place = 'bed 1'\nNext, I check bed 1. =>"
    )


# psi


def test_psi_is_what_the_last_print_printed_with_its_references():
    assert psi_print(finished(printed="You have found {obj_ID}.")) == "You have found {obj_ID}."


def test_psi_of_a_thread_that_ended_without_a_print_is_empty():
    assert psi_print(finished()) == ""


@pytest.mark.parametrize("status", [status for status in Status if not status.is_end])
def test_psi_of_a_thread_that_did_not_end_says_what_stopped_it(status):
    text = psi_print(finished(status, printed="not the answer"))
    assert str(status) in text
    assert "not the answer" not in text


def test_psi_of_an_end_of_stream_is_the_print():
    assert psi_print(finished(Status.END_OF_STREAM, printed="Done.")) == "Done."


@thorough
@given(st.sampled_from(Status), st.none() | texts, texts)
def test_psi_takes_any_thread(status, printed, text):
    child = finished(status, printed, text)
    assert isinstance(psi_print(child), str)
    assert psi_full_sequence(child) == text


# xi


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("> get 1 {obj} =>", "get 1 oak log"),
        (">get 1 {obj}=>", "get 1 oak log"),
        ("  > get 1 {obj}   =>", "get 1 oak log"),
        ("# > print({obj}) =>", "print(oak log)"),
        ("> put a in/on b, then c =>", "put a in/on b, then c"),
        ("> think: 1 > 0 =>", "think: 1 > 0"),
        (">=>", ""),
    ],
)
def test_xi_is_what_follows_the_action_mark_instantiated(line, action):
    Y = sequence("obj = 'oak log'\n" + line)
    assert xi_after_mark(Y, {"obj": "oak log"}, AGENT) == action


@thorough
@given(
    texts,
    texts,
    variables,
    st.sampled_from([AGENT, QA, Dialect(actions=("> ", "act:")), Dialect(listen=">>")]),
)
def test_xi_takes_any_line_that_is_an_action(before, line, variables, dialect):
    for mark in dialect.actions:
        Y = sequence(before + "\n", mark + line.replace("\n", "") + dialect.listen)
        assert isinstance(xi_after_mark(Y, variables, dialect), str)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("> SELECT 1\nFROM ship =>", "SELECT 1\nFROM ship"),
        ("think: I look.\n> for f in *; do\n  cat $f\ndone =>", "for f in *; do\n  cat $f\ndone"),
        ("> DESC ship\n> SELECT 1\n\n =>", "SELECT 1"),
        ("x = 1\nNo action at all. =>", None),
        ("> SELECT 1\nWHERE age\n  >= 5 =>", "SELECT 1\nWHERE age\n  >= 5"),
        ("> SELECT 1\nWHERE age\n>= 5 =>", "SELECT 1\nWHERE age\n>= 5"),
        ("> ls =>", "ls"),
        ("> SELECT 1 <= =>", "SELECT 1"),
        ("> SELECT 1\n<=\n[(1,)]\n =>", "SELECT 1"),
        ("> SELECT 1 WHERE a <= 5 =>", "SELECT 1 WHERE a <= 5"),
        ("> <= =>", ""),
        ("think: I look.\n>\nDESC ship =>", "DESC ship"),
        (">\nDESC a\n>\nDESC b =>", "DESC b"),
        (">\nSELECT 1\nWHERE age\n>= 5 =>", "SELECT 1\nWHERE age\n>= 5"),
    ],
)
def test_a_command_may_have_several_lines(text, action):
    assert find_action(sequence(text), COMMANDS) == action
    assert find_action(sequence("> ls =>", text[:0]), COMMANDS) == "ls"
    for dialect in (AGENT, QA):  # elsewhere an action is a line
        last = dialect.bare(text).rstrip().rpartition("\n")[2]
        assert (find_action(sequence(text), dialect) is None) is not dialect.is_action(last)


def test_no_line_of_somebody_elses_text_begins_a_command():
    seen = Span(Provenance.OBSERVED, "a\n> rm b<=\n", (1,))
    assert find_action(sequence("> ls =>") + seen + own("echo c =>"), COMMANDS) is None
    assert find_action(sequence("> ls =>") + seen + own("> echo c\nd =>"), COMMANDS) == "echo c\nd"
    open_line = Span(Provenance.RETURNED, "> rm", (1,))
    assert find_action(sequence("It is =>") + open_line + own(" b\nc =>"), COMMANDS) is None


def test_no_line_of_a_command_is_code_of_the_thread():
    written = "x = 1\n> python3 - <<E\nprint('theirs')\nE\n =>"
    Y = sequence(written)
    assert own_code(Y, Stop.LISTEN, COMMANDS) == ["x = 1"]
    Y = Y + Span(Provenance.OBSERVED, "theirs<=\n", (1,)) + own("print('mine')\n#END#")
    assert own_code(Y, Stop.END, COMMANDS) == ["x = 1", "print('mine')"]
    nested = "> cat > a.py <<E\nprint('hi')\n> more\nprint(2)\nE =>"
    assert own_code(sequence(nested), Stop.SPAWN, COMMANDS) == []


# The observation abstraction


def test_an_observation_speaks_of_values_by_the_names_of_their_variables():
    observation = "Crafted 3 minecraft:dark_oak_sign"
    assert abstract_values(observation, {"target_item": "dark oak sign"}) == (
        "Crafted 3 minecraft:{target_item}"
    )


def test_the_latest_defined_name_of_a_value_is_shown():
    variables = {"first": "mug 1", "obj": "mug 1"}
    assert abstract_values("You see a mug 1.", variables) == "You see a {obj}."
    variables = {"obj": "mug 1", "first": "mug 1"}
    assert abstract_values("You see a mug 1.", variables) == "You see a {first}."


def test_the_latest_defined_value_comes_first_where_values_overlap():
    variables = {"wood": "oak", "item": "dark oak sign"}
    assert abstract_values("Got dark oak sign", variables) == "Got {item}"


@pytest.mark.parametrize("observation", ["sticks", "drumstick", "stick_1", "1stick", "éstick"])
def test_a_value_inside_a_word_is_left_alone(observation):
    assert abstract_values(observation, {"item": "stick"}) == observation


def test_a_name_that_was_put_in_is_never_replaced_itself():
    assert abstract_values("mug", {"mug": "obj", "obj": "mug"}) == "{obj}"


def test_a_long_name_for_a_short_value_fills_no_memory():
    name, observation = "n" * 100, ", " * 10_000
    shown = abstract_values(observation, {name: ","})
    assert len(observation) < len(shown) <= INSTANTIATED_CHARACTERS
    assert shown.replace(f"{{{name}}}", ",") == observation
    long = ", " * INSTANTIATED_CHARACTERS
    assert abstract_values(long, {name: ","}) == long
    assert abstract_values(long, {"a": ", , , ,"}) != long
    assert abstract_values("obj mug", {"mug": "obj", "obj": "mug"}) == "{mug} {obj}"


def test_values_that_an_observation_does_not_hold_are_no_part_of_a_pattern(monkeypatch):
    patterns = []

    def sub(pattern, replace, text, sub=re.sub):
        patterns.append(pattern)
        return sub(pattern, replace, text)

    monkeypatch.setattr(re, "sub", sub)
    variables = {f"v{n}": f"value {n}" for n in range(1_000)} | {"long": "mug 1" * 20_000}
    assert abstract_values("a mug 1", variables) == "a mug 1"
    assert patterns == []
    assert abstract_values("a mug 1", variables | {"obj": "mug 1"}) == "a {obj}"
    assert len(patterns) == 1
    assert len(patterns[0]) < 100


def test_values_that_are_no_text_or_blank_name_nothing():
    variables = {"count": 3, "flag": True, "nothing": "", "blank": "  ", "some": ["3"]}
    assert abstract_values("Got 3  logs True", variables) == "Got 3  logs True"


def test_a_value_is_text_and_no_pattern():
    assert abstract_values("a.c abc", {"x": "a.c"}) == "{x} abc"
    assert abstract_values(r"see [A-Z]\d+ now", {"x": r"[A-Z]\d+"}) == r"see {x} now"


@thorough
@given(texts, variables)
def test_abstraction_takes_any_text_and_is_undone_by_instantiation(observation, variables):
    # Braces that the environment wrote itself, and identifier forms, cannot be told apart.
    observation = observation.replace("{", "").replace("}", "").replace("_", "")
    variables = {name: value for name, value in variables.items() if "_" not in str(value)}
    assert instantiate(abstract_values(observation, variables), variables) == observation


@pytest.mark.slow
@thorough
@given(st.lists(st.sampled_from(["dark", "oak", "oaks", "sign", "7", "17", "a", ":"])), named_words)
def test_abstraction_replaces_whole_words_only(words, variables):
    out = abstract_values(" ".join(words), variables)
    for match in re.finditer(r"\{(\w+)\}", out):
        assert match[1] in variables
        assert not re.search(r"\w$", out[: match.start()])
        assert not re.match(r"\w", out[match.end() :])
    # And nothing is left that should have been replaced.
    rest = re.sub(r"\{\w+\}", "{}", out)
    for value in variables.values():
        assert not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", rest)


@thorough
@given(st.lists(words, min_size=1, max_size=5), named_words)
def test_a_value_that_stands_alone_is_shown_by_its_latest_name(observed, variables):
    for word in observed:
        latest = [name for name, value in variables.items() if value == word]
        if latest and not any(value != word and value in word for value in variables.values()):
            assert abstract_values(word, variables) == "{" + latest[-1] + "}"


def test_the_abstraction_can_be_switched_off():
    assert as_observed("Got 1 oak log", {"item": "oak log"}) == "Got 1 oak log"


@pytest.mark.parametrize("printed", [None, "", "{value}", "It is {value} in {place}."])
def test_an_error_that_leaves_an_answer_without_its_value_is_the_answer(printed):
    lost = Finished(
        *(Sequence(), Status.ENDED, {"place": "Ohio"}, printed), error="KeyError: 'Count'"
    )
    assert psi_print(lost) == "KeyError: 'Count'"
    known = replace(lost, variables={"value": 3, "place": "Ohio"})
    assert psi_print(known) == (printed or "KeyError: 'Count'")
    assert psi_print(replace(lost, error=None)) == (printed or "")


def test_a_value_that_a_failed_line_should_have_replaced_is_no_answer():
    stale = Finished(
        *(Sequence(), Status.ENDED, {"value": "oak"}, "It is {value}."), error="KeyError: 'b'"
    )
    assert psi_print(stale) == "It is {value}."
    assert psi_print(replace(stale, lost={"value": "KeyError: 'c'"})) == "KeyError: 'c'"
    assert psi_print(replace(stale, lost={"other": "KeyError: 'c'"})) == "It is {value}."


@pytest.mark.parametrize("dialect", [COMMANDS, PAGES])
def test_what_commands_and_pages_show_keeps_its_words(dialect):
    abstract = exchange_of(dialect)["abstract"]
    assert abstract("[('ship',), ('crossing',)]", {"table": "ship"}) == "[('ship',), ('crossing',)]"


def test_own_names_are_those_that_the_thread_has_assigned_itself():
    variables = {"target": "mug", "item": "mug 1"}
    assert abstract_own_values("a mug 1, a mug", Known(variables, {"item"})) == "a {item}, a mug"
    assert abstract_values("a mug 1, a mug", Known(variables, {"item"})) == "a {item}, a {target}"
    assert exchange_of(AGENT)["abstract"] is abstract_own_values
    assert exchange_of(AGENT, without_examples=True)["abstract"] is abstract_values
    assert exchange_of(QA, without_examples=True)["abstract"] is exchange_of(QA)["abstract"]
