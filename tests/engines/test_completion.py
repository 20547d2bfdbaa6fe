"""A call while it is generated: however tokens cut it, the text ends with the first stop string."""

import pytest
from helpers.sequences import cut
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import Stop
from thread_kit.engines.completion import PartialCompletion

thorough = settings(deadline=None, max_examples=500)

STOPS = {"=>": Stop.LISTEN, "#END#": Stop.END}
OTHER_STOPS = {"→": Stop.LISTEN, "🪓": Stop.END}

texts = st.text("=>#ENDé→🪓\n x", max_size=40)
pieces = st.lists(st.integers(0, 200), max_size=60)


class Vocabulary:
    """Tokens 0 to 255 are bytes; those above are the pieces that were handed in."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = [bytes([byte]) for byte in range(256)] + pieces

    def tokenize(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def spell(self, tokens) -> bytes:
        return b"".join(self.pieces[token] for token in tokens)


def grow(pieces: list[bytes], stops=STOPS, max_tokens: int = 10_000):
    """Feed the pieces until the call is over; (the call, its texts, the vocabulary)."""
    vocabulary = Vocabulary(pieces)
    completion = PartialCompletion(7, stops, max_tokens, vocabulary.tokenize)
    texts = []
    for number, piece in enumerate(pieces):
        texts.append(completion.add(256 + number, piece))
        if completion.stop is not None:
            break
    return completion.finish(Stop.END_OF_STREAM), texts, vocabulary


def kept(pieces: list[bytes], stops, max_tokens: int) -> tuple[bytes, Stop]:
    """The oracle: what a call keeps of these pieces, and why it stops."""
    seen = b""
    for number, piece in enumerate(pieces, 1):
        seen += piece
        ends = [
            (end, stop)
            for stop in stops
            for end in range(len(seen) + 1)
            if seen[:end].endswith(stop.encode())
        ]
        if ends:
            end, stop = min(ends)
            return seen[:end], stops[stop]
        if number == max_tokens:
            return seen, Stop.LENGTH
    return seen, Stop.END_OF_STREAM


@thorough
@given(texts, pieces, st.sampled_from([STOPS, OTHER_STOPS]), st.integers(1, 30))
def test_text_is_kept_to_the_end_of_the_first_stop_however_tokens_cut_it(
    text, places, stops, max_tokens
):
    parts = cut(text.encode(), places)
    call, _, _ = grow(parts, stops, max_tokens)
    expected, stop = kept(parts, stops, max_tokens)
    assert call.text == expected.decode("utf-8", "replace")
    assert call.stop is stop


@thorough
@given(texts, pieces, st.sampled_from([STOPS, OTHER_STOPS]), st.integers(1, 30))
def test_tokens_spell_exactly_what_is_kept(text, places, stops, max_tokens):
    parts = cut(text.encode(), places)
    call, _, vocabulary = grow(parts, stops, max_tokens)
    assert vocabulary.spell(call.tokens) == kept(parts, stops, max_tokens)[0]


@thorough
@given(st.binary(max_size=30), pieces)
def test_tokens_spell_the_text_even_of_bytes_that_are_no_characters(raw, places):
    parts = cut(raw + b"=>rest", places)
    call, _, vocabulary = grow(parts)
    assert vocabulary.spell(call.tokens).decode("utf-8", "replace") == call.text


@thorough
@given(texts, pieces, st.sampled_from([STOPS, OTHER_STOPS]), st.integers(1, 30))
def test_texts_of_the_tokens_add_up_to_the_text_of_the_call(text, places, stops, max_tokens):
    parts = cut(text.encode(), places)
    call, texts, _ = grow(parts, stops, max_tokens)
    assert call.stop is Stop.END_OF_STREAM or "".join(texts) == call.text
    assert call.text.startswith("".join(texts))


@thorough
@given(texts, pieces)
def test_a_token_is_replaced_only_where_the_stop_ends_inside_it(text, places):
    parts = cut(text.encode(), places)
    call, texts, _ = grow(parts)
    sampled = [256 + number for number in range(len(texts))]
    whole = b"".join(parts[: len(texts)]) == kept(parts, STOPS, 10_000)[0]
    assert (list(call.tokens) == sampled) is whole


def test_a_stop_inside_a_token_keeps_the_head_of_the_token():
    call, texts, vocabulary = grow([b"find it ", b"=>x = 1\n", b"never"])
    assert (call.text, call.stop) == ("find it =>", Stop.LISTEN)
    assert texts == ["find it ", "=>"]
    assert vocabulary.spell(call.tokens) == b"find it =>"


def test_a_character_that_tokens_cut_before_a_stop_stays_whole():
    # The first byte of é in one token; its second byte, the stop and more in the next.
    call, _, vocabulary = grow([b"caf\xc3", b"\xa9 =>x"])
    assert call.text == "café =>"
    assert vocabulary.spell(call.tokens).decode() == "café =>"


def test_half_a_character_waits_for_its_other_half():
    _, texts, _ = grow([b"\xc3", b"\xa9", b"\xe2\x86", b"\x92!"])
    assert texts == ["", "é", "", "→!"]


def test_a_call_that_is_cancelled_keeps_what_it_has():
    completion = PartialCompletion(3, STOPS, 100, lambda text: tuple(text.encode()))
    completion.add(1, b"so far")
    call = completion.finish(Stop.CANCELLED)
    assert (call.thread, call.text, call.tokens, call.stop) == (3, "so far", (1,), Stop.CANCELLED)


def test_a_stop_that_was_found_outweighs_the_reason_that_is_given_later():
    completion = PartialCompletion(3, STOPS, 100, lambda text: tuple(text.encode()))
    completion.add(1, b"=>")
    assert completion.finish(Stop.CANCELLED).stop is Stop.LISTEN


def test_a_call_that_has_not_stopped_cannot_be_finished_without_a_reason():
    completion = PartialCompletion(3, STOPS, 100, lambda text: tuple(text.encode()))
    with pytest.raises(ValueError, match="thread 3 has not stopped"):
        completion.finish()


def test_text_that_ends_in_a_part_of_a_character_comes_with_the_rest():
    """Byte-level vocabularies have tokens that hold a space and the start of a character."""
    call = PartialCompletion(0, STOPS, 99, lambda text: tuple(text.encode()))
    pieces = [b"So:", b" \xf0\x9f\x98", b"\x80", b" ok"]
    assert [call.add(n, piece) for n, piece in enumerate(pieces)] == ["So:", "", " 😀", " ok"]
    assert call.finish(Stop.CANCELLED).text == "So: 😀 ok"


def test_a_tokenizer_that_fails_leaves_a_call_as_it_was():
    def fail(text: str) -> tuple[int, ...]:
        raise OSError("the server is busy")

    call = PartialCompletion(0, STOPS, 99, fail)
    call.add(1, b"Look")
    with pytest.raises(OSError, match="busy"):
        call.add(2, b" =>\n")
    with pytest.raises(OSError, match="busy"):
        call.add_text(" =>\n")
    over = call.finish(Stop.CANCELLED)
    assert (over.text, over.tokens, over.stop) == ("Look", (1,), Stop.CANCELLED)
