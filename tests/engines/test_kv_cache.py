"""The bookkeeping of the KV cache, against a memory that really stores a token in every cell."""

import pytest
from helpers.sequences import longest_prefix
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thread_kit.engines.kv_cache import KVCache, Memory, common_prefix

thorough = settings(deadline=None, max_examples=300)


class Cells(Memory):
    """Tokens by sequence and position; `forgets`: it can cut a part of a sequence."""

    def __init__(self, sequences: int, forgets: bool = True) -> None:
        self.cells: list[list[int]] = [[] for _ in range(sequences)]
        self.forgets = forgets

    def copy(self, source: int, target: int, length: int) -> None:
        assert self.cells[target] == [], "the target must be empty"
        assert 0 < length <= len(self.cells[source])
        self.cells[target] = self.cells[source][:length]

    def cut(self, sequence: int, length: int) -> bool:
        assert 0 <= length <= len(self.cells[sequence])
        if not self.forgets and 0 < length < len(self.cells[sequence]):
            return False
        del self.cells[sequence][length:]
        return True

    def evaluate(self, sequence: int, tokens: list[int]) -> None:
        self.cells[sequence] += tokens


class Checked:
    """A cache that is compared with its memory after whatever is done to it."""

    def __init__(self, sequences: int, forgets: bool = True) -> None:
        self.memory = Cells(sequences, forgets)
        self.cache = KVCache(self.memory, sequences)
        self.sequences = sequences

    def tokens_of(self, keys) -> dict:
        return {key: list(self.cache.sequence(key).tokens) for key in keys if key in self.cache}

    def check(self, keys) -> None:
        numbers = [self.cache.sequence(key).number for key in keys if key in self.cache]
        assert len(set(numbers)) == len(numbers) == len(self.cache) <= self.sequences
        for key in keys:
            if key in self.cache:
                sequence = self.cache.sequence(key)
                assert self.memory.cells[sequence.number] == sequence.tokens
        for number in set(range(self.sequences)) - set(numbers):
            assert self.memory.cells[number] == [], "a free sequence holds nothing"

    def evaluate(self, key, tokens: list[int]) -> None:
        self.memory.evaluate(self.cache.sequence(key).number, tokens)
        self.cache.extend(key, tokens)


KEYS = [0, 1, 2, 3, "prompt"]

# Two different tokens and short lists, so that prefixes are often shared.
token_lists = st.lists(st.integers(1, 2), min_size=1, max_size=8)
operations = st.lists(
    st.tuples(
        st.sampled_from(["place", "place", "grow", "grow", "drop", "evict"]),
        st.sampled_from(KEYS),
        token_lists,
        st.lists(st.sampled_from(KEYS), max_size=3),
    ),
    max_size=25,
)


@thorough
@given(token_lists, token_lists)
def test_common_prefix_is_what_a_loop_over_the_tokens_finds(a, b):
    assert common_prefix(a, b) == longest_prefix(a, [b]) == common_prefix(b, a)
    assert common_prefix(a, a + b) == len(a)


@pytest.mark.slow
@example(
    [
        ("place", 1, [1], []),
        ("grow", 1, [2], []),
        ("place", 2, [2, 1], []),
        ("place", 0, [2, 1], [2]),  # what shares most has to go; the next best stays
    ],
    2,
    True,
)
@settings(deadline=None, max_examples=400)
@given(operations, st.integers(1, 4), st.booleans())
def test_a_sequence_always_holds_the_tokens_that_are_on_record_for_it(
    operations, sequences, forgets
):
    checked = Checked(sequences, forgets)
    for what, key, tokens, busy in operations:
        before = checked.tokens_of(KEYS)
        match what:
            case "place":
                try:
                    reused = checked.cache.place(key, tokens, busy)
                except RuntimeError:
                    assert len(before) == sequences, "there was a free sequence"
                    assert key not in before, "it had a sequence of its own"
                    assert set(before) <= set(busy), "one that is not busy could make room"
                else:
                    held = checked.cache.sequence(key).tokens
                    assert held == tokens[:reused], "what is reused is a prefix"
                    assert reused < len(tokens), "the last token gives the logits"
                    assert reused <= longest_prefix(tokens[:-1], before.values())
                    if forgets:
                        after = checked.tokens_of(KEYS)
                        assert reused >= longest_prefix(tokens[:-1], after.values())
                    gone = set(before) - set(checked.tokens_of(KEYS))
                    assert not gone & set(busy), "a busy one made room"
                    assert len(gone) <= 1
                    assert not gone or len(before) == sequences
            case "grow" if key in checked.cache:
                checked.evaluate(key, tokens)
                assert checked.cache.sequence(key).tokens == before[key] + tokens
            case "drop":
                checked.cache.drop(key)
                assert key not in checked.cache
                assert set(before) - {key} == set(checked.tokens_of(KEYS))
            case "evict":
                gone = checked.cache.evict(busy)
                assert set(before) - set(checked.tokens_of(KEYS)) == (
                    {gone} if gone is not None else set()
                )
                assert gone not in busy
                assert gone is not None or not set(before) - set(busy)
        checked.check(KEYS)
        for other, held in checked.tokens_of(KEYS).items():
            if other != key and other in before:
                assert held == before[other], "nobody else's sequence changes"


def test_a_spawn_shares_the_prompt_and_evaluates_only_its_context():
    checked = Checked(4)
    assert checked.cache.place("prompt", [1, 2, 3, -1]) == 0
    checked.evaluate("prompt", [1, 2, 3])
    assert checked.cache.place(0, [1, 2, 3, 40, 41]) == 3
    checked.evaluate(0, [40, 41])
    assert checked.cache.place(1, [1, 2, 3, 40, 50, 51]) == 4
    checked.check([0, 1, "prompt"])


def test_a_parent_goes_on_behind_all_that_it_holds_however_many_children_it_had():
    checked = Checked(3)
    checked.cache.place(0, [1, 2, 3, 4])
    checked.evaluate(0, [1, 2, 3, 4])
    for _ in range(3):
        checked.cache.place(1, [1, 9, 9])
        checked.evaluate(1, [9, 9])
        checked.cache.drop(1)
    assert checked.cache.place(0, [1, 2, 3, 4, 5, 6]) == 4


def test_the_longest_prefix_wins_also_over_ones_own():
    checked = Checked(3)
    checked.cache.place(0, [1, 2])
    checked.evaluate(0, [1])
    checked.cache.place(1, [1, 2, 3, 4, 5])
    checked.evaluate(1, [2, 3, 4, 5])
    assert checked.cache.place(0, [1, 2, 3, 4, 6]) == 4
    checked.check([0, 1])


def test_a_whole_context_that_is_cached_still_leaves_its_last_token():
    checked = Checked(3)
    checked.cache.place(0, [1, 2, 3])
    checked.evaluate(0, [1, 2, 3])
    assert checked.cache.place(1, [1, 2, 3]) == 2
    assert checked.cache.place(0, [1, 2, 3]) == 2
    checked.check([0, 1])


def test_the_coldest_makes_room():
    checked = Checked(3)
    for key in (0, 1, 2):
        checked.cache.place(key, [key + 10, 5])
        checked.evaluate(key, [key + 10])
    checked.cache.sequence(0)  # used: 1 is the coldest now
    checked.cache.place(3, [99, 5])
    assert [key in checked.cache for key in (0, 1, 2, 3)] == [True, False, True, True]
    assert checked.cache.evict([]) == 2


def test_a_busy_sequence_never_makes_room():
    checked = Checked(2)
    for key in (0, 1):
        checked.cache.place(key, [key + 10, 5])
        checked.evaluate(key, [key + 10])
    checked.cache.place(2, [99, 5], busy=[0])
    assert [key in checked.cache for key in (0, 1, 2)] == [True, False, True]
    with pytest.raises(RuntimeError, match=r"all 2 sequences .* are generating; load .* more"):
        checked.cache.place(3, [98, 5], busy=[0, 2])
    assert checked.cache.evict([0, 2]) is None
    checked.check([0, 1, 2, 3])


def test_one_sequence_is_enough_for_one_thread_after_the_other():
    # The only sequence holds the prompt, which nobody is busy with: it has to make room.
    checked = Checked(1)
    checked.cache.place("prompt", [1, 2, -1])
    checked.evaluate("prompt", [1, 2])
    assert checked.cache.place(0, [1, 2, 3]) <= 2
    assert 0 in checked.cache
    checked.check([0, "prompt"])


def test_a_memory_that_cannot_forget_a_part_is_evaluated_again():
    checked = Checked(2, forgets=False)
    checked.cache.place(0, [1, 2, 3, 4])
    checked.evaluate(0, [1, 2, 3, 4])
    assert checked.cache.place(0, [1, 2, 9]) == 0
    checked.check([0])


def test_a_prompt_that_shares_more_than_a_batch_with_another_is_evaluated_to_its_end():
    checked = Checked(3, forgets=False)
    checked.cache.place("first", [*range(10), -1])
    checked.evaluate("first", [*range(10)])
    prompt, done = [*range(8), 20, 21, 22, 23], []
    for _ in range(5):  # as an engine does: what is there is asked for anew at each batch
        done.append(checked.cache.place("second", [*prompt, -1]))
        checked.evaluate("second", prompt[done[-1] : done[-1] + 3])
        checked.check(["first", "second"])
    assert done == [0, 3, 6, 9, 12]
    assert checked.cache.place(0, [*prompt, 24]) == 12, "what need not be cut is still shared"


def test_dropping_what_is_not_there_does_nothing():
    checked = Checked(2)
    checked.cache.drop(7)
    assert len(checked.cache) == 0


def test_a_thread_that_goes_on_after_its_end_is_as_warm_as_any_other():
    checked = Checked(2)
    for key in (0, 1):
        checked.cache.place(key, [key + 10, 5])
        checked.evaluate(key, [key + 10])
    checked.cache.retire(1)
    checked.cache.place(1, [11, 6])
    assert checked.cache.evict([]) == 0, "0 is the coldest, and 1 is no longer over"
