"""Sequences: spans with their provenance, and the lines that a thread may call its own."""

from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.sequence import Provenance, Sequence, Span

thorough = settings(deadline=None, max_examples=300)

spans = st.builds(
    lambda provenance, text: Span(provenance, text, tuple(text.encode())),
    st.sampled_from(Provenance),
    st.text("ab =>\n\r", max_size=8),
)
sequences = st.lists(spans, max_size=8).map(lambda some: Sequence(tuple(some)))


def own_lines_by_character(sequence: Sequence, *, complete: bool) -> list[str]:
    """The oracle: every character carries its provenance, and a line is its characters."""
    lines, line = [], []
    for span in sequence:
        for character in span.text:
            line.append((character, span.provenance))
            if character == "\n":  # whose it is, too: who breaks a line decides that it is one
                lines.append(line)
                line = []
    if complete and line:
        lines.append(line)
    return [
        "".join(character for character, _ in line).removesuffix("\n")
        for line in lines
        if all(provenance is Provenance.GENERATED for _, provenance in line)
    ]


@thorough
@given(sequences, st.booleans())
def test_own_lines_are_those_whose_every_character_was_generated(sequence, complete):
    expected = own_lines_by_character(sequence, complete=complete)
    assert sequence.own_lines(complete=complete) == expected


@thorough
@given(sequences, spans)
def test_own_lines_only_grow_when_a_span_is_added(sequence, span):
    before = sequence.own_lines()
    assert (sequence + span).own_lines()[: len(before)] == before


@thorough
@given(sequences, spans)
def test_adding_a_span_keeps_all_tokens_and_leaves_the_old_sequence_alone(sequence, span):
    text, tokens, number = sequence.text, sequence.tokens, len(sequence)
    longer = sequence + span
    assert longer.tokens == tokens + span.tokens
    assert longer.text == text + span.text
    assert len(longer) == number + len(span) == len(longer.tokens)
    assert (sequence.text, sequence.tokens, len(sequence)) == (text, tokens, number)


@thorough
@given(sequences)
def test_last_line_is_what_follows_the_last_line_break_across_spans(sequence):
    assert sequence.last_line == sequence.text.split("\n")[-1]


def test_a_line_that_a_child_completed_is_nobodys_own():
    sequence = Sequence((
        Span(Provenance.GENERATED, "a = 1\nb =", ()),
        Span(Provenance.RETURNED, " 2\nc = 3\n", ()),
        Span(Provenance.GENERATED, "d = 4\n", ()),
    ))  # fmt: skip
    assert sequence.own_lines() == ["a = 1", "d = 4"]


def test_a_last_line_without_a_break_counts_only_when_nothing_follows():
    sequence = Sequence((Span(Provenance.GENERATED, "a = 1\nb = 2", ()),))
    assert sequence.own_lines() == ["a = 1"]
    assert sequence.own_lines(complete=True) == ["a = 1", "b = 2"]
