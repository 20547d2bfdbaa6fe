"""The dialect: its marks, its layout, and stop strings found wherever tokens cut them."""

import pytest
from helpers.sequences import cut
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, QA, Dialect, Stop, find_stop

thorough = settings(deadline=None, max_examples=400)

# Few different characters, some of several bytes, so that stops overlap, repeat and are cut.
texts = st.text("=>#ENDé→🪓\n ", max_size=40)
marks = st.text("=>#END→", min_size=1, max_size=5)
stops = st.one_of(
    st.just(("=>", "#END#")), st.lists(marks, min_size=1, max_size=4, unique=True).map(tuple)
)


def occurrences(text: bytes, stops: tuple[str, ...]) -> list[tuple[int, int]]:
    """The oracle: every place where a stop string stands, as (its end, its number)."""
    return [
        (end, number)
        for number, stop in enumerate(stops)
        for end in range(len(text) + 1)
        if text[:end].endswith(stop.encode())
    ]


def test_an_observation_of_several_lines_stands_on_lines_of_its_own():
    assert AGENT.observed("Got 1 coal") == "Got 1 coal<=\n"
    assert AGENT.observed("[Back]\n$15.95") == "\n[Back]\n$15.95\n<=\n"
    assert QA.observed("\n# a  b\n# 1  2\n# ") == "\n# a  b\n# 1  2\n# <="


@thorough
@given(texts, stops, st.integers(1, 12))
def test_find_stop_is_the_first_that_the_new_bytes_complete(text, stops, new):
    raw = text.encode()
    new = min(new, len(raw))
    completed = [place for place in occurrences(raw, stops) if place[0] > len(raw) - new]
    expected = (min(completed)[0], stops[min(completed)[1]]) if completed else None
    assert find_stop(raw, new, stops) == expected


@thorough
@given(texts, stops, st.lists(st.integers(0, 200), max_size=40))
def test_the_same_stop_is_found_however_the_text_is_cut_into_tokens(text, stops, places):
    raw = text.encode()
    found, seen = None, b""
    for piece in cut(raw, places):
        seen += piece
        found = find_stop(seen, len(piece), stops)
        if found:
            break
    expected = min(occurrences(raw, stops), default=None)
    assert found == (expected and (expected[0], stops[expected[1]]))


def test_stop_that_is_split_over_tokens_and_stop_inside_a_token_are_found():
    assert find_stop(b"find it =", 1, AGENT.stops) is None
    assert find_stop(b"find it =>", 1, AGENT.stops) == (10, "=>")
    assert find_stop(b"find it =>now", 5, AGENT.stops) == (10, "=>")
    assert find_stop(b"#END#\nx =>", 10, AGENT.stops) == (5, "#END#")


def test_the_stop_strings_mean_listening_and_ending():
    assert AGENT.stops == {"=>": Stop.LISTEN, "#END#": Stop.END}


@pytest.mark.parametrize("mark", ["listen", "close", "end", "start"])
@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_an_empty_mark_is_refused_by_name(mark, empty):
    with pytest.raises(ValueError, match=f"{mark} mark is empty"):
        Dialect(**{mark: empty})


@pytest.mark.parametrize(("listen", "end"), [("=>", "=>"), ("=>", "=>END"), ("ENDED", "END")])
def test_a_listen_mark_and_an_end_mark_that_contain_each_other_are_refused(listen, end):
    with pytest.raises(ValueError, match="choose marks that differ"):
        Dialect(listen=listen, end=end)


def test_what_comes_back_ends_the_line_for_agents_and_goes_on_in_answers_to_questions():
    assert AGENT.closed("Done.") == "Done.<=\n"
    assert QA.closed("Done.") == "Done.<="


def test_a_context_reads_like_the_beginning_of_an_example():
    assert AGENT.context("I need wood. =>") == "Prompt:\nI need wood. =>\n\nResponse:\n#START#\n"
    assert AGENT.example("c", "Y#END#").startswith(AGENT.context("c"))


@pytest.mark.parametrize("line", ["> get 1 log =>", ">get", "  > get 1 log", "# > print(t) =>"])
def test_a_line_that_starts_with_an_action_mark_is_an_action(line):
    assert AGENT.is_action(line)


@pytest.mark.parametrize("line", ["", "get 1 log =>", "x > 1", "=> x", "#> x", "1 > 0 =>"])
def test_other_lines_are_no_actions(line):
    assert not AGENT.is_action(line)
